//! What is asked of an authority, and its reply.

use sha2::{Digest as _, Sha256};

use super::TokenFault;
use super::der::{BOOLEAN, Elements, INTEGER, NULL, OCTETS, OID, SEQUENCE, UTF8, element, number};
use super::oid;

/// A request to stamp a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StampRequest {
    /// The SHA-256 of the text.
    pub(super) imprint: [u8; 32],
    /// What the reply repeats, so that it cannot be an older one.
    pub(super) nonce: u64,
}

impl StampRequest {
    /// Of a text, with a nonce.
    pub(crate) fn of(text: &str, nonce: u64) -> Self {
        Self { imprint: Sha256::digest(text.as_bytes()).into(), nonce }
    }

    /// The nonce.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Its bytes. The reply is to have the certificates that it is verified with.
    pub(crate) fn der(&self) -> Vec<u8> {
        let algorithm = element(SEQUENCE, &[&element(OID, &[oid::SHA_256]), &element(NULL, &[])]);
        let imprint = element(SEQUENCE, &[&algorithm, &element(OCTETS, &[&self.imprint])]);
        let nonce = element(INTEGER, &[&number(self.nonce)]);
        element(SEQUENCE, &[&element(INTEGER, &[&[1]]), &imprint, &nonce, &element(BOOLEAN, &[&[0xff]])])
    }
}

/// The token in a reply, unless the authority refused, or it is no reply.
pub(crate) fn token_of(reply: &[u8]) -> Result<&[u8], TokenFault> {
    let mut reply = Elements::only(reply, SEQUENCE)?.elements();
    let mut status = reply.take(SEQUENCE)?.elements();
    // Granted, or granted with changes.
    let code = status.take(INTEGER)?.content;
    if !matches!(code, [0 | 1]) {
        let texts = status.take_if(SEQUENCE)?.map(|texts| texts.elements());
        let text = match texts.map(|mut texts| texts.take_if(UTF8)).transpose()?.flatten() {
            Some(text) => format!(": {}", String::from_utf8_lossy(text.content)),
            None => String::new(),
        };
        let code = code.last().copied().unwrap_or_default();
        return Err(TokenFault::Invalid(format!("the authority refused the request with status {code}{text}")));
    }
    let token = reply.take(SEQUENCE)?;
    reply.end()?;
    Ok(token.whole)
}

#[cfg(test)]
mod tests {
    use super::{StampRequest, TokenFault, token_of};
    use crate::timestamp::der::{INTEGER, SEQUENCE, UTF8, element};

    #[test]
    fn a_request_has_the_bytes_that_openssl_makes_of_the_same_text_and_nonce() {
        // `printf abc | openssl ts -query -data - -sha256 -cert` has this, with a nonce of its own.
        let expected = "303d020101303130 0d0609608648016503040201 05000420 \
                        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 02020081 0101ff";
        let found: String = StampRequest::of("abc", 0x81).der().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = expected.replace(' ', "");
        assert_eq!(found, expected);
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_authority() {
        let texts = element(SEQUENCE, &[&element(UTF8, &[b"too many requests"])]);
        let refused = element(SEQUENCE, &[&element(SEQUENCE, &[&element(INTEGER, &[&[2]]), &texts])]);
        let Err(TokenFault::Invalid(reason)) = token_of(&refused) else { panic!("it is refused") };
        assert_eq!(reason, "the authority refused the request with status 2: too many requests");
        let without = element(SEQUENCE, &[&element(SEQUENCE, &[&element(INTEGER, &[&[0]])])]);
        assert!(token_of(&without).is_err() && token_of(b"<html>").is_err() && token_of(b"").is_err());
    }
}

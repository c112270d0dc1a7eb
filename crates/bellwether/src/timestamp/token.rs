//! A token: signed data of CMS around the words of the authority.

use chrono::{DateTime, NaiveDateTime, Utc};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use webpki::{EndEntityCert, Error as CertificateError, KeyUsage, anchor_from_trusted_cert};

use super::der::{
    BOOLEAN, CONTEXT_0, CONTEXT_1, Element, Elements, INTEGER, OCTETS, OID, SEQUENCE, SET, TIME, element, number,
};
use super::{StampRequest, TokenFault, oid};

/// The certificates of authorities that the caller trusts.
#[derive(Debug)]
pub(crate) struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Of a PEM file, which has one or several; a sentence, if it has none, or something that is none.
    pub(crate) fn of_pem(text: &[u8]) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| format!("it is not a PEM file: {error}"))?;
        if certificates.is_empty() {
            return Err("it has no certificate".to_owned());
        }
        for certificate in &certificates {
            anchor_from_trusted_cert(certificate).map_err(|error| format!("a certificate is invalid: {error:?}"))?;
        }
        Ok(Self(certificates))
    }
}

/// What an authority said, as it stands: nothing of it is verified yet.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    /// When it saw the digest.
    pub(crate) at: DateTime<Utc>,
    /// The algorithm of the digest, and the digest.
    imprint: (&'a [u8], &'a [u8]),
    nonce: Option<&'a [u8]>,
    /// Its words, which the signature covers.
    words: &'a [u8],
    certificates: Vec<&'a [u8]>,
    /// The digest algorithm of the signature.
    digest: &'a [u8],
    /// What is signed: attributes, with the digest of the words among them.
    attributes: Element<'a>,
    /// The algorithm of the signature, with its parameters.
    algorithm: Element<'a>,
    signature: &'a [u8],
}

impl<'a> Token<'a> {
    /// Reads one.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, TokenFault> {
        let mut content = Elements::only(bytes, SEQUENCE)?.elements();
        expect(&mut content, oid::SIGNED_DATA)?;
        let mut signed = Elements::only(content.take(CONTEXT_0)?.content, SEQUENCE)?.elements();
        signed.take(INTEGER)?;
        signed.take(SET)?;
        let mut wrapped = signed.take(SEQUENCE)?.elements();
        expect(&mut wrapped, oid::TIME_STAMP)?;
        let words = Elements::only(wrapped.take(CONTEXT_0)?.content, OCTETS)?.content;
        let mut certificates = Vec::new();
        if let Some(all) = signed.take_if(CONTEXT_0)? {
            let mut all = all.elements();
            while let Some(certificate) = all.next()? {
                certificates.push(certificate.whole);
            }
        }
        signed.take_if(CONTEXT_1)?;
        let mut signers = signed.take(SET)?.elements();
        let mut signer = signers.take(SEQUENCE)?.elements();
        signers.end()?;
        signer.take(INTEGER)?;
        // The certificate is found by its digest, which is signed.
        signer.next()?;
        let digest = signer.take(SEQUENCE)?.elements().take(OID)?.content;
        let attributes = signer.take(CONTEXT_0)?;
        let algorithm = signer.take(SEQUENCE)?;
        let signature = signer.take(OCTETS)?.content;
        let Words { at, imprint, nonce } = Words::read(words)?;
        Ok(Self { at, imprint, nonce, words, certificates, digest, attributes, algorithm, signature })
    }

    /// Checks that it answers a request.
    pub(crate) fn check_answers(&self, request: &StampRequest) -> Result<(), TokenFault> {
        if self.imprint != (oid::SHA_256, &request.imprint[..]) {
            return Err(TokenFault::Invalid("it is about another text".to_owned()));
        }
        match self.nonce == Some(&number(request.nonce)) {
            true => Ok(()),
            false => Err(TokenFault::Invalid("it has another nonce than the request".to_owned())),
        }
    }

    /// Checks that it is signed with the key of a certificate that authorities issued for time-stamping, and that was valid
    /// then. Without authorities, checks the signature alone.
    pub(crate) fn check_signed(&self, authorities: Option<&Authorities>) -> Result<(), TokenFault> {
        if self.attribute(oid::CONTENT_TYPE, OID)?.content != oid::TIME_STAMP {
            return Err(TokenFault::Invalid("its signature is about something else than a time-stamp".to_owned()));
        }
        let expected = digest(self.digest, self.words)?;
        if self.attribute(oid::MESSAGE_DIGEST, OCTETS)?.content != expected {
            return Err(TokenFault::Invalid("its words are not the ones that were signed".to_owned()));
        }
        let trusted = authorities.iter().flat_map(|authorities| authorities.0.iter().map(|it| it.as_ref()));
        let certificates: Vec<&[u8]> = self.certificates.iter().copied().chain(trusted).collect();
        let certificate = CertificateDer::from(self.signer(&certificates)?);
        let signer = EndEntityCert::try_from(&certificate).map_err(|error| certificate_fault(&error))?;
        self.check_signature(&signer)?;
        let Some(authorities) = authorities else { return Ok(()) };
        let anchors = authorities.0.iter().map(anchor_from_trusted_cert).collect::<Result<Vec<_>, _>>();
        let anchors = anchors.map_err(|error| certificate_fault(&error))?;
        let others: Vec<CertificateDer<'_>> = self.certificates.iter().map(|it| CertificateDer::from(*it)).collect();
        let seconds = u64::try_from(self.at.timestamp()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let usage = KeyUsage::required(oid::TIME_STAMPING);
        let path = signer.verify_for_usage(algorithms(), &anchors, &others, time, usage, None, None);
        path.map(drop).map_err(|error| certificate_fault(&error))
    }

    /// The certificate that the signature names by its digest.
    fn signer<'c>(&self, certificates: &[&'c [u8]]) -> Result<&'c [u8], TokenFault> {
        let Ok(named) = self.attribute(oid::SIGNING_CERTIFICATE, SEQUENCE) else {
            let reason = "it names its certificate by SHA-1 or not at all, which this program does not accept";
            return Err(TokenFault::Unsupported(reason.to_owned()));
        };
        let mut first = named.elements().take(SEQUENCE)?.elements().take(SEQUENCE)?.elements();
        let algorithm = match first.take_if(SEQUENCE)? {
            Some(algorithm) => algorithm.elements().take(OID)?.content,
            None => oid::SHA_256,
        };
        let expected = first.take(OCTETS)?.content;
        for certificate in certificates {
            if digest(algorithm, certificate)? == expected {
                return Ok(certificate);
            }
        }
        Err(TokenFault::Invalid("it does not have the certificate that it is signed with".to_owned()))
    }

    /// Checks the signature of the attributes.
    fn check_signature(&self, signer: &EndEntityCert<'_>) -> Result<(), TokenFault> {
        // They are signed as a set, whatever their tag in the token.
        let mut signed = self.attributes.whole.to_vec();
        signed[0] = SET;
        let name = self.algorithm.elements().take(OID)?.content;
        let name = match (name, self.digest) {
            (oid::RSA, oid::SHA_256) => oid::RSA_SHA_256,
            (oid::RSA, oid::SHA_384) => oid::RSA_SHA_384,
            (oid::RSA, oid::SHA_512) => oid::RSA_SHA_512,
            (name, _) => name,
        };
        let begin = element(OID, &[name]);
        // The parameters of PSS say which one it is.
        let is_it = |algorithm: &&&dyn SignatureVerificationAlgorithm| match algorithm.signature_alg_id() {
            id if name == oid::RSA_PSS => *id == *self.algorithm.content,
            id => id.starts_with(&begin),
        };
        for algorithm in algorithms().iter().filter(is_it) {
            match signer.verify_signature(*algorithm, &signed, self.signature) {
                Ok(()) => return Ok(()),
                Err(CertificateError::InvalidSignatureForPublicKey) => {
                    return Err(TokenFault::Invalid("its signature is wrong".to_owned()));
                }
                // Of another curve.
                Err(_) => {}
            }
        }
        Err(TokenFault::Unsupported("this program cannot check the algorithm of its signature".to_owned()))
    }

    /// The value of a signed attribute, which it has once.
    fn attribute(&self, name: &[u8], tag: u8) -> Result<Element<'a>, TokenFault> {
        let mut all = self.attributes.elements();
        let mut found = None;
        while let Some(attribute) = all.next()? {
            let mut parts = attribute.elements();
            if parts.take(OID)?.content != name {
                continue;
            }
            if found.replace(Elements::only(parts.take(SET)?.content, tag)?).is_some() {
                return Err(TokenFault::Invalid("it has a signed attribute twice".to_owned()));
            }
        }
        found.ok_or_else(|| TokenFault::Invalid("it lacks a signed attribute".to_owned()))
    }
}

/// What an authority says.
struct Words<'a> {
    at: DateTime<Utc>,
    imprint: (&'a [u8], &'a [u8]),
    nonce: Option<&'a [u8]>,
}

impl<'a> Words<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, TokenFault> {
        let mut words = Elements::only(bytes, SEQUENCE)?.elements();
        words.take(INTEGER)?;
        words.take(OID)?;
        let mut imprint = words.take(SEQUENCE)?.elements();
        let algorithm = imprint.take(SEQUENCE)?.elements().take(OID)?.content;
        let imprint = (algorithm, imprint.take(OCTETS)?.content);
        words.take(INTEGER)?;
        let at = instant(words.take(TIME)?.content)?;
        // How exact the time is, and whether its tokens are in order.
        words.take_if(SEQUENCE)?;
        words.take_if(BOOLEAN)?;
        let nonce = words.take_if(INTEGER)?.map(|nonce| nonce.content);
        Ok(Self { at, imprint, nonce })
    }
}

/// The next element, which is an identifier.
fn expect(elements: &mut Elements<'_>, name: &[u8]) -> Result<(), TokenFault> {
    match elements.take(OID)?.content == name {
        true => Ok(()),
        false => Err(TokenFault::Invalid("it is not a time-stamp token: it is another kind of signed data".to_owned())),
    }
}

/// A time: `20261120213000Z`, with parts of a second or without.
fn instant(text: &[u8]) -> Result<DateTime<Utc>, TokenFault> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.strip_suffix('Z'));
    let parsed = parsed.and_then(|text| NaiveDateTime::parse_from_str(text, "%Y%m%d%H%M%S%.f").ok());
    parsed.map(|time| time.and_utc()).ok_or_else(|| TokenFault::Invalid("its time is not a time in UTC".to_owned()))
}

/// The digest of bytes by an algorithm.
fn digest(algorithm: &[u8], bytes: &[u8]) -> Result<Vec<u8>, TokenFault> {
    match algorithm {
        oid::SHA_256 => Ok(Sha256::digest(bytes).to_vec()),
        oid::SHA_384 => Ok(Sha384::digest(bytes).to_vec()),
        oid::SHA_512 => Ok(Sha512::digest(bytes).to_vec()),
        _ => Err(TokenFault::Unsupported("it uses a digest other than SHA-256, SHA-384 and SHA-512".to_owned())),
    }
}

/// The signatures that this program checks.
fn algorithms() -> &'static [&'static dyn SignatureVerificationAlgorithm] {
    default_provider().signature_verification_algorithms.all
}

/// Why a certificate is not one that counts.
fn certificate_fault(error: &CertificateError) -> TokenFault {
    let reason = match error {
        CertificateError::UnknownIssuer => "its certificate was not issued by a given authority",
        CertificateError::CertExpired { .. } | CertificateError::CertNotValidYet { .. } => {
            "a certificate was not valid at its time"
        }
        CertificateError::RequiredEkuNotFoundContext(_) => "its certificate is not for time-stamping",
        CertificateError::InvalidSignatureForPublicKey => "the signature of a certificate is wrong",
        other => {
            let what = format!("its certificates cannot be checked: {other:?}");
            return match format!("{other:?}").starts_with("Unsupported") {
                true => TokenFault::Unsupported(what),
                false => TokenFault::Invalid(what),
            };
        }
    };
    TokenFault::Invalid(reason.to_owned())
}

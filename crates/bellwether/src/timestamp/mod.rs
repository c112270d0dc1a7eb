//! Time-stamps of RFC 3161: what is asked of an authority, and what its tokens say.
//!
//! A token is CMS signed data: the authority says that it saw a digest at a time. It is read as DER of definite lengths, and
//! verified without a network: the digest and the nonce of the request, the signature, and the certificate, which has to be
//! issued by an authority that the caller trusts, for time-stamping, and valid at that time. Whether it was revoked since
//! is not asked. What is wrong and what this program cannot check are two things.

mod der;
mod request;
mod token;

use std::fmt;

use der::NotDer;

pub(crate) use request::{StampRequest, token_of};
pub(crate) use token::{Authorities, Token};

/// Why a token proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// It is wrong.
    Invalid(String),
    /// This program cannot check it.
    Unsupported(String),
}

impl fmt::Display for TokenFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) | Self::Unsupported(reason) => formatter.write_str(reason),
        }
    }
}

impl From<NotDer> for TokenFault {
    fn from(NotDer(what): NotDer) -> Self {
        Self::Invalid(format!("it is not a time-stamp token: {what}"))
    }
}

/// Object identifiers, as DER has them.
mod oid {
    pub(super) const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
    pub(super) const TIME_STAMP: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4];
    pub(super) const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
    pub(super) const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];
    pub(super) const SIGNING_CERTIFICATE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 47];
    pub(super) const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
    pub(super) const SHA_384: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2];
    pub(super) const SHA_512: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3];
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
    pub(super) const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];
    pub(super) const RSA_SHA_256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
    pub(super) const RSA_SHA_384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12];
    pub(super) const RSA_SHA_512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13];
    /// The use of a certificate.
    pub(super) const TIME_STAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
}

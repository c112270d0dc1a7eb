//! Failures that several stages of a run share.

use crate::error::{Error, ErrorKind};
#[cfg(feature = "spark")]
use crate::spark::SparkError;

/// A base address without the service, by what it answered to one of its operations.
pub(super) fn wrong_address(address: &str, status: u16, setting: &str, lacking: &str) -> Error {
    Error::new(ErrorKind::Service, format!("`GET {address}` answered {status}: is `{setting}` correct?"))
        .with_hint(format!("check the address; if it is correct, the service no longer offers {lacking}"))
}

#[cfg(feature = "spark")]
impl From<SparkError> for Error {
    fn from(error: SparkError) -> Self {
        let kind = match error {
            SparkError::Unreachable { .. } => ErrorKind::Temporary,
            _ => ErrorKind::Service,
        };
        let hint = match error {
            SparkError::Unreachable { .. } => {
                "check that a Spark Connect server listens there (`sbin/start-connect-server.sh`), and run the same command again"
            }
            SparkError::Denied { .. } => {
                "set `SPARK_CONNECT_AUTHENTICATE_TOKEN`, which is sent with `/;use_ssl=true` at the end of the address, or to \
                 this machine"
            }
            SparkError::Refused { .. } => {
                "every worker must be able to read the archive: keep it in a store, or on a file system that all of them have"
            }
            SparkError::Failed { .. } => {
                "the log of the driver says more; every worker must be able to read the archive and write the output"
            }
            SparkError::Answer { .. } => "use Spark 4",
        };
        let (message, reason) = (error.to_string(), std::error::Error::source(&error).map(ToString::to_string));
        let failure = Self::new(kind, message).with_hint(hint);
        match reason {
            Some(reason) => failure.with_source(reason),
            None => failure,
        }
    }
}

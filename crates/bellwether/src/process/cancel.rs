//! Cancelling: work that takes a while checks a token at each step, which takes milliseconds.

pub use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// Fails if the token is cancelled.
pub(crate) fn check(stop: &CancellationToken) -> Result<()> {
    if stop.is_cancelled() { Err(Error::interruption()) } else { Ok(()) }
}

//! Blocking work.

use tokio::task::spawn_blocking;

use crate::error::{Error, Result};

/// Runs blocking work off the runtime's own threads.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::worker(panic)))
}

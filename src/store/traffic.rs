//! HTTP to a store: bounded in time, with waits that the store requests.

use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::tls;

/// The longest silence in an answer, and the longest time to send a part of a file.
const STALL: Duration = Duration::from_secs(120);

/// The longest requested wait that is honoured.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The retries of a request, which are bounded in number and time.
pub(super) fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(15), base: 2.0 };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(150) }
}

/// Makes clients that honour requested waits.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // A large object may take longer than any fixed time, so the limit is on silence.
        let options = options.clone().with_timeout_disabled().with_read_timeout(STALL);
        tls::use_ring();
        let client = ReqwestConnector::default().connect(&options)?;
        Ok(HttpClient::new(Patient(client)))
    }
}

/// A client that waits as long as a failed answer requests, before the retry.
#[derive(Debug)]
struct Patient(HttpClient);

#[async_trait]
impl HttpService for Patient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let method = request.method().clone();
        let response = self.0.execute(request).await?;
        let status = response.status();
        tracing::debug!(%method, %status, "a store answered");
        if let Some(wait) = wait(&response) {
            tracing::info!(%status, seconds = wait.as_secs(), "waiting as the store requests");
            tokio::time::sleep(wait).await;
        }
        Ok(response)
    }
}

/// The wait that a failed answer requests.
fn wait(response: &HttpResponse) -> Option<Duration> {
    let is_busy = matches!(response.status().as_u16(), 429 | 503);
    let seconds: u64 = response.headers().get("retry-after").filter(|_| is_busy)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

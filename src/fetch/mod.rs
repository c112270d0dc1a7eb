//! Asks the service, politely and stubbornly, and returns bodies.
//!
//! The key is added to a request at the last moment and never leaves it: errors name host, port and request, and no
//! redirect is followed. At most [`CONNECTIONS`] requests are under way at once. What a body means is not known here.

mod failure;
mod retry;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use reqwest::redirect;
use tokio::sync::Semaphore;
use url::Url;

use crate::error::{Error, Result};
use crate::interface::Base;
use crate::plan::Request;
use crate::secret::ApiKey;
use crate::time::Clock;

use failure::Failure;
use retry::{Schedule, Verdict};

/// How many requests are under way at once.
pub const CONNECTIONS: usize = 8;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the service may be silent in the middle of an answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The two base addresses of a service.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Signals.
    pub signals: Url,
    /// News and sentiment.
    pub sentiment: Url,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The body, whole.
    pub body: Bytes,
    /// The HTTP status.
    pub status: u16,
    /// How often it was asked for.
    pub attempts: u32,
    /// When the body was complete.
    pub observed_at: DateTime<Utc>,
}

/// A client of one service.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    addresses: Addresses,
    key: ApiKey,
    clock: Clock,
    free: Semaphore,
}

impl Client {
    /// A client that has not connected yet.
    ///
    /// # Errors
    ///
    /// When the system's certificates or its resolver cannot be set up.
    pub fn new(addresses: Addresses, key: ApiKey, clock: Clock) -> Result<Self> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(STALL_TIMEOUT)
            .build()
            .map_err(|error| Error::Client { source: error.without_url().into() })?;
        Ok(Self { http, addresses, key, clock, free: Semaphore::new(CONNECTIONS) })
    }

    /// Asks until there is an answer, or no use in asking again.
    ///
    /// # Errors
    ///
    /// When the service refuses the key or the request, or does not answer however often it is asked.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the request; nothing else is touched.
    pub async fn get(&self, request: &Request) -> Result<Reply> {
        let _permit = self.free.acquire().await.expect("the semaphore is never closed");
        let mut schedule = Schedule::new();
        loop {
            let failure = match self.attempt(request).await {
                Ok((status, body)) => {
                    let attempts = schedule.attempts() + 1;
                    return Ok(Reply { body, status, attempts, observed_at: self.clock.now() });
                }
                Err(failure) => failure,
            };
            match retry::verdict(&failure) {
                Verdict::GiveUp => return Err(self.error(request, failure)),
                Verdict::AskAgain { hint } => match schedule.next(hint) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(self.error(request, failure)),
                },
            }
        }
    }

    async fn attempt(&self, request: &Request) -> Result<(u16, Bytes), Failure> {
        let response = self.http.get(self.url(request)).send().await.map_err(Failure::transport)?;
        let status = response.status();
        if status.is_success() {
            let body = response.bytes().await.map_err(Failure::transport)?;
            return Ok((status.as_u16(), body));
        }
        Err(Failure::of_status(response).await)
    }

    /// The address of a request, with the key: to be given to the HTTP client and to nobody else.
    fn url(&self, request: &Request) -> Url {
        let mut url = self.base(request).clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), request.path());
        url.set_path(&path);
        url.query_pairs_mut().extend_pairs(request.query()).append_pair("api_key", self.key.expose());
        url
    }

    fn base(&self, request: &Request) -> &Url {
        match request.endpoint.base() {
            Base::Signals => &self.addresses.signals,
            Base::Sentiment => &self.addresses.sentiment,
        }
    }

    fn error(&self, request: &Request, failure: Failure) -> Error {
        failure.into_error(host_of(self.base(request)), request.to_string())
    }
}

/// Host and port of an address: all of it that an error may show.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

//! Requests data from the service, with limits and retries, and passes bodies on as they arrive.
//!
//! The key is added to a request at the last moment and never leaves it: errors name host, port and request, redirects
//! are not followed, a proxy sees only TLS, and a body that echoes the key is masked. Concurrency, requests per second,
//! attempts, retry time and the time for a body are all bounded. Nothing here interprets a body.

mod body;
mod chunks;
mod failure;
mod gauge;
mod retry;
mod route;
mod unpack;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{StatusCode, redirect};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

pub(crate) use body::{Body, BodySummary};
pub(crate) use failure::{ReadFault, Refusal, is_absence};
pub(crate) use gauge::Gauge;

use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::interface::{Base, Endpoint};
use crate::key::ApiKey;
use crate::net::address::host_of;
use crate::net::tls;
use crate::plan::{Asking, Request, RequestLimits};
use crate::time::Clock;
use crate::time::skew::Skew;

use body::{BodyOptions, Evidence, date_of, read_body};
use failure::Failure;
use retry::{RateLimiter, RetrySchedule, RetryVerdict};
use route::Route;

/// How long the head of an answer to a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The two base addresses of a service.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// Signals.
    pub signals: Url,
    /// News and sentiment.
    pub sentiment: Url,
    /// How they are asked.
    pub asking: Asking,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseHead {
    /// The HTTP status.
    pub status: u16,
    /// What time it is for the service.
    pub date: Option<DateTime<Utc>>,
    /// Whether the body is a web page.
    pub is_page: bool,
}

/// Whether this machine's clock is known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockTrust {
    /// Another clock agrees with it, or it is none of a machine: that of the service is not asked.
    Confirmed,
    /// Only the service's clock can tell.
    Unconfirmed,
}

/// A header with the key.
fn header_of(name: &str, key: &ApiKey) -> Result<(HeaderName, HeaderValue)> {
    match (HeaderName::try_from(name), HeaderValue::from_bytes(key.expose().as_bytes())) {
        (Ok(name), Ok(mut value)) => {
            value.set_sensitive(true);
            Ok((name, value))
        }
        _ => Err(Error::new(ErrorKind::Key, format!("the API key cannot be sent in the header `{name}`"))
            .with_hint("a header has no control characters: check the key")),
    }
}

/// The address that a redirect leads to, if it is at the same scheme, host and port.
fn redirect_target(first: &Url, asked: &Url, response: &reqwest::Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    let mut next = asked.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    // The query may be left out, and the key with it.
    if next.query().is_none() {
        next.set_query(first.query());
    }
    (next.origin() == first.origin()).then_some(next)
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Answered<T> {
    /// What the reader returned.
    Taken(T),
    /// The service has nothing to say to it, or does not say it to us.
    Refused(Refusal),
    /// The request failed, and others may not.
    Failed(Error),
}

/// A client of one service.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    asking: Asking,
    /// For signals and for sentiment. Their paces are one if they share a host.
    routes: [Route; 2],
    key: ApiKey,
    /// The key as a header, if it is sent in one.
    key_header: Option<(HeaderName, HeaderValue)>,
    clock: Clock,
    trust: ClockTrust,
    free: Semaphore,
    /// When the time ends that a whole run may spend on retries. Success never refills it.
    patience: Instant,
    stall: Duration,
    evidence: PathBuf,
    gauge: Gauge,
}

impl Client {
    /// A client that has not connected yet. Bodies that cannot be read are kept in the folder `evidence`.
    pub(crate) fn new(
        addresses: Addresses,
        key: ApiKey,
        limits: RequestLimits,
        clock: Clock,
        evidence: PathBuf,
    ) -> Result<Self> {
        let Addresses { signals, sentiment, asking } = addresses;
        let pace = || Arc::new(RateLimiter::new(limits.per_second));
        let signals = Route::to(&signals, pace())?;
        let is_shared = signals.host == host_of(&sentiment);
        let sentiment = Route::to(&sentiment, if is_shared { Arc::clone(&signals.pace) } else { pace() })?;
        let routes = [signals, sentiment];
        let headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (ACCEPT_ENCODING, HeaderValue::from_static("zstd, gzip, br")),
        ]);
        let client = tls::client()
            .no_proxy()
            .user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(limits.stall);
        let client = routes.iter().fold(client, |client, route| route.add_to(client));
        // Plain HTTP needs no certificates, and a system without any must not fail.
        let is_plain = routes.iter().all(|route| route.address.scheme() == "http");
        let client = if is_plain { client.tls_certs_only([]) } else { client };
        let http = client
            .build()
            .map_err(reqwest::Error::without_url)
            .context(ErrorKind::Service, || "cannot set up the HTTP client".to_owned())
            .hint("https needs CA certificates: install `ca-certificates`, or provide them with `SSL_CERT_FILE`")?;
        let key_header = asking.key_header.as_deref().map(|name| header_of(name, &key)).transpose()?;
        Ok(Self {
            http,
            asking,
            routes,
            key,
            key_header,
            clock,
            trust: ClockTrust::Confirmed,
            free: Semaphore::new(limits.connections),
            patience: Instant::now() + limits.patience,
            stall: limits.stall,
            evidence,
            gauge: Gauge::default(),
        })
    }

    /// The same client, with the trust in this machine's clock.
    #[must_use]
    pub(crate) fn trusting(self, trust: ClockTrust) -> Self {
        Self { trust, ..self }
    }

    /// Live counters of the client.
    pub(crate) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Sends a request once, and looks at the head of the answer only.
    pub(crate) async fn probe(&self, request: &Request) -> Result<ResponseHead> {
        let route = self.route(request.endpoint.base());
        route.pace.wait().await;
        let failed = |failure: Failure| failure.into_error(&route.host, route.proxy(), request, 1, None);
        let answer = self.send(request, None, Some(PROBE_TIMEOUT)).await;
        let response = answer.map_err(|error| failed(Failure::transport(error)))?;
        let date = date_of(&response);
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_page = kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"));
        let status = response.status().as_u16();
        if matches!(status, 401 | 403 | 422) {
            let error = failed(Failure::from_response(response, self.clock.now(), &self.key).await);
            if error.kind() == ErrorKind::Key {
                return Err(error);
            }
        }
        Ok(ResponseHead { status, date, is_page })
    }

    /// The paths that the service's own description has, `openapi.json` below the base address or at its root; none without
    /// one. The key is not sent.
    pub(crate) async fn described_paths(&self, base: Base) -> Option<Vec<String>> {
        const MAX_BYTES: usize = 8 << 20;
        let below = self.below(base, "openapi.json");
        let root = below.join("/openapi.json").ok()?;
        for address in [below, root] {
            let asked = self.http.get(address).header(ACCEPT_ENCODING, "identity").timeout(PROBE_TIMEOUT).send().await;
            let Ok(mut response) = asked else { return None };
            let mut body = Vec::new();
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_BYTES {
                    return None;
                }
            }
            let described: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            if let Some(paths) = described.as_ref().and_then(|described| described.get("paths")?.as_object()) {
                return Some(paths.keys().cloned().collect());
            }
        }
        None
    }

    /// Sends a request until there is an answer that can be read, or retrying is of no use.
    ///
    /// `read` gets the body on its own thread as it arrives, once per attempt. With a condition, the service may say instead
    /// that the answer is as before: that is an empty body.
    ///
    /// Dropping the future ends the request; a running reader finds the body cut off.
    pub(crate) async fn get<T, F>(
        &self,
        request: &Request,
        condition: Option<&(HeaderName, HeaderValue)>,
        read: F,
    ) -> Result<Answered<T>>
    where
        T: Send + 'static,
        F: Fn(&mut Body) -> Result<T, ReadFault> + Clone + Send + 'static,
    {
        let _permit = self.free.acquire().await.expect("the semaphore is never closed");
        let route = self.route(request.endpoint.base());
        let mut schedule = RetrySchedule::default();
        let mut malformed_before = false;
        loop {
            route.pace.wait().await;
            let evidence = malformed_before.then(|| Evidence::begin(&self.evidence, self.clock)).transpose()?;
            let attempt = async {
                let asked = self.clock.now();
                let response = self.send(request, condition, None).await.map_err(Failure::transport)?;
                self.check_clock(&response, asked)?;
                let status = response.status();
                let is_as_before = status == StatusCode::NOT_MODIFIED && condition.is_some();
                let is_part = matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NO_CONTENT);
                if !is_as_before && (!status.is_success() || is_part) {
                    return Err(Failure::from_response(response, self.clock.now(), &self.key).await);
                }
                let options = BodyOptions {
                    attempts: schedule.attempts + 1,
                    clock: self.clock,
                    key: self.key.clone(),
                    evidence: evidence.as_ref().map(|evidence| evidence.path.clone()),
                    stall: self.stall,
                    gauge: &self.gauge,
                };
                read_body(response, read.clone(), options, async |page| self.page(request, page).await).await
            };
            let failure = match attempt.await {
                Ok(value) => {
                    route.pace.recover();
                    return Ok(Answered::Taken(value));
                }
                Err(failure) => match failure.refusal() {
                    Some(refusal) => return Ok(Answered::Refused(refusal)),
                    None => failure,
                },
            };
            if matches!(failure, Failure::Status { status: 429, .. }) {
                route.pace.slow_down();
            }
            let verdict = retry::verdict(&failure, malformed_before);
            malformed_before |= matches!(failure, Failure::Malformed { .. });
            let wait = match verdict {
                RetryVerdict::GiveUp => None,
                RetryVerdict::AskAgain => schedule.next(self.patience),
                RetryVerdict::WaitOut { hint } => schedule.next_while_patient(hint, self.patience),
            };
            let Some(wait) = wait else {
                let is_of_one = failure.is_of_one_request();
                let evidence = evidence.filter(|_| matches!(failure, Failure::Malformed { .. })).map(Evidence::keep);
                let error = failure.into_error(&route.host, route.proxy(), request, schedule.attempts, evidence);
                return if is_of_one { Ok(Answered::Failed(error)) } else { Err(error) };
            };
            self.gauge.waits(&failure.to_string());
            tokio::time::sleep(wait).await;
            self.gauge.goes_on();
        }
    }

    /// Asks for a further page of an answer.
    async fn page(&self, request: &Request, mut page: Url) -> Result<reqwest::Response, Failure> {
        // It may repeat the parameters, or not.
        let missing: Vec<(String, String)> = self
            .url(request)
            .query_pairs()
            .filter(|(name, _)| page.query_pairs().all(|(known, _)| known != *name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        if !missing.is_empty() {
            page.query_pairs_mut().extend_pairs(missing);
        }
        self.route(request.endpoint.base()).pace.wait().await;
        let asked = self.clock.now();
        let response = self.ask(page, None, None).send().await.map_err(Failure::transport)?;
        self.check_clock(&response, asked)?;
        match response.status() {
            StatusCode::OK => Ok(response),
            _ => Err(Failure::from_response(response, self.clock.now(), &self.key).await),
        }
    }

    /// Refuses an answer if the service's clock is far from this machine's, which would date it. What a cache answers is
    /// older.
    fn check_clock(&self, response: &reqwest::Response, asked: DateTime<Utc>) -> Result<(), Failure> {
        let is_checked = self.trust == ClockTrust::Unconfirmed
            && matches!(self.clock, Clock::System)
            && !self.asking.trusts_own_clock;
        let Some(date) = date_of(response).filter(|_| is_checked && !response.headers().contains_key(AGE)) else {
            return Ok(());
        };
        let skew = Skew::between((asked, self.clock.now()), date);
        if skew.is_too_large() { Err(Failure::Skewed(skew)) } else { Ok(()) }
    }

    /// Sends a request with the key, and follows redirects to the same scheme, host and port: frameworks send them for a
    /// slash at the end.
    async fn send(
        &self,
        request: &Request,
        condition: Option<&(HeaderName, HeaderValue)>,
        limit: Option<Duration>,
    ) -> reqwest::Result<reqwest::Response> {
        let first = self.url(request);
        let mut url = first.clone();
        // The most redirects that are followed.
        let mut left = 3;
        loop {
            let response = self.ask(url.clone(), condition, limit).send().await?;
            match redirect_target(&first, &url, &response).filter(|_| left > 0) {
                Some(next) => (url, left) = (next, left - 1),
                None => return Ok(response),
            }
        }
    }

    fn ask(
        &self,
        url: Url,
        condition: Option<&(HeaderName, HeaderValue)>,
        limit: Option<Duration>,
    ) -> reqwest::RequestBuilder {
        let mut asked = self.http.get(url);
        if let Some(limit) = limit {
            asked = asked.timeout(limit);
        }
        self.key_header.iter().chain(condition).fold(asked, |asked, (name, value)| asked.header(name, value))
    }

    /// The URL of a request, with the key if it is sent in the query, for the HTTP client only.
    fn url(&self, request: &Request) -> Url {
        let mut url = self.url_without_key(request);
        if self.key_header.is_none() {
            let parameter = self.asking.key_parameter.as_deref().unwrap_or("api_key");
            url.query_pairs_mut().append_pair(parameter, self.key.expose());
        }
        url
    }

    /// The URL of a request without the key.
    pub(crate) fn url_without_key(&self, request: &Request) -> Url {
        let mut url = self.below(request.endpoint.base(), &self.path(request));
        url.query_pairs_mut().extend_pairs(request.query()).extend_pairs(&self.asking.query);
        url
    }

    /// The escaped path of a request below its base address, as the definition has it.
    fn path(&self, request: &Request) -> String {
        let renamed = request.ticker.as_ref().filter(|_| request.endpoint.base() == Base::Sentiment);
        let renamed = renamed.and_then(|ticker| self.asking.news_tickers.get(ticker)).cloned();
        let renamed = renamed.map(|ticker| Request { ticker: Some(ticker), ..request.clone() });
        let request = renamed.as_ref().unwrap_or(request);
        let Some(path) = self.asking.paths.get(&request.endpoint) else { return request.path() };
        match request.path().rsplit_once('/') {
            Some((_, ticker)) if request.ticker.is_some() && path.contains("{ticker}") => {
                path.replace("{ticker}", ticker)
            }
            Some((_, ticker)) if request.ticker.is_some() => format!("{}/{ticker}", path.trim_end_matches('/')),
            _ => path.clone(),
        }
    }

    /// The error for a request that the service refused.
    pub(crate) fn refused(&self, request: &Request, refusal: &Refusal) -> Error {
        let (host, Refusal { status, words }) = (&self.route(request.endpoint.base()).host, refusal.clone());
        let refused = |what: String| Error::new(ErrorKind::Refused, what);
        match (status, words) {
            (403, words) => failure::key_refused(host, &request.to_string(), status, words),
            (422, Some(words)) => refused(format!("{host} says `{request}` is invalid: {words}")),
            (_, words) => {
                failure::with_words(refused(format!("{host} refuses `{request}` with status {status}")), words)
            }
        }
    }

    /// The URL of an operation without query and key, for messages.
    pub(crate) fn address(&self, endpoint: Endpoint) -> String {
        let url = self.below(endpoint.base(), "");
        let path = self.asking.paths.get(&endpoint).map_or(endpoint.path(), String::as_str);
        format!("{}://{}{}{path}", url.scheme(), host_of(&url), url.path())
    }

    fn below(&self, base: Base, path: &str) -> Url {
        let mut url = self.route(base).address.clone();
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        url
    }

    /// The proxy to an address, without credentials; `None` if it is reached directly.
    pub(crate) fn proxy(&self, base: Base) -> Option<String> {
        self.route(base).proxy()
    }

    fn route(&self, base: Base) -> &Route {
        let [signals, sentiment] = &self.routes;
        match base {
            Base::Signals => signals,
            Base::Sentiment => sentiment,
        }
    }
}

//! HTTP to a store: every answer bounded in bytes and time, no redirect followed, and failures in words of ours.
//!
//! An answer that the client reads as a whole (a listing, an error, a token) is read here first, within a limit. An object
//! streams to a reader that knows how large it may be, and that marks its requests with [`Streamed`]. This machine, and the
//! metadata services of instances and containers, are reached directly; everything else by the proxies of the environment.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use http::header::LOCATION;
use http::{Method, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, RetryConfig};
use reqwest::redirect;
use tokio::time::timeout;
use url::Url;

use super::contents::SkippedKeys;
use super::fault::{Failure, Verdict};
use super::listing;
use super::objects::{STALL, Streamed};
use crate::net::address::{host_of, is_loopback};
use crate::net::connection::{innermost, is_certificate};
use crate::net::tls;

/// The largest answer that is not an object: a page of five thousand names takes half of it.
const MAX_BYTES: usize = 16 << 20;

/// The most bytes read of an error.
const MAX_FAULT_BYTES: usize = 64 << 10;

/// The retries of a request, which are bounded in number and time.
pub(super) fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(15), base: 2.0 };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(150) }
}

/// Makes the clients of a store.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub(super) proxies: Arc<Matcher>,
    pub(super) skipped: SkippedKeys,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let set = |key| options.get_config_value(&key);
        // The client sets a limit of its own for the metadata service of an instance: most machines have none.
        let default = ClientOptions::default().get_config_value(&ClientConfigKey::ConnectTimeout);
        let seconds = if set(ClientConfigKey::ConnectTimeout) == default { 5 } else { 1 };
        let build = |client: reqwest::ClientBuilder| {
            // A large object may take longer than any fixed time, so the limit is on silence.
            let client = client
                .user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .referer(false)
                .http1_only()
                .no_gzip()
                .no_brotli()
                .no_zstd()
                .no_deflate()
                .connect_timeout(Duration::from_secs(seconds))
                .read_timeout(STALL)
                .build();
            client
                .map(HttpClient::new)
                .map_err(|error| refusal(format!("cannot set up the client: {}", innermost(&error))))
        };
        Ok(HttpClient::new(Guarded {
            direct: build(tls::client().no_proxy())?,
            by_environment: build(tls::client())?,
            proxies: Arc::clone(&self.proxies),
            allows_http: set(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true"),
            skipped: self.skipped.clone(),
        }))
    }
}

fn refusal(reason: impl Into<String>) -> Failure {
    Failure::new(Verdict::Refused, reason)
}

/// A client whose answers are bounded.
#[derive(Debug)]
struct Guarded {
    direct: HttpClient,
    /// Uses the proxies of the environment.
    by_environment: HttpClient,
    proxies: Arc<Matcher>,
    /// Whether the user allows plain HTTP to other machines.
    allows_http: bool,
    skipped: SkippedKeys,
}

#[async_trait]
impl HttpService for Guarded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (method, uri, is_listing) = (request.method().clone(), request.uri().clone(), is_listing(&request));
        let is_streamed = request.extensions().get::<Streamed>().is_some();
        let is_metadata = request.headers().keys().any(|name| name.as_str().starts_with("x-aws-ec2-metadata"));
        let url = Url::parse(&uri.to_string()).map_err(|_| refusal("its address is not valid"))?;
        let (client, proxy) = self.route(&url, &uri)?;
        let response = client.execute(request).await;
        let response = response.map_err(|error| unreachable(&host_of(&url), proxy.as_deref(), &error))?;
        let status = response.status();
        tracing::debug!(%method, %status, "a store answered");
        if status.is_redirection() && status.as_u16() != 304 {
            return Err(refusal(redirect_reason(&response, &url)).into());
        }
        if let Some(wait) = wait(&response) {
            tracing::info!(%status, seconds = wait.as_secs(), "waiting as the store requests");
            tokio::time::sleep(wait).await;
        }
        let (parts, body) = response.into_parts();
        let body = match status.is_success() {
            true if is_streamed => return Ok(HttpResponse::from_parts(parts, body)),
            true if is_listing => {
                let (text, skipped) = listing::usable(&whole(body).await?).map_err(refusal)?;
                self.skipped.add(skipped);
                text.into()
            }
            true if is_metadata => metadata(whole(body).await?)?,
            true => whole(body).await?,
            false => beginning(body).await,
        };
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

impl Guarded {
    /// The client for an address, and the proxy that it is reached through, without credentials.
    fn route(&self, url: &Url, uri: &Uri) -> Result<(&HttpClient, Option<String>), Failure> {
        let host = host_of(url);
        if is_direct(url) {
            return Ok((&self.direct, None));
        }
        if url.scheme() != "https" && !self.allows_http {
            return Err(refusal(format!("`{host}` would be reached by plain http: use `https://`")));
        }
        let Some(proxy) = self.proxies.intercept(uri) else { return Ok((&self.direct, None)) };
        let address = proxy.uri();
        let port = address.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let name = format!("{}{port}", address.host().unwrap_or("?"));
        match address.scheme_str() {
            Some("http" | "https") => Ok((&self.by_environment, Some(name))),
            _ => Err(refusal(format!(
                "`{host}` would be reached through the proxy `{name}`: only proxies with an `http://` or `https://` \
                 address are supported"
            ))),
        }
    }
}

/// Whether a request asks for a page of a listing.
fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::GET && query.split('&').any(|pair| pair == "list-type=2" || pair == "comp=list")
}

/// Whether an address is on this machine, or that of a metadata service, which a proxy would have its own of.
fn is_direct(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    is_loopback(url)
        || host == "metadata.google.internal"
        || matches!(host.parse(), Ok(IpAddr::V4(address)) if address.is_link_local())
        || host == "[fd00:ec2::254]"
        || host == "[fd00:ec2::23]"
}

/// The error for a request without an answer.
fn unreachable(host: &str, proxy: Option<&str>, error: &HttpError) -> HttpError {
    let through = proxy.map(|proxy| format!(" through the proxy `{proxy}`")).unwrap_or_default();
    let reason = match error.kind() {
        HttpErrorKind::Timeout => "it did not answer in time".to_owned(),
        _ => innermost(error),
    };
    if is_certificate(error) {
        return Failure::new(Verdict::Certificate(host.to_owned()), reason).into();
    }
    let what = if error.kind() == HttpErrorKind::Connect { "cannot connect to" } else { "cannot get an answer of" };
    HttpError::new(error.kind(), Failure::new(Verdict::Temporary, format!("{what} `{host}`{through}: {reason}")))
}

/// Why a redirect is refused: where it points, without anything that may be a secret.
fn redirect_reason(response: &HttpResponse, from: &Url) -> String {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(region) = header("x-amz-bucket-region").filter(|region| region.len() <= 32) {
        return format!("the bucket is in the region `{region}`: set `AWS_REGION`");
    }
    match header(LOCATION.as_str()).and_then(|to| from.join(to).ok()) {
        Some(to) => format!("it redirects to `{}://{}`, and redirects are not followed", to.scheme(), host_of(&to)),
        None => format!("status {}: it redirects, without an address", response.status().as_u16()),
    }
}

/// Reads an answer, up to a number of bytes.
async fn read(body: HttpResponseBody, most: usize, bytes: &mut BytesMut) -> Result<(), HttpError> {
    let mut pieces = body.bytes_stream();
    while bytes.len() < most
        && let Some(piece) = pieces.try_next().await?
    {
        bytes.extend_from_slice(&piece[..piece.len().min(most - bytes.len())]);
    }
    Ok(())
}

/// An answer that is read as a whole.
async fn whole(body: HttpResponseBody) -> Result<Bytes, HttpError> {
    let mut bytes = BytesMut::new();
    let reason = match timeout(STALL, read(body, MAX_BYTES + 1, &mut bytes)).await {
        Ok(result) if bytes.len() <= MAX_BYTES => return result.map(|()| bytes.freeze()),
        Ok(_) => return Err(refusal(format!("its answer is larger than {} MiB", MAX_BYTES >> 20)).into()),
        Err(_) => format!("its answer was incomplete after {} s", STALL.as_secs()),
    };
    Err(Failure::new(Verdict::Temporary, reason).into())
}

/// An answer of the metadata service of an instance: JSON, or a word that becomes part of the next request.
fn metadata(answer: Bytes) -> Result<Bytes, HttpError> {
    match answer.starts_with(b"{") || answer.iter().all(u8::is_ascii_graphic) {
        true => Ok(answer),
        false => {
            let reason = "the metadata service of the instance gave what cannot be part of a request";
            Err(Failure::new(Verdict::Credentials, reason).into())
        }
    }
}

/// The beginning of an error. If it cannot be read, the status alone says enough.
async fn beginning(body: HttpResponseBody) -> Bytes {
    let mut bytes = BytesMut::new();
    let _ = timeout(Duration::from_secs(5), read(body, MAX_FAULT_BYTES, &mut bytes)).await;
    // The client takes only text for an error.
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The wait that a failed answer requests, of up to a minute.
fn wait(response: &HttpResponse) -> Option<Duration> {
    let is_busy = matches!(response.status().as_u16(), 429 | 503);
    let seconds: u64 = response.headers().get("retry-after").filter(|_| is_busy)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(60)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::Method;
    use object_store::client::{HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody};
    use url::Url;

    use super::{MAX_BYTES, MAX_FAULT_BYTES, beginning, is_direct, is_listing, metadata, redirect_reason, wait, whole};

    fn response(status: u16, headers: &[(&str, &str)]) -> HttpResponse {
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(HttpResponseBody::from(Bytes::new())).unwrap()
    }

    #[test]
    fn a_listing_is_asked_for_by_its_query() {
        let is_listing = |method: Method, address: &str| {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            (*request.method_mut(), *request.uri_mut()) = (method, address.parse().unwrap());
            is_listing(&request)
        };
        assert!(is_listing(Method::GET, "https://h/bucket?list-type=2&prefix=archive%2F"));
        assert!(is_listing(Method::GET, "https://h/bucket?restype=container&comp=list"));
        assert!(!is_listing(Method::PUT, "https://h/bucket?list-type=2"));
        assert!(!is_listing(Method::GET, "https://h/bucket/list-type=2"));
        assert!(!is_listing(Method::GET, "https://h/bucket?comp=lists&a=comp=list&list-type=21"));
    }

    #[test]
    fn this_machine_and_metadata_services_are_reached_directly() {
        let is_direct = |address: &str| is_direct(&Url::parse(address).unwrap());
        for direct in [
            "http://127.0.0.1:9000",
            "http://localhost",
            "http://[::1]:9000",
            "http://169.254.169.254/latest",
            "http://169.254.170.2/v2",
            "http://metadata.google.internal/x",
            "http://[fd00:ec2::254]/latest",
            "http://[fd00:ec2::23]/v1",
        ] {
            assert!(is_direct(direct), "{direct}");
        }
        for other in [
            "http://169.253.169.254",
            "http://10.0.0.1",
            "https://s3.example.com",
            "http://metadata.google.internal.example.com",
            "http://[fd00:ec2::255]",
        ] {
            assert!(!is_direct(other), "{other}");
        }
    }

    #[test]
    fn a_busy_store_is_waited_for_up_to_a_minute() {
        let wait = |status: u16, seconds: &str| wait(&response(status, &[("retry-after", seconds)]));
        for status in [429, 503] {
            assert_eq!(wait(status, " 7 "), Some(Duration::from_secs(7)));
            assert_eq!(wait(status, "60000"), Some(Duration::from_secs(60)));
            assert_eq!((wait(status, "soon"), wait(status, "-1")), (None, None));
            assert_eq!(super::wait(&response(status, &[])), None);
        }
        assert_eq!((wait(200, "7"), wait(500, "7")), (None, None));
    }

    #[test]
    fn a_redirect_is_told_without_its_path_and_query() {
        let from = Url::parse("https://s3.example.com/bucket?signature=secret").unwrap();
        let told = |headers: &[(&str, &str)]| redirect_reason(&response(307, headers), &from);
        let elsewhere = ("location", "http://other.example.com:81/x?token=secret");
        assert_eq!(told(&[elsewhere]), "it redirects to `http://other.example.com:81`, and redirects are not followed");
        let within = told(&[("location", "/elsewhere?signature=secret")]);
        assert_eq!(within, "it redirects to `https://s3.example.com:443`, and redirects are not followed");
        let region = "the bucket is in the region `eu-central-1`: set `AWS_REGION`";
        assert_eq!(told(&[elsewhere, ("x-amz-bucket-region", "eu-central-1")]), region);
        let long = "x".repeat(33);
        assert_eq!(told(&[("x-amz-bucket-region", &long)]), "status 307: it redirects, without an address");
        assert!(told(&[("x-amz-bucket-region", &long[..32])]).contains(&long[..32]));
    }

    #[test]
    fn a_metadata_service_gives_json_or_a_word() {
        for taken in ["{\"a\": \"b c\"}", "AQAEAHVLYrQ_-==", ""] {
            assert_eq!(metadata(taken.into()).unwrap(), taken);
        }
        for refused in ["a b", "a\nb", "<html> </html>", "\u{7f}", " {}"] {
            metadata(refused.into()).unwrap_err();
        }
    }

    #[tokio::test]
    async fn answers_are_read_up_to_their_limits() {
        let most = Bytes::from(vec![b'x'; MAX_BYTES]);
        assert_eq!(whole(most.clone().into()).await.unwrap(), most);
        let refused = whole(Bytes::from(vec![b'x'; MAX_BYTES + 1]).into()).await.unwrap_err();
        assert!(format!("{refused:?}").contains("its answer is larger than 16 MiB"), "{refused:?}");
        for (length, read) in [(0, 0), (100, 100), (65_536, 65_536), (65_537, 65_536), (1 << 20, MAX_FAULT_BYTES)] {
            assert_eq!(beginning(Bytes::from(vec![b'x'; length]).into()).await, vec![b'x'; read]);
        }
        assert_eq!(beginning(Bytes::from_static(b"a\xffb").into()).await, "a\u{fffd}b");
    }
}

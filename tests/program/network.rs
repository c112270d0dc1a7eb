//! Reaching the service: proxies never see the key, and only valid certificates are trusted.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::program::{Outcome, Place};
use crate::support::proxy::Proxy;
use crate::support::scripted::{Scripted, json};
use crate::support::tls::{TlsService, certificate, other_certificate};

const KEY: &str = "S3CRET-canary";

const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5}]}}"#;

const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

fn answer(target: &str) -> &'static str {
    if target.starts_with("/a/") { HISTORY } else { "[]" }
}

/// Defines a dataset of one sector from a service behind TLS.
fn define(place: &Place, host: &str, more: &str) {
    let addresses = format!("base_url = \"https://{host}/a\"\nsentiment_base_url = \"https://{host}/b\"\n");
    place.define("it", &format!("[source]\n{addresses}{more}[signals]\nsectors = [\"energy\"]\n"));
}

/// Runs it with extra variables at log level `trace`; neither the key nor the proxy's password may be shown.
fn run<'a>(place: &Place, variables: impl IntoIterator<Item = (&'a str, String)>) -> Outcome {
    let mut command = place.command(["run", "it", "--log-level", "trace"]);
    let outcome = Outcome::of(command.env("BELLWETHER_API_KEY", KEY).envs(variables));
    for secret in [KEY, "S3CRET-password"] {
        assert!(!outcome.stdout.contains(secret), "{}", outcome.stdout);
        assert!(!outcome.stderr.contains(secret), "{}", outcome.stderr);
    }
    outcome
}

fn through(proxy: SocketAddr) -> String {
    format!("http://me:S3CRET-password@{proxy}")
}

fn trusting(file: impl AsRef<Path>) -> (&'static str, String) {
    ("SSL_CERT_FILE", file.as_ref().display().to_string())
}

#[test]
fn a_loopback_service_is_reached_directly_whatever_the_proxy() {
    let proxy = Proxy::start(None);
    let variables = || PROXIES.map(|name| (name, through(proxy.address)));
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    run(&place, variables()).expect_success();
    let place = Place::new();
    let service = Scripted::start(|request| json("200 OK", answer(&request.target)));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    run(&place, variables()).expect_success();
    assert!(proxy.heads().is_empty(), "{:?}", proxy.heads());
}

#[test]
fn a_proxy_opens_a_tunnel_and_sees_only_encrypted_bytes() {
    let place = Place::new();
    let service = TlsService::start(answer);
    let proxy = Proxy::start(Some(service.address));
    define(&place, "vendor.example", "");
    for variable in ["HTTPS_PROXY", "all_proxy"] {
        let outcome = run(&place, [(variable, through(proxy.address)), trusting(certificate())]).expect_success();
        assert!(outcome.stdout.starts_with("rows      1\n"), "{}", outcome.stdout);
    }
    assert!(!proxy.heads().is_empty());
    for head in proxy.heads() {
        assert!(head.starts_with("CONNECT vendor.example:443 HTTP/1.1\r\n"), "{head}");
        // `me:S3CRET-password` in base64.
        assert!(head.contains("\r\nproxy-authorization: Basic bWU6UzNDUkVULXBhc3N3b3Jk\r\n"), "{head}");
        assert!(!head.contains(KEY), "{head}");
    }
}

#[test]
fn a_proxy_that_fails_is_named() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refusing = Proxy::start(None);
    for (proxy, reason) in
        [(refusing.address, "tunnel error: unsuccessful"), (gone, "Connection refused (os error 111)")]
    {
        let place = Place::new();
        define(&place, "vendor.example", "patience = \"1s\"\n");
        let variables = [("HTTPS_PROXY", through(proxy)), trusting(certificate())];
        let shown = run(&place, variables).failed_with(75).stderr;
        assert!(shown.contains(&format!("\n  because: through the proxy `{proxy}`: {reason}\n")), "{shown}");
    }
}

#[test]
fn an_unsupported_proxy_is_refused_before_any_request() {
    let place = Place::new();
    let proxy = Proxy::start(None);
    define(&place, "vendor.example", "");
    let variables =
        [("HTTPS_PROXY", format!("socks5://me:S3CRET-password@{}", proxy.address)), trusting(certificate())];
    let shown = run(&place, variables).failed_with(1).stderr;
    let expected =
        format!("error: cannot reach vendor.example:443 through the proxy `{}`\n  because: only", proxy.address);
    assert!(shown.contains(&expected), "{shown}");
    assert!(proxy.heads().is_empty());
}

#[test]
fn plain_http_needs_no_certificates_and_https_reports_missing_ones() {
    let none = || [trusting("/nonexistent"), ("SSL_CERT_DIR", "/nonexistent".to_owned())];
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    run(&place, none()).expect_success();
    let service = TlsService::start(answer);
    let place = Place::new();
    define(&place, &service.address.to_string(), "");
    let shown = run(&place, none()).failed_with(1).stderr;
    assert!(shown.contains("error: cannot set up the HTTP client\n"), "{shown}");
    assert!(shown.contains("No CA certificates were loaded from the system\n"), "{shown}");
    assert!(shown.contains("\nhint: https needs CA certificates: "), "{shown}");
    assert!(shown.ends_with("with `SSL_CERT_FILE`\n"), "{shown}");
}

#[test]
fn an_untrusted_certificate_stops_the_run_and_a_file_can_add_trust() {
    let service = TlsService::start(answer);
    let place = Place::new();
    let port = service.address.port();
    for (host, file) in [("127.0.0.1", other_certificate()), ("localhost", other_certificate())] {
        define(&place, &format!("{host}:{port}"), "");
        let (before, begun) = (service.connections(), Instant::now());
        let shown = run(&place, [trusting(file)]).failed_with(1).stderr;
        let expected =
            format!("error: cannot verify the certificate of {host}:{port}\n  because: invalid peer certificate");
        assert!(shown.contains(&expected), "{shown}");
        assert!(shown.ends_with("with `SSL_CERT_FILE`\n"), "{shown}");
        assert_eq!(service.connections(), before + 1, "it gets one request");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    define(&place, &service.address.to_string(), "");
    let outcome = run(&place, [trusting(certificate())]).expect_success();
    assert!(outcome.stdout.starts_with("rows      1\n"), "{}", outcome.stdout);
}

/// What the clients ignore, and then connect directly.
const UNUSABLE: [&str; 5] = [
    "http://me:S3CRET-password@pro xy:3128",
    "ftp://me:S3CRET-password@proxy",
    "http://me:S3CRET-password@proxy:99999",
    "me:S3CRET-password@proxy:x",
    "://me:S3CRET-password@proxy",
];

#[test]
fn a_proxy_variable_that_cannot_be_used_is_named_and_nothing_goes_around_the_proxy() {
    let place = Place::new();
    define(&place, "vendor.example", "patience = \"1s\"\n");
    let cases = PROXIES.iter().flat_map(|name| UNUSABLE.map(|value| (*name, value)));
    for (name, value) in cases {
        let shown = run(&place, [(name, value.to_owned()), trusting(certificate())]).failed_with(1).stderr;
        assert!(shown.contains(&format!("error: `{name}` does not have the address of a proxy\n")), "{value}: {shown}");
    }
    for name in ["NO_PROXY", "no_proxy"] {
        for value in ["*.example.com", "a.example, 10.0.0.0/33", "vendor.example:443"] {
            let shown = run(&place, [(name, value.to_owned()), trusting(certificate())]).failed_with(1).stderr;
            assert!(shown.contains(&format!("error: `{name}` is not a list of hosts\n")), "{value}: {shown}");
        }
        let variables = [(name, ", .other.example,10.0.0.0/8,::1,localhost".to_owned()), trusting(certificate())];
        run(&place, variables).failed_with(75);
    }
    // A service on this machine needs none.
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    run(&place, PROXIES.map(|name| (name, UNUSABLE[0].to_owned()))).expect_success();
}

#[test]
fn hooks_and_stores_do_not_go_around_a_proxy_either() {
    let place = Place::new();
    let variables = || [("HTTPS_PROXY", UNUSABLE[0].to_owned())];
    let demo = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n";
    place.define("it", &format!("{demo}[hooks]\non_success = \"https://hooks.example/secret\"\n"));
    let shown = run(&place, variables()).expect_success().stderr;
    let expected = "hooks.example:443 cannot be reached: `HTTPS_PROXY` does not have the address of a proxy";
    assert!(shown.contains(expected), "{shown}");
    for store in ["s3://bucket/prefix", "gs://bucket/prefix", "az://container/prefix"] {
        let mut command = place.command(["verify", "--sizes", "--store", store]);
        let shown = Outcome::of(command.envs(variables())).failed_with(1).stderr;
        assert!(shown.contains("`HTTPS_PROXY` does not have the address of a proxy"), "{shown}");
        assert!(!shown.contains("S3CRET"), "{shown}");
    }
}

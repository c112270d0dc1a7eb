//! Settings and connections that cannot work: named, in words, before or without a panic.

use super::{Machine, definition};
use crate::support::bucket::SECRET;
use crate::support::program::Place;
use crate::support::proxy::Proxy;
use crate::support::stub_store::StubStore;
use crate::support::tls::TlsService;

/// Values that no client of a store can use, whatever they are for.
const ODD: [&str; 10] = [
    "s3.example.com",
    "http://",
    "http://127.0.0.1:99999",
    "https://[::1",
    "http://me:S3CRET-pass@127.0.0.1",
    "a\nb",
    "\u{1}",
    "ü",
    "http://127.0.0.1:1/?a=b",
    " ",
];

/// Variables that must be addresses, and those that only must not break a header.
const S3_ADDRESSES: [&str; 5] =
    ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS", "AWS_METADATA_ENDPOINT"];
const S3_TEXTS: [&str; 8] = [
    "AWS_SESSION_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ALLOW_HTTP",
    "AWS_SERVER_SIDE_ENCRYPTION",
];

#[test]
fn a_variable_that_the_client_would_panic_on_is_named() {
    let stub = StubStore::start(1000, |_| None);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let run = |name: &str, value: &str| {
        let mut command = machine.command(&["verify", "--store", "--sizes"]);
        command.env(name, value);
        crate::support::program::Outcome::of(&mut command)
    };
    for name in S3_ADDRESSES {
        for value in ODD {
            let message = run(name, value).failed_with(1).stderr;
            assert!(message.contains(&format!("`{name}` is not an address")), "{name}={value:?}: {message}");
            assert!(!message.contains("S3CRET"), "{message}");
        }
    }
    for name in S3_TEXTS {
        for value in ODD {
            // Some of them are valid here.
            let outcome = run(name, value);
            assert!(matches!(outcome.code, Some(0 | 1 | 75)), "{name}={value:?}: {}", outcome.stderr);
            if value.chars().any(|letter| letter.is_control() || !letter.is_ascii()) {
                assert!(outcome.stderr.contains(&format!("`{name}` ")), "{name}={value:?}: {}", outcome.stderr);
            }
        }
    }
    // Options of the client that this program sets itself.
    for name in ["AWS_PROXY_URL", "AWS_ALLOW_INVALID_CERTIFICATES", "AWS_TIMEOUT", "AWS_USER_AGENT"] {
        let message = run(name, "true").failed_with(1).stderr;
        assert!(message.contains(&format!("`{name}` is not supported")), "{message}");
    }
    // An empty variable counts as not set.
    run("AWS_SESSION_TOKEN", "").expect_success();
    assert!(stub.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn a_variable_of_azure_or_google_that_the_client_would_panic_on_is_named() {
    for (store, name) in [
        ("az://container/x", "AZURE_STORAGE_ENDPOINT"),
        ("az://container/x", "AZURE_STORAGE_TOKEN"),
        ("az://container/x", "AZURE_STORAGE_ACCOUNT_NAME"),
        ("gs://bucket/x", "GOOGLE_BASE_URL"),
        ("gs://bucket/x", "GOOGLE_BEARER_TOKEN"),
    ] {
        let machine = Machine::new(&definition("service = \"demo\"\n"), store, []);
        for value in ["a\nb", "\u{1}", "ü"] {
            let mut command = machine.command(&["verify", "--store", "--sizes"]);
            let outcome = crate::support::program::Outcome::of(command.env(name, value)).failed_with(1);
            assert!(outcome.stderr.contains(&format!("`{name}` ")), "{name}={value:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_profile_with_an_odd_value_is_named() {
    let stub = StubStore::start(1000, |_| None);
    for (line, setting) in [
        ("endpoint_url = localhost:9000", "endpoint_url"),
        ("aws_session_token = ü", "aws_session_token"),
        ("region = eu west", "region"),
    ] {
        let mut machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
        machine.environment.clear();
        let file = machine.place.file("aws");
        std::fs::write(&file, format!("[default]\naws_access_key_id = tester\naws_secret_access_key = x\n{line}\n"))
            .unwrap();
        machine.environment.push(("AWS_SHARED_CREDENTIALS_FILE", file.display().to_string()));
        let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
        assert!(message.contains(&format!("`{setting}` of the profile `default` ")), "{message}");
    }
}

#[test]
fn an_address_of_a_store_means_one_place() {
    let place = Place::new();
    place.define("it", &definition("service = \"demo\"\n"));
    for (address, expected) in [
        ("file:relative", "not the absolute path of a folder"),
        ("file:/mnt/x", "not the absolute path of a folder"),
        ("file://x/y", "not the absolute path of a folder"),
        ("file:", "not the absolute path of a folder"),
        ("s3://bu%20cket/x", "the name of a bucket has letters, digits, hyphens and dots only"),
        ("gs://bücket/x", "the name of a bucket has letters, digits, hyphens and dots only"),
    ] {
        let message = place.run(["store", "push", "--store", address]).failed_with(2).stderr;
        assert!(message.contains(expected), "{address}: {message}");
    }
    assert!(!std::path::Path::new("/relative").exists());
}

#[test]
fn failures_of_the_network_are_told_in_words() {
    let variables = |endpoint: &str| {
        [
            ("AWS_ENDPOINT_URL", endpoint.to_owned()),
            ("AWS_ACCESS_KEY_ID", "tester".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    };
    let shown = |endpoint: &str, more: &[(&'static str, String)], code: i32| {
        let mut machine = Machine::new(&definition("service = \"demo\"\n"), "s3://signals/x", variables(endpoint));
        machine.environment.extend(more.iter().cloned());
        machine.run(&["verify", "--store", "--sizes"]).failed_with(code).stderr
    };
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = shown(&format!("http://{gone}"), &[], 75);
    assert!(message.contains(&format!("cannot connect to `{gone}`: Connection refused")), "{message}");
    let message = shown("https://store.invalid", &[], 75);
    assert!(message.contains("cannot connect to `store.invalid:443`: ") && message.contains("lookup"), "{message}");
    let service = TlsService::start(|_| "");
    let message = shown(&format!("https://{}", service.address), &[], 1);
    assert!(message.contains(&format!("cannot verify the certificate of {}\n", service.address)), "{message}");
    assert!(message.contains("SSL_CERT_FILE"), "{message}");
    let message = shown("http://store.invalid", &[], 1);
    assert!(message.contains("`store.invalid:80` would be reached by plain http: use `https://`"), "{message}");
    let proxy = Proxy::start(None);
    let through = ("HTTPS_PROXY", format!("http://me:S3CRET-password@{}", proxy.address));
    let message = shown("https://store.invalid", &[through], 75);
    let expected = format!("cannot connect to `store.invalid:443` through the proxy `{}`: ", proxy.address);
    assert!(message.contains(&expected) && !message.contains("S3CRET"), "{message}");
    assert!(proxy.heads().iter().all(|head| head.starts_with("CONNECT store.invalid:443 ")), "{:?}", proxy.heads());
    let socks = ("HTTPS_PROXY", "socks5://127.0.0.1:1".to_owned());
    let message = shown("https://store.invalid", &[socks], 1);
    assert!(message.contains("only proxies with an `http://` or `https://` address are supported"), "{message}");
}

#[test]
fn a_store_on_this_machine_is_reached_directly_whatever_the_proxy() {
    let proxy = Proxy::start(None);
    let stub = StubStore::start(1000, |_| None);
    let mut machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        machine.environment.push((name, format!("http://{}", proxy.address)));
    }
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["verify", "--store"]).expect_success();
    assert!(proxy.heads().is_empty(), "{:?}", proxy.heads());
}

#[test]
fn an_interrupted_pull_is_repeated_and_its_leftovers_are_cleared() {
    let (_folder, url) = super::folder_store();
    let first = Machine::new(&definition("service = \"demo\"\n"), &url, []);
    first.run(&["run", "it"]).expect_success();
    let version = std::fs::read_link(first.place.file("output/datasets/it/latest")).unwrap();
    let version = version.to_str().unwrap();
    let fresh = Machine::new(&definition("service = \"demo\"\n"), &url, []);
    let dataset = fresh.place.file("output/datasets/it");
    std::fs::create_dir_all(&dataset).unwrap();
    // What pulls left that were killed now, and two days ago.
    let links = [format!(".latest-{version}"), ".latest-20261101T000000Z-aaaa".to_owned()];
    for link in &links {
        std::os::unix::fs::symlink(version, dataset.join(link)).unwrap();
    }
    let touched =
        std::process::Command::new("touch").args(["-h", "-d", "2 days ago"]).arg(dataset.join(&links[1])).status();
    assert!(touched.unwrap().success());
    // Without a latest version, `prune` clears it too.
    let listed = fresh.run(&["prune", "--dry-run"]).expect_success().stdout;
    assert!(listed.contains(&links[1]) && !listed.contains(&links[0]), "{listed}");
    fresh.run(&["store", "pull"]).expect_success();
    assert!(fresh.csv() == first.csv(), "the datasets differ");
    assert!(dataset.join(&links[0]).is_symlink(), "another process may be about to use it");
    assert!(!dataset.join(&links[1]).is_symlink());
}

#[test]
fn a_link_in_the_folder_of_a_store_is_not_followed_for_reading_or_writing() {
    let (_folder, url) = super::folder_store();
    let first = Machine::new(&definition("service = \"demo\"\n"), &url, []);
    first.run(&["run", "it"]).expect_success();
    let root = std::path::PathBuf::from(url.strip_prefix("file://").unwrap());
    for linked in ["archive/demo", "datasets", "archive"] {
        // The decoy has what was there, which only a reader or writer through the link would use.
        let decoy = tempfile::tempdir().unwrap();
        let behind = decoy.path().join("behind");
        std::fs::rename(root.join(linked), &behind).unwrap();
        std::os::unix::fs::symlink(&behind, root.join(linked)).unwrap();
        let names = || -> Vec<String> {
            let mut paths = vec![behind.clone()];
            let mut names = Vec::new();
            while let Some(path) = paths.pop() {
                let entries = std::fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path());
                names.push(path.display().to_string());
                paths.extend(entries);
            }
            names.sort();
            names
        };
        let before = names();
        let written = first.run(&["run", "it", "--fresh"]);
        assert_ne!(written.code, Some(0), "{linked}: {}", written.stderr);
        assert!(written.stderr.contains("symbolic link"), "{linked}: {}", written.stderr);
        let pushed = first.run(&["store", "push"]);
        assert!(pushed.code != Some(0) && pushed.stderr.contains("symbolic link"), "{linked}: {}", pushed.stderr);
        let empty = Machine::new(&definition("service = \"demo\"\n"), &url, []);
        let pulled = empty.run(&["store", "pull"]);
        assert!(pulled.code != Some(0) && pulled.stderr.contains("symbolic link"), "{linked}: {}", pulled.stdout);
        assert_eq!(names(), before, "{linked}");
        std::fs::remove_file(root.join(linked)).unwrap();
        std::fs::rename(&behind, root.join(linked)).unwrap();
    }
}

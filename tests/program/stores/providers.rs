//! The same on the stores of Google and Azure: by their own conditional puts, and with keys from where their tools have them.

use super::faults::check_large_files;
use super::machines::check_two_machines;
use super::{Machine, definition};
use crate::support::azurite::AZURITE;
use crate::support::azurite::{ACCOUNT_KEY, Azurite};
use crate::support::bucket::SECRET;
use crate::support::program::{DemoService, Place};
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::{StoreFault, StoreRequest, StubStore};
use crate::support::tools::needs;

#[test]
fn an_empty_disk_continues_from_azure() {
    needs!(AZURITE);
    let azure = Azurite::start();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = || Machine::new(&definition(&service.source), &azure.url("team/a"), azure.environment());
    check_two_machines(&machine(), &machine());
    let keys = azure.keys();
    assert!(keys.contains(&"team/a/datasets/it/latest.json".to_owned()), "{keys:?}");
    assert!(
        keys.iter().all(|key| key.starts_with("team/a/archive/vendor/run=") || key.starts_with("team/a/datasets/it/"))
    );
    check_large_files(|definition| Machine::new(definition, &azure.url("team/b"), azure.environment()));
}

#[test]
fn azure_keys_and_tokens_are_never_shown() {
    needs!(AZURITE);
    let azure = Azurite::start();
    let service = Scripted::of_histories(|_| json("200 OK", super::writers::HISTORY));
    let (with_token, secret) = azure.environment_with_token();
    for (environment, secret) in [(azure.environment(), ACCOUNT_KEY), (with_token, secret)] {
        let mut machine = Machine::new(&definition(&service.source()), &azure.url("x"), environment);
        let message = machine.run(&["run", "it", "--log-level=trace"]).expect_success();
        assert!(!message.stderr.contains(secret) && !message.stdout.contains(secret), "{}", message.stderr);
        machine.store = "az://elsewhere/x".to_owned();
        let message = machine.run(&["run", "it", "--log-level=trace"]).failed_with(1).stderr;
        assert!(message.contains("ContainerNotFound") && !message.contains(secret), "{message}");
    }
}

#[test]
fn an_empty_disk_continues_from_google() {
    let stub = StubStore::like_google(|_| None);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = || Machine::with_stub(&definition(&service.source), &stub);
    check_two_machines(&machine(), &machine());
}

#[test]
fn a_google_store_that_ignores_generations_is_refused() {
    let stub =
        StubStore::like_google(|request: &StoreRequest| (request.method == "PUT").then_some(StoreFault::Unconditional));
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let message = machine.run(&["store", "push"]).failed_with(1).stderr;
    assert!(message.contains("it overwrote an object on condition that there is none"), "{message}");
    assert!(stub.keys().is_empty(), "{:?}", stub.keys());
}

/// The keys of an instance are those that its metadata service names.
#[test]
fn s3_keys_can_come_from_the_instance() {
    let stub = StubStore::start(1000, |_| None);
    let metadata = Scripted::start(|request| match request.target.as_str() {
        "/latest/api/token" => json("200 OK", "a-token"),
        "/latest/meta-data/iam/security-credentials/" => json("200 OK", "nightly"),
        "/latest/meta-data/iam/security-credentials/nightly" => json(
            "200 OK",
            &format!(
                "{{\"AccessKeyId\":\"tester\",\"SecretAccessKey\":\"{SECRET}\",\"Token\":\"session-0123456789\",\
                 \"Expiration\":\"2099-01-01T00:00:00Z\",\"Code\":\"Success\",\"LastUpdated\":\"2026-11-20T00:00:00Z\",\
                 \"Type\":\"AWS-HMAC\"}}"
            ),
        ),
        _ => json("404 Not Found", "{}"),
    });
    let service = Scripted::of_histories(|_| json("200 OK", super::writers::HISTORY));
    let mut machine = Machine::with_stub(&definition(&service.source()), &stub);
    machine.environment.retain(|(name, _)| !name.contains("KEY"));
    machine.environment.push(("AWS_METADATA_ENDPOINT", format!("http://{}", metadata.address())));
    let message = machine.run(&["run", "it", "--log-level=trace"]).expect_success();
    for secret in [SECRET, "session-0123456789"] {
        assert!(!message.stderr.contains(secret) && !message.stdout.contains(secret), "{}", message.stderr);
    }
    let signed: Vec<_> = metadata.targets().into_iter().filter(|target| target.ends_with("/nightly")).collect();
    assert!(!signed.is_empty() && !stub.keys().is_empty());
}

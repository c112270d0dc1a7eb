//! Keys of profiles: printed by a command, or given for a web identity.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Machine, definition};
use crate::support::bucket::SECRET;
use crate::support::scripted::{Scripted, json, reply};
use crate::support::stub_store::StubStore;

const TOKEN: &str = "session-0123456789";

/// A machine whose only keys come from a profile.
fn machine(stub: &StubStore, profile: &str) -> Machine {
    let mut machine = Machine::with_stub(&definition("service = \"demo\"\n"), stub);
    machine.environment.retain(|(name, _)| !name.contains("KEY"));
    let file = machine.place.file("config");
    fs::write(&file, format!("[profile nightly]\n{profile}\n")).expect("a profile");
    machine.environment.push(("AWS_CONFIG_FILE", file.display().to_string()));
    machine.environment.push(("AWS_PROFILE", "nightly".to_owned()));
    machine
}

/// A program that prints a text, and adds a line to `calls`.
fn script(machine: &Machine, body: &str) -> String {
    let path = machine.place.file("sign in");
    fs::write(&path, format!("#!/bin/sh\necho \"$* $BELLWETHER_API_KEY\" >> calls\n{body}\n")).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path.display().to_string()
}

fn keys(expiration: &str) -> String {
    format!(
        "{{\"Version\":1,\"AccessKeyId\":\"tester\",\"SecretAccessKey\":\"{SECRET}\",\
         \"SessionToken\":\"{TOKEN}\",\"Expiration\":\"{expiration}\"}}"
    )
}

fn profile_of(machine: &Machine, line: &str) {
    fs::write(machine.place.file("config"), format!("[profile nightly]\n{line}\n")).expect("a profile");
}

#[test]
fn a_command_of_the_profile_prints_the_keys() {
    let stub = StubStore::start(1000, |_| None);
    let machine = machine(&stub, "");
    let program = script(&machine, &format!("cat <<'END'\n{}\nEND", keys("2099-01-01T00:00:00Z")));
    profile_of(&machine, &format!("credential_process = \"{program}\" --account '7 8'"));
    let outcome = machine.run(&["run", "it", "--log-level=trace"]).expect_success();
    for secret in [SECRET, TOKEN] {
        assert!(!outcome.stderr.contains(secret) && !outcome.stdout.contains(secret), "{}", outcome.stderr);
    }
    assert!(!stub.keys().is_empty());
    // It is called once, without the key of the vendor.
    assert_eq!(fs::read_to_string(machine.place.file("calls")).unwrap(), "--account 7 8 \n");
    // Keys that are about to expire are asked for again.
    script(&machine, &format!("cat <<'END'\n{}\nEND", keys(&soon())));
    fs::remove_file(machine.place.file("calls")).unwrap();
    machine.run(&["verify", "--store", "--sizes"]).expect_success();
    assert!(fs::read_to_string(machine.place.file("calls")).unwrap().lines().count() > 1);
}

/// An instant that has not come yet, but soon will.
fn soon() -> String {
    (chrono::Utc::now() + chrono::TimeDelta::minutes(2)).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[test]
fn a_command_of_the_profile_that_fails_is_named_without_its_output() {
    let stub = StubStore::start(1000, |_| None);
    let machine = machine(&stub, "");
    let program = script(&machine, "");
    profile_of(&machine, &format!("credential_process = \"{program}\""));
    for (body, reason) in [
        ("exit 3", "it failed with exit status: 3"),
        ("yes S3CRET-output", "its output is longer than 64 KiB"),
        ("echo S3CRET-output", "it does not print JSON with `Version`, `AccessKeyId` and `SecretAccessKey`"),
        ("echo '{\"Version\":2,\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"S3CRET-output\"}'", "an unknown `Version`"),
        (
            "printf '{\"Version\":1,\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"SessionToken\":\"S3CRET-out\\\\nput\"}'",
            "it prints a key that cannot be part of a header",
        ),
        (
            "echo '{\"Version\":1,\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Expiration\":\"2020-01-01T00:00:00Z\"}'",
            "what it prints has expired",
        ),
    ] {
        script(&machine, body);
        let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
        assert!(message.contains("cannot open the store `s3://signals/team/a`"), "{message}");
        let expected = format!("cannot get credentials from the command `{program}`: ");
        assert!(message.contains(&expected) && message.contains(reason), "{reason}: {message}");
        assert!(!message.contains("S3CRET"), "{message}");
    }
    profile_of(&machine, "credential_process = /no/such/program");
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("cannot get credentials from the command `/no/such/program`: No such file"), "{message}");
    profile_of(&machine, "credential_process = \"open");
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("`credential_process` in the profile is not a command"), "{message}");
    assert!(stub.requests().is_empty());
}

/// The service that gives keys for a web identity.
fn sts(answer: String) -> Scripted {
    Scripted::start(move |_| reply("200 OK", "", answer.as_bytes()))
}

fn role_answer(token: &str) -> String {
    format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
         <AccessKeyId>tester</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>\
         <SessionToken>{token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

#[test]
fn a_web_identity_of_the_environment_or_the_profile_gets_keys() {
    const ROLE: &str = "arn:aws:iam::123456789012:role/nightly";
    for is_of_profile in [true, false] {
        let stub = StubStore::start(1000, |_| None);
        let service = sts(role_answer(TOKEN));
        let mut machine = machine(&stub, "");
        let file = machine.place.file("identity");
        fs::write(&file, "identity-0123456789").unwrap();
        let file = file.display().to_string();
        if is_of_profile {
            profile_of(
                &machine,
                &format!("role_arn = {ROLE}\nweb_identity_token_file = {file}\nrole_session_name = it"),
            );
        } else {
            machine.environment.retain(|(name, _)| *name != "AWS_PROFILE");
            machine.environment.extend([("AWS_WEB_IDENTITY_TOKEN_FILE", file), ("AWS_ROLE_ARN", ROLE.to_owned())]);
        }
        machine.environment.push(("AWS_ENDPOINT_URL_STS", format!("http://{}", service.address())));
        let outcome = machine.run(&["run", "it", "--log-level=trace"]).expect_success();
        for secret in [SECRET, TOKEN] {
            assert!(!outcome.stderr.contains(secret) && !outcome.stdout.contains(secret), "{}", outcome.stderr);
        }
        let [target] = &service.targets()[..] else { panic!("one request: {:?}", service.targets()) };
        for part in ["Action=AssumeRoleWithWebIdentity", "role%2Fnightly", "WebIdentityToken=identity-0123456789"] {
            assert!(target.contains(part), "{target}");
        }
        assert!(!stub.keys().is_empty());
    }
}

#[test]
fn a_web_identity_that_cannot_work_is_refused_in_words() {
    let stub = StubStore::start(1000, |_| None);
    let mut machine = machine(&stub, "");
    machine.environment.retain(|(name, _)| *name != "AWS_PROFILE");
    let file = machine.place.file("identity").display().to_string();
    machine.environment.push(("AWS_WEB_IDENTITY_TOKEN_FILE", file.clone()));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("there is a web identity, but no role: set `AWS_ROLE_ARN`"), "{message}");
    machine.environment.push(("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/nightly".to_owned()));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains(&format!("cannot read the token in `{file}`")), "{message}");
    fs::write(&file, "identity").unwrap();
    // What a service gives is not trusted either.
    let service = sts(role_answer("line&#10;feed"));
    machine.environment.push(("AWS_ENDPOINT_URL_STS", format!("http://{}", service.address())));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("the credentials that a service gave cannot be part of a header"), "{message}");
}

#[test]
fn a_metadata_service_that_gives_what_is_no_word_is_refused() {
    let stub = StubStore::start(1000, |_| None);
    let metadata = Scripted::start(|_| json("200 OK", "line\nfeed"));
    let mut machine = machine(&stub, "region = us-east-1");
    machine.environment.push(("AWS_METADATA_ENDPOINT", format!("http://{}", metadata.address())));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(
        message.contains("the metadata service of the instance gave what cannot be part of a request"),
        "{message}"
    );
}

#[test]
fn an_instance_without_credentials_says_so_and_is_not_asked_where_that_is_forbidden() {
    let stub = StubStore::start(1000, |_| None);
    let metadata = Scripted::start(|_| json("404 Not Found", "{}"));
    let mut machine = machine(&stub, "region = us-east-1");
    machine.environment.push(("AWS_METADATA_ENDPOINT", format!("http://{}", metadata.address())));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("there are no credentials: the service that gives them said: status 404"), "{message}");
    let asked = metadata.count();
    machine.environment.push(("AWS_EC2_METADATA_DISABLED", "true".to_owned()));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("`AWS_EC2_METADATA_DISABLED` forbids to ask the instance"), "{message}");
    assert_eq!(metadata.count(), asked);
}

#[test]
fn a_profile_that_signs_in_says_what_to_do() {
    let stub = StubStore::start(1000, |_| None);
    for line in ["sso_session = corp", "sso_start_url = https://corp.example.com", "role_arn = a\nsource_profile = b"] {
        let machine = machine(&stub, line);
        let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
        assert!(message.contains("aws configure export-credentials"), "{message}");
        assert!(message.contains("`credential_process`"), "{message}");
    }
}

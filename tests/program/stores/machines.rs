//! Machines that share a store, some of them with an empty disk.

use std::fs;

use bellwether::time::to_record;
use chrono::Utc;

use super::{Machine, definition, files_below, folder_store};
use crate::support::bucket::{Bucket, SECRET};
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::tools::{PYTHON, needs};

/// One machine runs, another with an empty disk builds; then both continue in turn.
#[track_caller]
pub(super) fn check_two_machines(first: &Machine, second: &Machine) {
    let message = first.run(&["run", "it"]).expect_success();
    assert!(message.stdout.contains(&format!("store     {}, sent ", first.store)), "{}", message.stdout);
    second.run(&["build", "it"]).expect_success();
    assert!(first.csv() == second.csv(), "the datasets differ");
    second.run(&["run", "it"]).expect_success();
    first.run(&["run", "it"]).expect_success();
    assert_eq!(first.folders().len(), 3);
    for machine in [first, second] {
        let status = machine.status();
        assert_eq!(status["difference"]["only_here"].as_array().map(Vec::len), Some(0), "{status:#}");
        assert_eq!(status["unfinished"].as_array().map(Vec::len), Some(0), "{status:#}");
        let message = machine.run(&["verify", "--store"]).expect_success().stdout;
        assert!(message.contains("verified "), "{message}");
    }
    assert_eq!(second.difference()["only_there"].as_array().map(Vec::len), Some(1));
    let message = second.run(&["store", "pull"]).expect_success().stdout;
    assert!(message.starts_with("fetched 1 run or pack and 1 version, "), "{message}");
    assert_eq!(second.folders(), first.folders());
    let link = |machine: &Machine| fs::read_link(machine.place.file("output/datasets/it/latest")).expect("a link");
    assert_eq!(link(first), link(second));
    second.run(&["verify"]).expect_success();
    assert_eq!(second.run(&["store", "push"]).expect_success().stdout, "already up to date\n");
    assert_eq!(second.run(&["store", "pull"]).expect_success().stdout, "already up to date\n");
}

#[test]
fn an_empty_disk_continues_from_a_folder() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::new(&definition(&service.source), &url, []));
    check_two_machines(&machines[0], &machines[1]);
    let names: Vec<String> =
        files_below(&folder.path().join("store")).iter().map(|path| path.display().to_string()).collect();
    assert!(names.contains(&"datasets/it/latest.json".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("probe") || name.contains('#')), "{names:?}");
}

#[test]
fn an_empty_disk_continues_from_a_bucket() {
    needs!(PYTHON);
    let bucket = Bucket::start();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::with_bucket(&definition(&service.source), &bucket));
    check_two_machines(&machines[0], &machines[1]);
    let keys = bucket.keys();
    assert!(
        keys.iter().all(|key| key.starts_with("team/a/archive/vendor/run=") || key.starts_with("team/a/datasets/it/"))
    );
    assert!(keys.contains(&"team/a/datasets/it/latest.json".to_owned()), "{keys:?}");
}

#[test]
fn the_store_option_overrides_the_definition() {
    let (_folders, urls) = [(); 3].map(|()| folder_store()).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("{}[store]\nurl = \"{}\"\n", definition(&service.source), urls[0]));
    let mut message = Vec::new();
    for (option, variable) in [(None, None), (None, Some(&urls[1])), (Some(&urls[2]), Some(&urls[1]))] {
        let mut command = place.command(["run", "it"]);
        command.args(option.map(|url| format!("--store={url}"))).env("BELLWETHER_API_KEY", "demo");
        command.envs(variable.map(|url| ("BELLWETHER_STORE", url)));
        message.push(Outcome::of(&mut command).expect_success().stdout);
    }
    for (message, url) in message.iter().zip(&urls) {
        assert!(message.contains(&format!("store     {url}, sent ")), "{message}");
    }
}

#[test]
fn an_ad_hoc_build_pulls_missing_runs_and_pushes_nothing() {
    let (folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::new(&definition(&service.source), &url, []));
    machines[0].run(&["run", "it"]).expect_success();
    let first = machines[0].folders();
    let as_of = to_record(Utc::now());
    machines[0].run(&["run", "it"]).expect_success();
    let before = files_below(folder.path());
    machines[1].run(&["build", "it", "--as-of", &as_of]).expect_success();
    assert_eq!(machines[1].folders(), first, "a later run is not needed");
    assert_eq!(files_below(folder.path()), before);
}

#[test]
fn a_shrunk_universe_is_noticed_on_an_empty_disk_too() {
    let (_folder, url) = folder_store();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::new(&definition(&service.source), &url, []));
    machines[0].run(&["run", "it"]).expect_success();
    drop(service);
    let history = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.5}]}}"#;
    let service =
        crate::support::scripted::Scripted::of_histories(move |_| crate::support::scripted::json("200 OK", history));
    machines[1].place.define("it", &definition(&service.source()));
    let message = machines[1].run(&["run", "it"]).failed_with(4).stderr;
    assert!(message.contains("disappeared since version"), "{message}");
}

#[test]
fn store_keys_are_never_shown() {
    needs!(PYTHON);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let bucket = Bucket::start();
    let machine = Machine::with_bucket(&definition(&service.source), &bucket);
    let message = machine.run(&["run", "it", "--log-level=trace"]).expect_success();
    assert!(!message.stderr.contains(SECRET) && !message.stdout.contains(SECRET));
    // A missing bucket, and a server that does not answer.
    let mut lost = Machine::with_bucket(&definition(&service.source), &bucket);
    lost.store = "s3://elsewhere/x".to_owned();
    let message = lost.run(&["run", "it", "--log-level=trace"]).failed_with(1);
    assert!(message.stderr.contains("NoSuchBucket") && !message.stderr.contains(SECRET), "{}", message.stderr);
    for url in ["s3://key:secret-in-address@bucket/x", "s3://bucket/x?secret-in-address", "ftp://secret-in-address/"] {
        lost.store = url.to_owned();
        let message = lost.run(&["verify", "--store", "--sizes"]).failed_with(2).stderr;
        assert!(!message.contains("secret-in-address") || url.starts_with("ftp"), "{message}");
    }
}

#[test]
fn store_keys_can_come_from_a_profile() {
    needs!(PYTHON);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let bucket = Bucket::start();
    let mut machine = Machine::with_bucket(&definition(&service.source), &bucket);
    let config = machine.place.file("config");
    let text = format!(
        "[profile team]\naws_access_key_id = tester\naws_secret_access_key = {SECRET}\nendpoint_url = http://{}\n\
         region = us-east-1\n[profile sso]\nsso_session = company\n",
        bucket.address()
    );
    fs::write(&config, text).unwrap();
    let profile =
        |name: &str| vec![("AWS_CONFIG_FILE", config.display().to_string()), ("AWS_PROFILE", name.to_owned())];
    machine.environment = profile("team");
    machine.run(&["run", "it"]).expect_success();
    machine.environment = profile("other");
    let message = machine.run(&["run", "it"]).failed_with(1).stderr;
    assert!(message.contains("no profile `other`"), "{message}");
    machine.environment = profile("sso");
    let message = machine.run(&["run", "it"]).failed_with(1).stderr;
    assert!(message.contains("aws configure export-credentials"), "{message}");
}

#[test]
fn reading_commands_fetch_missing_data() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (_store, url) = folder_store();
    let machine = || Machine::new(&definition(&service.source), &url, []);
    let first = machine();
    first.run(&["run", "it"]).expect_success();
    let now = to_record(Utc::now());
    for command in [
        &["sql", "it", "--as-of", &now][..],
        &["audit", "quality", "it"],
        &["audit", "revisions"],
        &["audit", "sources", "it"],
        &["audit", "leak", "it"],
        &["report", "--text", "it"],
        &["show", "it", "--tail", "3"],
    ] {
        let fresh = machine();
        let expected = first.run(command).expect_success().stdout;
        let found = fresh.run(command).expect_success().stdout;
        let here = |text: &str, machine: &Machine| text.replace(&machine.place.file("").display().to_string(), "HERE/");
        assert_eq!(here(&found, &fresh), here(&expected, &first), "{command:?}");
    }
    let fresh = machine();
    fresh.run(&["report", "it"]).expect_success();
    assert!(fresh.place.file("output/reports/it.html").exists());
    assert_eq!(fresh.folders(), first.folders());
}

#[test]
fn a_dataset_of_another_service_never_replaces_one_of_the_same_name() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (store, url) = folder_store();
    let ours = Machine::new(&definition(&service.source), &url, []);
    let theirs = Machine::new(&definition(&service.source.replace("\"vendor\"", "\"other\"")), &url, []);
    ours.run(&["run", "it"]).expect_success();
    let alone = |machine: &Machine| {
        let mut command = machine.place.command(["run", "it", "-q"]);
        Outcome::of(command.env("BELLWETHER_API_KEY", "demo")).expect_success();
        fs::read_link(machine.place.file("output/datasets/it/latest")).expect("a link")
    };
    let link = alone(&theirs);
    let pushed = theirs.run(&["store", "push"]).expect_success().stderr;
    let refusal = "latest version of `it`: it is data of the service `other` ";
    assert!(pushed.contains(&format!("the store keeps its {refusal}")), "{pushed}");
    let ran = alone(&ours);
    ours.run(&["store", "push"]).expect_success();
    let latest = fs::read_to_string(store.path().join("store/datasets/it/latest.json")).expect("a file");
    assert!(latest.contains(ran.to_str().expect("a name")), "{latest}");
    let pulled = theirs.run(&["store", "pull"]).expect_success().stderr;
    assert!(pulled.contains(&format!("did not fetch the {refusal}")), "{pulled}");
    assert_eq!(fs::read_link(theirs.place.file("output/datasets/it/latest")).expect("a link"), link);
}

#[test]
fn a_machine_that_knows_only_of_a_note_fetches_the_run_that_it_is_about() {
    let (place, (_folder, store)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let text = definition(&service.source);
    let first = Machine::new(&text, &store, []);
    first.run(&["run", "it"]).expect_success();
    // A run that was sealed offline is based on one that is forgotten meanwhile.
    let offline = Machine::new(&text, &store, []);
    offline.run(&["store", "pull"]).expect_success();
    let bad = first.folders()[0].trim_start_matches("run=").to_owned();
    first.run(&["forget", &bad, "--reason", "a test"]).expect_success();
    offline.run(&["run", "it"]).expect_success();
    first.run(&["store", "push"]).expect_success();
    let fresh = Machine::new(&text, &store, []);
    fresh.run(&["store", "pull"]).expect_success();
    fresh.run(&["verify"]).expect_success();
    assert!(fresh.folders().contains(&format!("run={bad}")), "{:?}", fresh.folders());
}

#[test]
fn a_run_or_version_that_only_the_store_has_is_a_state_to_build_and_show() {
    let (place, (_folder, store)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let text = definition(&service.source);
    let first = Machine::new(&text, &store, []);
    first.run(&["run", "it"]).expect_success();
    let run = first.folders()[0].trim_start_matches("run=").to_owned();
    let latest = fs::read_link(first.place.file("output/datasets/it/latest")).expect("a version");
    let version = latest.file_name().expect("its name").to_string_lossy().into_owned();
    for arguments in [
        vec!["build", "it", "--as-of", &run],
        vec!["show", "it", "--as-of", &run],
        vec!["build", "it", "--as-of", &version],
        vec!["show", &format!("it/{version}")],
    ] {
        Machine::new(&text, &store, []).run(&arguments).expect_success();
    }
}

#[test]
fn a_version_that_was_pruned_from_the_store_does_not_become_its_latest_again() {
    let (place, (_folder, store)) = (Place::new(), folder_store());
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let text = format!("{}keep = 1\n", definition(&service.source));
    let (behind, ahead) = (Machine::new(&text, &store, []), Machine::new(&text, &store, []));
    behind.run(&["run", "it"]).expect_success();
    for _ in 0..2 {
        ahead.run(&["run", "it", "--fresh"]).expect_success();
    }
    let before = ahead.folders();
    ahead.run(&["prune", "--store"]).expect_success();
    for run in before.iter().skip(1).rev() {
        let run = run.trim_start_matches("run=");
        ahead.run(&["forget", run, "--reason", "a test"]).expect_success();
    }
    ahead.run(&["store", "push"]).expect_success();
    behind.run(&["store", "push"]).expect_success();
    let fresh = Machine::new(&text, &store, []);
    fresh.run(&["store", "pull"]).expect_success();
}

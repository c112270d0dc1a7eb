//! A definition that somebody else could have written: it is read, but nothing in it is run or sent.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

/// Another user, who exists nowhere.
const STRANGER: u32 = 54_321;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "victims-key-4711");

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Lets a group write that is not the user's own.
fn share(path: &Path, permissions: u32) {
    chown(path, None, Some(STRANGER)).expect("root can give files to a group");
    mode(path, permissions);
}

fn give_away(path: &Path) {
    chown(path, Some(STRANGER), None).expect("root can give files away");
}

/// What makes a project with `pipelines/demo.toml` one that others could have written, and what is said about it.
type Layout = (&'static str, fn(&Place), &'static str);

const LAYOUTS: [Layout; 13] = [
    ("a link to the folder that it is in, which all can write to", link_to_itself, "/pipelines` is a link"),
    ("a link to another folder", link_elsewhere, "/pipelines` is a link"),
    ("a project that its group can write to", |place| share(place.path(), 0o775), "` can be written by its group"),
    ("a project that all can write to", |place| mode(place.path(), 0o777), "` can be written by everyone"),
    ("the same with a sticky bit", |place| mode(place.path(), 0o1777), "` can be written by everyone"),
    ("a project of a stranger", |place| give_away(place.path()), "` belongs to another user, number 54321"),
    (
        "definitions that a group can write to",
        |place| share(&place.file("pipelines"), 0o775),
        "/pipelines` can be written",
    ),
    ("definitions that all can add to", |place| mode(&place.file("pipelines"), 0o1777), "/pipelines` can be written"),
    ("definitions of a stranger", |place| give_away(&place.file("pipelines")), "/pipelines` belongs to another user"),
    (
        "a file that a group can write to",
        |place| share(&definition(place), 0o664),
        "/demo.toml` can be written by its group",
    ),
    ("a file that all can write to", |place| mode(&definition(place), 0o646), "/demo.toml` can be written by everyone"),
    ("a file of a stranger", |place| give_away(&definition(place)), "/demo.toml` belongs to another user"),
    ("a file that is a link", file_link, "/demo.toml` is a link"),
];

fn definition(place: &Place) -> std::path::PathBuf {
    place.file("pipelines/demo.toml")
}

fn link_to_itself(place: &Place) {
    fs::rename(definition(place), place.file("demo.toml")).expect("as the test expects");
    fs::remove_dir(place.file("pipelines")).expect("as the test expects");
    give_away(&place.file("demo.toml"));
    symlink(".", place.file("pipelines")).expect("as the test expects");
}

fn link_elsewhere(place: &Place) {
    fs::rename(place.file("pipelines"), place.file("others")).expect("as the test expects");
    symlink("others", place.file("pipelines")).expect("as the test expects");
}

fn file_link(place: &Place) {
    fs::rename(definition(place), place.file("demo.toml")).expect("as the test expects");
    symlink("../demo.toml", definition(place)).expect("as the test expects");
}

/// Definitions that run or send something, and how that would be seen.
fn definitions(place: &Place, service: &Scripted) -> [(&'static str, String); 5] {
    let (remote, root) = (service.source(), place.path().display());
    let signals = "[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n";
    let demo = format!("[source]\nservice = \"demo\"\n{signals}");
    [
        (
            "a hook",
            format!(
                "{demo}[hooks]\non_success = [\"touch\", \"{root}/ran\"]\non_failure = [\"touch\", \"{root}/ran\"]\n"
            ),
        ),
        (
            "a key command",
            format!("[source]\n{remote}api_key_command = [\"sh\", \"-c\", \"touch {root}/ran; echo key\"]\n{signals}"),
        ),
        ("a key file", format!("[source]\n{remote}api_key_file = \"key\"\n{signals}")),
        ("the key of the environment", format!("[source]\n{remote}{signals}")),
        ("a store", format!("{demo}[store]\nurl = \"file://{root}/store\"\n")),
    ]
}

/// Whether something was run or sent.
fn is_harmed(place: &Place, service: &Scripted) -> bool {
    place.file("ran").exists() || service.count() > 0 || place.file("store").exists()
}

fn is_root() -> bool {
    let probe = Place::new();
    chown(probe.path(), Some(STRANGER), None).is_ok()
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command(arguments).envs([KEY]))
}

#[test]
fn nothing_is_run_or_sent_for_a_definition_that_others_could_have_written() {
    if !is_root() {
        // Only root can give files to another user.
        return;
    }
    for (layout, change, said) in LAYOUTS {
        let service = Scripted::of_histories(|_| json("200 OK", "{}"));
        for kind in 0..5 {
            let place = Place::new();
            let (what, text) = definitions(&place, &service)[kind].clone();
            place.define("demo", &text);
            fs::write(place.file("key"), "victims-key\n").unwrap();
            mode(&place.file("key"), 0o600);
            change(&place);
            let shown = run(&place, &["run", "demo", "-q"]).failed_with(2).stderr;
            assert!(
                shown.contains(said) && shown.contains("`pipelines/demo.toml` is not trusted"),
                "{layout}: {shown}"
            );
            let trust = format!("set `BELLWETHER_TRUST={}`", place.path().canonicalize().unwrap().display());
            assert!(shown.contains(&trust), "{layout}: {shown}");
            assert!(!is_harmed(&place, &service), "{layout}, {what}: {shown}");
            let found = run(&place, &["doctor", "demo"]).failed_with(1);
            assert!(found.stdout.contains("is not trusted"), "{layout}, {what}: {found:?}");
            // What only reads the definition works.
            run(&place, &["check", "demo"]).expect_success();
            assert!(!is_harmed(&place, &service), "{layout}, {what}");
        }
    }
}

#[test]
fn no_command_runs_or_sends_anything_for_a_definition_of_a_stranger() {
    if !is_root() {
        return;
    }
    let service = Scripted::of_histories(|_| json("200 OK", "{}"));
    for kind in 0..5 {
        let place = Place::new();
        // An archive and a dataset from when the definition was still trusted.
        let plain = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\nsentiment.articles = false\n";
        place.define("demo", plain);
        run(&place, &["run", "demo", "-q"]).expect_success();
        let (what, text) = definitions(&place, &service)[kind].clone();
        place.define("demo", &format!("{text}[schedule]\ncron = \"* * * * * *\"\n"));
        give_away(&definition(&place));
        let commands: [&[&str]; 27] = [
            &["run", "demo"],
            &["run", "pipelines/demo.toml"],
            &["build", "demo"],
            &["build", "demo", "--output", "rows.csv"],
            &["show", "demo"],
            &["report", "demo"],
            &["sql", "demo"],
            &["report", "--text", "demo"],
            &["list", "datasets", "demo"],
            &["list", "runs"],
            &["status"],
            &["schedule", "--once"],
            &["schedule", "--once"],
            &["schedule", "print", "--for", "crontab"],
            &["audit", "quality", "demo"],
            &["audit", "leak", "demo"],
            &["check", "demo"],
            &["doctor", "demo"],
            &["list", "sectors", "demo"],
            &["list", "tickers", "demo"],
            &["prune", "--store", "demo"],
            &["verify", "--repair"],
            &["store", "push", "demo"],
            &["store", "pull", "demo"],
            &["store", "pull", "demo/20261120T213000Z-7f3a"],
            &["verify", "--store", "demo", "--sizes"],
            &["verify", "--store", "demo", "--repair"],
        ];
        for arguments in commands {
            let outcome = run(&place, arguments);
            assert!(!is_harmed(&place, &service), "{what}: {arguments:?}: {outcome:?}");
            std::thread::sleep(std::time::Duration::from_millis(if arguments[0] == "schedule" { 1100 } else { 0 }));
        }
        // Without a store, building from what was archived needs no trust.
        assert!(what != "a hook" || place.file("rows.csv").exists());
    }
}

#[test]
fn a_folder_in_the_variable_is_trusted_and_no_other() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", "{}"));
    place.define("demo", &definitions(&place, &service)[0].1);
    mode(&place.file("pipelines"), 0o777);
    let root = place.path().to_str().unwrap();
    let with = |trust: &str| Outcome::of(place.command(["run", "demo", "-q"]).env("BELLWETHER_TRUST", trust));
    for other in ["", "/", "/no/such/folder", &format!("{root}/pipelines"), "/tmp:/var"] {
        let shown = with(other).failed_with(2).stderr;
        assert!(shown.contains("is not trusted"), "{other}: {shown}");
    }
    let shown = with(".").failed_with(2).stderr;
    assert!(shown.starts_with("error: `BELLWETHER_TRUST` names `.`, which is not an absolute path\n"), "{shown}");
    assert!(!place.file("ran").exists());
    with(&format!("/no/such/folder:{root}")).expect_success();
    assert!(place.file("ran").exists());
}

#[test]
fn a_definition_given_by_its_path_is_trusted_by_its_file_and_folder() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let service = Scripted::of_histories(|_| json("200 OK", "{}"));
    let (file, text) = (elsewhere.file("it.toml"), &definitions(&place, &service)[0].1);
    fs::write(&file, text).unwrap();
    mode(&file, 0o644);
    mode(elsewhere.path(), 0o777);
    let shown = run(&place, &["run", file.to_str().unwrap(), "-q"]).failed_with(2).stderr;
    assert!(shown.contains("can be written by everyone") && !place.file("ran").exists(), "{shown}");
    mode(elsewhere.path(), 0o755);
    // The project that the data goes to has no say.
    mode(place.path(), 0o777);
    run(&place, &["run", file.to_str().unwrap(), "-q"]).expect_success();
    assert!(place.file("ran").exists());
}

/// The permissions of a file or folder.
fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
}

#[test]
fn init_writes_what_is_trusted_and_says_what_is_not() {
    let place = Place::new();
    let init = |name: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$0\" init \"$1\" --demo", env!("CARGO_BIN_EXE_bellwether"), name]);
        Outcome::of(command.current_dir(place.path()).env_clear()).expect_success().stderr
    };
    assert_eq!(init("one"), "");
    assert_eq!((mode_of(&place.file("pipelines")), mode_of(&place.file("pipelines/one.toml"))), (0o755, 0o644));
    mode(place.path(), 0o777);
    let shown = init("two");
    assert!(shown.contains("can be written by everyone") && shown.contains("hint: run `chmod go-w "), "{shown}");
    assert_eq!(mode_of(place.path()), 0o777, "the user's own folder is left as it is");
}

#[test]
fn a_rebuilt_version_does_not_choose_a_store() {
    let place = Place::new();
    place.define("demo", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\nsentiment.articles = false\n");
    run(&place, &["run", "demo", "-q"]).expect_success();
    let latest = place.file("output/datasets/demo/latest").canonicalize().expect("a version");
    let (record, version) = (latest.join("dataset.json"), latest.file_name().expect("a name").to_str().expect("text"));
    let mut planted: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let store = format!("\n[store]\nurl = \"file://{}/store\"\n", place.path().display());
    planted["definition"] = format!("{}{store}", planted["definition"].as_str().expect("a definition")).into();
    fs::write(&record, planted.to_string()).unwrap();
    let outcome = run(&place, &["build", "demo", "--as-of", version, "--output", "rows.csv"]);
    assert!(!place.file("store").exists() && place.file("rows.csv").exists(), "{outcome:?}");
}

/// As after a clone with umask 002, where each user has a group of the same name.
#[test]
fn a_group_without_other_members_is_no_stranger() {
    let group = |path: &Path| std::os::unix::fs::MetadataExt::gid(&fs::metadata(path).expect("it is there"));
    let place = Place::new();
    place.define(
        "demo",
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[hooks]\non_success = [\"true\"]\n",
    );
    for path in [place.path().to_owned(), place.file("pipelines"), definition(&place)] {
        let bits = if path.is_dir() { 0o775 } else { 0o664 };
        mode(&path, bits);
    }
    let gid = group(place.path()).to_string();
    let listed = |path: &str, number: usize, members: usize| {
        let text = fs::read_to_string(path).expect("the system has it");
        let fields = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
        fields
            .filter(|fields| fields.get(number) == Some(&gid))
            .map(|fields| fields[members].clone())
            .collect::<Vec<_>>()
    };
    let (of_group, of_users) = (listed("/etc/group", 2, 3), listed("/etc/passwd", 3, 0));
    let is_alone = of_group.len() == 1 && of_group[0].is_empty() && of_users.len() == 1;
    let outcome = run(&place, &["run", "demo", "-q"]);
    if is_alone {
        outcome.expect_success()
    } else {
        outcome.failed_with(2)
    };
}

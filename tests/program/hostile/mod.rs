//! Malicious archives with valid seals. Every command refuses them with an error that names the file, in bounded time
//! and memory, and touches nothing outside the archive.

pub(crate) mod forge;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use bellwether::archive::Seal;

use self::forge::{Forgery, copy_of, names, reseal, rewrite, seal_of};
use crate::support::program::{DemoService, Outcome, Place};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Memory limit of a command, in KiB: enough for a valid archive of this size.
const MEMORY_KIB: u64 = 2 << 20;

/// Time limit of a command, on a machine that is busy with other tests.
const TIME: Duration = Duration::from_secs(60);

/// Commands that read seals or change the archive.
const OF_SEALS: [&[&str]; 6] =
    [&["verify"], &["list", "runs"], &["build", "it"], &["audit", "leak", "it"], &["prune"], &["run", "it", "-q"]];

/// Commands that read rows.
const OF_ROWS: [&[&str]; 9] = [
    &["verify"],
    &["build", "it"],
    &["build", "it", "--format", "csv", "--output", "-"],
    &["report", "--text", "it"],
    &["audit", "leak", "it"],
    &["audit", "quality", "it"],
    &["audit", "revisions", "it"],
    &["audit", "sources", "it"],
    &["run", "it", "-q"],
];

fn definition(service: &DemoService) -> String {
    format!("[source]\n{}[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\n", service.source)
}

/// A valid archive of two runs, and its definition.
fn sound() -> &'static Place {
    static SOUND: OnceLock<Place> = OnceLock::new();
    SOUND.get_or_init(|| {
        let place = Place::new();
        for today in ["2026-11-19", "2026-11-20"] {
            let service = DemoService::start(&place, &["--today", today]);
            place.define("it", &definition(&service));
            Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
        }
        place
    })
}

/// A command on an archive, with limits on memory and time.
fn run_with_limits(place: &Place, arguments: &[&str]) -> Outcome {
    let service = (arguments[0] == "run").then(|| DemoService::start(place, &["--today", "2026-11-20"]));
    if let Some(service) = &service {
        place.define("it", &definition(service));
    }
    let program = place.command(arguments.iter().copied());
    let mut command = Command::new("timeout");
    let limit = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    command.arg(TIME.as_secs().to_string()).args(["bash", "-c", &limit]).arg(program.get_program());
    command.args(program.get_args()).current_dir(place.path()).env_clear().envs([KEY]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Outcome::of(&mut command)
}

/// Runs some commands on a forged archive, and returns their outcomes.
fn try_commands<'c>(what: &str, commands: &[&'c [&'c str]], forge: impl Fn(&Path)) -> Vec<(&'c [&'c str], Outcome)> {
    let forged = copy_of(sound());
    fs::write(forged.file("decoy"), "precious").expect("a decoy");
    forge(&forged.file("output/archive/vendor"));
    let outcome = |arguments: &&'c [&'c str]| {
        let place = copy_of(&forged);
        let begun = Instant::now();
        let outcome = run_with_limits(&place, arguments);
        let message = format!("{what}, `{}`: {outcome:?}", arguments.join(" "));
        assert!(begun.elapsed() < TIME, "{message}");
        for decoy in [&place, &forged].map(|place| place.file("decoy")) {
            assert_eq!(fs::read_to_string(decoy).expect("a decoy"), "precious", "{message}");
        }
        assert!(!outcome.stderr.contains("defect") && !outcome.stderr.contains("panicked"), "{message}");
        assert!(matches!(outcome.code, Some(0 | 1)), "{message}");
        (*arguments, outcome)
    };
    commands.iter().map(outcome).collect()
}

/// Checks that every command refuses the archive.
#[track_caller]
fn assert_refused(what: &str, forge: impl Fn(&Path)) {
    for (arguments, outcome) in try_commands(what, &OF_SEALS, forge) {
        let is_refused = outcome.code == Some(1) && outcome.stderr.starts_with("error: ");
        // A run goes on without a pack whose runs are here.
        let is_set_aside = arguments[0] == "run" && outcome.stderr.contains("` was moved to `.damaged`");
        assert!(is_refused || is_set_aside, "{what}, `{}`: {outcome:?}", arguments.join(" "));
    }
}

/// Checks that `verify` finds the fault and no other command misbehaves, whether or not it reads that file.
#[track_caller]
fn assert_found(what: &str, forge: impl Fn(&Path)) {
    for (arguments, outcome) in try_commands(what, &OF_ROWS, forge) {
        assert!(arguments != ["verify"] || outcome.code == Some(1), "{what}: {outcome:?}");
    }
}

/// The folder of the first run of an archive.
fn first(archive: &Path) -> PathBuf {
    names(archive).first().map(|name| archive.join(name)).expect("a run")
}

#[test]
fn a_seal_that_names_foreign_files_is_refused() {
    for name in ["ABSOLUTE", "../../../decoy", "x/y.parquet", "", ".", "signals.parquet\0", "other.parquet"] {
        assert_refused(&format!("a file named {name:?}"), |archive| {
            let absolute = archive.join("../../decoy").display().to_string();
            let mut seal = seal_of(&first(archive));
            seal.files[0].name = if name == "ABSOLUTE" { absolute } else { name.to_owned() };
            reseal(&first(archive), &mut seal);
        });
    }
    assert_refused("a file that is named twice", |archive| {
        let mut seal = seal_of(&first(archive));
        let again = seal.files[0].clone();
        seal.files.push(again);
        reseal(&first(archive), &mut seal);
    });
}

#[test]
fn an_invalid_seal_is_refused() {
    type Change = fn(&mut Seal);
    let changes: [(&str, Change); 4] = [
        ("an empty digest", |seal| seal.seal = String::new()),
        ("a digest of one letter", |seal| seal.seal = "a".to_owned()),
        ("another run's name", |seal| seal.run = "20200101T000000Z-0000".to_owned()),
        ("a name that leaves the folder", |seal| seal.run = "../../decoy".to_owned()),
    ];
    // Beyond the width that a column can have, and other names that no definition has.
    for name in ["x".repeat(66_000), "x".repeat(65), "../x".to_owned(), String::new(), "a b".to_owned()] {
        assert_refused(&format!("a definition named with {} letters", name.len()), |archive| {
            let mut seal = seal_of(&first(archive));
            seal.definition.as_mut().expect("a run has a definition").name = name.clone();
            reseal(&first(archive), &mut seal);
        });
    }
    for (what, change) in changes {
        assert_refused(what, |archive| {
            let mut seal = seal_of(&first(archive));
            change(&mut seal);
            let digest = seal.seal.clone();
            reseal(&first(archive), &mut seal);
            if digest.len() < 64 {
                let path = first(archive).join("run.json");
                let text = fs::read_to_string(&path).expect("a seal").replace(&seal.seal, &digest);
                fs::write(path, text).expect("a seal");
            }
        });
    }
    assert_found("rows that are not there", |archive| {
        let mut seal = seal_of(&first(archive));
        seal.files[0].rows += 1;
        reseal(&first(archive), &mut seal);
    });
    assert_refused("a seal of a hundred megabytes", |archive| {
        let file = fs::File::create(first(archive).join("run.json")).expect("a seal");
        file.set_len(100 << 20).expect("a hole");
    });
    assert_refused("a seal that is nested deeply", |archive| {
        fs::write(first(archive).join("run.json"), "[".repeat(1 << 20)).expect("a seal");
    });
}

#[test]
fn only_regular_files_are_opened() {
    let replace = |archive: &Path, name: &str, with: &dyn Fn(&Path)| {
        let path = first(archive).join(name);
        fs::remove_file(&path).expect("a file of the test");
        with(&path);
    };
    for name in ["signals.parquet", "requests.parquet", "run.json"] {
        let harmless = |what: &str, forge: &dyn Fn(&Path)| match name {
            "run.json" => assert_refused(what, forge),
            _ => assert_found(what, forge),
        };
        harmless(&format!("a pipe for {name}"), &|archive| {
            replace(archive, name, &|path| {
                assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
            });
        });
        harmless(&format!("a link for {name}"), &|archive| {
            replace(archive, name, &|path| symlink("/dev/zero", path).expect("a link"));
        });
        harmless(&format!("a folder for {name}"), &|archive| {
            replace(archive, name, &|path| fs::create_dir(path).expect("a folder"));
        });
    }
    assert_refused("a link to a run", |archive| {
        let run = first(archive);
        let moved = archive.join("moved");
        fs::rename(&run, &moved).expect("it moves");
        symlink(&moved, &run).expect("a link");
    });
}

#[test]
fn rows_of_another_schema_are_refused() {
    let forgeries: [(&str, &str, Forgery); 8] = [
        ("no column", "requests.parquet", |rows| rows.project(&(1..rows.num_columns()).collect::<Vec<_>>()).unwrap()),
        ("no column", "signals.parquet", |rows| {
            rows.project(&(0..rows.num_columns() - 1).collect::<Vec<_>>()).unwrap()
        }),
        ("columns in another order", "articles.parquet", |rows| {
            rows.project(&(0..rows.num_columns()).rev().collect::<Vec<_>>()).unwrap()
        }),
        ("an unknown signal", "signals.parquet", |rows| respell(rows, "signal", "hold")),
        ("an unknown change", "signals.parquet", |rows| respell(rows, "change", "forgotten")),
        ("an unknown source", "listings.parquet", |rows| respell(rows, "source", "oracle")),
        ("tickers out of order", "signals.parquet", |rows| {
            let last = arrow::array::UInt32Array::from_iter_values((0..rows.num_rows() as u32).rev());
            arrow::compute::take_record_batch(rows, &last).unwrap()
        }),
        ("a ticker that is a path", "signals.parquet", |rows| {
            let column = rows.column(0).as_dictionary::<Int32Type>();
            let names = StringArray::from_iter_values(column.values().as_string::<i32>().iter().map(|_| "../decoy"));
            let mut columns = rows.columns().to_vec();
            columns[0] = std::sync::Arc::new(column.with_values(std::sync::Arc::new(names)));
            RecordBatch::try_new(rows.schema(), columns).unwrap()
        }),
    ];
    for (what, file, forgery) in forgeries {
        assert_found(&format!("{what} in {file}"), |archive| rewrite(&first(archive), file, forgery));
    }
}

/// Rows with a different text each in one column.
fn respell(rows: &RecordBatch, column: &str, spelling: &str) -> RecordBatch {
    let place = rows.schema().index_of(column).expect("it has the column");
    let codes = Int8Array::from(vec![0; rows.num_rows()]);
    let values = std::sync::Arc::new(StringArray::from(vec![spelling]));
    let mut columns = rows.columns().to_vec();
    columns[place] = std::sync::Arc::new(DictionaryArray::new(codes, values));
    RecordBatch::try_new(rows.schema(), columns).expect("the same columns")
}

#[test]
fn a_small_file_that_expands_to_too_many_rows_is_refused() {
    assert_found("two million equal rows", |archive| forge::many_rows(&first(archive)));
}

#[test]
fn a_long_value_that_many_rows_point_to_is_counted_for_each_of_them() {
    assert_found("titles of gigabytes", |archive| forge::long_titles(&first(archive)));
}

#[test]
fn a_pack_that_claims_runs_it_does_not_contain_is_refused() {
    assert_refused("an empty pack of all runs", |archive| {
        forge::pack(archive, |pack, folder| {
            forge::empty(pack, folder);
        });
    });
    assert_refused("a pack of itself", |archive| {
        forge::pack(archive, |pack, _| {
            let itself = pack.clone();
            pack.members[0] = itself;
        });
    });
    assert_refused("a pack that names a run twice", |archive| {
        forge::pack(archive, |pack, _| {
            let again = pack.members[0].clone();
            pack.members.push(again);
        });
    });
    assert_refused("a pack that says something else of a run", |archive| {
        forge::pack(archive, |pack, _| {
            pack.members[0].changes.added += 1;
        });
    });
}

/// Its seals match the runs but its rows do not: `verify` and `prune` compare rows.
#[test]
fn a_pack_with_wrong_rows_fails_verify_and_prunes_nothing() {
    let place = copy_of(sound());
    let archive = place.file("output/archive/vendor");
    let runs = names(&archive);
    forge::pack(&archive, forge::falsify);
    lacks_rows(&place, &runs);
}

/// A pack of packs is compared with these alone, and they with their own runs: a wrong row is found in each of them, and
/// in all of them at once.
#[test]
fn wrong_rows_are_found_in_a_pack_of_packs_and_in_the_packs_that_it_replaces() {
    let packs = |place: &Place| -> Vec<PathBuf> {
        let archive = place.file("output/archive/vendor");
        let packs = names(&archive).into_iter().filter(|name| name.starts_with("pack="));
        let mut packs: Vec<PathBuf> = packs.map(|name| archive.join(name)).collect();
        packs.sort_by_key(|pack| seal_of(pack).members.len());
        packs
    };
    let small = copy_of(sound());
    small.pack();
    run_with_limits(&small, &["run", "it", "-q"]).expect_success();
    let large = copy_of(&small);
    large.pack();
    run_with_limits(&large, &["verify"]).expect_success();
    let files: [(&str, Forgery); 3] = [
        ("signals.parquet", |rows| forge::increase(rows, "confidence")),
        ("requests.parquet", |rows| forge::increase(rows, "bytes")),
        ("answers.parquet", |rows| forge::increase(rows, "rows")),
    ];
    for (file, forgery) in files {
        for forged in 0..2 {
            let place = copy_of(&large);
            assert_eq!(packs(&place).len(), 2);
            rewrite(&packs(&place)[forged], file, forgery);
            lacks_rows(&place, &names(&place.file("output/archive/vendor")));
        }
        // The larger one has the rows of the smaller one, both wrong.
        let place = copy_of(&small);
        rewrite(&packs(&place)[0], file, forgery);
        place.pack();
        lacks_rows(&place, &names(&place.file("output/archive/vendor")));
    }
}

/// Checks that `verify` reports rows missing from the pack, and that `prune` removes nothing.
fn lacks_rows(place: &Place, runs: &[String]) {
    let verified = run_with_limits(place, &["verify"]).failed_with(1);
    assert!(verified.stdout.contains("is missing rows of its members"), "{verified:?}");
    place.age_packs();
    let refused = run_with_limits(place, &["prune"]).failed_with(1);
    assert!(refused.stderr.contains("is missing rows of its members"), "{refused:?}");
    assert!(runs.iter().all(|run| place.file("output/archive/vendor").join(run).join("run.json").exists()));
}

/// Changes a byte of the pack of an archive, and returns its name.
fn damage_pack(archive: &Path) -> String {
    let pack = names(archive).into_iter().find(|name| name.starts_with("pack=")).expect("a pack");
    let path = archive.join(&pack).join("signals.parquet");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[100] ^= 1;
    fs::write(&path, bytes).expect("a file");
    pack
}

/// Whatever is wrong with a pack, its runs have the rows.
#[test]
fn a_pack_that_cannot_be_read_is_set_aside_by_the_next_run_if_its_runs_are_here() {
    let place = copy_of(sound());
    place.pack();
    let archive = place.file("output/archive/vendor");
    let pack = damage_pack(&archive);
    let outcome = run_with_limits(&place, &["run", "it"]).expect_success();
    assert!(outcome.stderr.contains(&format!("{pack}` was moved to `.damaged`")), "{}", outcome.stderr);
    assert!(archive.join(".damaged").join(&pack).exists() && !archive.join(&pack).exists());
    run_with_limits(&place, &["verify"]).expect_success();
    // Without its runs, the pack is all that there is.
    let pruned = copy_of(sound());
    pruned.pack();
    pruned.prune_packed();
    let archive = pruned.file("output/archive/vendor");
    let pack = damage_pack(&archive);
    let refused = run_with_limits(&pruned, &["run", "it"]).failed_with(1);
    assert!(refused.stderr.contains("signals.parquet` is damaged"), "{}", refused.stderr);
    assert!(archive.join(&pack).exists());
}

/// An invented member could otherwise account for missing rows.
#[test]
fn a_pack_with_an_invented_member_still_has_to_contain_the_rows_of_the_others() {
    let place = copy_of(sound());
    let archive = place.file("output/archive/vendor");
    let runs = names(&archive);
    forge::pack(&archive, |pack, folder| {
        forge::falsify(pack, folder);
        let mut invented = pack.members[0].clone();
        invented.run = "20200101T000000Z-0000".to_owned();
        invented.sealed_at = invented.started_at;
        invented.files.iter_mut().for_each(|file| file.rows = 0);
        pack.members.insert(0, invented);
    });
    lacks_rows(&place, &runs);
}

//! What tests, fuzzing and benchmarks reach of the inside.
//!
//! Properties of what is read from outside besides the answers of a service: seals, definitions, listings of stores and cron
//! expressions. Each function takes arbitrary bytes and panics if a property is violated; reading them never does.
//!
//! The other functions do by hand what Arrow does too, so that benchmarks can compare both.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use blake3::Hash;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use crate::archive::{Pruning, Seal, StoredObservations, open_all, pack_most, prune};
use crate::columns::Rows;
use crate::dataset::RowOrder;
use crate::definition::{Cron, DefinitionFile};
use crate::error::Result;
use crate::export::Content;
use crate::plan::Plan;
use crate::process::cancel::CancellationToken;
use crate::run::store::listing::usable;
use crate::tables::Table;

/// A seal that is read says the same once it is written again.
pub fn seal(data: &[u8]) {
    let named: Option<Seal> = serde_json::from_slice(data).ok();
    let folder = named.map_or_else(|| "run=20261101T000000Z-aaaa".to_owned(), |seal| seal.folder_name());
    if let Ok(seal) = Seal::of(data, Path::new(&folder)) {
        let again = Seal::of(seal.text().as_bytes(), Path::new(&folder)).expect("what is written can be read");
        assert_eq!(again, seal);
    }
}

/// A definition has a plan, or problems with words for them.
pub fn definition(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = DefinitionFile::new(PathBuf::from("it.toml"), text.to_owned());
    if let Err(error) = file.and_then(Plan::of) {
        assert!(!error.to_string().is_empty());
    }
}

/// What is left of a listing has no key to be skipped, and lost nothing else.
pub fn listing(data: &[u8]) {
    let Ok((text, skipped)) = usable(data) else { return };
    let again = usable(&text).expect("what is left of a listing is one");
    assert_eq!(again, (text.clone(), Vec::new()));
    assert_eq!(skipped.is_empty(), text == data, "only skipped entries are taken out");
}

/// An expression is shown as it was typed, and is due after an instant, and until then not again.
pub fn cron(data: &[u8]) {
    let Some(cron) = std::str::from_utf8(data).ok().and_then(|text| text.parse::<Cron>().ok()) else { return };
    assert_eq!(cron.to_string().parse(), Ok(cron.clone()), "it is shown as it was typed");
    for zone in [Tz::UTC, Tz::Europe__Berlin, Tz::Australia__Lord_Howe] {
        // Shortly before the clocks change in Berlin.
        let instant: DateTime<Utc> = DateTime::from_timestamp(1_774_744_200, 0).expect("an instant");
        if let Some(due) = cron.next_after(instant, zone) {
            assert!(due > instant, "{due} is not after {instant}");
            assert_eq!(cron.last_until(due, zone), Some(due), "{zone}: it is due when it is due");
        }
    }
}

/// The rows of a slab in the order of some columns, given as numbers; the first column counts most.
pub fn order_rows(columns: &[Vec<u64>]) -> Vec<u32> {
    let mut order = RowOrder::new(columns[0].len());
    columns.iter().rev().for_each(|column| order.before(column.iter().copied()));
    order.rows()
}

/// The observations of signals in some sorted batches by cell, and each cell's by time.
///
/// # Errors
///
/// If they lack columns.
pub fn order_observations(batches: &[RecordBatch]) -> Result<RecordBatch> {
    Ok(StoredObservations::of(Table::Signals, batches.to_vec()).fold()?.rows())
}

/// Packs the runs of each service of an archive, few as they may be, except the newest `keep`. A run packs once there are
/// many.
///
/// # Errors
///
/// If a run cannot be read or is damaged, or a pack cannot be written.
pub fn pack(archive: &Path, keep: usize, stop: &CancellationToken) -> Result<Vec<Seal>> {
    let mut packs = Vec::new();
    for (_, of_service) in open_all(archive)? {
        packs.extend(pack_most(of_service.path(), keep, stop)?);
    }
    Ok(packs)
}

/// Removes the folders that packs stand for, however young these are.
///
/// # Errors
///
/// If a pack misses a row, or a folder cannot be removed.
pub fn prune_packed(archive: &Path) -> Result<()> {
    open_all(archive)?.into_iter().try_for_each(|(_, of_service)| prune(&Pruning::of(of_service)))
}

/// The digest of a dataset with some rows.
pub fn digest(pieces: &[Rows]) -> Hash {
    let mut content = Content::new(pieces[0].schema());
    content.update(pieces).expect("a dataset has columns of these types");
    content.digest()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{cron, definition, listing, seal};
    use crate::decode::harness;

    /// The name of a fuzz target, and what it runs.
    type Target = (&'static str, fn(&[u8]));

    /// Every fuzz target.
    const TARGETS: [Target; 9] = [
        ("conserve", harness::conserve),
        ("cron", cron),
        ("date", harness::date),
        ("decode", harness::decode),
        ("definition", definition),
        ("listing", listing),
        ("scan", harness::scan),
        ("score", harness::score),
        ("seal", seal),
    ];

    /// Bytes that mean something in one of the formats.
    const MARKS: &[u8] = b"\0\n\"<>&;/.*,-0{}[]";

    /// How often each seed is changed.
    const CHANGES: usize = 60;

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
        fs::read_dir(folder).expect("a folder").map(|entry| name(entry.expect("an entry").path())).collect()
    }

    /// The seeds of each target.
    fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
        let read = |(target, _): &Target| {
            let at = folder("seeds").join(target);
            let files = names(&at).len();
            let seeds: Vec<Vec<u8>> = fs::read_dir(&at)
                .expect("seeds")
                .map(|file| fs::read(file.expect("a file").path()).expect("bytes"))
                .collect();
            assert!(files > 1, "`{target}` has seeds");
            (*target, seeds)
        };
        TARGETS.iter().map(read).collect()
    }

    #[test]
    fn every_fuzz_target_has_seeds_that_are_run_here() {
        let expected: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names(&folder("fuzz_targets")), expected);
        assert_eq!(names(&folder("seeds")), expected);
    }

    /// A seed with a byte, or a few, replaced, removed or repeated.
    fn mutate(seed: &[u8], state: &mut u64) -> Vec<u8> {
        let mut random = |below: usize| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 33) as usize % below.max(1)
        };
        let mut bytes = seed.to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            let end = (at + 1 + random(8)).min(bytes.len());
            match random(4) {
                0 if at < bytes.len() => bytes[at] = random(256) as u8,
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.insert(at, MARKS[random(MARKS.len())]),
            }
        }
        bytes
    }

    #[test]
    fn what_is_read_from_outside_keeps_its_properties_for_seeds_and_for_what_is_close_to_them() {
        let seeds = seeds();
        let mut state = 20_261_120;
        for (target, run) in TARGETS {
            for seed in &seeds[target] {
                run(seed);
                for _ in 0..CHANGES {
                    run(&mutate(seed, &mut state));
                }
            }
        }
    }

    /// Seeds that all failed at the first byte would test nothing.
    #[test]
    fn most_seeds_are_valid() {
        let seeds = seeds();
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap_or_default();
        let share = |target: &str, is_valid: &dyn Fn(&Vec<u8>) -> bool| {
            let all = &seeds[target];
            assert!(2 * all.iter().filter(|seed| is_valid(seed)).count() >= all.len(), "{target}");
        };
        share("cron", &|seed| text(seed).parse::<crate::definition::Cron>().is_ok());
        share("listing", &|seed| super::usable(seed).is_ok());
        share("seal", &|seed| serde_json::from_slice::<crate::archive::Seal>(seed).is_ok());
        share("definition", &|seed| {
            let file = crate::definition::DefinitionFile::new(PathBuf::from("it.toml"), text(seed));
            file.and_then(crate::plan::Plan::of).is_ok()
        });
    }
}

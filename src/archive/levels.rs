//! Which fingerprints a run lists, and from which run's it goes on.
//!
//! To list all of them would cost each run as much as the first, and to list none but those that it changed would leave the
//! next run a file of each run to read. So the files stand in levels: the lowest lists all, and each other one what is not
//! as the one below has it, half as much at most but for what a run changes at once. A daily run changes much the same
//! fingerprints as the one before it, those of the newest quarter: it takes the place of that run then, and goes on from
//! the level below.

use super::index::{Archive, SealedRun};
use super::remembered::{Extent, SERIES};
use crate::error::{Error, Result};

/// The runs whose files of fingerprints make up what a run left, by their levels: first the one that lists all, the run
/// itself last.
pub(super) fn levels<'a>(archive: &'a Archive, run: &'a SealedRun) -> Result<Vec<&'a SealedRun>> {
    let mut levels = vec![run];
    let mut last = run;
    while let Some(since) = &last.seal().since {
        last = &archive.runs()[archive.place(since)?];
        if levels.len() > archive.runs().len() {
            let reason = "its fingerprints go on from themselves";
            return Err(Error::Damaged { path: run.path().to_owned(), source: reason.into() });
        }
        levels.push(last);
    }
    levels.reverse();
    Ok(levels)
}

/// Which fingerprints a run lists that comes after some, and the run that it goes on from. It lists all where these were
/// made at once.
pub(super) fn extent(archive: &Archive, heads: &[&SealedRun]) -> Result<(Extent, Option<String>)> {
    let [head] = heads else { return Ok((Extent::Whole, None)) };
    let rows = |run: &SealedRun| run.seal().rows(SERIES);
    let levels = levels(archive, head)?;
    // The first run that went on from the same one as the newest listed what it changed itself, and no more.
    let siblings = archive.runs().iter().filter(|run| run.seal().since == head.seal().since);
    let least = siblings.map(rows).min().unwrap_or_default();
    let lengths: Vec<u64> = levels.iter().map(|run| rows(run)).collect();
    Ok(match level(&lengths, least) {
        Some(level) => (Extent::Above(level), Some(levels[level].name().to_owned())),
        None => (Extent::Whole, None),
    })
}

/// The level that a run goes on from, given the rows of each and the least that one of the highest has; none when it is
/// to list all.
///
/// It takes the place of the highest one while that lists little more than a run changes, and goes on from it then. A
/// level that has become more than half of the one below is listed once more, with all that stands on it.
fn level(rows: &[u64], least: u64) -> Option<usize> {
    let highest = rows.len() - 1;
    let is_long = highest == 0 || rows[highest] > 2 * least;
    let wanted = if is_long { highest } else { highest - 1 };
    match rows.windows(2).position(|pair| pair[0] < 2 * pair[1]) {
        Some(crowded) => crowded.checked_sub(1).map(|below| below.min(wanted)),
        None => Some(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::level;

    #[test]
    fn a_level_that_has_become_long_is_gone_on_from_or_taken_together_with_the_one_below() {
        for (rows, least, expected) in [
            (&[100][..], 100, Some(0)),
            (&[100, 0], 0, Some(0)),
            (&[100, 10], 10, Some(0)),
            (&[100, 20], 10, Some(0)),
            (&[100, 21], 10, Some(1)),
            (&[100, 40, 10], 10, Some(1)),
            (&[100, 40, 20], 8, Some(2)),
            (&[100, 39, 20], 8, Some(0)),
            (&[100, 39, 20], 20, Some(0)),
            (&[100, 51], 10, None),
            (&[100, 51, 2], 2, None),
        ] {
            assert_eq!(level(rows, least), expected, "{rows:?} {least}");
        }
    }

    #[test]
    fn a_year_of_runs_lists_little_more_than_it_changes() {
        const SERIES: usize = 50;
        // When each quarter of each series changed last, and the runs: what they go on from, and what they list.
        let mut changed = vec![0; SERIES * 20];
        let mut runs: Vec<(Option<usize>, u64)> = vec![(None, changed.len() as u64)];
        let (mut touched, mut longest_way) = (0, 0);
        for day in 1..=500 {
            if day % 60 == 0 {
                changed.extend([day; SERIES]);
            }
            let newest = changed.len() - SERIES;
            changed[newest..].fill(day);
            changed[day * 7 % newest] = day;
            touched += SERIES as u64 + 1;
            let mut levels = vec![day - 1];
            while let Some(since) = runs[levels[0]].0 {
                levels.insert(0, since);
            }
            longest_way = longest_way.max(levels.len());
            let rows: Vec<u64> = levels.iter().map(|&run| runs[run].1).collect();
            let least = runs.iter().filter(|run| run.0 == runs[day - 1].0).map(|run| run.1).min().unwrap();
            let since = level(&rows, least).map(|level| levels[level]);
            let listed = changed.iter().filter(|&&at| since.is_none_or(|since| at > since)).count();
            runs.push((since, listed as u64));
        }
        let listed: u64 = runs[1..].iter().map(|run| run.1).sum();
        assert!(listed < 2 * touched, "{listed} rows are listed where {touched} changed");
        assert!(longest_way <= 6, "{longest_way} files are read");
    }
}

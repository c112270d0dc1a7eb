//! Which run knew which: the histories that meet in an archive.
//!
//! A seal names the runs that were known when its run was settled. Where every run knew all that were sealed before it,
//! history is a line. Otherwise some runs are *concurrent*: none of the two knew the other, because their machines had
//! not met. What each of them stored is a difference from its own past, so their histories have to be merged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::sealed::seal::{Parent, Seal};

/// The runs of an archive, in the order in which they were sealed, and which of them each one knew.
#[derive(Clone, Debug, Default)]
pub(super) struct Lineage {
    /// For each run, a bit for each run that it knew; none while history is a line.
    known: Option<Vec<Vec<u64>>>,
    /// Runs that others knew, and that are not in the archive.
    missing: BTreeSet<String>,
    heads: Vec<Parent>,
}

impl Lineage {
    /// Of the seals of an archive's runs, in order.
    pub(super) fn of<'s>(seals: impl Iterator<Item = &'s Seal>) -> Self {
        let seals: Vec<&Seal> = seals.collect();
        let index_of: HashMap<&str, usize> =
            seals.iter().enumerate().map(|(index, seal)| (seal.run.as_str(), index)).collect();
        let lost: BTreeSet<&str> = seals.iter().flat_map(|seal| &seal.lost).map(String::as_str).collect();
        let parents = seals.iter().flat_map(|seal| &seal.basis).map(|parent| parent.run.as_str());
        let is_missing = |run: &&str| !index_of.contains_key(run) && !lost.contains(run);
        let missing = parents.filter(is_missing).map(ToOwned::to_owned).collect();
        let is_next = |pair: &[&Seal]| matches!(&pair[1].basis[..], [only] if only.run == pair[0].run);
        let is_line = seals.windows(2).all(is_next);
        if is_line {
            let heads = seals.last().map(|seal| seal.parent()).into_iter().collect();
            return Self { known: None, missing, heads };
        }
        let known = closures(&seals, &index_of);
        let mut is_known = vec![0; words(seals.len())];
        known.iter().for_each(|of_run| add(&mut is_known, of_run));
        let is_head = |index: &usize| !has(&is_known, *index);
        let heads = (0..seals.len()).filter(is_head).map(|index| seals[index].parent()).collect();
        Self { known: Some(known), missing, heads }
    }

    /// Runs that others knew, and that are not in the archive.
    pub(super) fn missing(&self) -> &BTreeSet<String> {
        &self.missing
    }

    /// The runs that no other run knew.
    pub(super) fn heads(&self) -> &[Parent] {
        &self.heads
    }

    /// Whether one run is the other, or knew it.
    pub(super) fn knew(&self, one: usize, other: usize) -> bool {
        match &self.known {
            _ if one == other => true,
            None => other < one,
            Some(known) => has(&known[one], other),
        }
    }

    /// The runs that are concurrent with another one.
    pub(super) fn concurrent(&self) -> BTreeSet<usize> {
        let Some(known) = &self.known else { return BTreeSet::new() };
        let count = known.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        pairs
            .filter(|&(one, other)| !self.knew(one, other) && !self.knew(other, one))
            .flat_map(<[usize; 2]>::from)
            .collect()
    }
}

/// How some sealed folders contradict one another, a clause each: runs that they lack and that other runs are based on,
/// and runs of which a pack or a later run has another seal.
pub(crate) fn contradictions<'s>(folders: impl Iterator<Item = &'s Seal> + Clone) -> Vec<String> {
    let runs = folders.clone().flat_map(Seal::runs);
    let mut seals: BTreeMap<&str, &Seal> = BTreeMap::new();
    let mut faults = BTreeSet::new();
    // A run in its own folder comes before its copy in a pack.
    for run in folders.filter(|folder| !folder.is_pack()).flat_map(Seal::runs).chain(runs) {
        let known = *seals.entry(&run.run).or_insert(run);
        if known.seal != run.seal {
            faults.insert(format!("a pack has another record of run `{}`", run.run));
        }
    }
    let mut in_order: Vec<&Seal> = seals.values().copied().collect();
    in_order.sort_by_key(|seal| (seal.sealed_at, &seal.run));
    let missing = Lineage::of(in_order.iter().copied()).missing;
    faults.extend(missing.into_iter().map(|run| format!("it lacks run `{run}`, which later runs are based on")));
    for (later, parent) in in_order.iter().flat_map(|later| later.basis.iter().map(move |parent| (later, parent))) {
        if seals.get(parent.run.as_str()).is_some_and(|known| known.seal != parent.seal) {
            let Parent { run, .. } = parent;
            faults.insert(format!("run `{}` is based on another run of the name `{run}`", later.run));
        }
    }
    faults.into_iter().collect()
}

/// For each run, all runs that it knew, directly or through others.
fn closures(seals: &[&Seal], index_of: &HashMap<&str, usize>) -> Vec<Vec<u64>> {
    let mut known = vec![vec![0; words(seals.len())]; seals.len()];
    // Clocks of machines differ, so a run may know one that was sealed later: that takes another round.
    loop {
        let before = known.clone();
        for (run, seal) in seals.iter().enumerate() {
            for &parent in seal.basis.iter().filter_map(|parent| index_of.get(parent.run.as_str())) {
                let of_parent = known[parent].clone();
                add(&mut known[run], &of_parent);
                known[run][parent / 64] |= 1 << (parent % 64);
            }
        }
        if known == before {
            return known;
        }
    }
}

fn words(count: usize) -> usize {
    count.div_ceil(64)
}

fn has(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
}

fn add(bits: &mut [u64], more: &[u64]) {
    bits.iter_mut().zip(more).for_each(|(bits, more)| *bits |= more);
}

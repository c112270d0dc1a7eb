//! Writes the changes of a run, and its answers.

use std::collections::{BTreeMap, HashSet};

use arrow::error::ArrowError;
use rayon::prelude::*;

use super::Group;
use super::by_series::Repeated;
use super::tables::Tables;
use crate::archive::fold::cells::Cells;
use crate::archive::sealed::answers::{self};
use crate::archive::sealed::listings::Name;
use crate::archive::sealed::rowfile::Rowfile;
use crate::archive::sealed::seal::Counts;
use crate::disk::file::FileRecord;
use crate::error::Result;
use crate::process::trace::work;
use crate::tables::{Changes, SeriesKey, Table};

/// The most rows to concatenate at once.
pub(super) const PIECE_ROWS: usize = 1 << 15;

/// The files of a run being sealed that grow with every group.
pub(super) struct Writing {
    pub(super) tables: Tables,
    pub(super) answers: Rowfile,
    pub(super) counts: Counts,
    pub(super) known: u64,
    pub(super) repeated: Vec<Repeated>,
    pub(super) inexact: HashSet<Name>,
}

/// The finished observation files and their counts.
pub(super) struct FinishedFiles {
    pub(super) files: Vec<FileRecord>,
    pub(super) counts: Counts,
    pub(super) known: u64,
    pub(super) repeated: Vec<Repeated>,
    /// The requests whose answers cannot be told from what is known after them.
    pub(super) inexact: HashSet<Name>,
}

impl Writing {
    pub(super) fn write(&mut self, group: Group) -> Result<()> {
        let _work = work!("write changes");
        self.repeated.extend(group.repeated);
        self.inexact.extend(group.inexact);
        self.counts += group.counts;
        self.known += group.known;
        if !group.answers.is_empty() {
            self.answers.write(answers::batch(&group.answers))?;
        }
        group.rows.into_iter().try_for_each(|(table, rows)| self.tables.write(table, &rows))
    }

    pub(super) fn finish(self) -> Result<FinishedFiles> {
        let Self { tables, answers, counts, known, repeated, inexact } = self;
        let mut files = tables.finish()?;
        files.push(answers.finish()?);
        Ok(FinishedFiles { files, counts, known, repeated, inexact })
    }
}

/// Changes as rows of their tables, in the given order.
pub(in crate::archive) fn batches(changes: Vec<Changes>) -> Result<Vec<(Table, crate::columns::Rows)>, ArrowError> {
    let mut by_table: BTreeMap<Table, Vec<Changes>> = BTreeMap::new();
    for changes in changes {
        if let Some(table) = changes.key.table {
            by_table.entry(table).or_default().push(changes);
        }
    }
    let mut pieces: Vec<(Table, Vec<Changes>)> = Vec::new();
    for (table, changes) in by_table {
        let mut rows = PIECE_ROWS;
        let mut last: Option<SeriesKey> = None;
        for changes in changes {
            let is_continued = last.as_ref() == Some(&changes.key);
            if rows >= PIECE_ROWS && !is_continued {
                pieces.push((table, Vec::new()));
                rows = 0;
            }
            rows += changes.kinds.len();
            last = Some(changes.key.clone());
            pieces.last_mut().expect("the first changes begin a piece").1.push(changes);
        }
    }
    let rows = |(table, changes): (Table, Vec<Changes>)| {
        let rows = table.batch(&changes)?;
        // Several answers about a series are sorted by cell.
        let is_continued = |pair: &[Changes]| pair[0].key == pair[1].key;
        let rows = if changes.windows(2).any(is_continued) { Cells::as_stored(table, [&rows])?.rows } else { rows };
        Ok((table, rows.into()))
    };
    pieces.into_par_iter().map(rows).collect()
}

//! The files of observations of a run that is being sealed.

use std::path::Path;

use crate::archive::sealed::rowfile::Rowfile;
use crate::error::Result;
use crate::file::FileRecord;
use crate::tables::{Rows, Table};

/// A file for each table.
pub(super) struct Tables(Vec<Rowfile>);

impl Tables {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        // Ordered by what names a series; within it by cell.
        let create = |table: Table| Rowfile::create(&folder.join(table.file()), table.schema(), table.key_columns());
        Ok(Self(Table::ALL.into_iter().map(create).collect::<Result<_>>()?))
    }

    /// Adds rows of a table, which come in their order.
    pub(super) fn write(&mut self, table: Table, rows: &Rows) -> Result<()> {
        self.0[table as usize].add(rows)
    }

    pub(super) fn finish(self) -> Result<Vec<FileRecord>> {
        self.0.into_iter().map(Rowfile::finish).collect()
    }
}

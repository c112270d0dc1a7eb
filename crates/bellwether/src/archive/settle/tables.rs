//! The observation files of a run being sealed.

use std::path::Path;

use crate::archive::sealed::rowfile::Rowfile;
use crate::columns::Rows;
use crate::disk::file::FileRecord;
use crate::error::Result;
use crate::tables::Table;

/// A file per table.
pub(in crate::archive) struct Tables(Vec<Rowfile>);

impl Tables {
    pub(in crate::archive) fn create(folder: &Path) -> Result<Self> {
        // Sorted by series, and within it by cell.
        let create =
            |table: Table| Rowfile::create(&folder.join(table.file()), table.file_schema(), table.key_columns());
        Ok(Self(Table::ALL.into_iter().map(create).collect::<Result<_>>()?))
    }

    /// Adds rows of a table, which come in order.
    pub(in crate::archive) fn write(&mut self, table: Table, rows: &Rows) -> Result<()> {
        self.0[table as usize].add(rows)
    }

    pub(in crate::archive) fn finish(self) -> Result<Vec<FileRecord>> {
        self.0.into_iter().map(Rowfile::finish).collect()
    }
}

//! The files of observations of a run that is being sealed.

use std::path::Path;

use super::rowfile::{ROW_GROUP_ROWS, Rowfile};
use crate::error::Result;
use crate::file::FileRecord;
use crate::tables::{Changes, Table};

/// A file for each table.
pub(super) struct Tables {
    tables: Vec<OneTable>,
}

struct OneTable {
    table: Table,
    file: Rowfile,
    pending: Vec<Changes>,
    rows: usize,
}

impl Tables {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let create = |table: Table| {
            // Ordered by what names a series; within it by cell.
            let file = Rowfile::create(&folder.join(table.file()), table.schema(), table.key_columns())?;
            Ok(OneTable { table, file, pending: Vec::new(), rows: 0 })
        };
        Ok(Self { tables: Table::ALL.into_iter().map(create).collect::<Result<_>>()? })
    }

    /// Adds what became of a series; series come in their order.
    pub(super) fn write(&mut self, changes: Changes) -> Result<()> {
        let Some(table) = Table::of(changes.key.source) else { return Ok(()) };
        self.tables[table as usize].write(changes)
    }

    pub(super) fn finish(self) -> Result<Vec<FileRecord>> {
        self.tables.into_iter().map(OneTable::finish).collect()
    }
}

impl OneTable {
    /// Puts as many rows together as are written at once, so that they are copied no more than this once.
    fn write(&mut self, mut changes: Changes) -> Result<()> {
        while self.rows + changes.kinds.len() >= ROW_GROUP_ROWS {
            let rest = changes.split_off(ROW_GROUP_ROWS - self.rows);
            self.pending.push(changes);
            self.flush()?;
            changes = rest;
        }
        if !changes.kinds.is_empty() {
            self.rows += changes.kinds.len();
            self.pending.push(changes);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(self.table.batch(&self.pending))?;
        self.pending.clear();
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<FileRecord> {
        if !self.pending.is_empty() {
            self.flush()?;
        }
        self.file.finish()
    }
}

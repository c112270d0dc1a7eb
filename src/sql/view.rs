//! The archive as of an instant: known observations, and the series that requests list.

use chrono::{DateTime, Utc};

use super::dialect::Dialect;
use super::text::indented;
use crate::archive::{LISTINGS, SEAL};
use crate::names::SMALLEST_RECORD;
use crate::tables::Table;
use crate::time::to_record;

/// The files of an archive, read as of an instant.
pub(super) struct View<'a> {
    pub(super) dialect: Dialect,
    /// The folder or URL of the archive.
    pub(super) archive: &'a str,
    pub(super) as_of: DateTime<Utc>,
}

/// Indentation of the second line of a window.
const BELOW: &str = "                             ";

impl View<'_> {
    /// The sealed folders. In an object store, the others are unfinished uploads. A file with the name of a seal but smaller
    /// than any seal marks a folder that is being cleared.
    pub(super) fn sealed(&self) -> String {
        let (files, bytes) = self.dialect.files(&format!("{}/*=*/{SEAL}", self.archive));
        format!("select {} as folder\nfrom {files}\nwhere {bytes} >= {SMALLEST_RECORD}", self.dialect.folder())
    }

    /// The rows of a file in every sealed folder that count from a run sealed by the instant.
    fn rows(&self, file: &str) -> String {
        let files = self.dialect.parquet(&format!("{}/*=*/{file}", self.archive));
        let (folder, sealed) = (self.dialect.folder(), self.dialect.sealed());
        format!("from {files}\nwhere {folder} in {sealed}\n    and sealed_at <= '{}'", to_record(self.as_of))
    }

    /// The observations of a table; `newest` is 1 for the latest of each cell. The archive documents this query.
    pub(super) fn newest(&self, table: Table) -> String {
        self.newest_of(&table.file(), &cell(table))
    }

    fn newest_of(&self, file: &str, cell: &str) -> String {
        format!(
            "select *, row_number() over (partition by {cell}\n{BELOW}order by observed_at desc, change desc) as newest\n{}",
            self.rows(file)
        )
    }

    /// The values of a table; `oldest` is 1 for the first of each cell.
    pub(super) fn oldest(&self, table: Table) -> String {
        format!(
            "select *, row_number() over (partition by {}\n{BELOW}order by observed_at, change) as oldest\n{} and change <> 'withdrawn'",
            cell(table),
            self.rows(&table.file())
        )
    }

    /// The observations of a table that differ from the previous one; concurrent runs may repeat each other.
    pub(super) fn changes(&self, table: Table) -> String {
        let is_optional = |name: &&str| table.optional().contains(name);
        let values = table.values().iter().copied().chain(table.has_extra().then_some("extra"));
        let value = self.dialect.row(&values.filter(|name| !is_optional(name)).collect::<Vec<_>>().join(", "));
        let valued = format!(
            "select *, case when change <> 'withdrawn' then {value} end as value\n{}",
            self.rows(&table.file())
        );
        let order = format!("over (partition by {} order by observed_at, change)", cell(table));
        // A null there says nothing, and is not distinct from anything.
        let optional: Vec<&str> = table.optional().to_vec();
        let before = optional.iter().map(|name| format!(",\n    lag({name}) {order} as {name}_before"));
        let before = format!(
            "select *, lag(value) {order} as value_before{}\nfrom (\n{}\n)",
            before.collect::<String>(),
            indented(&valued)
        );
        let differs = optional.iter().map(|name| format!("\n    or {name} <> {name}_before"));
        format!(
            "select * from (\n{}\n) where value is distinct from value_before{}",
            indented(&before),
            differs.collect::<String>()
        )
    }

    /// The values of a table over time, each with the times when it was observed and replaced.
    pub(super) fn spans(&self, table: Table, changes: &str) -> String {
        let observed = self.dialect.in_utc("observed_at");
        let naive = self.dialect.naive();
        format!(
            "select *, {observed} as observed,\n    coalesce(lead({observed}) over (partition by {}\n        \
             order by observed_at, change), cast('9999-12-31' as {naive})) as replaced\nfrom {changes}",
            cell(table)
        )
    }

    /// The sector of each ticker: the first by name that lists it, or else the last that did.
    pub(super) fn sectors(&self) -> String {
        let newest = self.newest_of(LISTINGS, "ticker, period, regime, source, request");
        let named = format!(
            "select ticker, change, observed_at,\n    \
             split_part(split_part(request, ' sector=', 2), ' period=', 1) as sector\nfrom (\n{}\n) \
             where newest = 1 and contains(request, ' sector=')",
            indented(&newest)
        );
        let ranked = format!(
            "select *, row_number() over (partition by ticker order by change,\n    \
             case when change <> 'added' then observed_at end desc, sector) as place\nfrom (\n{}\n)",
            indented(&named)
        );
        format!("select ticker, sector\nfrom (\n{}\n) where place = 1", indented(&ranked))
    }

    /// The series that each request lists. A series that no request lists any more belongs to the requests that listed it last.
    pub(super) fn listed(&self) -> String {
        let newest = self.newest_of(LISTINGS, "ticker, period, regime, source, request");
        let ranked = format!(
            "select *, rank() over (partition by ticker, period, regime, source\n    \
             order by change, case when change <> 'added' then observed_at end desc) as place\nfrom (\n{}\n) where newest = 1",
            indented(&newest)
        );
        format!("select ticker, period, regime, source, request\nfrom (\n{}\n) where place = 1", indented(&ranked))
    }
}

/// The columns that identify a cell of a table.
pub(super) fn cell(table: Table) -> String {
    let schema = table.schema();
    let key = schema.fields()[..table.key_columns()].iter().map(|field| field.name().as_str());
    key.chain(table.identity().iter().copied()).collect::<Vec<_>>().join(", ")
}

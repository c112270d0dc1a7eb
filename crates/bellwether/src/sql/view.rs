//! The archive as of an instant: known observations, and the series that requests list.

use super::{Question, indent};
use crate::archive::{LISTINGS, SEAL};
use crate::disk::names::SMALLEST_RECORD;
use crate::tables::Table;
use crate::time::to_record;

/// Indentation of the second line of a window.
const BELOW: &str = "                             ";

impl Question<'_> {
    /// The sealed folders. In an object store, the others are unfinished uploads. A file with the name of a seal but smaller
    /// than any seal marks a folder that is being cleared.
    pub(super) fn sealed_folders(&self) -> String {
        let (files, bytes) = self.dialect.files(&self.patterns(SEAL));
        format!("select {} as folder\nfrom {files}\nwhere {bytes} >= {SMALLEST_RECORD}", self.dialect.folder())
    }

    /// The patterns of a file in every folder of the archive.
    fn patterns(&self, file: &str) -> Vec<String> {
        let literal = |folder: &String| self.dialect.literal(folder.trim_end_matches('/'));
        self.archive.iter().map(|folder| format!("{}/*=*/{file}", literal(folder))).collect()
    }

    /// The rows of a file in every sealed folder that count from a run sealed by the instant.
    pub(super) fn rows(&self, file: &str) -> String {
        let (files, folder) = (self.dialect.parquet(&self.patterns(file)), self.dialect.folder());
        // Spark needs a hint that they are few, or it sorts the other side of the join.
        let hint = self.dialect.pick("", "/*+ broadcast(sealed) */ ");
        let mut rows = format!(
            "from {files}\nwhere {folder} in (select {hint}folder from sealed)\n    and sealed_at <= '{}'",
            to_record(self.view.as_of())
        );
        // The runs that are forgotten, and the merges of them.
        let left_out: Vec<String> = self.view.left_out().into_iter().map(|at| format!("'{}'", to_record(at))).collect();
        if !left_out.is_empty() {
            rows.push_str(&format!("\n    and sealed_at not in ({})", left_out.join(", ")));
        }
        for merge in self.view.archive().left_out_merges() {
            rows.push_str(&format!("\n    and {folder} not like '%/{merge}'"));
        }
        rows
    }

    /// The observations of a table; `newest` is 1 for the latest of each cell. The archive documents this query.
    pub(super) fn newest(&self, table: Table) -> String {
        newest_of(&self.rows(&table.file()), &cell(table), &in_order(table, " desc"))
    }

    /// The values of a table; `oldest` is 1 for the first of each cell.
    pub(super) fn oldest(&self, table: Table) -> String {
        format!(
            "select *, row_number() over (partition by {}\n{BELOW}order by observed_at, change) as oldest\n{} and change <> 'withdrawn'",
            cell(table),
            self.rows(&table.file())
        )
    }

    /// The observations of a table that differ from the previous one; concurrent runs may repeat each other. For each optional
    /// column there is one with `_known` after its name: what was known of it then.
    pub(super) fn changes(&self, table: Table) -> String {
        let is_optional = |name: &&str| table.optional().contains(name);
        let values = table.values().iter().copied().chain(table.has_extra().then_some("extra"));
        let values = values.filter(|name| !is_optional(name)).collect::<Vec<_>>().join(", ");
        // One comparable value.
        let value = format!("{}({values})", self.dialect.pick("row", "struct"));
        let (cell, order) = (cell(table), format!("order by {}", in_order(table, "")));
        // A merge may say otherwise at which place an answer had an article. Of the rows of one instant the last counts.
        let rows = if table == Table::Articles {
            let next = format!(
                "select *, lead(observed_at) over (partition by {cell} {order}) as next_at\n{}",
                self.rows(&table.file())
            );
            format!("from (\n{}\n) where next_at is distinct from observed_at", indent(&next))
        } else {
            self.rows(&table.file())
        };
        let valued = format!("select *, case when change <> 'withdrawn' then {value} end as value\n{rows}");
        let before = format!("lag(value) over (partition by {cell} {order}) as value_before");
        // A null there says nothing. Once a new value has come with it, it stays known until the cell is withdrawn.
        let lived = format!(
            "select *, {before},\n    count(case when change = 'withdrawn' then 1 end) over (partition by {cell} {order}) as life\n\
             from (\n{}\n)",
            indent(&valued)
        );
        let of_life = format!("over (partition by {cell}, life {order}");
        let each = |line: &dyn Fn(&str) -> String| table.optional().iter().map(|name| line(name)).collect::<String>();
        let said = format!(
            "select *{}\nfrom (\n{}\n)",
            each(&|name| format!(
                ",\n    case when max(case when value is distinct from value_before and {name} is not null then 1 end)\n        \
                 {of_life}) = 1 then {name} end as {name}_said"
            )),
            indent(&lived)
        );
        let known = format!(
            "select *{}\nfrom (\n{}\n)",
            each(&|name| {
                // The last one that is not null.
                let how = self.dialect.pick(" ignore nulls", ", true");
                let last = format!("last_value({name}_said{how})");
                format!(
                    ",\n    {last} {of_life} rows between unbounded preceding and 1 preceding) as {name}_before,\n    \
                     {last} {of_life} rows unbounded preceding) as {name}_known"
                )
            }),
            indent(&said)
        );
        format!(
            "select * from (\n{}\n) where value is distinct from value_before{}",
            indent(&known),
            each(&|name| format!("\n    or {name}_said <> {name}_before"))
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

    /// The listings of sectors by the requests that count.
    pub(super) fn sector_listings(&self, is_asked: &str) -> String {
        format!(
            "select {LISTED}, change, observed_at, {} as sealed,\n    \
             split_part(split_part(request, ' sector=', 2), ' period=', 1) as sector\n{}\n    \
             and contains(request, ' sector='){is_asked}",
            self.dialect.in_utc("sealed_at"),
            self.rows(LISTINGS)
        )
    }

    /// The sector of each key of some listings: the first by name that lists it, or else the last that did.
    pub(super) fn sectors(key: &str, from: &str) -> String {
        let listing = LISTED.replacen("ticker", key, 1);
        let newest = newest_of(from, &listing, &in_order(Table::Signals, " desc"));
        let ranked = format!(
            "select *, row_number() over (partition by {key} order by change,\n    \
             case when change <> 'added' then observed_at end desc, sector) as place\nfrom (\n{}\n) where newest = 1",
            indent(&newest)
        );
        format!("select {key}, sector\nfrom (\n{}\n) where place = 1", indent(&ranked))
    }

    /// The listings; `newest` is 1 for the latest of each series and request.
    pub(super) fn newest_listings(&self) -> String {
        newest_of(&self.rows(LISTINGS), LISTED, &in_order(Table::Signals, " desc"))
    }

    /// The series that each request has listed; `place` is 1 for the requests that list it, or did so last if none does any more.
    pub(super) fn listed_series(&self) -> String {
        let newest = self.newest_listings();
        let ranked = format!(
            "select *, rank() over (partition by ticker, period, regime, source\n    \
             order by change, case when change <> 'added' then observed_at end desc) as place\nfrom (\n{}\n) where newest = 1",
            indent(&newest)
        );
        format!("select ticker, period, regime, source, request, place\nfrom (\n{}\n)", indent(&ranked))
    }
}

/// Some observations; `newest` is 1 for the latest of each cell.
pub(super) fn newest_of(rows: &str, cell: &str, order: &str) -> String {
    format!("select *, row_number() over (partition by {cell}\n{BELOW}order by {order}) as newest\n{rows}")
}

/// The columns that identify a listing.
const LISTED: &str = "ticker, period, regime, source, request";

/// The order of the observations of a cell, each column in a direction.
pub(super) fn in_order(table: Table, direction: &str) -> String {
    let place = if table == Table::Articles { format!(", place{direction}") } else { String::new() };
    format!("observed_at{direction}, change{direction}{place}")
}

/// The columns that identify a cell of a table.
pub(super) fn cell(table: Table) -> String {
    let schema = table.schema();
    let key = schema.fields()[..table.key_columns()].iter().map(|field| field.name().as_str());
    key.chain(table.identity().iter().copied()).collect::<Vec<_>>().join(", ")
}

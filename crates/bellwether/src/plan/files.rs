//! The files that a dataset is written to.

use super::{Column, DatasetPlan, FormulaGuard, Validator};
use crate::definition::{Compression, Format};

/// The files that a dataset is written to.
#[derive(Clone, Debug)]
pub struct FilesPlan {
    /// Their formats: at least one, without duplicates.
    pub formats: Vec<Format>,
    /// The compression of Parquet.
    pub codec: Codec,
    /// The number of rows per Parquet row group.
    pub row_group_rows: usize,
    /// The partition columns. `ticker` alone is a file for each, without folders.
    pub partition_by: Vec<Column>,
    /// The columns that pandas takes as the index.
    pub index: Vec<Column>,
    /// What CSV hides from spreadsheets.
    pub guard: FormulaGuard,
    /// How many versions to keep.
    pub keep: usize,
    /// Whether a run draws its report.
    pub report: bool,
}

/// The compression of Parquet pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Zstandard, with its level.
    Zstd(u8),
    /// Snappy.
    Snappy,
    /// No compression.
    None,
}

impl Validator<'_> {
    /// The files of a dataset.
    pub(super) fn files(&mut self, dataset: &DatasetPlan) -> FilesPlan {
        let section = &self.definition.output;
        let formats = self.distinct("format", "output.format", section.format.as_ref());
        let formats = formats.unwrap_or_else(|| vec![Format::Parquet]);
        for (keys, format) in [
            (&["output.compression", "output.index", "output.level"][..], Format::Parquet),
            (&["output.csv_guard"][..], Format::Csv),
        ] {
            if !formats.iter().any(|other| *other == format || format.is_csv() && other.is_csv()) {
                let hint = format!("add `\"{format}\"` to `format`, or remove `{{key}}`");
                self.without_effect(keys, &format!("without `{format}`"), &hint);
            }
        }
        let row_group_rows = section.row_group_rows.unwrap_or(1 << 18);
        if row_group_rows < 1000 {
            let what = format!("row groups of {row_group_rows} rows are too small");
            let hint = "use at least 1000; 100000 to 1000000 suit most readers";
            self.object("output.row_group_rows", what, hint);
        }
        let keep = section.keep.unwrap_or(5);
        if keep == 0 {
            self.object("output.keep", "`keep` must be positive", "use a number from 1");
        }
        let partition_by =
            self.columns("partition by", "output.partition_by", section.partition_by.as_ref(), &dataset.columns);
        for (key, column) in &partition_by {
            if column.is_of_few() {
                self.check_written(*column, "partition_by", key, dataset);
            } else {
                let hint = "nearly every row would get its own folder: remove it";
                self.object(key, format!("cannot partition by `{}`", column.name()), hint);
            }
        }
        let partition_by: Vec<Column> = partition_by.into_iter().map(|(_, column)| column).collect();
        let index = self.columns("index by", "output.index", section.index.as_ref(), &dataset.columns);
        for (key, column) in &index {
            self.check_written(*column, "index", key, dataset);
            if partition_by.contains(column) && partition_by != [Column::Ticker] {
                let hint = "remove it from `index`, or from `partition_by`";
                self.object(key, format!("`{}` is in the names of folders", column.name()), hint);
            }
        }
        FilesPlan {
            formats,
            codec: self.codec(),
            row_group_rows: row_group_rows as usize,
            partition_by,
            index: index.into_iter().map(|(_, column)| column).collect(),
            guard: if section.csv_guard == Some(true) { FormulaGuard::Formulas } else { FormulaGuard::None },
            keep: usize::from(keep),
            report: section.report.unwrap_or_default(),
        }
    }

    /// Reports a column of a key that the files do not have.
    fn check_written(&mut self, column: Column, key: &str, at: &str, dataset: &DatasetPlan) {
        if dataset.written.schema().index_of(dataset.written.name(column)).is_err() {
            let hint = format!("add it to `columns` in `[dataset]`, or remove it from `{key}`");
            self.object(at, format!("`columns` leaves out `{}`", column.name()), hint);
        }
    }

    fn codec(&mut self) -> Codec {
        let section = &self.definition.output;
        let (compression, level) = (section.compression.unwrap_or(Compression::Zstd), section.level.unwrap_or(3));
        if section.level.is_some() && compression != Compression::Zstd {
            let hint = "only `zstd` has levels: remove it";
            self.object("output.level", format!("`{compression}` has no levels"), hint);
        } else if !(1..=22).contains(&level) {
            self.object("output.level", format!("{level} is not a zstd level"), "use a number from 1 to 22");
        }
        match compression {
            Compression::Zstd => Codec::Zstd(level),
            Compression::Snappy => Codec::Snappy,
            Compression::None => Codec::None,
        }
    }
}

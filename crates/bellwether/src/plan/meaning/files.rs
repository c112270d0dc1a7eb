//! The files that a dataset is written to.

use super::Validator;
use crate::definition::{Compression, Format, OutputSection, Placed};
use crate::plan::{Codec, Column, DatasetPlan, FilesPlan, FormulaGuard};
use crate::text::problem::Problem;

const DEFAULT_LEVEL: u8 = 3;
const DEFAULT_ROW_GROUP_ROWS: u32 = 1 << 18;
const DEFAULT_KEEP: u16 = 5;

impl Validator {
    /// The files of a definition.
    pub(super) fn files(&mut self, section: &OutputSection, dataset: &DatasetPlan) -> FilesPlan {
        let formats = self.formats(section);
        let codec = self.codec(section);
        self.check_formats(section, &formats);
        let rows = section.row_group_rows.as_deref().copied().unwrap_or(DEFAULT_ROW_GROUP_ROWS);
        if let Some(typed) = section.row_group_rows.as_ref().filter(|rows| ***rows < 1000) {
            let problem = Problem::new(format!("row groups of {} rows are too small", **typed), typed.span());
            self.object(problem.with_hint("use at least 1000; 100000 to 1000000 suit most readers"));
        }
        let keep = section.keep.as_deref().copied().unwrap_or(DEFAULT_KEEP);
        if let Some(typed) = section.keep.as_ref().filter(|keep| ***keep == 0) {
            let problem = Problem::new("`keep` must be positive", typed.span());
            self.object(problem.with_hint("use a number from 1"));
        }
        let partition_by = self.partitions(section, dataset);
        let index = self.columns("index by", section.index.as_ref(), &dataset.columns);
        for name in section.index.iter().flat_map(|typed| typed.iter()) {
            let Some(column) = index.iter().find(|column| column.name() == name.as_str()) else { continue };
            self.check_written(*column, "index", name, dataset);
            if partition_by.contains(column) && partition_by != [Column::Ticker] {
                let problem = Problem::new(format!("`{}` is in the names of folders", column.name()), name.span());
                self.object(problem.with_hint("remove it from `index`, or from `partition_by`"));
            }
        }
        let guard = match section.csv_guard.as_deref() {
            Some(true) => FormulaGuard::Formulas,
            Some(false) | None => FormulaGuard::None,
        };
        let report = section.report.as_deref().copied().unwrap_or_default();
        let (row_group_rows, keep) = (rows as usize, usize::from(keep));
        FilesPlan { formats, codec, row_group_rows, partition_by, index, guard, keep, report }
    }

    /// Reports keys of formats that are not written.
    fn check_formats(&mut self, section: &OutputSection, formats: &[Format]) {
        let at = |key: &'static str, span: Option<std::ops::Range<usize>>, format| (key, span, format);
        let is_written =
            |format: Format| formats.iter().any(|other| *other == format || format.is_csv() && other.is_csv());
        let keys = [
            at("compression", section.compression.as_ref().map(Placed::span), Format::Parquet),
            at("index", section.index.as_ref().map(Placed::span), Format::Parquet),
            at("level", section.level.as_ref().map(Placed::span), Format::Parquet),
            at("csv_guard", section.csv_guard.as_ref().map(Placed::span), Format::Csv),
        ];
        for (key, span, format) in keys {
            if let Some(span) = span.filter(|_| !is_written(format)) {
                let problem = Problem::new(format!("`{key}` has no effect without `{format}`"), span);
                self.object(problem.with_hint(format!("add `\"{format}\"` to `format`, or remove `{key}`")));
            }
        }
    }

    fn partitions(&mut self, section: &OutputSection, dataset: &DatasetPlan) -> Vec<Column> {
        let columns = self.columns("partition by", section.partition_by.as_ref(), &dataset.columns);
        for name in section.partition_by.iter().flat_map(|typed| typed.iter()) {
            let Some(column) = columns.iter().find(|column| column.name() == name.as_str()) else { continue };
            if !column.is_of_few() {
                let problem = Problem::new(format!("cannot partition by `{}`", column.name()), name.span());
                self.object(problem.with_hint("nearly every row would get its own folder: remove it"));
            } else {
                self.check_written(*column, "partition_by", name, dataset);
            }
        }
        columns
    }

    /// Reports a column of a key that the files do not have.
    fn check_written(&mut self, column: Column, key: &str, name: &Placed<String>, dataset: &DatasetPlan) {
        if dataset.written.schema().index_of(dataset.written.name(column)).is_err() {
            let problem = Problem::new(format!("`columns` leaves out `{}`", column.name()), name.span());
            self.object(problem.with_hint(format!("add it to `columns` in `[dataset]`, or remove it from `{key}`")));
        }
    }

    fn codec(&mut self, section: &OutputSection) -> Codec {
        let OutputSection { compression, level, .. } = section;
        let compression = compression.as_deref().copied().unwrap_or(Compression::Zstd);
        if let Some(level) = level {
            if compression != Compression::Zstd {
                let problem = Problem::new(format!("`{compression}` has no levels"), level.span());
                self.object(problem.with_hint("only `zstd` has levels: remove it"));
            } else if !(1..=22).contains(&**level) {
                let problem = Problem::new(format!("{} is not a zstd level", **level), level.span());
                self.object(problem.with_hint("use a number from 1 to 22"));
            }
        }
        match compression {
            Compression::Zstd => Codec::Zstd(level.as_deref().copied().unwrap_or(DEFAULT_LEVEL)),
            Compression::Snappy => Codec::Snappy,
            Compression::None => Codec::None,
        }
    }

    fn formats(&mut self, section: &OutputSection) -> Vec<Format> {
        self.distinct("format", section.format.as_ref()).unwrap_or_else(|| vec![Format::Parquet])
    }
}

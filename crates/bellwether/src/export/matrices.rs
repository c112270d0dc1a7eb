//! The matrices of a wide version, each read like a long one: a column of dates, then a column per ticker.
//!
//! The tickers are in the files; the type of the values is in `dataset.json`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::csv::reader::Format as CsvFormat;
use arrow::datatypes::{Field, Schema};
use arrow::ipc::reader::FileReaderBuilder;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::coding;
use super::folder_names::unescape;
use super::reader::{PublishedReader, is_in};
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::error::{Reason, Result};
use crate::plan::{Column, Format};
use crate::tables::date;

impl PublishedReader {
    /// The matrices of a wide version, by name: `5d-bull/confidence`.
    pub(super) fn matrices(&self) -> Result<BTreeMap<String, Self>> {
        let files = self.record.files.iter().filter(|file| is_in(self.format, file));
        files.map(|file| Ok((self.name_of(file), self.matrix(file)?))).collect()
    }

    fn name_of(&self, file: &FileRecord) -> String {
        let stem = file.name.strip_suffix(self.format.as_str()).map_or(&*file.name, |stem| stem.trim_end_matches('.'));
        stem.split('/').map(unescape).collect::<Vec<_>>().join("/")
    }

    fn matrix(&self, file: &FileRecord) -> Result<Self> {
        let path = self.folder.join(&file.name);
        let damaged = |source: Reason| FileError::damage(&path, source);
        let name = self.name_of(file);
        // The name of a value may have a separator, too.
        let (_, value) = name.split_once('/').unwrap_or_default();
        let value = self.schema.field_with_name(value).map_err(|error| damaged(error.into()))?;
        let names = names_in(&path, self.format).map_err(damaged)?;
        let fields = names.into_iter().map(|name| match name == self.names.of(Column::Date.name()) {
            true => Field::new(name, date(), false),
            false => Field::new(name, value.data_type().clone(), true),
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut matrix = self.clone();
        matrix.schema = schema;
        matrix.record.files = vec![file.clone()];
        matrix.record.rows = file.rows;
        Ok(matrix)
    }
}

/// The names of the columns of a file.
fn names_in(path: &Path, format: Format) -> Result<Vec<String>, Reason> {
    let file = links::open(path)?;
    let schema = match format {
        Format::Parquet => Arc::clone(ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?.schema()),
        Format::Arrow => FileReaderBuilder::new().build(file)?.schema(),
        Format::Csv | Format::CsvGz | Format::CsvZst => {
            let text = coding(format).text_of(file)?;
            Arc::new(CsvFormat::default().with_header(true).infer_schema(text, Some(0))?.0)
        }
    };
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

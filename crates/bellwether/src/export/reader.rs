//! Reads a published version in any format.
//!
//! `dataset.json` declares the columns, their types and the sort order, so a version reads the same from Parquet, Arrow
//! and CSV. Partition columns come from the paths. Only the columns and row groups of a selection are read. The
//! matrices of a wide version are read one by one, like long ones: a column of dates, then a column per ticker. The tickers are in
//! the files; the type of the values is in `dataset.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format as CsvFormat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReaderBuilder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::formats::coding;
use super::partitions::{NOTHING, unescape};
use super::published::{find, removed};
use super::record::{RECORD, VersionRecord, VersionShape};
use super::selection::Selection;
use crate::columns::csv::unguarded;
use crate::definition::DefinitionFile;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::names::TICKERS;
use crate::disk::{expansion, links};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{Column, ColumnNames, Format, FormulaGuard, Plan, describe};
use crate::process::cancel::{self, CancellationToken};
use crate::tables::{choice, date, instant};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 16;

/// The batches of a file.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Reads a published version: a long one, or one matrix of a wide one.
#[derive(Clone, Debug)]
pub struct PublishedReader {
    folder: PathBuf,
    /// What is known of it besides its rows.
    pub record: VersionRecord,
    schema: SchemaRef,
    format: Format,
    /// What its files have before formulas.
    guard: FormulaGuard,
    names: ColumnNames,
    selection: Selection,
    /// How many of the last rows are wanted, if not all.
    least: Option<usize>,
    /// Cancels reading it.
    stop: CancellationToken,
}

impl PublishedReader {
    /// Finds a long version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// If it does not exist, is wide, or has a record that cannot be read.
    pub fn find(datasets: &Path, given: &str) -> Result<Self> {
        let reading = Self::whole(datasets, given)?;
        if reading.is_wide() {
            let what = format!("`{}` is wide, expected a long dataset", reading.folder.display());
            return Err(Error::new(ErrorKind::Data, what)
                .with_hint("build it with `layout = \"long\"`; the values are the same"));
        }
        Ok(reading)
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.record.shape == VersionShape::Wide
    }

    /// Finds a version of either shape; the columns of a wide one are its dates and values.
    pub(crate) fn whole(datasets: &Path, given: &str) -> Result<Self> {
        let folder = find(datasets, given)?;
        let record = VersionRecord::open(&folder)?;
        let damaged = |reason: String| FileError::damage(&folder.join(RECORD), reason);
        let mut fields = Vec::new();
        for column in &record.columns {
            let data_type = type_of(&column.r#type);
            let data_type = data_type.ok_or_else(|| damaged(format!("unknown column type `{}`", column.r#type)))?;
            fields.push(Field::new(&column.name, data_type, true));
        }
        let has = |format: &Format| record.files.iter().any(|file| is_in(*format, file));
        // The fastest format first.
        let format = [Format::Parquet, Format::Arrow, Format::Csv, Format::CsvZst, Format::CsvGz].into_iter().find(has);
        let format = format.ok_or_else(|| damaged("it lists no files with rows".to_owned()))?;
        let renamed = record.columns.iter().filter_map(|column| Some((column.column.clone()?, column.name.clone())));
        Ok(Self {
            folder,
            schema: Arc::new(Schema::new(fields)),
            format,
            guard: if format.is_csv() { guard_of(&record) } else { FormulaGuard::None },
            names: ColumnNames::new(renamed.collect()),
            selection: Selection::default(),
            least: None,
            stop: CancellationToken::new(),
            record,
        })
    }

    /// The same version; reading stops once the token is cancelled.
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// The same rows, or at least this many of the last, where nothing narrows them.
    pub(crate) fn ending(self, rows: usize) -> Self {
        Self { least: self.is_whole().then_some(rows), ..self }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its name: the dataset, and the version or ad hoc build.
    pub fn name(&self) -> String {
        self.record.reference()
    }

    /// Whether all of its rows are selected, and it is long.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_wide() && Selection { columns: None, ..self.selection.clone() } == Selection::default()
    }

    /// The facts about its rows, as stored.
    pub(crate) fn facts(&self) -> Result<Vec<u8>> {
        self.record.facts_in(&self.folder)
    }

    /// Its columns. Text columns have the type `Utf8`, whatever they are in the files.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same version, restricted to a selection. Columns with few possible values become dictionaries, as in a
    /// dataset that was just built.
    ///
    /// # Errors
    ///
    /// If it does not have a selected column, or one that rows are selected by.
    pub fn select(mut self, selection: Selection) -> Result<Self> {
        if self.is_wide() {
            self.selection = selection.of_matrix(&self.schema, self.names.of(Column::Date.name()))?;
            return Ok(self);
        }
        selection.check(&self.schema, &self.names)?;
        let is_choice = |name: &str| Column::CHOICES.iter().any(|column| self.names.of(column.name()) == name);
        let fields = self.schema.fields().iter().map(|field| match is_choice(field.name()) {
            true => field.as_ref().clone().with_data_type(choice()),
            false => field.as_ref().clone(),
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self.selection = selection;
        Ok(self)
    }

    /// The part of it that was selected.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The selected columns.
    pub fn selected_schema(&self) -> SchemaRef {
        self.selection.schema(&self.schema).expect("selected columns exist")
    }

    /// The columns that identify a row; `None` if rows may be equal.
    pub fn key(&self) -> Option<&[String]> {
        self.record.key.as_deref()
    }

    /// The names of its columns.
    pub fn names(&self) -> &ColumnNames {
        &self.names
    }

    /// The columns that sort its rows, as read by [`rows`](Self::rows).
    pub fn order(&self) -> Vec<&str> {
        let VersionRecord { partition_by, sort, .. } = &self.record;
        let within = sort.iter().filter(|column| !partition_by.contains(column));
        partition_by.iter().chain(within).map(String::as_str).collect()
    }

    /// The selected rows, in the columns of [`selected_schema`](Self::selected_schema), sorted by [`order`](Self::order).
    ///
    /// # Errors
    ///
    /// If it was removed since it was opened, or the name of a folder cannot be parsed.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        if file::is_gone(&self.folder.join(RECORD)) {
            return Err(removed(&self.folder));
        }
        let mut files: Vec<(Vec<String>, PathBuf)> = Vec::new();
        for file in self.record.files.iter().filter(|file| is_in(self.format, file)) {
            let path = self.folder.join(&file.name);
            let values = self.folders(&file.name).ok_or_else(|| {
                let reason = format!("it is not partitioned by {}", self.record.partition_by.join(", "));
                FileError::damage(&path, reason)
            })?;
            files.push((values, path));
        }
        // The text of a day sorts like its date.
        files.sort();
        let reading = self.clone();
        Ok(files.into_iter().flat_map(move |(values, path)| reading.of_file(values, path)))
    }

    /// The values of the partition columns, by the name of a file.
    fn folders(&self, name: &str) -> Option<Vec<String>> {
        // Where each ticker has a file, its name is the ticker.
        if let Some(file) = name.strip_prefix(TICKERS).and_then(|name| name.strip_prefix('/'))
            && let Some(ticker) = file.strip_suffix(&format!(".{}", self.format))
        {
            return Some(vec![unescape(ticker)]);
        }
        let pairs = name.split('/').filter_map(|part| part.split_once('='));
        let folders: BTreeMap<String, String> =
            pairs.map(|(column, value)| (unescape(column), unescape(value))).collect();
        self.record.partition_by.iter().map(|column| folders.get(column).cloned()).collect()
    }

    fn of_file(&self, folders: Vec<String>, path: PathBuf) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        let opened = links::open(&path)
            .and_then(|file| self.batches(file, &path).map_err(|reason| FileError::damage(&path, reason)));
        let batches = match opened {
            Ok(batches) => batches,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let reading = self.clone();
        Box::new(batches.map(move |batch| {
            cancel::check(&reading.stop)?;
            let typed = batch.and_then(|batch| reading.cast(&batch, &folders));
            typed.map_err(|error| FileError::damage(&path, error))
        }))
    }

    fn batches(&self, file: File, path: &Path) -> Result<Batches, Reason> {
        Ok(match self.format {
            Format::Parquet => {
                let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
                let columns = metadata.parquet_schema().columns().iter().enumerate();
                let read = columns.filter(|(_, column)| self.selection.reads(column.name(), &self.names));
                let read = ProjectionMask::leaves(metadata.parquet_schema(), read.map(|(index, _)| index));
                let mut groups = self.selection.row_groups(&metadata, &self.names);
                if let Some(least) = self.least {
                    let rows_of = |group: &usize| metadata.metadata().row_group(*group).num_rows() as usize;
                    while groups.iter().skip(1).map(rows_of).sum::<usize>() >= least && groups.len() > 1 {
                        groups.remove(0);
                    }
                }
                let (file, wanted) = (Arc::new(file), groups.iter().copied());
                let rows = expansion::batch_rows(&file, metadata.metadata(), wanted, &read, BATCH_ROWS)?;
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata);
                Box::new(builder.with_projection(read).with_row_groups(groups).with_batch_size(rows).build()?)
            }
            Format::Arrow => Box::new(FileReaderBuilder::new().build(file)?),
            Format::Csv | Format::CsvGz | Format::CsvZst => {
                // Files of tickers have all columns.
                let is_whole = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == TICKERS);
                let is_in_file = |field: &&Arc<Field>| is_whole || !self.record.partition_by.contains(field.name());
                let fields = self.schema.fields().iter().filter(is_in_file).map(|field| as_text(field));
                let reader = ReaderBuilder::new(Arc::new(Schema::new(fields.collect::<Vec<_>>()))).with_header(true);
                Box::new(reader.with_batch_size(BATCH_ROWS).build(coding(self.format).text_of(file)?)?)
            }
        })
    }

    /// Texts of a file as they were written: without guards against formulas, and never null where the column is not. CSV is
    /// read without its quotes, which tell empty text from none.
    fn restore(&self, name: &str, column: ArrayRef) -> ArrayRef {
        let Some(texts) = column.as_string_opt::<i32>() else { return column };
        let is_nullable = self.record.columns.iter().any(|column| column.name == name && column.nullable);
        let is_guarded = self.guard == FormulaGuard::Formulas;
        if !is_guarded && (is_nullable || texts.null_count() == 0) {
            return column;
        }
        let texts = texts.iter().map(|text| text.map(|text| if is_guarded { unguarded(text) } else { text }));
        Arc::new(texts.map(|text| if is_nullable { text } else { text.or(Some("")) }).collect::<StringArray>())
    }

    /// Rows of a file in the columns that the record declares.
    fn cast(&self, batch: &RecordBatch, folders: &[String]) -> Result<RecordBatch, ArrowError> {
        let column = |field: &Arc<Field>| -> Result<ArrayRef, ArrowError> {
            if let Some(column) = batch.column_by_name(field.name()) {
                return Ok(self.restore(field.name(), cast(column, field.data_type())?));
            }
            let index = self.record.partition_by.iter().position(|name| name == field.name());
            let missing = || ArrowError::SchemaError(format!("no column `{}`", field.name()));
            let value = &folders[index.ok_or_else(missing)?];
            let value = (value != NOTHING).then_some(value.as_str());
            let texts: StringArray = std::iter::repeat_n(value, batch.num_rows()).collect();
            cast(&texts, field.data_type())
        };
        let read = self.schema.fields().iter().filter(|field| self.selection.reads(field.name(), &self.names));
        let read: Vec<Arc<Field>> = read.map(Arc::clone).collect();
        let columns = read.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        self.selection.part(&RecordBatch::try_new(Arc::new(Schema::new(read)), columns)?, &self.names)
    }
}

fn is_in(format: Format, file: &FileRecord) -> bool {
    Format::of_file(Path::new(&file.name)) == Some(format)
}

/// The guard that the CSV files of a version have, by its definition.
fn guard_of(record: &VersionRecord) -> FormulaGuard {
    let definition = DefinitionFile::new(format!("{}.toml", record.name).into(), record.definition.clone());
    definition.and_then(Plan::of).map_or(FormulaGuard::None, |plan| plan.files.guard)
}

/// A field for the CSV reader, which knows UTC only as an offset.
fn as_text(field: &Field) -> Field {
    match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            field.clone().with_data_type(DataType::Timestamp(*unit, Some("+00:00".into())))
        }
        _ => field.clone(),
    }
}

/// The type with this description.
fn type_of(words: &str) -> Option<DataType> {
    let types =
        [DataType::Utf8, DataType::Int8, DataType::Int32, DataType::Float64, DataType::Boolean, date(), instant()];
    types.into_iter().find(|data_type| describe(&Field::new("", data_type.clone(), false)) == words)
}

impl PublishedReader {
    /// The matrices of a wide version, by name: `5d-bull/confidence`.
    pub(crate) fn matrices(&self) -> Result<BTreeMap<String, Self>> {
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

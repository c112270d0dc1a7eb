//! The columns of a sealed folder's files, which `layout.txt` lists, and what is read of a file that lacks some.
//!
//! A column may be added to a layout if its null says nothing. Such columns are *optional*: a file that was written before
//! has none, and is read as if it had nulls there. A file that lacks another column is damaged.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::tables::Table;

/// The optional columns of files that are no tables; [`Table::optional`] has those of tables.
const OPTIONAL: [(&str, &str); 2] = [(REQUESTS, "unknown_fields"), (REQUESTS, "validator")];

/// Whether a file may lack a column.
fn is_optional(file: &str, column: &str) -> bool {
    match Table::ALL.into_iter().find(|table| table.file() == file) {
        Some(table) => table.optional().contains(&column),
        None => OPTIONAL.contains(&(file, column)),
    }
}

/// The columns of a schema without the optional ones that a file does not have.
pub(super) fn columns_in(file: &str, schema: &SchemaRef, has: impl Fn(&str) -> bool) -> SchemaRef {
    let is_there = |name: &str| has(name) || !is_optional(file, name);
    if schema.fields().iter().all(|field| is_there(field.name())) {
        return SchemaRef::clone(schema);
    }
    let fields = schema.fields().iter().filter(|field| is_there(field.name()));
    Arc::new(Schema::new(fields.cloned().collect::<Fields>()))
}

/// Rows with all columns of a schema: what they lack is null.
pub(super) fn fill(rows: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if rows.num_columns() == schema.fields().len() {
        return Ok(rows);
    }
    let column = |name: &str, kind| -> ArrayRef {
        rows.column_by_name(name).map_or_else(|| new_null_array(kind, rows.num_rows()), Arc::clone)
    };
    let columns = schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
    RecordBatch::try_new(SchemaRef::clone(schema), columns)
}

/// The column of every file that says when the run that a row counts from was sealed. It is the last one.
pub(in crate::archive) const SEALED_AT: &str = "sealed_at";

/// The file of rejected records.
pub(in crate::archive) const REJECTS: &str = "rejects.parquet";

/// The file of answered requests.
pub(in crate::archive) const REQUESTS: &str = "requests.parquet";

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
    use chrono::{DateTime, Utc};
    use serde_json::Value;

    use super::{REJECTS, REQUESTS, is_optional};
    use crate::archive::sealed::answers::{self, ANSWERS, LISTINGS};
    use crate::archive::sealed::seal::{
        Claim, ClaimedFile, Counts, DefinitionRecord, Joined, LAYOUT, Parent, SEAL, Seal,
    };
    use crate::disk::file::FileRecord;
    use crate::disk::names::RUN_FILES;
    use crate::interface::Endpoint;
    use crate::plan::ServiceIdentity;
    use crate::tables::{Drift, Reject, RequestRecord, Table};

    /// The name of a type. It is not that of Arrow, whose spelling may change with its version.
    fn type_name(kind: &DataType) -> &'static str {
        match kind {
            DataType::Utf8 => "utf8",
            DataType::Int16 => "int16",
            DataType::Int32 => "int32",
            DataType::Int64 => "int64",
            DataType::Float64 => "float64",
            DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp[us]",
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == "UTC" => "timestamp[us, UTC]",
            DataType::Dictionary(key, value) if **value == DataType::Utf8 => match **key {
                DataType::Int8 => "dictionary[int8, utf8]",
                DataType::Int32 => "dictionary[int32, utf8]",
                _ => panic!("name {kind} here"),
            },
            _ => panic!("name {kind} here"),
        }
    }

    /// The columns of every file.
    fn files() -> Vec<(String, SchemaRef)> {
        let mut files: Vec<(String, SchemaRef)> =
            Table::ALL.iter().map(|table| (table.file(), table.file_schema())).collect();
        files.extend([
            (LISTINGS.to_owned(), answers::listing_schema()),
            (ANSWERS.to_owned(), answers::schema()),
            (REQUESTS.to_owned(), RequestRecord::schema()),
            (REJECTS.to_owned(), Reject::schema()),
        ]);
        files
    }

    /// A seal with a value for every field.
    fn seal() -> Seal {
        let text = String::new;
        let at = DateTime::<Utc>::UNIX_EPOCH;
        let service = || ServiceIdentity { name: text(), base_url: Some(text()), sentiment_base_url: Some(text()) };
        let drift = Drift { endpoint: Endpoint::Signals, field: text(), count: 1, example: text() };
        let file = FileRecord { name: text(), rows: 1, bytes: 1, blake3: text() };
        Seal {
            layout: LAYOUT,
            run: text(),
            service: service(),
            bellwether: text(),
            definition: Some(DefinitionRecord { name: text(), digest: text(), text: Some(text()) }),
            started_at: at,
            sealed_at: at,
            basis: vec![Parent { run: text(), seal: text() }],
            lost: vec![text()],
            operations: vec![Endpoint::Signals],
            changes: Counts::default(),
            drift: vec![drift],
            files: vec![file],
            members: Vec::new(),
            joins: vec![Joined { run: text(), sealed_at: at }],
            claimed: Some(Claim {
                imported_at: at,
                files: vec![ClaimedFile { name: text(), request: text(), bytes: 1, blake3: text() }],
            }),
            in_part: Some(text()),
            seal: text(),
        }
    }

    /// The fields of a value, each with its type.
    fn fields(value: &Value, path: &str, text: &mut String) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                let dot = if path.is_empty() { "" } else { "." };
                fields(member, &format!("{path}{dot}{name}"), text);
            }),
            Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), text)),
            Value::Number(_) => writeln!(text, "    {path:24} number").unwrap(),
            _ => writeln!(text, "    {path:24} text").unwrap(),
        }
    }

    /// The layout as `layout.txt` has it.
    fn layout() -> String {
        let mut text = format!("layout {LAYOUT}\n");
        for (file, schema) in files() {
            writeln!(text, "\n{file}").unwrap();
            for field in schema.fields() {
                let (name, kind) = (field.name(), type_name(field.data_type()));
                let is_optional = is_optional(&file, name);
                assert!(field.is_nullable() || !is_optional, "`{name}` of `{file}` is optional, and cannot be null");
                let null = match (field.is_nullable(), is_optional) {
                    (false, _) => "",
                    (true, false) => "null",
                    (true, true) => "null, optional",
                };
                writeln!(text, "{}", format!("    {name:24} {kind:24} {null}").trim_end()).unwrap();
            }
        }
        writeln!(text, "\n{SEAL}").unwrap();
        let mut seal = seal();
        seal.members = vec![seal.clone()];
        let mut value = serde_json::to_value(&seal).unwrap();
        // They are seals themselves.
        value["members"] = Value::from(vec!["a seal"]);
        fields(&value, "", &mut text);
        text
    }

    #[test]
    fn nobody_changes_the_layout_without_noticing() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/archive/sealed/layout.txt");
        let layout = layout();
        if std::env::var_os("BELLWETHER_BLESS").is_some() {
            fs::write(&path, &layout).unwrap();
        }
        let known = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            known == layout,
            "the layout of the archive is no longer that of `layout.txt`. A column that may be null may be added if its null \
             says nothing: name it in `Table::optional` or in `OPTIONAL`, and write the text with `BELLWETHER_BLESS=1`. A field of \
             a seal may be added if it is left out of the text while it is empty. Anything else makes earlier archives \
             unreadable, and needs a new number in `LAYOUT`.\n{layout}"
        );
    }

    #[test]
    fn the_layout_has_a_text_for_every_file() {
        let mut names: Vec<String> = files().into_iter().map(|(name, _)| name).chain([SEAL.to_owned()]).collect();
        names.sort();
        let mut expected = RUN_FILES.map(str::to_owned);
        expected.sort();
        assert_eq!(names, expected);
    }
}

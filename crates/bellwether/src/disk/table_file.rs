//! Tables that people have: the rows of a Parquet, CSV or Arrow file, batch by batch. The values of CSV are texts.

use std::io::{BufReader, Cursor, Read as _};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatchReader;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::file::{self, FileError};
use crate::error::{Error, ErrorKind, Reason, Result};

/// The rows of a file, whose format is that of its name.
pub(crate) fn open(path: &Path) -> Result<Box<dyn RecordBatchReader>> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => csv(path),
        Some("parquet") => {
            let file = file::open(path)?;
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(file).and_then(ParquetRecordBatchReaderBuilder::build);
            Ok(Box::new(reader.map_err(|error| unreadable(path, error))?))
        }
        Some("arrow" | "feather") => {
            let reader = FileReader::try_new(BufReader::new(file::open(path)?), None);
            Ok(Box::new(reader.map_err(|error| unreadable(path, error))?))
        }
        _ => {
            let what = format!("cannot tell the format of `{}` from its extension", path.display());
            Err(Error::usage(what, "tables are read from `.parquet`, `.csv` and `.arrow`"))
        }
    }
}

/// A file that cannot be read.
pub(crate) fn unreadable(path: &Path, source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Data, format!("cannot read `{}` as a table", path.display())).with_source(source)
}

fn csv(path: &Path) -> Result<Box<dyn RecordBatchReader>> {
    let mut bytes = Vec::new();
    file::open(path)?.read_to_end(&mut bytes).map_err(FileError::read(path))?;
    if ends_in_quotes(&bytes) {
        return Err(unreadable(path, "a quoted value is open at its end: it was cut off"));
    }
    let header = Format::default().with_header(true).infer_schema(&bytes[..], Some(0));
    let (header, _) = header.map_err(|error| unreadable(path, error))?;
    let texts = header.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
    let builder = ReaderBuilder::new(Arc::new(Schema::new(Vec::from_iter(texts)))).with_header(true);
    Ok(Box::new(builder.build(Cursor::new(bytes)).map_err(|error| unreadable(path, error))?))
}

/// Whether CSV ends inside of a quoted value: what reads it takes all that follows a lost quote for one.
fn ends_in_quotes(bytes: &[u8]) -> bool {
    let (mut is_quoted, mut begins) = (false, true);
    for byte in bytes {
        match (is_quoted, byte) {
            // A doubled quote ends a value and begins another.
            (true, b'"') => (is_quoted, begins) = (false, true),
            (true, _) => {}
            (false, b'"') => (is_quoted, begins) = (begins, false),
            (false, byte) => begins = matches!(byte, b',' | b'\n' | b'\r'),
        }
    }
    is_quoted
}

#[cfg(test)]
mod tests {
    use super::ends_in_quotes;

    #[test]
    fn a_value_that_is_cut_off_is_told_from_one_with_a_quote_in_it() {
        let ends_in_quotes = |text: &str| ends_in_quotes(text.as_bytes());
        let whole =
            ["", "a,b\n1,\"2\"\n", "a\n\"1,\"\"2\"\"\"", "a\n5\" pipe\n", "a\n\"\"", "a\n\"1\n2\"\n", "a,\"\",b"];
        assert!(whole.iter().all(|text| !ends_in_quotes(text)), "{whole:?}");
        for cut in ["a\n\"", "a,b\n1,\"2", "a\n\"1\"\"", "a\n\"5\"\" pipe\nb\n"] {
            assert!(ends_in_quotes(cut), "{cut:?}");
        }
    }
}

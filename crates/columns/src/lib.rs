//! Columns as runs of equal values, and the Parquet and CSV files written from them.
//!
//! Most columns of a dataset repeat: a ticker for thousands of rows, a date and the features of its news for every period
//! and regime. [`Rows`] store such a value once, and know where each column changes (`Boundaries`), so that hashing,
//! counting and encoding read a value once per run instead of once per row.
//!
//! `ParquetWriter` does so for Parquet files: it looks up each run in a dictionary, and writes the indices as runs. The
//! `parquet` crate's `ArrowWriter` does both row by row. On one core this writer is three times as fast for the columns of a
//! dataset with one signal per ticker and date, and four times as fast with fifteen (`cargo bench -p bellwether-columns`). The
//! rest is left to that crate: schemas, page headers, the footer, and columns that get no dictionary here, because they have
//! too many distinct values or a type that is rare in a dataset. [`csv`] writes the text of a value once per run.

/// Starts a piece of work, which ends when the value is dropped: a `tracing` span, which costs nothing unless someone
/// records it.
macro_rules! work {
    ($name:literal) => {
        tracing::debug_span!(target: "bellwether::work", $name).entered()
    };
}

mod boundaries;
mod column;
pub mod csv;
mod parquet;
mod row_buffer;
mod rows;
pub mod timestamps;

pub use self::parquet::{ParquetOptions, ParquetWriter};
pub use boundaries::{Boundaries, pack_bits};
pub use column::{Column, Segments};
pub use row_buffer::RowBuffer;
pub use rows::{Rows, compact, concat, concat_arrays};

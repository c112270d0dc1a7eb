//! Columns as runs of equal values, and the Parquet pages written from them.

mod bits;
mod boundaries;
mod column;
mod concat;
mod parquet;
mod row_buffer;
mod rows;

pub(crate) use bits::gathered;
pub(crate) use boundaries::Turns;
pub(crate) use column::{Column, Stretches};
pub(crate) use concat::joined;
pub(crate) use parquet::{Layout, Writer};
pub(crate) use row_buffer::Pieces;
pub use rows::Rows;

//! Data as frames of Polars, which whatever is asked of archives and datasets is computed on.
//!
//! A frame is made of Arrow's batches: those of a version, of what an archive knows, or of all that it observed. Numbers
//! and instants are not copied: a column holds the buffers that were read, a chunk per batch. Texts are copied, since Polars
//! lays them out differently; names from a closed set become categories. An archive is read a few whole tickers at a time,
//! so that memory does not grow with its size, and several such pieces are worked on at once.

#[cfg(feature = "query")]
mod observed;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, ArrowPrimitiveType, DataType, FieldRef, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Schema, TimestampMicrosecondType,
};
use polars::prelude::{
    BooleanChunked, Categorical32Type, CategoricalChunked, Categories, Column, DataFrame, Float64Chunked, Int32Chunked,
    Int64Chunked, IntoColumn, NewChunkedArray, PlSmallStr, PolarsResult, StringChunked, TimeUnit, TimeZone,
    UInt32Chunked,
};
use polars_arrow::array::PrimitiveArray;
use polars_arrow::bitmap::Bitmap;
use polars_arrow::types::NativeType;
use polars_buffer::Buffer;

use crate::error::{Error, Result};
#[cfg(feature = "query")]
pub(crate) use observed::{batch_of, each_observed, integers, join, stacked};

/// The rows of some batches as one frame.
pub(crate) fn frame_of(schema: &Schema, batches: &[RecordBatch]) -> Result<DataFrame> {
    let column = |(index, field): (usize, &FieldRef)| {
        let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
        column(field.name().as_str().into(), field.data_type(), &parts)
    };
    let columns = schema.fields().iter().enumerate().map(column).collect::<PolarsResult<Vec<Column>>>();
    let height = batches.iter().map(RecordBatch::num_rows).sum();
    columns.and_then(|columns| DataFrame::new(height, columns)).map_err(Error::frame)
}

/// A column in parts, one per batch.
fn column(name: PlSmallStr, data_type: &DataType, parts: &[&ArrayRef]) -> PolarsResult<Column> {
    Ok(match data_type {
        DataType::Float64 => Float64Chunked::from_chunk_iter(name, share_buffers::<Float64Type>(parts)).into_column(),
        DataType::Int8 => {
            let numbers = parts.iter().flat_map(|part| part.as_primitive::<Int8Type>()).map(|it| it.map(i32::from));
            Int32Chunked::from_iter_options(name, numbers).into_column()
        }
        DataType::Int16 => {
            let numbers = parts.iter().flat_map(|part| part.as_primitive::<Int16Type>()).map(|it| it.map(i32::from));
            Int32Chunked::from_iter_options(name, numbers).into_column()
        }
        DataType::Int32 => Int32Chunked::from_chunk_iter(name, share_buffers::<Int32Type>(parts)).into_column(),
        DataType::Int64 => Int64Chunked::from_chunk_iter(name, share_buffers::<Int64Type>(parts)).into_column(),
        DataType::Timestamp(_, zone) => {
            let micros = Int64Chunked::from_chunk_iter(name, share_buffers::<TimestampMicrosecondType>(parts));
            let zone = zone.as_ref().map(|_| TimeZone::UTC);
            micros.into_datetime(TimeUnit::Microseconds, zone).into_column()
        }
        DataType::Boolean => {
            let values = parts.iter().flat_map(|part| part.as_boolean());
            BooleanChunked::from_iter_options(name, values).into_column()
        }
        DataType::Dictionary(key, _) if **key == DataType::Int8 => categories::<Int8Type>(name, parts)?.into_column(),
        DataType::Dictionary(..) => categories::<Int32Type>(name, parts)?.into_column(),
        _ => {
            let texts = parts.iter().flat_map(|part| part.as_string::<i32>());
            StringChunked::from_iter_options(name, texts).into_column()
        }
    })
}

/// Numbers in the buffers that they were read into.
fn share_buffers<'a, T>(parts: &'a [&ArrayRef]) -> impl Iterator<Item = PrimitiveArray<T::Native>> + 'a
where
    T: ArrowPrimitiveType<Native: NativeType>,
{
    parts.iter().map(|part| {
        let values = part.as_primitive::<T>().values().clone();
        PrimitiveArray::new(T::Native::PRIMITIVE.into(), Buffer::from_owner(values), part.nulls().map(validity))
    })
}

fn validity(nulls: &NullBuffer) -> Bitmap {
    nulls.iter().collect()
}

/// Names from a closed set. Only those that occur become categories.
fn categories<K: ArrowDictionaryKeyType>(
    name: PlSmallStr,
    parts: &[&ArrayRef],
) -> PolarsResult<CategoricalChunked<Categorical32Type>> {
    let categories = Categories::global();
    let mapping = categories.mapping();
    let codes = |part: &&ArrayRef| -> PolarsResult<PrimitiveArray<u32>> {
        let part = part.as_dictionary::<K>();
        let names = part.values().as_string::<i32>();
        let mut known: Vec<Option<u32>> = vec![None; names.len()];
        let mut code = |key: usize| match &mut known[key] {
            Some(code) => Ok(*code),
            unknown => mapping.insert_cat(names.value(key)).inspect(|code| *unknown = Some(*code)),
        };
        let codes = part.keys().iter().map(|key| key.map_or(Ok(0), |key| code(key.as_usize())));
        let codes = codes.collect::<PolarsResult<Vec<u32>>>()?;
        Ok(PrimitiveArray::from_vec(codes).with_validity(part.nulls().map(validity)))
    };
    let codes = parts.iter().map(codes).collect::<PolarsResult<Vec<_>>>()?;
    let codes = UInt32Chunked::from_chunk_iter(name, codes);
    let data_type = polars::prelude::DataType::Categorical(categories, mapping);
    Ok(CategoricalChunked::from_cats_and_dtype(codes, data_type))
}

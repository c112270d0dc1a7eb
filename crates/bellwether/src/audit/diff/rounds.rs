//! Compares two versions in different orders, in rounds that each take a share of the keys.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::row::{RowConverter, SortField};

use super::merge::{Merge, VersionRows};
use super::{ComparedColumns, Difference, failure};
use crate::error::Result;
use crate::export::PublishedReader;

/// Target number of rows per round.
const ROUND_ROWS: u64 = 1 << 19;

/// Counts the differences and delivers them.
pub(super) fn run(
    versions: [&PublishedReader; 2],
    compared: ComparedColumns<'_>,
    found: &mut Difference,
    deliver: &mut impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let most = versions.iter().map(|version| version.row_count()).max().unwrap_or_default();
    let rounds = most.div_ceil(ROUND_ROWS).max(1);
    let order = compared.key;
    for round in 0..rounds {
        let [before, after] = versions.map(|version| some(version, order, |hash| hash % rounds == round));
        let side = |version, rows: RecordBatch| VersionRows::open(version, order, std::iter::once(Ok(rows)));
        let sides = [side(versions[0], before?)?, side(versions[1], after?)?];
        Merge { compared }.run(sides, found, deliver)?;
    }
    Ok(())
}

/// The rows of a share of the keys, sorted by key.
fn some(version: &PublishedReader, order: &[String], is_wanted: impl Fn(u64) -> bool) -> Result<RecordBatch> {
    let schema = version.schema();
    let field = |name: &String| schema.field_with_name(name).map(|field| SortField::new(field.data_type().clone()));
    let fields = order.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let converter = RowConverter::new(fields).map_err(failure)?;
    let keys = |rows: &RecordBatch| {
        let columns: Vec<ArrayRef> = order.iter().filter_map(|name| rows.column_by_name(name)).cloned().collect();
        converter.convert_columns(&columns).map_err(failure)
    };
    // The same for both versions and in every round.
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut kept = Vec::new();
    for rows in version.rows()? {
        let rows = rows?;
        let is_kept: BooleanArray =
            keys(&rows)?.iter().map(|key| Some(is_wanted(hasher.hash_one(key.as_ref())))).collect();
        kept.push(filter_record_batch(&rows, &is_kept).map_err(failure)?);
    }
    let rows = concat_batches(schema, &kept).map_err(failure)?;
    drop(kept);
    let keys = keys(&rows)?;
    let mut indices: Vec<u32> = (0..rows.num_rows() as u32).collect();
    indices.sort_unstable_by(|&one, &other| keys.row(one as usize).cmp(&keys.row(other as usize)));
    take_record_batch(&rows, &UInt32Array::from(indices)).map_err(failure)
}

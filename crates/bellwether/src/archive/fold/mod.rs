//! The fold: observations of many folders, ordered by cell, and the known state of each cell.

pub(super) mod cells;
pub(super) mod groups;
pub(super) mod histories;
pub(super) mod known;
pub(super) mod merged;
pub(super) mod order;
pub(super) mod row_ranges;
#[cfg(test)]
mod tests;
pub(super) mod value_comparator;

//! The fold: observations of many folders, ordered by cell, and the known state of each cell.

pub(super) mod cells;
pub(super) mod histories;
pub(super) mod merged;
pub(crate) mod observed;
pub(super) mod order;

//! The fold: observations of many folders, ordered by cell, and the known state of each cell.

pub(super) mod cells;
pub(super) mod histories;
pub(super) mod merged;
pub(super) mod order;
#[cfg(test)]
mod tests;

//! The cells of some rows that are in cell order. Nearly all cells have one row, and are kept as ranges of such rows: what
//! is done to a range costs little a row.

use std::ops::Range;

/// Rows in cell order, by cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(Vec<Group>);

/// Consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Each is the only one of its cell.
    Singles(Range<usize>),
    /// Together they are those of one cell, which are several.
    Cell(Range<usize>),
}

impl Groups {
    /// A number of rows, of which some are of the same cell as the row before them. These are in order.
    pub(in crate::archive) fn of(rows: usize, repeats: &[usize]) -> Self {
        let mut groups = Vec::new();
        let mut next = 0;
        for of_cell in repeats.chunk_by(|one, next| one + 1 == *next) {
            let cell = of_cell[0] - 1..of_cell[0] + of_cell.len();
            groups.extend((next < cell.start).then_some(Group::Singles(next..cell.start)));
            next = cell.end;
            groups.push(Group::Cell(cell));
        }
        groups.extend((next < rows).then_some(Group::Singles(next..rows)));
        Self(groups)
    }

    /// Whether a cell has several rows.
    pub(in crate::archive) fn have_several(&self) -> bool {
        self.0.iter().any(|group| matches!(group, Group::Cell(_)))
    }

    /// The groups of some whole cells.
    pub(in crate::archive) fn within(&self, rows: Range<usize>) -> impl Iterator<Item = Group> {
        let first = self.0.partition_point(|group| group.rows().end <= rows.start);
        let groups = self.0[first..].iter().take_while(move |group| group.rows().start < rows.end);
        groups.map(move |group| match group {
            Group::Singles(all) => Group::Singles(all.start.max(rows.start)..all.end.min(rows.end)),
            Group::Cell(cell) => Group::Cell(cell.clone()),
        })
    }

    /// The groups, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.0.iter()
    }

    /// The rows of each cell, in order.
    pub fn cells(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().flat_map(|group| {
            let (rows, each) = match group {
                Group::Singles(rows) => (rows, 1),
                Group::Cell(rows) => (rows, rows.len()),
            };
            rows.clone().step_by(each).map(move |row| row..row + each)
        })
    }
}

impl Group {
    /// Its rows.
    pub fn rows(&self) -> &Range<usize> {
        match self {
            Self::Singles(rows) | Self::Cell(rows) => rows,
        }
    }
}

impl FromIterator<Group> for Groups {
    fn from_iter<I: IntoIterator<Item = Group>>(groups: I) -> Self {
        Self(groups.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Groups};

    #[test]
    fn groups_have_each_row_once_and_cells_of_several_rows_whole() {
        let groups = Groups::of(9, &[2, 5, 6]);
        let cells: Vec<_> = groups.cells().collect();
        assert_eq!(cells, [0..1, 1..3, 3..4, 4..7, 7..8, 8..9]);
        assert_eq!(groups.within(0..9).collect::<Groups>(), groups);
        let within: Vec<Group> = groups.within(3..8).collect();
        assert_eq!(within, [Group::Singles(3..4), Group::Cell(4..7), Group::Singles(7..8)]);
        assert_eq!(groups.within(3..3).count(), 0);
        assert_eq!(Groups::of(2, &[1]).iter().collect::<Vec<_>>(), [&Group::Cell(0..2)]);
        assert_eq!((Groups::of(0, &[]).cells().count(), Groups::of(3, &[]).cells().count()), (0, 3));
        assert!(groups.have_several() && !Groups::of(3, &[]).have_several());
    }
}

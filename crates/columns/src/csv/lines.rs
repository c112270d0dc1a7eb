//! Rows as lines.
//!
//! Most text repeats. All signals of a ticker and date share the ticker, the date and the features of its news;
//! periods, regimes and signals repeat on every date. Neighbouring columns that repeat together form a group, whose
//! text is written once and then copied for each row that repeats it.

use std::ops::Range;

use arrow::error::ArrowError;

use super::fields::{Field, FormulaGuard};
use crate::{Boundaries, Rows};

/// Number of copies of a text that take about as long as writing one field.
const COPIES: usize = 8;

/// Maximum number of combinations of values in a group of closed sets.
const MAX_COMBINATIONS: usize = 1 << 10;

/// Bytes copied at once: a length known at compile time is faster than the exact one.
const STRIDE: usize = 32;

/// Lines in a reusable buffer.
///
/// Capacity is checked once per line, and the end of the text is passed from field to field. A `Vec` would check and
/// store its length for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    end: usize,
}

impl Lines {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Appends a line for each row.
    pub(super) fn extend(&mut self, rows: &Rows, guard: FormulaGuard) -> Result<(), ArrowError> {
        let mut groups = groups(rows, guard)?;
        let longest = groups.iter().map(ColumnGroup::longest).sum::<usize>() + STRIDE;
        let mut end = self.end;
        for row in 0..rows.num_rows() {
            if self.buffer.len() < end + longest {
                grow(&mut self.buffer, end + longest);
            }
            let out = &mut *self.buffer;
            end = groups.iter_mut().fold(end, |end, group| group.write(out, end, row));
            // Each field ends with a comma.
            out[end - 1] = b'\n';
        }
        self.end = end;
        Ok(())
    }
}

#[cold]
fn grow(buffer: &mut Vec<u8>, needed: usize) {
    buffer.resize(needed.max(buffer.len() / 4 * 5), 0);
}

/// Neighbouring columns that repeat together.
struct ColumnGroup<'a> {
    fields: Vec<Field<'a>>,
    /// Rows where any of them changes.
    boundaries: Boundaries,
    /// For closed sets: the combination of values of each row, and the number of possible combinations.
    keys: Option<(Vec<u32>, usize)>,
    cache: Cache,
}

/// Where the buffer has the text of a group.
enum Cache {
    /// Not cached: the text rarely repeats.
    None,
    /// The text of the current run.
    Run(Range<usize>),
    /// The combination of each row, and the text of each combination, empty until it is written.
    Combinations(Vec<u32>, Vec<Range<usize>>),
}

/// Groups the columns, as far as that saves work.
fn groups(rows: &Rows, guard: FormulaGuard) -> Result<Vec<ColumnGroup<'_>>, ArrowError> {
    let groups = rows.columns().iter().map(|column| {
        let field = Field::new(column, guard)?;
        let (boundaries, keys) = (column.boundaries().clone(), field.keys());
        Ok(ColumnGroup { fields: vec![field], boundaries, keys, cache: Cache::None })
    });
    let groups = groups.collect::<Result<_, ArrowError>>()?;
    let mut groups = join_groups(join_groups(groups, ColumnGroup::join_sets), ColumnGroup::join_runs);
    groups.iter_mut().for_each(ColumnGroup::choose_cache);
    Ok(groups)
}

/// Joins each group to the previous one, if possible.
fn join_groups<'a>(
    groups: Vec<ColumnGroup<'a>>,
    join: impl Fn(&mut ColumnGroup<'a>, ColumnGroup<'a>) -> Option<ColumnGroup<'a>>,
) -> Vec<ColumnGroup<'a>> {
    let mut joined: Vec<ColumnGroup<'a>> = Vec::new();
    for next in groups {
        let apart = match joined.last_mut() {
            Some(last) => join(last, next),
            None => Some(next),
        };
        joined.extend(apart);
    }
    joined
}

impl<'a> ColumnGroup<'a> {
    /// Adds the next group if both are closed sets with few combinations; returns it otherwise.
    fn join_sets(&mut self, next: Self) -> Option<Self> {
        match (&mut self.keys, &next.keys) {
            (Some((keys, count)), Some((next_keys, next_count)))
                if *count * next_count <= MAX_COMBINATIONS.min(keys.len()) =>
            {
                keys.iter_mut().zip(next_keys).for_each(|(key, next)| *key = *key * *next_count as u32 + next);
                *count *= next_count;
                self.boundaries = &self.boundaries | &next.boundaries;
                self.fields.extend(next.fields);
                None
            }
            _ => Some(next),
        }
    }

    /// Adds the next group if writing both whenever either changes saves work; returns it otherwise.
    fn join_runs(&mut self, next: Self) -> Option<Self> {
        let both = &self.boundaries | &next.boundaries;
        let apart = self.work() + next.work() + both.len() / COPIES;
        if !is_in_runs(&both) || both.count() * (self.fields.len() + next.fields.len()) > apart {
            return Some(next);
        }
        self.boundaries = both;
        self.fields.extend(next.fields);
        self.keys = None;
        None
    }

    /// The number of fields to write.
    fn work(&self) -> usize {
        self.boundaries.count() * self.fields.len()
    }

    /// Chooses which text to cache.
    fn choose_cache(&mut self) {
        self.cache = match self.keys.take() {
            _ if is_in_runs(&self.boundaries) => Cache::Run(0..0),
            Some((keys, count)) if count <= MAX_COMBINATIONS.min(keys.len()) => {
                Cache::Combinations(keys, vec![0..0; count])
            }
            _ => Cache::None,
        };
    }

    /// Maximum length of a row.
    fn longest(&self) -> usize {
        self.fields.iter().map(Field::longest).sum()
    }

    /// Writes the fields of a row at `end`, or copies them if their text is cached, and returns the new end.
    #[inline(always)]
    fn write(&mut self, out: &mut [u8], end: usize, row: usize) -> usize {
        let cached = match &mut self.cache {
            Cache::None => None,
            Cache::Run(text) if self.boundaries.is_at(row) => Some(text),
            Cache::Run(text) => return copy_within(out, text, end),
            Cache::Combinations(keys, texts) => {
                let text = &mut texts[keys[row] as usize];
                if text.end > 0 {
                    return copy_within(out, text, end);
                }
                Some(text)
            }
        };
        let start = end;
        let end = self.fields.iter().fold(end, |end, field| field.write(out, end, row));
        if let Some(text) = cached {
            *text = start..end;
        }
        end
    }
}

/// Whether values change so rarely that caching the text of a run pays.
fn is_in_runs(boundaries: &Boundaries) -> bool {
    boundaries.count() * 2 <= boundaries.len()
}

/// Copies a part of the buffer to `end`, and returns the new end. The last stride may overshoot: there is room for it.
#[inline(always)]
fn copy_within(out: &mut [u8], part: &Range<usize>, end: usize) -> usize {
    let (mut from, mut to) = (part.start, end);
    while from < part.end {
        out.copy_within(from..from + STRIDE, to);
        from += STRIDE;
        to += STRIDE;
    }
    end + (part.end - part.start)
}

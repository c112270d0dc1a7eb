//! Rows in aligned columns.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::cli::talk::{columns, padding};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bellwether::error::{Error, Result};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;
use chrono::NaiveTime;

/// The characters of a long text that are printed, if there is no room for more.
const LONGEST: usize = 40;

/// What is between two columns.
const GAP: &str = "  ";

/// The option that chooses the columns of a table.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) enum ColumnOption {
    /// `--columns`: those of a long dataset.
    Columns,
    /// `--ticker`: those of a matrix.
    Ticker,
    /// `--output`: all of them, in a file.
    Output,
    /// The columns were chosen.
    Given,
}

/// Rows as text. On a terminal, the columns are the first ones that fit, unless they were chosen, and long texts such as
/// headlines get the room that is left.
pub(in crate::cli) fn table(schema: &Schema, rows: &[RecordBatch], chosen_by: ColumnOption) -> Result<String> {
    let all = schema.fields().len();
    let option = match chosen_by {
        ColumnOption::Columns => Some("`--columns` chooses others"),
        ColumnOption::Ticker => Some("`--ticker` chooses others"),
        ColumnOption::Output => Some("`--output FILE` writes all"),
        ColumnOption::Given => None,
    };
    let terminal = columns();
    let room = terminal.filter(|_| option.is_some()).unwrap_or(usize::MAX);
    let (mut shown, mut end) = (Vec::new(), 0);
    for (index, field) in schema.fields().iter().enumerate() {
        let parts: Vec<&ArrayRef> = rows.iter().map(|rows| rows.column(index)).collect();
        let column = TextColumn::of(field.name(), field.data_type(), &parts).map_err(Error::frame)?;
        let width = column.width + if index > 0 { GAP.len() } else { 0 };
        if index > 0 && end + width > room {
            break;
        }
        end += width;
        shown.push(column);
    }
    let mut spare = terminal.map_or(0, |terminal| terminal.saturating_sub(end));
    for column in &mut shown {
        let more = spare.min(column.longest - column.width);
        column.width += more;
        spare -= more;
    }
    let mut text = String::new();
    let height = rows.iter().map(RecordBatch::num_rows).sum::<usize>();
    for line in 0..=height {
        let start = text.len();
        for (index, column) in shown.iter().enumerate() {
            text.push_str(if index > 0 { GAP } else { "" });
            column.push(line, &mut text);
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
    if height == 0 {
        text.push_str("no rows\n");
    }
    if let Some(option) = option.filter(|_| shown.len() < all) {
        let _ = writeln!(text, "the first {} of {all} columns; {option}", shown.len());
    }
    Ok(text)
}

/// The most rows of a table that is not only for looking at some of them.
pub(in crate::cli) const MAX_ROWS: usize = 100;

/// The first rows of an answer as a table, and how to get all of them if there are more.
pub(in crate::cli) fn first_rows_of(
    schema: &Schema,
    first: &[RecordBatch],
    all: usize,
    chosen_by: ColumnOption,
) -> Result<String> {
    let text = table(schema, first, chosen_by)?;
    let more = format!("{MAX_ROWS} of {}; `--output FILE` writes them\n", count_of(all as u64, "row", "rows"));
    Ok(if all > MAX_ROWS { text + &more } else { text })
}

/// A column as text, below its name.
struct TextColumn {
    cells: Vec<String>,
    width: usize,
    /// The width at which no text would be cut.
    longest: usize,
    is_number: bool,
}

impl TextColumn {
    fn of(name: &str, data_type: &DataType, parts: &[&ArrayRef]) -> Result<Self, ArrowError> {
        let moments = match data_type {
            // All zones are UTC.
            DataType::Timestamp(_, Some(_)) => "%Y-%m-%d %H:%M:%S%.f UTC",
            _ if are_days(parts) => "%Y-%m-%d",
            _ => "%Y-%m-%d %H:%M:%S%.f",
        };
        let options = FormatOptions::new().with_null("null").with_timestamp_format(Some(moments));
        let mut cells = vec![escape(name).into_owned()];
        for part in parts {
            let part = without_zone(part);
            let values = ArrayFormatter::try_new(part.as_ref(), &options)?;
            for row in 0..part.len() {
                cells.push(match part.as_primitive_opt::<Float64Type>() {
                    Some(numbers) if numbers.is_valid(row) => round(numbers.value(row)),
                    _ => escape(&values.value(row).try_to_string()?).into_owned(),
                });
            }
        }
        if data_type.is_floating() {
            align_points(&mut cells[1..]);
        }
        let mut lengths: Vec<usize> = cells.iter().map(|cell| cell.chars().count()).collect();
        let name = lengths.remove(0);
        let longest = lengths.into_iter().max().unwrap_or_default();
        let is_text = !data_type.is_numeric();
        let width = name.max(if is_text { longest.min(LONGEST) } else { longest });
        Ok(Self { cells, width, longest: longest.max(width), is_number: !is_text })
    }

    /// Adds a cell to a line: the name, or the value of a row.
    fn push(&self, line: usize, text: &mut String) {
        let cell = shorten(&self.cells[line], self.width);
        let padding = padding(&cell, self.width);
        let [first, second] = if self.is_number { [&padding, &cell] } else { [&cell, &padding] };
        text.push_str(first);
        text.push_str(second);
    }
}

/// A column whose moments, if it has any, have no zone: their formatter would need a list of zones.
fn without_zone(column: &ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<TimestampMicrosecondType>() {
        Some(moments) => Arc::new(moments.clone().with_timezone_opt(None::<&str>)),
        None => Arc::clone(column),
    }
}

/// Whether all are moments without a zone, at the start of a day: dates, as all of the vendor's are.
fn are_days(parts: &[&ArrayRef]) -> bool {
    let is_midnight = |moment: chrono::NaiveDateTime| moment.time() == NaiveTime::MIN;
    parts.iter().filter_map(|part| part.as_primitive_opt::<TimestampMicrosecondType>()).all(|part| {
        (0..part.len())
            .filter(|row| part.is_valid(*row))
            .all(|row| part.value_as_datetime(row).is_some_and(is_midnight))
    })
}

/// The beginning of a long text.
fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// A number with as many decimals as tell it from others at a glance.
fn round(number: f64) -> String {
    let text = format!("{number:.6}");
    match text.trim_end_matches('0') {
        "0." | "-0." if number != 0.0 => format!("{number:.1e}"),
        text => text.trim_end_matches('.').to_owned(),
    }
}

/// Fills numbers with blanks behind their last digit, so that their points stand below each other.
fn align_points(cells: &mut [String]) {
    let decimals = |cell: &str| cell.split_once('.').map_or(0, |(_, decimals)| decimals.len() + 1);
    let most = cells.iter().map(|cell| decimals(cell)).max().unwrap_or_default();
    for cell in cells.iter_mut().filter(|cell| *cell != "null") {
        cell.extend(std::iter::repeat_n(' ', most - decimals(cell)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::Int8Type;

    use super::{ColumnOption, round, table};

    #[test]
    fn points_stand_below_each_other_days_are_dates_and_nothing_breaks_a_line() {
        let day = 86_400_000_000;
        let moments = |values: [i64; 3]| Arc::new(TimestampMicrosecondArray::from(values.to_vec()));
        let signals: DictionaryArray<Int8Type> = ["buy", "sell", "buy"].into_iter().collect();
        let columns: [(&str, ArrayRef); 7] = [
            ("ticker", Arc::new(StringArray::from(vec!["A", "BRK.B", "a\nb"]))),
            ("date", moments([0, day, -day])),
            ("at", moments([0, day + 1_500_000, day])),
            ("signal", Arc::new(signals)),
            ("seen", Arc::new(moments([0, 1, 2]).as_ref().clone().with_timezone("UTC"))),
            ("mean", Arc::new(Float64Array::from(vec![Some(-0.25), None, Some(12.5)]))),
            ("count", Arc::new(Int32Array::from(vec![1, 20, 3]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).expect("columns");
        let shown = table(&rows.schema(), &[rows.slice(0, 1), rows.slice(1, 2)], ColumnOption::Given).expect("a table");
        let expected = "\
ticker  date        at                       signal  seen                             mean  count
A       1970-01-01  1970-01-01 00:00:00      buy     1970-01-01 00:00:00 UTC         -0.25      1
BRK.B   1970-01-02  1970-01-02 00:00:01.500  sell    1970-01-01 00:00:00.000001 UTC   null     20
a\\nb    1969-12-31  1970-01-02 00:00:00      buy     1970-01-01 00:00:00.000002 UTC  12.5       3
";
        assert_eq!(shown, expected);
        let none = table(&rows.schema(), &[rows.slice(0, 0)], ColumnOption::Columns).expect("a table");
        assert!(none.ends_with("mean  count\nno rows\n"), "{none}");
    }

    #[test]
    fn a_number_has_six_decimals_at_most() {
        for (number, text) in [
            (0.635, "0.635"),
            (-1.0 / 3.0, "-0.333333"),
            (2.0, "2"),
            (0.0, "0"),
            (1.24e-9, "1.2e-9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(round(number), text);
        }
    }

    #[test]
    fn a_long_text_is_shortened() {
        let titles: ArrayRef = Arc::new(StringArray::from(vec!["é".repeat(40), "é".repeat(41)]));
        let rows = RecordBatch::try_from_iter([("title", titles)]).expect("a column");
        let shown = table(&rows.schema(), &[rows], ColumnOption::Given).expect("a table");
        assert_eq!(shown, format!("title\n{}\n{}…\n", "é".repeat(40), "é".repeat(39)));
    }
}

//! Rows in aligned columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bellwether::error::Result;
use chrono::NaiveTime;

use crate::cli::prelude::*;

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
        let column = TextColumn::new(field.name(), field.data_type(), &parts).map_err(Error::frame)?;
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
        let cells: Vec<String> = shown.iter().map(|column| column.cell(line)).collect();
        text += &(cells.join(GAP).trim_end().to_owned() + "\n");
    }
    if height == 0 {
        text += "no rows\n";
    }
    if let Some(option) = option.filter(|_| shown.len() < all) {
        text += &format!("the first {} of {all} columns; {option}\n", shown.len());
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
    let mut text = table(schema, first, chosen_by)?;
    if all > MAX_ROWS {
        text += &format!("{MAX_ROWS} of {}; `--output FILE` writes them\n", count_of(all as u64, "row", "rows"));
    }
    Ok(text)
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
    fn new(name: &str, data_type: &DataType, parts: &[&ArrayRef]) -> Result<Self, ArrowError> {
        let moments = match data_type {
            // All zones are UTC.
            DataType::Timestamp(_, Some(_)) => "%Y-%m-%d %H:%M:%S%.f UTC",
            _ if are_days(parts) => "%Y-%m-%d",
            _ => "%Y-%m-%d %H:%M:%S%.f",
        };
        let options = FormatOptions::new().with_null("null").with_timestamp_format(Some(moments));
        let mut cells = Vec::new();
        for part in parts {
            // Without their zone: the formatter would need a list of zones.
            let part: ArrayRef = match part.as_primitive_opt::<TimestampMicrosecondType>() {
                Some(moments) => Arc::new(moments.clone().with_timezone_opt(None::<&str>)),
                None => Arc::clone(part),
            };
            let values = ArrayFormatter::try_new(part.as_ref(), &options)?;
            for row in 0..part.len() {
                cells.push(match part.as_primitive_opt::<Float64Type>() {
                    Some(numbers) if numbers.is_valid(row) => round(numbers.value(row)),
                    _ => escape(&values.value(row).try_to_string()?).into_owned(),
                });
            }
        }
        if data_type.is_floating() {
            align_points(&mut cells);
        }
        let longest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
        let is_number = data_type.is_numeric();
        // The characters of a long text that are printed, if there is no room for more.
        let width = if is_number { longest } else { longest.min(40) };
        let name = escape(name).into_owned();
        let width = width.max(name.chars().count());
        cells.insert(0, name);
        Ok(Self { cells, width, longest: longest.max(width), is_number })
    }

    /// The cell of a line: the name, or the beginning of the value of a row.
    fn cell(&self, line: usize) -> String {
        let cell = &self.cells[line];
        let cell = match cell.char_indices().nth(self.width) {
            Some(_) => cell.chars().take(self.width - 1).chain(['…']).collect(),
            None => cell.clone(),
        };
        let padding = padding(&cell, self.width);
        if self.is_number { padding + &cell } else { cell + &padding }
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
        *cell += &" ".repeat(most - decimals(cell));
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

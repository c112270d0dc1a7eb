use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Schema};
use chrono::DateTime;

use super::{DAY, rows, signals};
use crate::columns::csv::{Coding, CsvWriter, unguarded};
use crate::columns::{Rows, Segments};
use crate::plan::FormulaGuard;

fn write(rows: &RecordBatch, guard: FormulaGuard) -> String {
    let mut out = Vec::new();
    let mut writer = CsvWriter::create(&mut out, Coding::Plain, rows.schema_ref(), guard).unwrap();
    writer.write(&[rows.clone().into()]).unwrap();
    writer.finish().unwrap();
    drop(writer);
    String::from_utf8(out).unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

#[test]
fn a_csv_line_is_as_expected() {
    let text = write(&rows(&signals(&["XOM"], 1)), FormulaGuard::None);
    let expected = "\
ticker,date,period,regime,signal,confidence,news_mean_7d,news_count_7d,observed_at,backfilled
XOM,2026-11-20T00:00:00,15d,bear,buy,0.0,,0,2026-11-20T00:00:00Z,true
XOM,2026-11-20T00:00:00,15d,neutral,sell,0.125,0.5,1,2026-11-20T00:00:00.000001Z,false
XOM,2026-11-20T00:00:00,5d,bear,buy,0.25,1.5,2,2026-11-20T00:00:00.000002Z,true
XOM,2026-11-20T00:00:00,5d,neutral,sell,0.375,,3,2026-11-20T00:00:00.000003Z,false
";
    assert_eq!(text, expected);
}

#[test]
fn null_is_empty_and_an_empty_text_is_quoted() {
    let texts = StringArray::from(vec![Some(""), None, Some("a \"b\""), Some("c,d\ne\r"), Some(" f ")]);
    let choices: DictionaryArray<Int8Type> = vec![None, Some(""), Some("x,y"), Some("z"), None].into_iter().collect();
    let rows = batch(vec![("text", Arc::new(texts)), ("choice", Arc::new(choices))]);
    let expected = "text,choice\n\"\",\n,\"\"\n\"a \"\"b\"\"\",\"x,y\"\n\"c,d\ne\r\",z\n f ,\n";
    assert_eq!(write(&rows, FormulaGuard::None), expected);
    assert_eq!(write(&rows, FormulaGuard::Formulas), expected);
}

#[test]
fn a_null_in_a_dictionary_gives_null_cells() {
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let keys = arrow::array::Int8Array::from(vec![Some(0), Some(1), None]);
    let choices = DictionaryArray::<Int8Type>::new(keys, values);
    assert_eq!(
        write(
            &batch(vec![("c", Arc::new(choices)), ("n", Arc::new(Int32Array::from(vec![1, 2, 3])))]),
            FormulaGuard::None
        ),
        "c,n\na,1\n,2\n,3\n"
    );
}

#[test]
fn formulas_are_guarded_against_spreadsheets() {
    let texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "=\"a\",b", "a=b", "'x"];
    let numbers = Float64Array::from_iter_values((0..9).map(|row| -0.5 - f64::from(row)));
    let rows = batch(vec![("=t", Arc::new(StringArray::from_iter_values(texts))), ("n", Arc::new(numbers))]);
    let expected = "'=t,n\n'=1+1,-0.5\n'+1,-1.5\n'-1,-2.5\n'@x,-3.5\n'\tx,-4.5\n\"'\rx\",-5.5\n\"'=\"\"a\"\",b\",-6.5\n\
                    a=b,-7.5\n'x,-8.5\n";
    assert_eq!(write(&rows, FormulaGuard::Formulas), expected);
    let choices: DictionaryArray<Int8Type> = vec!["-buy", "sell"].into_iter().collect();
    let rows = batch(vec![("signal", Arc::new(choices) as Arc<dyn Array>)]);
    assert_eq!(write(&rows, FormulaGuard::Formulas), "signal\n'-buy\nsell\n");
    assert_eq!(write(&rows, FormulaGuard::None), "signal\n-buy\nsell\n");
}

#[test]
fn every_sign_of_a_formula_is_guarded_after_every_blank() {
    // As OWASP lists them.
    let signs = ["=", "+", "-", "@", "＝", "＋", "－", "＠"];
    let blanks = ["", " ", "  ", "\u{a0}", "\u{3000}", "\u{2003}", "\t", "\r", "\n", "\r\n", "\u{feff}", "\0"];
    let formulas = signs.iter().flat_map(|sign| blanks.map(|blank| format!("{blank}{sign}1+1")));
    // What a guarded text looks like is guarded once more, so that none is read back as another.
    let formulas = formulas.chain(["'=x", "''+x"].map(str::to_owned));
    let breaks = ["\t", "\r", "\n"].map(|first| format!("{first}x"));
    for text in formulas.chain(breaks) {
        let rows = batch(vec![("t", Arc::new(StringArray::from_iter_values([&text])))]);
        let written = write(&rows, FormulaGuard::Formulas);
        let field = written.strip_prefix("t\n").unwrap().strip_suffix('\n').unwrap().trim_matches('"');
        assert!(field.starts_with(&format!("'{text}")), "{text:?}: {field:?}");
        assert_eq!(unguarded(field), text);
        assert!(!write(&rows, FormulaGuard::None).contains(&format!("'{text}")), "{text:?}");
    }
    for text in ["", " ", "x", " x", "a=b", "1-2", "'x", "x\n=y", "\u{a0}x", "＊x"] {
        let rows = batch(vec![("t", Arc::new(StringArray::from_iter_values([text])))]);
        let both = [FormulaGuard::Formulas, FormulaGuard::None].map(|guard| write(&rows, guard));
        assert_eq!(both[0], both[1], "{text:?}");
    }
}

#[test]
fn every_number_round_trips() {
    let numbers = [1.0, 0.1, 1.0 / 3.0, -0.0, 5e-324, f64::MAX, 1e16, 123_456_789.123_456_7, f64::NAN, f64::INFINITY];
    let text = write(&batch(vec![("n", Arc::new(Float64Array::from(numbers.to_vec())))]), FormulaGuard::Formulas);
    let read: Vec<f64> = text.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    for (read, number) in read.iter().zip(numbers) {
        assert!(read.to_bits() == number.to_bits() || read.is_nan() && number.is_nan(), "{read} is not {number}");
    }
    assert_eq!(text.lines().take(3).collect::<Vec<_>>(), ["n", "1.0", "0.1"]);
}

#[test]
fn lines_keep_their_order() {
    let numbers: Vec<i32> = (0..300_000).collect();
    let dates = numbers.iter().map(|&number| DAY + i64::from(number) * 1_000_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int32Array::from(numbers.clone()))),
        ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(dates))),
    ];
    let text = write(&batch(columns), FormulaGuard::None);
    let first = |line: &str| line.split(',').next().unwrap().parse::<i32>().unwrap();
    assert_eq!(text.lines().skip(1).map(first).collect::<Vec<_>>(), numbers);
    assert_eq!(text.lines().nth(3602), Some("3601,2026-11-20T01:00:01"));
    let arrow = arrow::csv::ReaderBuilder::new(Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int32, false),
        Field::new("date", super::date(), false),
    ])))
    .with_header(true)
    .with_batch_size(300_000)
    .build(text.as_bytes())
    .unwrap()
    .next()
    .unwrap()
    .unwrap();
    assert_eq!(arrow.num_rows(), 300_000);
}

/// A field, written the simplest way.
fn plain(text: &str, guard: FormulaGuard) -> String {
    let is_sign = |letter: char| "=+-@＝＋－＠".contains(letter);
    let bare = text.trim_start_matches('\'');
    let is_formula = bare.starts_with(['\t', '\r', '\n']) || bare.trim_start().starts_with(is_sign);
    let guarded = if guard == FormulaGuard::Formulas && is_formula { "'" } else { "" };
    let needs_quotes = text.is_empty() || text.contains([',', '"', '\r', '\n']);
    if needs_quotes { format!("\"{guarded}{}\"", text.replace('"', "\"\"")) } else { format!("{guarded}{text}") }
}

/// An array of awkward values of a kind, and their fields.
fn nasty(kind: usize, guard: FormulaGuard, values: &[Option<usize>]) -> (ArrayRef, Vec<String>) {
    const TEXTS: [&str; 11] = [
        "",
        "a",
        "BRK.B",
        "c,d",
        "\"",
        "=1",
        "-\"\",\"\n",
        "\r",
        "a text that is longer than one copied block",
        "é",
        "exactly thirty-two bytes of text",
    ];
    const REALS: [f64; 11] = [0.0, -0.0, 0.5, 1.0, -1.0, 0.9999, 0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MAX, 1e16];
    const INTEGERS: [i32; 11] = [0, 9, 10, -1, 7, 100, -50, 123_456_789, i32::MAX, i32::MIN, 99_999_999];
    const REST: [i64; 4] = [0, 43_200_000_000, 1, 86_399_999_999];
    let moment = |value: usize| DAY + (value as i64 - 5) * 40 * 86_400_000_000 + REST[value % 4];
    let moment_text = |value: usize, after: &str| {
        let moment = DateTime::from_timestamp_micros(moment(value)).unwrap();
        let form = if REST[value % 4] % 1_000_000 == 0 { "%Y-%m-%dT%H:%M:%S" } else { "%Y-%m-%dT%H:%M:%S%.6f" };
        format!("{}{after}", moment.format(form))
    };
    let values = || values.iter().copied();
    let texts = || values().map(|value| value.map(|value| TEXTS[value]));
    let moments = || values().map(|value| value.map(moment)).collect::<TimestampMicrosecondArray>();
    let fields =
        |field: &dyn Fn(usize) -> String| values().map(|value| value.map_or_else(String::new, field)).collect();
    match kind {
        0 => (Arc::new(texts().collect::<StringArray>()), fields(&|value| plain(TEXTS[value], guard))),
        1 => (Arc::new(texts().collect::<DictionaryArray<Int8Type>>()), fields(&|value| plain(TEXTS[value], guard))),
        2 => (Arc::new(texts().collect::<DictionaryArray<Int32Type>>()), fields(&|value| plain(TEXTS[value], guard))),
        3 => (Arc::new(moments()), fields(&|value| moment_text(value, ""))),
        4 => (Arc::new(moments().with_timezone("UTC")), fields(&|value| moment_text(value, "Z"))),
        5 => {
            let reals: Float64Array = values().map(|value| value.map(|value| REALS[value])).collect();
            (Arc::new(reals), fields(&|value| format!("{:?}", REALS[value])))
        }
        6 => {
            let integers: Int32Array = values().map(|value| value.map(|value| INTEGERS[value])).collect();
            (Arc::new(integers), fields(&|value| INTEGERS[value].to_string()))
        }
        7 => {
            let longs: Int64Array = values().map(|value| value.map(|value| i64::from(INTEGERS[value]) * 3)).collect();
            (Arc::new(longs), fields(&|value| (i64::from(INTEGERS[value]) * 3).to_string()))
        }
        _ => {
            let flags: BooleanArray = values().map(|value| value.map(|value| value > 5)).collect();
            (Arc::new(flags), fields(&|value| (value > 5).to_string()))
        }
    }
}

#[test]
fn repeated_values_are_written_like_a_plain_writer_does() {
    let mut state = 3_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as usize
    };
    for case in 0..60 {
        let guard = [FormulaGuard::Formulas, FormulaGuard::None][case % 2];
        let lengths: Vec<usize> = (0..40).map(|_| 1 + random([1, 2, 9, 40][case / 2 % 4])).collect();
        let segments = Segments::new(lengths.iter().copied());
        let rows = lengths.iter().sum();
        let (mut columns, mut fields, mut expected) = (Vec::new(), Vec::new(), vec![String::new(); rows]);
        for index in 0..12 {
            let (kind, is_shared, most_alike) = (random(9), random(2) == 0, 1 + random(30));
            let count = if is_shared { lengths.len() } else { rows };
            let mut values = Vec::new();
            while values.len() < count {
                let value = random(13);
                values.extend(std::iter::repeat_n((value < 11).then_some(value), 1 + random(most_alike)));
            }
            values.truncate(count);
            let (array, texts) = nasty(kind, guard, &values);
            let name = ["=n", "a,b", "n"][index % 3];
            fields.push(Field::new(name, array.data_type().clone(), true));
            let each = lengths.iter().zip(&texts).flat_map(|(&length, text)| std::iter::repeat_n(text, length));
            let each: Vec<&String> = if is_shared { each.collect() } else { texts.iter().collect() };
            columns.push(if is_shared { segments.column(array) } else { array.into() });
            for (line, text) in expected.iter_mut().zip(each) {
                line.push_str(if index == 0 { "" } else { "," });
                line.push_str(text);
            }
        }
        let header = fields.iter().map(|field| plain(field.name(), guard)).collect::<Vec<_>>().join(",");
        let rows = Rows::new(Arc::new(Schema::new(fields)), columns).unwrap();
        for (from, count) in [(0, rows.num_rows()), (1, rows.num_rows() - 1), (rows.num_rows() / 2, 7), (3, 0)] {
            let mut out = Vec::new();
            let mut writer = CsvWriter::create(&mut out, Coding::Plain, rows.schema(), guard).unwrap();
            writer.write(&[rows.slice(from, count), rows.clone()]).unwrap();
            writer.finish().unwrap();
            drop(writer);
            let lines = expected[from..from + count].iter().chain(&expected);
            let expected: String = std::iter::once(&header).chain(lines).map(|line| format!("{line}\n")).collect();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{case}");
        }
    }
}

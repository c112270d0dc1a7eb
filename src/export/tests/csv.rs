use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int8Type, Schema};

use super::{DAY, rows, signals};
use crate::export::csv::Writer;
use crate::plan::Guard;

fn written(rows: &RecordBatch, guard: Guard) -> String {
    let mut out = Vec::new();
    let mut writer = Writer::create(&mut out, rows.schema_ref(), guard).unwrap();
    writer.write(&[rows.clone().into()]).unwrap();
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

#[test]
fn a_line_is_what_a_person_would_write() {
    let text = written(&rows(&signals(&["XOM"], 1)), Guard::None);
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
fn null_is_nothing_and_an_empty_text_is_quoted() {
    let texts = StringArray::from(vec![Some(""), None, Some("a \"b\""), Some("c,d\ne\r"), Some(" f ")]);
    let choices: DictionaryArray<Int8Type> = vec![None, Some(""), Some("x,y"), Some("z"), None].into_iter().collect();
    let rows = batch(vec![("text", Arc::new(texts)), ("choice", Arc::new(choices))]);
    let expected = "text,choice\n\"\",\n,\"\"\n\"a \"\"b\"\"\",\"x,y\"\n\"c,d\ne\r\",z\n f ,\n";
    assert_eq!(written(&rows, Guard::None), expected);
    assert_eq!(written(&rows, Guard::Formulas), expected);
}

#[test]
fn a_dictionary_with_a_null_among_its_values_has_null_cells() {
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let keys = arrow::array::Int8Array::from(vec![Some(0), Some(1), None]);
    let choices = DictionaryArray::<Int8Type>::new(keys, values);
    assert_eq!(
        written(&batch(vec![("c", Arc::new(choices)), ("n", Arc::new(Int32Array::from(vec![1, 2, 3])))]), Guard::None),
        "c,n\na,1\n,2\n,3\n"
    );
}

#[test]
fn what_a_spreadsheet_would_take_for_a_formula_is_guarded() {
    let texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "=\"a\",b", "a=b", "'x"];
    let numbers = Float64Array::from_iter_values((0..9).map(|row| -0.5 - f64::from(row)));
    let rows = batch(vec![("=t", Arc::new(StringArray::from_iter_values(texts))), ("n", Arc::new(numbers))]);
    let expected = "'=t,n\n'=1+1,-0.5\n'+1,-1.5\n'-1,-2.5\n'@x,-3.5\n'\tx,-4.5\n\"'\rx\",-5.5\n\"'=\"\"a\"\",b\",-6.5\n\
                    a=b,-7.5\n'x,-8.5\n";
    assert_eq!(written(&rows, Guard::Formulas), expected);
    let choices: DictionaryArray<Int8Type> = vec!["-buy", "sell"].into_iter().collect();
    let rows = batch(vec![("signal", Arc::new(choices) as Arc<dyn Array>)]);
    assert_eq!(written(&rows, Guard::Formulas), "signal\n'-buy\nsell\n");
    assert_eq!(written(&rows, Guard::None), "signal\n-buy\nsell\n");
}

#[test]
fn a_number_reads_back_equal_whatever_it_is() {
    let numbers = [1.0, 0.1, 1.0 / 3.0, -0.0, 5e-324, f64::MAX, 1e16, 123_456_789.123_456_7, f64::NAN, f64::INFINITY];
    let text = written(&batch(vec![("n", Arc::new(Float64Array::from(numbers.to_vec())))]), Guard::Formulas);
    let read: Vec<f64> = text.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    for (read, number) in read.iter().zip(numbers) {
        assert!(read.to_bits() == number.to_bits() || read.is_nan() && number.is_nan(), "{read} is not {number}");
    }
    assert_eq!(text.lines().take(3).collect::<Vec<_>>(), ["n", "1.0", "0.1"]);
}

#[test]
fn many_lines_are_in_order() {
    let numbers: Vec<i32> = (0..300_000).collect();
    let dates = numbers.iter().map(|&number| DAY + i64::from(number) * 1_000_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int32Array::from(numbers.clone()))),
        ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(dates))),
    ];
    let text = written(&batch(columns), Guard::None);
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

#[test]
fn a_line_does_not_depend_on_the_lines_before_it() {
    let mut state = 3_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as usize
    };
    let texts = ["", "a", "BRK.B", "c,d", "\"", "=1", "a text that is longer than what is copied at once", "é"];
    for longest in [1, 2, 5, 40] {
        let mut numbers = || {
            let mut numbers = Vec::new();
            while numbers.len() < 300 {
                numbers.extend(std::iter::repeat_n(random(9), random(longest) + 1));
            }
            numbers.truncate(300);
            numbers
        };
        let some = |number: &usize| (*number < 8).then_some(*number);
        let choices: DictionaryArray<Int8Type> =
            numbers().iter().map(|number| some(number).map(|it| texts[it])).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("t", Arc::new(numbers().iter().map(|number| some(number).map(|it| texts[it])).collect::<StringArray>())),
            (
                "d",
                Arc::new(
                    numbers()
                        .iter()
                        .map(|number| some(number).map(|it| DAY + it as i64 * 777_777_777))
                        .collect::<TimestampMicrosecondArray>(),
                ),
            ),
            ("c", Arc::new(choices)),
            (
                "r",
                Arc::new(
                    numbers()
                        .iter()
                        .map(|number| some(number).map(|it| it as f64 / 3.0 - 1.0))
                        .collect::<Float64Array>(),
                ),
            ),
            (
                "i",
                Arc::new(
                    numbers().iter().map(|number| some(number).map(|it| 3 - it as i32 * 50)).collect::<Int32Array>(),
                ),
            ),
            ("f", Arc::new(numbers().iter().map(|number| some(number).map(|it| it > 3)).collect::<BooleanArray>())),
        ];
        let rows = batch(columns);
        let line = |row: usize| written(&rows.slice(row, 1), Guard::Formulas).split_once('\n').unwrap().1.to_owned();
        let lines: String = (0..rows.num_rows()).map(line).collect();
        assert_eq!(written(&rows, Guard::Formulas), format!("t,d,c,r,i,f\n{lines}"), "{longest}");
    }
}

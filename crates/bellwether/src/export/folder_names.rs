//! Names of Hive partition folders: `period=15d`, `date=2026-11-20`.
//!
//! Characters that a file system or a reader might misinterpret are percent-encoded; letters, digits, `-`, `.`, `_` and
//! `~` are not. Null and empty text share Hive's default name. A date at midnight is written as a day.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::columns::timestamps;

pub(super) const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folder name for a row's value.
pub(super) fn of_value(column: &str, values: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    let text = text(values, row)?;
    let value = if text.is_empty() { NOTHING.to_owned() } else { escape(&text) };
    Ok(format!("{}={value}", escape(column)))
}

/// Encodes text as part of a path.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Decodes part of a path.
pub(super) fn unescape(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text(values: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    match values.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if values.is_valid(row) => {
            let micros = values.as_primitive::<TimestampMicrosecondType>().value(row);
            let mut out = timestamps::text(micros);
            match zone {
                Some(_) => out.push('Z'),
                None if timestamps::is_midnight(micros) => out.truncate(out.len() - "T00:00:00".len()),
                None => {}
            }
            Ok(out)
        }
        _ => Ok(ArrayFormatter::try_new(values, &FormatOptions::default())?.value(row).try_to_string()?),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int8Array, StringArray, TimestampMicrosecondArray};

    use super::of_value;
    use crate::tables::choices;

    #[test]
    fn values_never_become_paths_in_folder_names() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("BRK.B"),
            Some("BTC/USD"),
            Some(".."),
            Some("a b=c%d+\u{e9}"),
            Some(""),
            None,
        ]));
        let expected = [
            "ticker=BRK.B",
            "ticker=BTC%2FUSD",
            "ticker=..",
            "ticker=a%20b%3Dc%25d%2B%C3%A9",
            "ticker=__HIVE_DEFAULT_PARTITION__",
            "ticker=__HIVE_DEFAULT_PARTITION__",
        ];
        for (row, name) in expected.into_iter().enumerate() {
            assert_eq!(of_value("ticker", &texts, row).unwrap(), name);
        }
        let periods = choices(Int8Array::from(vec![1, 0]), ["15d", "1m"]);
        assert_eq!(of_value("period", &periods, 0).unwrap(), "period=1m");
    }

    #[test]
    fn midnight_is_named_by_its_day_and_other_times_in_full() {
        let micros = vec![1_795_132_800_000_000, 1_795_167_000_000_000];
        let naive: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros.clone()));
        assert_eq!(of_value("date", &naive, 0).unwrap(), "date=2026-11-20");
        assert_eq!(of_value("date", &naive, 1).unwrap(), "date=2026-11-20T09%3A30%3A00");
        let instants: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"));
        assert_eq!(of_value("observed_at", &instants, 0).unwrap(), "observed_at=2026-11-20T00%3A00%3A00Z");
    }
}

//! A template for the entries of a history, learned from one of them.
//!
//! A service writes all entries of a history with the same bytes between their values. So those bytes are compared many
//! at a time, and only the values are parsed. Any other entry does not match and is read by `history`.

use super::cursor::Cursor;
use super::number;
use crate::interface::Signal;
use crate::tables::dates::{Date, Month};

/// The longest text between two values.
const LONGEST: usize = 32;

/// A signal with its date and confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) date: Date,
    pub(super) signal: Signal,
    pub(super) confidence: f64,
}

/// The text around the values of an entry: a date, a signal and a confidence, in this order.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// From the end of the previous entry.
    before_day: Literal,
    /// Length of the separator from the previous entry.
    separator: usize,
    /// Includes the time of day and the offset, which are the same in every entry.
    before_signal: Literal,
    before_confidence: Literal,
    end: Literal,
    /// Time of the date since midnight of its day, in microseconds.
    since_midnight: i64,
    offset_minutes: Option<i16>,
    /// The month of the last entry, which is usually that of the next.
    month: Month,
}

impl Template {
    /// Learns the template from an entry whose values are known. `text` starts after the entry before it, and its first
    /// `separator` bytes separate the two.
    pub(super) fn learn(text: &str, separator: usize, entry: Entry) -> Option<Self> {
        let mut cursor = Cursor::new(text);
        cursor.at = separator;
        let day = enter_field(&mut cursor, b"{", b"\"date\"", b"\"")?;
        let month = Month::parse(*text.as_bytes()[day..].first_chunk()?).filter(Month::is_within_range)?;
        let midnight = month.midnight(*text.as_bytes()[day + Month::LENGTH..].first_chunk()?)?;
        cursor.at = day + DAY;
        cursor.at += memchr::memchr(b'"', cursor.rest())? + 1;
        let signal = enter_field(&mut cursor, b",", b"\"signal\"", b"\"")?;
        let signal_end = signal + entry.signal.as_str().len();
        cursor.at = signal_end + 1;
        let confidence = enter_field(&mut cursor, b",", b"\"confidence\"", b"")?;
        let (_, length) = number::read_first(cursor.rest())?;
        let literal = |from: usize, to: usize| Literal::new(text.as_bytes().get(from..to)?);
        Some(Self {
            before_day: literal(0, day)?,
            separator,
            before_signal: literal(day + DAY, signal)?,
            before_confidence: literal(signal_end, confidence)?,
            end: literal(confidence + length, text.len())?,
            since_midnight: entry.date.micros - midnight,
            offset_minutes: entry.date.offset_minutes,
            month,
        })
    }

    /// Reads the next entry and its start, if it matches. Otherwise the cursor does not move.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Option<(Entry, usize)> {
        let text = cursor.rest();
        let day = self.before_day.end(text, 0)?;
        let midnight = self.midnight(text[day..].first_chunk()?)?;
        let signal = self.before_signal.end(text, day + DAY)?;
        let (is, length) = signal_of(text.get(signal..)?.first_chunk()?)?;
        let confidence = self.before_confidence.end(text, signal + length)?;
        let (value, length) = number::read_first(text.get(confidence..)?)?;
        let end = self.end.end(text, confidence + length)?;
        let start = cursor.at + self.separator;
        cursor.at += end;
        let date = Date { micros: midnight + self.since_midnight, offset_minutes: self.offset_minutes };
        Some((Entry { date, signal: is, confidence: value }, start))
    }

    #[inline]
    fn midnight(&mut self, day: &[u8; DAY]) -> Option<i64> {
        let (month, day) = day.split_first_chunk()?;
        if !self.month.is(month) {
            self.month = Month::parse(*month).filter(Month::is_within_range)?;
        }
        self.month.midnight(*day.first_chunk()?)
    }
}

/// Moves past the name of a field, and past a quote if its value is text; returns where the value starts.
fn enter_field(cursor: &mut Cursor<'_>, before: &[u8], name: &[u8], quote: &[u8]) -> Option<usize> {
    cursor.skip_white();
    let comes = cursor.eat(before);
    cursor.skip_white();
    if !(comes && cursor.eat(name)) {
        return None;
    }
    cursor.skip_white();
    let comes = cursor.eat(b":");
    cursor.skip_white();
    (comes && cursor.eat(quote)).then_some(cursor.at)
}

/// The length of a calendar date.
const DAY: usize = Month::LENGTH + 2;

/// The signal that a text starts with, and its length. The next literal starts with the closing quote.
#[inline]
fn signal_of(text: &[u8; 4]) -> Option<(Signal, usize)> {
    const SELL: u32 = u32::from_le_bytes(*b"sell");
    const BUY: u32 = u32::from_le_bytes(*b"buy\0");
    let word = u32::from_le_bytes(*text);
    // Signals are as unpredictable as a coin toss for the branch predictor, so compare with both.
    let (is_sell, is_buy) = (word == SELL, word & 0x00ff_ffff == BUY);
    let signal = if is_sell { Signal::Sell } else { Signal::Buy };
    (is_sell | is_buy).then_some((signal, 3 + usize::from(is_sell)))
}

/// A text to match at a position, compared word by word.
#[derive(Clone, Copy, Debug)]
struct Literal {
    words: [u64; LONGEST / 8],
    /// All bits of the bytes to compare.
    masks: [u64; LONGEST / 8],
    length: usize,
}

impl Literal {
    fn new(text: &[u8]) -> Option<Self> {
        let (mut bytes, mut masks) = ([0; LONGEST], [0; LONGEST]);
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        masks[..text.len()].fill(0xff);
        Some(Self { words: words(&bytes), masks: words(&masks), length: text.len() })
    }

    /// Where it ends if a text has it at a position. Never matches near the end of the text.
    #[inline(always)]
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let found = words(text.get(at..)?.first_chunk()?);
        let unlike = (0..LONGEST / 8).fold(0, |all, word| all | (found[word] ^ self.words[word]) & self.masks[word]);
        (unlike == 0).then_some(at + self.length)
    }
}

#[inline]
fn words(bytes: &[u8; LONGEST]) -> [u64; LONGEST / 8] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::super::history::read_entry;
    use super::{Entry, Template};

    const FIRST: &str = r#",  {"date":"2026-11-20T00:00:00-05:00", "signal":"buy","confidence":0.75 }"#;

    fn exact(entry: &str) -> Entry {
        read_entry(&mut Cursor::new(entry)).unwrap().0
    }

    fn read(next: &str) -> Option<(Entry, usize)> {
        let mut form = Template::learn(FIRST, 3, exact(&FIRST[3..])).unwrap();
        // Templates do not match near the end of a text.
        let text = format!("{next}{}", " ".repeat(super::LONGEST));
        let mut cursor = Cursor::new(&text);
        let read = form.read(&mut cursor);
        assert_eq!(cursor.at, if read.is_some() { next.len() } else { 0 }, "{next}");
        read
    }

    #[test]
    fn the_template_reads_entries_like_the_exact_reader() {
        let likewise = |(from, to): (&str, &str)| FIRST.replace(from, to);
        for change in [
            ("buy", "buy"),
            ("buy", "sell"),
            ("2026-11-20", "2024-02-29"),
            ("0.75", "0.123456789"),
            ("0.75", "1"),
            ("0.75", "-1.5e-3"),
        ] {
            let next = likewise(change);
            assert_eq!(read(&next), Some((exact(&next[3..]), 3)), "{next}");
        }
        for change in [
            ("buy", "but"),
            ("buy", "hold"),
            ("2026-11-20", "2026-02-29"),
            ("2026-11-20", "2026-11-00"),
            ("2026-11-20", "2026-1x-20"),
            ("T00", "T01"),
            ("-05:00", "-04:00"),
            (", \"signal", ",\"signal"),
            ("0.75", "00.75"),
            ("0.75", "\"0.75\""),
            ("0.75", "0.75x"),
            ("}", ", \"model\": 1}"),
        ] {
            assert_eq!(read(&likewise(change)), None, "{change:?}");
        }
    }

    #[test]
    fn entries_in_another_order_or_very_long_have_no_template() {
        for text in [
            r#",{"signal":"buy","date":"2026-11-20","confidence":0.75}"#.to_owned(),
            format!(r#",{{"date":"2026-11-20",{}"signal":"buy","confidence":0.75}}"#, " ".repeat(40)),
        ] {
            assert!(Template::learn(&text, 1, exact(&text[1..])).is_none(), "{text}");
        }
    }
}

//! Splits a body into pieces as it arrives: an object into its keys and values, an array into its elements. It may be in an
//! object that wraps it: `{"status": "ok", "data": {…}}`.
//!
//! The scanner is fed bytes in chunks of any size and appends the pieces to a [`Batch`]. It keeps a state and a few
//! counters and never looks back, so neither the size of a body nor its chunks make a difference. It checks commas,
//! colons and brackets of the outermost level strictly; the contents of a piece are left to the decoder. A byte order
//! mark before the body is skipped.

use super::batch::{Batch, Bounds, PiecePosition};
use super::skip::{Skip, byte_text, is_white};

/// The shape that a body must have, and how it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object, split into keys and values.
    Fields,
    /// An array, split into elements.
    Elements,
    /// An object that is one piece.
    Record,
    /// An array, split into elements, or any other value as one piece.
    Anything,
}

/// A body without the required shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Offset of the byte at fault; the length of the body if it ends too early.
    pub(super) offset: u64,
    /// What was expected and found.
    pub(super) reason: String,
}

/// The state of the scanner.
#[derive(Clone, Copy, Debug)]
enum ScanState {
    /// At the start, with the number of bytes seen of a byte order mark.
    Mark(usize),
    Start,
    FirstKey,
    NextKey,
    /// Within a key, after its opening quote.
    Key(Escape),
    Colon,
    FirstElement,
    /// Where a value must start.
    Value,
    /// Within a value.
    Piece(Skip),
    /// Within an answer that is `null`, with the number of its bytes seen, or `[]` where an object is expected.
    Null(usize),
    EmptyList,
    /// After a value, before a comma or the closing bracket.
    Comma,
    End,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    Pending,
}

/// What contains the pieces of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Object,
    Array,
    /// The body itself is the piece.
    Nothing,
}

/// The longest value that is skipped so that later ones can be read, in bytes. Far shorter ones are rejected already.
const LONGEST_VALUE: u64 = 256 << 20;

/// The longest key that is skipped, and the most whitespace between two values.
const LONGEST_REST: u64 = 1 << 20;

/// The byte order mark of UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An answer that says nothing.
const NULL: [u8; 4] = *b"null";

/// The scanner of one body.
#[derive(Debug)]
struct Scanner {
    shape: Shape,
    holder: Holder,
    state: ScanState,
    /// Number of bytes seen.
    offset: u64,
    /// Where the current key, value or whitespace started.
    since: u64,
    /// Number of elements started.
    elements: u64,
}

impl Scanner {
    fn new(shape: Shape) -> Self {
        Self { shape, holder: Holder::Nothing, state: ScanState::Mark(0), offset: 0, since: 0, elements: 0 }
    }

    /// Scans one step; returns how many bytes it consumed.
    fn advance(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Malformed> {
        let step = self.step(bytes, batch)?;
        self.offset += step as u64;
        self.check_length()?;
        Ok(step)
    }

    /// Whether nothing but blanks was seen.
    fn is_at_start(&self) -> bool {
        matches!(self.state, ScanState::Mark(_) | ScanState::Start)
    }

    /// Goes on at an offset, up to which another scanner read.
    fn go_on(&mut self, offset: u64, state: ScanState) {
        (self.offset, self.since, self.state) = (offset, offset, state);
    }

    /// Fails early on a body that has no more pieces but does not end.
    fn check_length(&self) -> Result<(), Malformed> {
        let (what, longest) = match self.state {
            ScanState::Piece(_) => ("a value of", LONGEST_VALUE),
            ScanState::Key(_) => ("a key of", LONGEST_REST),
            _ => ("whitespace of", LONGEST_REST),
        };
        if self.offset - self.since <= longest {
            return Ok(());
        }
        Err(Malformed { offset: self.since, reason: format!("{what} more than {} MiB", longest >> 20) })
    }

    /// Ends the body.
    fn finish(&mut self, batch: &mut Batch) -> Result<(), Malformed> {
        match self.state {
            ScanState::End => Ok(()),
            // Only the end of the body ends a bare number.
            ScanState::Piece(Skip::Scalar) if self.holder == Holder::Nothing => {
                self.close(0, 0, batch);
                Ok(())
            }
            ScanState::Null(_) => Err(self.mismatch(Some(NULL[0]), self.since)),
            ScanState::EmptyList => Err(self.mismatch(Some(b'['), self.since - 1)),
            ScanState::Mark(seen @ 1..) => Err(self.mismatch(Some(MARK[0]), self.offset - seen as u64)),
            _ => Err(self.mismatch(None, self.offset)),
        }
    }

    /// Consumes bytes for the current state, or consumes none and changes the state.
    fn step(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Malformed> {
        match self.state {
            ScanState::Piece(skip) => Ok(self.in_piece(skip, bytes, batch)),
            ScanState::Key(escape) => Ok(self.in_key(escape, bytes, batch)),
            ScanState::Mark(seen) => self.in_mark(seen, bytes[0]),
            ScanState::Null(seen) if bytes[0] == NULL[seen] => {
                self.state = if seen + 1 == NULL.len() { ScanState::End } else { ScanState::Null(seen + 1) };
                Ok(1)
            }
            ScanState::Null(_) => Err(self.mismatch(Some(NULL[0]), self.since)),
            _ => match bytes.iter().position(|&byte| !is_white(byte)) {
                None => Ok(bytes.len()),
                Some(white) => {
                    self.between(bytes[white], white as u64, batch)?;
                    // The first byte of a value is part of the piece and is consumed with it.
                    Ok(white + usize::from(!matches!(self.state, ScanState::Piece(_))))
                }
            },
        }
    }

    fn in_mark(&mut self, seen: usize, byte: u8) -> Result<usize, Malformed> {
        if byte == MARK[seen] {
            self.state = if seen + 1 == MARK.len() { ScanState::Start } else { ScanState::Mark(seen + 1) };
            return Ok(1);
        }
        if seen > 0 {
            return Err(self.mismatch(Some(MARK[0]), self.offset - seen as u64));
        }
        self.state = ScanState::Start;
        Ok(0)
    }

    fn in_piece(&mut self, mut skip: Skip, bytes: &[u8], batch: &mut Batch) -> usize {
        match skip.advance(bytes) {
            None => {
                batch.value(bytes);
                self.state = ScanState::Piece(skip);
                bytes.len()
            }
            Some(length) => {
                batch.value(&bytes[..length]);
                self.close(skip.deepest(), length, batch);
                length
            }
        }
    }

    fn close(&mut self, deepest: u64, length: usize, batch: &mut Batch) {
        batch.close(deepest);
        self.since = self.offset + length as u64;
        self.state = if self.holder == Holder::Nothing { ScanState::End } else { ScanState::Comma };
    }

    fn in_key(&mut self, escape: Escape, bytes: &[u8], batch: &mut Batch) -> usize {
        if matches!(escape, Escape::Pending) {
            batch.key(&bytes[..1]);
            self.state = ScanState::Key(Escape::None);
            return 1;
        }
        let Some(length) = memchr::memchr2(b'"', b'\\', bytes) else {
            batch.key(bytes);
            return bytes.len();
        };
        if bytes[length] == b'"' {
            batch.key(&bytes[..length]);
            self.state = ScanState::Colon;
            self.since = self.offset + length as u64 + 1;
        } else {
            batch.key(&bytes[..=length]);
            self.state = ScanState::Key(Escape::Pending);
        }
        length + 1
    }

    /// Handles a byte between pieces that is not whitespace.
    fn between(&mut self, byte: u8, ahead: u64, batch: &mut Batch) -> Result<(), Malformed> {
        let offset = self.offset + ahead;
        self.state = match (self.state, byte) {
            (ScanState::Start, _) => self.open(byte, offset, batch)?,
            (ScanState::FirstKey, b'}') | (ScanState::FirstElement | ScanState::EmptyList, b']') => ScanState::End,
            (ScanState::EmptyList, _) => return Err(self.mismatch(Some(b'['), self.since - 1)),
            (ScanState::FirstKey | ScanState::NextKey, b'"') => {
                self.begin(batch);
                ScanState::Key(Escape::None)
            }
            (ScanState::Colon, b':') => ScanState::Value,
            (ScanState::FirstElement | ScanState::Value, _) => {
                let skip = Skip::begin(byte).ok_or_else(|| self.mismatch(Some(byte), offset))?;
                if self.holder == Holder::Array {
                    self.begin(batch);
                }
                batch.value_at(offset);
                ScanState::Piece(skip)
            }
            (ScanState::Comma, b',') if self.holder == Holder::Object => ScanState::NextKey,
            (ScanState::Comma, b',') => ScanState::Value,
            (ScanState::Comma, b'}') if self.holder == Holder::Object => ScanState::End,
            (ScanState::Comma, b']') if self.holder == Holder::Array => ScanState::End,
            _ => return Err(self.mismatch(Some(byte), offset)),
        };
        // A key or a value starts with this byte, whitespace after it.
        let starts = matches!(self.state, ScanState::Key(_) | ScanState::Piece(_) | ScanState::Null(_));
        self.since = offset + u64::from(!starts);
        Ok(())
    }

    /// Handles the first byte of the body.
    fn open(&mut self, byte: u8, offset: u64, batch: &mut Batch) -> Result<ScanState, Malformed> {
        let begins_value = matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
        match (self.shape, byte) {
            (Shape::Fields, b'{') => {
                self.holder = Holder::Object;
                Ok(ScanState::FirstKey)
            }
            (Shape::Elements | Shape::Anything, b'[') => {
                self.holder = Holder::Array;
                Ok(ScanState::FirstElement)
            }
            (Shape::Record, b'{') | (Shape::Anything, _) if begins_value => {
                let skip = Skip::begin(byte).ok_or_else(|| self.mismatch(Some(byte), offset))?;
                self.begin(batch);
                batch.value_at(offset);
                Ok(ScanState::Piece(skip))
            }
            // That there is nothing, as some languages write it.
            (Shape::Fields | Shape::Elements | Shape::Record, b'n') => Ok(ScanState::Null(1)),
            (Shape::Fields | Shape::Record, b'[') => Ok(ScanState::EmptyList),
            _ => Err(self.mismatch(Some(byte), offset)),
        }
    }

    fn begin(&mut self, batch: &mut Batch) {
        batch.open(match self.holder {
            Holder::Nothing => PiecePosition::Body,
            Holder::Object => PiecePosition::Key,
            Holder::Array => PiecePosition::Element(self.elements),
        });
        self.elements += 1;
    }

    fn mismatch(&self, byte: Option<u8>, offset: u64) -> Malformed {
        let expected = match (self.state, self.holder) {
            (ScanState::Mark(_) | ScanState::Start | ScanState::Null(_) | ScanState::EmptyList, _) => {
                match self.shape {
                    Shape::Fields => "an object whose keys are tickers",
                    Shape::Elements => "an array",
                    Shape::Record => "an object",
                    Shape::Anything => "a JSON value",
                }
            }
            (ScanState::FirstKey, _) => "a key or `}`",
            (ScanState::NextKey, _) => "a key",
            (ScanState::Key(_), _) => "the end of a key",
            (ScanState::Colon, _) => "`:`",
            (ScanState::FirstElement, _) => "a value or `]`",
            (ScanState::Value, _) => "a value",
            (ScanState::Piece(_), _) => "the end of a value",
            (ScanState::Comma, Holder::Array) => "`,` or `]`",
            (ScanState::Comma, _) => "`,` or `}`",
            (ScanState::End, _) => "the end of the body",
        };
        let found = byte.map_or_else(|| "the end of the body".to_owned(), byte_text);
        Malformed { offset, reason: format!("expected {expected}, found {found}") }
    }
}

/// A scanner of bodies that may be wrapped, if members are named that may hold the answer. An answer that is no object, where the wrapper would be one, is read as it is.
#[derive(Debug)]
pub(super) struct Unwrapping {
    /// The members that may hold the answer; the first of them counts.
    names: Vec<String>,
    wrapper: Scanner,
    /// What stands beside the answer, which nobody reads.
    beside: Batch,
    answer: Scanner,
    state: WrapperState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrapperState {
    /// Before the answer.
    Before,
    Within,
    After,
    /// There is no wrapper.
    Bare,
}

impl Unwrapping {
    pub(super) fn new(names: &[String], shape: Shape) -> Self {
        let (wrapper, answer) = (Scanner::new(Shape::Fields), Scanner::new(shape));
        let state = if names.is_empty() { WrapperState::Bare } else { WrapperState::Before };
        Self { names: names.to_vec(), wrapper, beside: Batch::new(Bounds::ANSWER), answer, state }
    }

    /// Scans the next bytes until their end or until the batch is full; returns how many it consumed.
    pub(super) fn feed(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Malformed> {
        let mut used = 0;
        while used < bytes.len() && !batch.is_full {
            used += self.advance(&bytes[used..], batch)?;
        }
        Ok(used)
    }

    fn advance(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Malformed> {
        let is_at_start = self.state == WrapperState::Before && self.wrapper.is_at_start();
        match self.state {
            WrapperState::Bare => self.answer.advance(bytes, batch),
            WrapperState::Within => {
                let step = self.answer.advance(bytes, batch)?;
                if matches!(self.answer.state, ScanState::End) {
                    self.wrapper.go_on(self.answer.offset, ScanState::Comma);
                    self.state = WrapperState::After;
                }
                Ok(step)
            }
            WrapperState::Before if is_at_start && is_white(bytes[0]) => {
                self.wrapper.advance(&bytes[..1], &mut self.beside)
            }
            // No object begins here, nor a mark before one.
            WrapperState::Before if is_at_start && !matches!(bytes[0], b'{' | 0xef | 0xbb | 0xbf) => {
                self.answer.go_on(self.wrapper.offset, ScanState::Start);
                self.state = WrapperState::Bare;
                Ok(0)
            }
            WrapperState::Before | WrapperState::After => {
                let step = self.wrapper.advance(bytes, &mut self.beside)?;
                let is_answer = self.state == WrapperState::Before
                    && matches!(self.wrapper.state, ScanState::Value)
                    && self.names.iter().any(|name| name.as_bytes() == self.beside.arriving_key());
                if is_answer {
                    self.answer.go_on(self.wrapper.offset, ScanState::Start);
                    self.state = WrapperState::Within;
                }
                if !self.beside.is_empty() {
                    self.beside.clear();
                }
                Ok(step)
            }
        }
    }

    /// Ends the body.
    pub(super) fn finish(&mut self, batch: &mut Batch) -> Result<(), Malformed> {
        match self.state {
            WrapperState::Bare | WrapperState::Within => self.answer.finish(batch),
            WrapperState::After => self.wrapper.finish(&mut self.beside),
            WrapperState::Before => {
                self.wrapper.finish(&mut self.beside)?;
                let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
                let reason = format!("expected an object with {}, which `unwrap` names", names.join(" or "));
                Err(Malformed { offset: 0, reason })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Bounds};
    use super::{Malformed, Shape, Unwrapping};

    /// The keys and values of a body that arrives in chunks of a size.
    fn cut(shape: Shape, body: &[u8], portion: usize) -> Result<Vec<(String, String)>, Malformed> {
        let mut batch = Batch::new(Bounds { batch_bytes: usize::MAX, batch_pieces: usize::MAX, ..Bounds::ANSWER });
        let mut scanner = Unwrapping::new(&[], shape);
        for bytes in body.chunks(portion) {
            assert_eq!(scanner.feed(bytes, &mut batch), Ok(bytes.len()));
        }
        scanner.finish(&mut batch)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(batch.pieces().iter().map(|piece| (text(piece.key), text(piece.value))).collect())
    }

    fn fault(shape: Shape, body: &str) -> (u64, String) {
        let mut batch = Batch::new(Bounds::ANSWER);
        let mut scanner = Unwrapping::new(&[], shape);
        let fed = scanner.feed(body.as_bytes(), &mut batch);
        let Malformed { offset, reason } = fed.and_then(|_| scanner.finish(&mut batch)).unwrap_err();
        (offset, reason)
    }

    #[test]
    fn objects_are_split_into_keys_and_values_across_any_chunks() {
        let body = "\u{feff} {\"B\" : {\"x\": \"}\\\"\"},\"A\\u0041\\\"\":[1, 2],\n\"B\":null , \"ä\": \"ö\\\\\"} ";
        let expected = [("B", "{\"x\": \"}\\\"\"}"), ("A\\u0041\\\"", "[1, 2]"), ("B", "null"), ("ä", "\"ö\\\\\"")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for portion in 1..=body.len() {
            assert_eq!(cut(Shape::Fields, body.as_bytes(), portion).unwrap(), expected, "by {portion}");
        }
    }

    #[test]
    fn arrays_are_split_into_elements_and_a_record_is_one_piece() {
        let values = |shape, body: &str| -> Vec<String> {
            cut(shape, body.as_bytes(), 1).unwrap().into_iter().map(|(_, value)| value).collect()
        };
        assert_eq!(values(Shape::Elements, "[1 ,\"a\",[], {} ]"), ["1", "\"a\"", "[]", "{}"]);
        assert_eq!(values(Shape::Anything, "[[1]]"), ["[1]"]);
        assert_eq!(values(Shape::Anything, " -1.5"), ["-1.5"]);
        assert_eq!(values(Shape::Record, " {\"a\": [1]} "), ["{\"a\": [1]}"]);
        assert_eq!(values(Shape::Elements, "[]"), [""; 0]);
        for shape in [Shape::Fields, Shape::Record] {
            assert_eq!(values(shape, " [ ] "), [""; 0]);
        }
        for shape in [Shape::Fields, Shape::Elements, Shape::Record] {
            assert_eq!(values(shape, " null\n"), [""; 0]);
        }
        assert_eq!(values(Shape::Fields, "{ }"), [""; 0]);
    }

    #[test]
    fn endless_input_is_bounded() {
        let after = |begin: &str, more: u8| {
            let (mut scanner, mut batch) = (Unwrapping::new(&[], Shape::Fields), Batch::new(Bounds::ANSWER));
            let more = vec![more; 1 << 20];
            let portions = std::iter::once(begin.as_bytes()).chain(std::iter::repeat_n(&more[..], 260));
            let mut fed = 0;
            for portion in portions {
                match scanner.feed(portion, &mut batch) {
                    Ok(used) => fed += used as u64,
                    Err(malformed) => return (fed >> 20, malformed.offset, malformed.reason),
                }
            }
            panic!("the body does not end");
        };
        let blanks = || "whitespace of more than 1 MiB".to_owned();
        assert_eq!(after("{", b' '), (1, 1, blanks()));
        assert_eq!(after("{\"A\": [1],", b'\n'), (1, 10, blanks()));
        assert_eq!(after("{}", b' '), (1, 2, blanks()));
        assert_eq!(after("{\"", b'x'), (0, 1, "a key of more than 1 MiB".to_owned()));
        assert_eq!(after("{\"A\": [[[{\"b\":", b' '), (255, 6, "a value of more than 256 MiB".to_owned()));
    }

    #[test]
    fn a_malformed_body_is_reported_with_its_byte_offset() {
        let start = |found: &str| format!("expected an object whose keys are tickers, found {found}");
        for (body, offset, reason) in [
            ("", 0, start("the end of the body")),
            (" \n", 2, start("the end of the body")),
            ("<html>", 0, start("`<`")),
            ("\u{feff}[1]", 3, start("`[`")),
            ("[", 0, start("`[`")),
            (" nul", 1, start("`n`")),
            ("none", 0, start("`n`")),
            ("null}", 4, "expected the end of the body, found `}`".to_owned()),
            ("\u{fefe}{}", 0, start("byte `0xef`")),
            ("{\"A\" 1}", 5, "expected `:`, found `1`".to_owned()),
            ("{\"A\": 1 \"B\": 2}", 8, "expected `,` or `}`, found `\"`".to_owned()),
            ("{\"A\": 1,}", 8, "expected a key, found `}`".to_owned()),
            ("{,}", 1, "expected a key or `}`, found `,`".to_owned()),
            ("{\"A\": }", 6, "expected a value, found `}`".to_owned()),
            ("{\"A\": {", 7, "expected the end of a value, found the end of the body".to_owned()),
            ("{\"A\": 12", 8, "expected the end of a value, found the end of the body".to_owned()),
            ("{\"A\\", 4, "expected the end of a key, found the end of the body".to_owned()),
            ("{\"A\": 1", 7, "expected the end of a value, found the end of the body".to_owned()),
            ("{\"A\": [] ", 9, "expected `,` or `}`, found the end of the body".to_owned()),
            ("{\"A\": []]", 8, "expected `,` or `}`, found `]`".to_owned()),
            ("{} {}", 3, "expected the end of the body, found `{`".to_owned()),
            ("{}\0", 2, "expected the end of the body, found byte `0x00`".to_owned()),
        ] {
            assert_eq!(fault(Shape::Fields, body), (offset, reason), "{body:?}");
        }
        assert_eq!(fault(Shape::Elements, "{}"), (0, "expected an array, found `{`".to_owned()));
        assert_eq!(fault(Shape::Elements, "[1,]"), (3, "expected a value, found `]`".to_owned()));
        assert_eq!(fault(Shape::Record, "[{}]"), (0, "expected an object, found `[`".to_owned()));
        assert_eq!(fault(Shape::Anything, "<"), (0, "expected a JSON value, found `<`".to_owned()));
    }

    fn unwrapped(shape: Shape, body: &str, portion: usize) -> Result<Vec<(String, String, u64)>, Malformed> {
        let mut batch = Batch::new(Bounds::ANSWER);
        let mut unwrapping = Unwrapping::new(&["data".to_owned(), "tickers".to_owned()], shape);
        for bytes in body.as_bytes().chunks(portion) {
            unwrapping.feed(bytes, &mut batch)?;
        }
        unwrapping.finish(&mut batch)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(batch.pieces().iter().map(|piece| (text(piece.key), text(piece.value), piece.offset)).collect())
    }

    #[test]
    fn the_answer_is_found_in_chunks_of_any_size() {
        let piece = |key: &str, value: &str, offset| (key.to_owned(), value.to_owned(), offset);
        for (shape, body, expected) in [
            (Shape::Fields, r#"{"ok": true, "data": {"A": [1]}, "n": {"B": 2}}"#, vec![piece("A", "[1]", 27)]),
            (Shape::Fields, "\u{feff} {\"data\":{}}", vec![]),
            (Shape::Elements, r#"{"tickers": ["A" , "B"] }"#, vec![piece("", "\"A\"", 13), piece("", "\"B\"", 19)]),
            (Shape::Elements, " [1]", vec![piece("", "1", 2)]),
            (Shape::Record, r#"{"data":{"a":1},"data":3}"#, vec![piece("", r#"{"a":1}"#, 8)]),
            (Shape::Anything, r#"{"x":"data","data":12}"#, vec![piece("", "12", 19)]),
            (Shape::Elements, r#"{"data":null}"#, vec![]),
        ] {
            for portion in 1..=body.len() {
                assert_eq!(unwrapped(shape, body, portion).as_ref(), Ok(&expected), "{body} by {portion}");
            }
        }
        for (body, offset, reason) in [
            ("{}", 0, "expected an object with `data` or `tickers`, which `unwrap` names"),
            (r#"{"data":{"A":1}"#, 15, "expected `,` or `}`, found the end of the body"),
            (r#"{"data":[1]}"#, 8, "expected an object whose keys are tickers, found `[`"),
            (r#"{"data":{"A":1}} x"#, 17, "expected the end of the body, found `x`"),
        ] {
            let reason = reason.to_owned();
            assert_eq!(unwrapped(Shape::Fields, body, body.len()), Err(Malformed { offset, reason }), "{body}");
        }
    }
}

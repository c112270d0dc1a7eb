//! Finds the answer in an object that wraps it: `{"status": "ok", "data": {…}}`.

use super::batch::{Batch, Bounds};
use super::scan::{Malformed, Scanner, Shape};

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
        while used < bytes.len() && !batch.is_full() {
            let rest = &bytes[used..];
            used += match self.state {
                WrapperState::Bare => self.answer.feed(rest, batch)?,
                WrapperState::Within => {
                    let step = self.answer.feed_until_end(rest, batch)?;
                    if self.answer.has_ended() {
                        self.wrapper.pass(self.answer.offset());
                        self.state = WrapperState::After;
                    }
                    step
                }
                WrapperState::Before if self.wrapper.is_at_start() && is_blank(rest[0]) => {
                    self.wrapper.advance(&rest[..1], &mut self.beside)?
                }
                WrapperState::Before if self.wrapper.is_at_start() && !opens_object(rest[0]) => {
                    self.answer.begin_at(self.wrapper.offset());
                    self.state = WrapperState::Bare;
                    0
                }
                WrapperState::Before | WrapperState::After => {
                    let step = self.wrapper.advance(rest, &mut self.beside)?;
                    let is_answer = self.state == WrapperState::Before
                        && self.wrapper.is_before_value()
                        && self.names.iter().any(|name| name.as_bytes() == self.beside.arriving_key());
                    if is_answer {
                        self.answer.begin_at(self.wrapper.offset());
                        self.state = WrapperState::Within;
                    }
                    if !self.beside.is_empty() {
                        self.beside.clear();
                    }
                    step
                }
            };
        }
        Ok(used)
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

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a byte is the first of an object, or of a mark before it.
fn opens_object(byte: u8) -> bool {
    matches!(byte, b'{' | 0xef | 0xbb | 0xbf)
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Bounds};
    use super::super::scan::{Malformed, Shape};
    use super::Unwrapping;

    fn cut(shape: Shape, body: &str, portion: usize) -> Result<Vec<(String, String, u64)>, Malformed> {
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
                assert_eq!(cut(shape, body, portion).as_ref(), Ok(&expected), "{body} by {portion}");
            }
        }
        for (body, offset, reason) in [
            ("{}", 0, "expected an object with `data` or `tickers`, which `unwrap` names"),
            (r#"{"data":{"A":1}"#, 15, "expected `,` or `}`, found the end of the body"),
            (r#"{"data":[1]}"#, 8, "expected an object whose keys are tickers, found `[`"),
            (r#"{"data":{"A":1}} x"#, 17, "expected the end of the body, found `x`"),
        ] {
            let reason = reason.to_owned();
            assert_eq!(cut(Shape::Fields, body, body.len()), Err(Malformed { offset, reason }), "{body}");
        }
    }
}

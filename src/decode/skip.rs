//! Where a JSON value ends, found without looking into it.
//!
//! Only three things matter for that: brackets, which are counted and not remembered; quotes, between which nothing
//! counts; and backslashes, which take the next byte's meaning away. So a value may be nested five million levels deep
//! and costs a counter, and the search can be broken off and taken up again at any byte, even within an escape or a
//! character. What this refuses to know is whether the value is right: `[}` ends where its brackets are even.

use memchr::memchr2;

/// The search for the end of one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip {
    /// A number, `true`, `false`, `null`, or what stands in the place of one: it ends before white space or punctuation.
    Scalar,
    /// A string, an array or an object: it ends with its own last byte.
    Enclosed(Enclosed),
}

/// The search for the end of a value that has brackets or quotes around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enclosed {
    depth: u64,
    deepest: u64,
    text: Text,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    Outside,
    Within,
    /// Behind a backslash.
    Escaped,
}

/// What a byte means outside of strings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Nothing,
    Quote,
    Open,
    Close,
}

const MARKS: [Mark; 256] = {
    let mut marks = [Mark::Nothing; 256];
    marks[b'"' as usize] = Mark::Quote;
    marks[b'[' as usize] = Mark::Open;
    marks[b'{' as usize] = Mark::Open;
    marks[b']' as usize] = Mark::Close;
    marks[b'}' as usize] = Mark::Close;
    marks
};

impl Skip {
    /// Begins the search at the first byte of a value; none where no value can begin.
    pub(super) fn begin(first: u8) -> Option<Self> {
        match first {
            b'"' | b'[' | b'{' => Some(Self::Enclosed(Enclosed { depth: 0, deepest: 0, text: Text::Outside })),
            _ if ends_scalar(first) => None,
            _ => Some(Self::Scalar),
        }
    }

    /// Goes on with the search: how many of the bytes still belong to the value, or none when all do and more may come.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Scalar => bytes.iter().position(|&byte| ends_scalar(byte)),
            Self::Enclosed(enclosed) => enclosed.advance(bytes),
        }
    }

    /// How deep the brackets went so far.
    pub(super) fn deepest(&self) -> u64 {
        match self {
            Self::Scalar => 0,
            Self::Enclosed(enclosed) => enclosed.deepest,
        }
    }
}

impl Enclosed {
    fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match self.text {
                Text::Outside => {
                    let marked = bytes[at..].iter().position(|&byte| MARKS[usize::from(byte)] != Mark::Nothing)?;
                    at += marked + 1;
                    if self.is_even_after(MARKS[usize::from(bytes[at - 1])]) {
                        return Some(at);
                    }
                }
                Text::Within => {
                    at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                    self.text = if bytes[at - 1] == b'"' { Text::Outside } else { Text::Escaped };
                    if self.depth == 0 && matches!(self.text, Text::Outside) {
                        return Some(at);
                    }
                }
                Text::Escaped => {
                    bytes.get(at)?;
                    at += 1;
                    self.text = Text::Within;
                }
            }
        }
    }

    fn is_even_after(&mut self, mark: Mark) -> bool {
        match mark {
            Mark::Nothing => {}
            Mark::Quote => self.text = Text::Within,
            Mark::Open => {
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            Mark::Close => {
                self.depth -= 1;
                return self.depth == 0;
            }
        }
        false
    }
}

fn ends_scalar(byte: u8) -> bool {
    is_white(byte) || matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}')
}

/// Whether a byte is one of the four that JSON takes as white space.
pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// A byte as messages show it.
pub(super) fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("`{}`", char::from(byte)) } else { format!("byte `0x{byte:02x}`") }
}

#[cfg(test)]
mod tests {
    use super::Skip;

    fn end_of(text: &str) -> Option<usize> {
        Skip::begin(text.as_bytes()[0])?.advance(text.as_bytes())
    }

    #[test]
    fn a_value_ends_where_its_brackets_and_quotes_do() {
        assert_eq!(end_of(r#"{"a": "}\"", "b": [{}]} x"#), Some(23));
        assert_eq!(end_of(r#""a\\" x"#), Some(5));
        assert_eq!(end_of(r#""a\"b"]"#), Some(6));
        assert_eq!(end_of("-1.5e3, 2"), Some(6));
        assert_eq!(end_of("[[[]]"), None, "the outermost is still open");
        assert_eq!(end_of("12"), None, "a number may go on");
        assert_eq!(end_of(","), None, "no value begins there");
    }

    #[test]
    fn the_search_can_be_broken_off_anywhere() {
        let text = r#"{"ä\"\\": ["\u00e4]", {"x": [1, -2e5]}]}"#.as_bytes();
        for cut in 0..text.len() {
            let mut skip = Skip::begin(text[0]).unwrap();
            assert_eq!(skip.advance(&text[..cut]), None, "at {cut}");
            assert_eq!(skip.advance(&text[cut..]), Some(text.len() - cut), "at {cut}");
            assert_eq!(skip.deepest(), 4);
        }
    }
}

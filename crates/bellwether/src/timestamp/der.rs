//! The part of DER that time-stamps need: elements with a tag of one byte and a definite length, read without recursion.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8: u8 = 0x0c;
pub(super) const TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The first two elements that a context tags, if they have elements.
pub(super) const CONTEXT_0: u8 = 0xa0;
pub(super) const CONTEXT_1: u8 = 0xa1;

/// What is wrong with bytes that are no DER, or not the element that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotDer(pub(super) &'static str);

/// An element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) content: &'a [u8],
    /// With its tag and length.
    pub(super) whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// The elements in it.
    pub(super) fn elements(self) -> Elements<'a> {
        Elements(self.content)
    }
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a>(pub(super) &'a [u8]);

impl<'a> Elements<'a> {
    /// The only element of some bytes.
    pub(super) fn only(bytes: &'a [u8], tag: u8) -> Result<Element<'a>, NotDer> {
        let mut elements = Self(bytes);
        let only = elements.take(tag)?;
        elements.end()?;
        Ok(only)
    }

    /// The next element, which has a tag.
    pub(super) fn take(&mut self, tag: u8) -> Result<Element<'a>, NotDer> {
        self.take_if(tag)?.ok_or(NotDer("an element is missing, or is another one"))
    }

    /// The next element, if it has a tag.
    pub(super) fn take_if(&mut self, tag: u8) -> Result<Option<Element<'a>>, NotDer> {
        match self.0.first() {
            Some(found) if *found == tag => self.next(),
            _ => Ok(None),
        }
    }

    /// The next element; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Element<'a>>, NotDer> {
        let [tag, length, rest @ ..] = self.0 else {
            return if self.0.is_empty() { Ok(None) } else { Err(NotDer("it is cut off")) };
        };
        let (length, rest) = match usize::from(*length) {
            short @ 0..0x80 => (short, rest),
            0x80 => return Err(NotDer("an element has an indefinite length")),
            long => {
                let count = long - 0x80;
                if count > 4 || rest.len() < count {
                    return Err(NotDer("an element has no valid length"));
                }
                let (bytes, rest) = rest.split_at(count);
                let length = bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
                if length < 0x80 || bytes[0] == 0 {
                    return Err(NotDer("an element has a length that is not the shortest"));
                }
                (length, rest)
            }
        };
        if tag & 0x1f == 0x1f {
            return Err(NotDer("an element has a long tag"));
        }
        if rest.len() < length {
            return Err(NotDer("it is cut off"));
        }
        let (content, after) = rest.split_at(length);
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Ok(Some(Element { content, whole }))
    }

    /// The end.
    pub(super) fn end(self) -> Result<(), NotDer> {
        if self.0.is_empty() { Ok(()) } else { Err(NotDer("there is more than is expected")) }
    }
}

/// An element with others in it, or with bytes.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(&content);
    out
}

/// A positive number, as the content of an integer.
pub(super) fn number(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    let mut out = bytes[zeros..].to_vec();
    if out[0] >= 0x80 {
        out.insert(0, 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_they_are_written_and_nothing_else_is_read() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let bytes = element(OCTETS, &[&content]);
            let read = Elements::only(&bytes, OCTETS).unwrap();
            assert_eq!((read.content, read.whole), (&content[..], &bytes[..]));
            for end in 0..bytes.len().min(300) {
                assert!(Elements::only(&bytes[..end], OCTETS).is_err(), "{length} cut off at {end}");
            }
            let longer = [bytes, vec![0]].concat();
            assert!(Elements::only(&longer, OCTETS).is_err());
        }
        let wrong: [&[u8]; 6] = [
            &[0x04, 0x80, 0, 0],
            &[0x04, 0x81, 1, 9],
            &[0x04, 0x82, 0, 0x80],
            &[0x1f, 0x81, 0],
            &[0x04, 0x85],
            &[4, 0xff],
        ];
        for bytes in wrong {
            assert!(Elements(bytes).next().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn numbers_are_positive_and_as_short_as_can_be() {
        for (value, expected) in [
            (0, &[0][..]),
            (0x7f, &[0x7f]),
            (0x80, &[0, 0x80]),
            (0x0100, &[1, 0]),
            (u64::MAX, &[0, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            assert_eq!(number(value), expected, "{value}");
        }
    }
}

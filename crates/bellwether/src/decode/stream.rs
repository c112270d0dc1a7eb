//! Reads a body as batches of pieces.

use std::io::{self, BufRead, ErrorKind};

use super::batch::{Batch, Bounds, Piece};
use super::scan::{Malformed, Shape, Unwrapping};

/// Why decoding an answer failed.
#[derive(Debug)]
pub enum DecodeFault<E> {
    /// The body could not be read to its end.
    Read(io::Error),
    /// The body does not have the documented shape.
    Malformed {
        /// Offset of the byte at fault.
        offset: u64,
        /// What was expected and found.
        reason: String,
    },
    /// A part could not be delivered.
    Deliver(E),
}

/// Bytes of pieces worth a separate task.
pub(super) const GROUP_BYTES: usize = 128 << 10;

/// The batches of a body.
pub(super) struct BodyBatches<R> {
    body: R,
    cutter: Unwrapping,
    batch: Batch,
    /// Whether no batch was returned yet.
    is_fresh: bool,
    has_ended: bool,
}

impl<R: BufRead> BodyBatches<R> {
    /// The batches of a body, whose answer may be in one of these members of an object that wraps it.
    pub(super) fn new(body: R, shape: Shape, wrappers: &[String], bounds: Bounds) -> Self {
        let (cutter, batch) = (Unwrapping::new(wrappers, shape), Batch::new(bounds));
        Self { body, cutter, batch, is_fresh: true, has_ended: false }
    }

    /// The next batch. A body without pieces is one empty batch, so that an empty answer is delivered.
    ///
    /// `aim` returns the bytes of a full batch, within the bounds, and is called again whenever more of the body arrives.
    pub(super) fn next<E>(&mut self, aim: impl Fn() -> usize) -> Result<Option<&Batch>, DecodeFault<E>> {
        if self.has_ended {
            return Ok(None);
        }
        self.batch.clear();
        while !self.batch.is_full {
            // Scanned in place; only pieces are copied.
            let ahead = match self.body.fill_buf() {
                Ok(ahead) => ahead,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => continue,
                Err(fault) => return Err(DecodeFault::Read(fault)),
            };
            if ahead.is_empty() {
                self.cutter.finish(&mut self.batch)?;
                self.has_ended = true;
                let is_news = self.is_fresh || !self.batch.is_empty();
                return Ok(is_news.then_some(&self.batch));
            }
            self.batch.aim_at(aim());
            let used = self.cutter.feed(ahead, &mut self.batch)?;
            self.body.consume(used);
        }
        self.is_fresh = false;
        Ok(Some(&self.batch))
    }
}

impl<E> From<Malformed> for DecodeFault<E> {
    fn from(Malformed { offset, reason }: Malformed) -> Self {
        Self::Malformed { offset, reason }
    }
}

/// Groups of pieces worth a task each; one empty group if there are none.
pub(super) fn groups<'a, 'b>(mut pieces: &'a [Piece<'b>]) -> Vec<&'a [Piece<'b>]> {
    let mut groups = Vec::new();
    loop {
        let mut bytes = 0;
        let is_filled = |piece: &Piece<'_>| {
            bytes += piece.value.len();
            bytes >= GROUP_BYTES
        };
        let length = pieces.iter().position(is_filled).map_or(pieces.len(), |last| last + 1);
        let (group, rest) = pieces.split_at(length);
        groups.push(group);
        if rest.is_empty() {
            return groups;
        }
        pieces = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::io::{self, BufReader, Read};

    use super::super::batch::{Bounds, Piece};
    use super::super::scan::Shape;
    use super::super::truncate;
    use super::{BodyBatches, DecodeFault, GROUP_BYTES, groups};

    /// Bytes of the body buffered at a time.
    const PORTION: usize = 256 << 10;

    /// An object of many values of one length, generated while it is read.
    struct Made {
        values: u64,
        length: usize,
        given: u64,
        pending: io::Cursor<Vec<u8>>,
    }

    impl Made {
        fn new(values: u64, length: usize) -> Self {
            Self { values, length, given: 0, pending: io::Cursor::new(b"{".to_vec()) }
        }
    }

    impl Read for Made {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.pending.read(buffer)?;
            if read > 0 || self.given > self.values {
                return Ok(read);
            }
            self.given += 1;
            let text = match self.given {
                last if last > self.values => "}".to_owned(),
                number => {
                    let comma = if number == 1 { "" } else { "," };
                    format!("{comma}\"T{number}\":\"{}\"", "x".repeat(self.length - 2))
                }
            };
            self.pending = io::Cursor::new(text.into_bytes());
            self.read(buffer)
        }
    }

    /// Number of pieces, and the most bytes and pieces held at a time.
    fn drain(body: impl Read, bounds: Bounds) -> (u64, usize, usize) {
        let mut batches = BodyBatches::new(BufReader::with_capacity(PORTION, body), Shape::Fields, &[], bounds);
        let (mut pieces, mut bytes, mut most) = (0, 0, 0);
        while let Some(batch) = batches.next::<Infallible>(|| usize::MAX).unwrap() {
            bytes = bytes.max(batch.capacity());
            most = most.max(batch.pieces().len());
            pieces += batch.pieces().len() as u64;
        }
        (pieces, bytes, most)
    }

    #[test]
    fn memory_does_not_grow_with_the_size_of_the_body() {
        let Bounds { piece, batch_bytes, batch_pieces, .. } = Bounds::ANSWER;
        let (pieces, bytes, _) = drain(Made::new(600, 90 << 10), Bounds::ANSWER);
        assert_eq!(pieces, 600, "all of a body of 55 MB");
        assert!(bytes <= 2 * batch_bytes, "{bytes} bytes were held");
        let (pieces, _, most) = drain(Made::new(100_000, 2), Bounds::ANSWER);
        assert_eq!((pieces, most), (100_000, batch_pieces), "tiny pieces are bounded by their number");
        let (pieces, bytes, _) = drain(Made::new(2, piece + (1 << 20)), Bounds::ANSWER);
        assert_eq!(pieces, 2);
        assert!(bytes <= 2 * (piece + PORTION), "{bytes} bytes were held of an oversized piece");
    }

    #[test]
    fn an_oversized_piece_is_marked_and_its_neighbours_are_kept() {
        let bounds = Bounds { piece: 70_000, key: 4, depth: 2, ..Bounds::ANSWER };
        let long = format!("\"{}\"", "a".repeat(70_000));
        let body = format!(r#"{{"A": {long}, "BBBBB": [2], "C": [[[4]]], "D": [5]}}"#);
        let mut batches = BodyBatches::new(body.as_bytes(), Shape::Fields, &[], bounds);
        let batch = batches.next::<Infallible>(|| usize::MAX).unwrap().unwrap();
        let found: Vec<_> = batch.pieces().iter().map(|piece| (piece.text(), piece.raw())).collect();
        let expected: [(Result<&str, &str>, &[u8]); 4] = [
            (
                Err("its size of 70.0 kB exceeds the limit of 70.0 kB; it starts at byte 6"),
                &long.as_bytes()[..truncate::RAW + 4],
            ),
            (Err("the key is longer than 4 bytes; its value starts at byte 70019"), b"BBBBB"),
            (Err("nested more than 2 levels deep"), b"[[[4]]]"),
            (Ok("[5]"), b"[5]"),
        ];
        assert_eq!(found, expected.map(|(text, raw)| (text.map_err(str::to_owned), raw)));
    }

    #[test]
    fn millions_of_nesting_levels_need_only_a_counter() {
        let levels = 5_000_000;
        let body = [b"{\"A\": ".to_vec(), vec![b'['; levels], vec![b']'; levels], b", \"B\": 1}".to_vec()].concat();
        let mut batches = BodyBatches::new(&body[..], Shape::Fields, &[], Bounds::ANSWER);
        let mut texts = Vec::new();
        while let Some(batch) = batches.next::<Infallible>(|| usize::MAX).unwrap() {
            texts.extend(batch.pieces().iter().map(|piece| piece.text().map(str::to_owned)));
        }
        assert_eq!(texts, [Err("nested more than 128 levels deep".to_owned()), Ok("1".to_owned())]);
    }

    #[test]
    fn a_truncated_body_is_left_to_the_transport() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        let body = BufReader::new(b"{\"A\": 1,".chain(Broken));
        let fault =
            BodyBatches::new(body, Shape::Fields, &[], Bounds::ANSWER).next::<Infallible>(|| usize::MAX).unwrap_err();
        assert!(matches!(fault, DecodeFault::Read(_)), "{fault:?}");
    }

    #[test]
    fn groups_contain_every_piece_once_and_in_order() {
        let body = BufReader::new(Made::new(300, 3 << 10));
        let mut batches = BodyBatches::new(body, Shape::Fields, &[], Bounds::ANSWER);
        let pieces = batches.next::<Infallible>(|| usize::MAX).unwrap().unwrap().pieces();
        let groups = groups(&pieces);
        assert!(groups.len() > 5, "{}", groups.len());
        let offsets = |pieces: &[Piece<'_>]| -> Vec<u64> { pieces.iter().map(|piece| piece.offset).collect() };
        assert_eq!(offsets(&groups.concat()), offsets(&pieces));
    }

    #[test]
    fn every_piece_is_whole_wherever_the_size_of_batches_changes() {
        for step in 1..40 {
            let fed = Cell::new(0);
            let aim = || {
                fed.set(fed.get() + 1);
                if fed.get() % step == 0 { 1 } else { 64 << 10 }
            };
            let body = BufReader::with_capacity(1 << 10, Made::new(300, 3 << 10));
            let mut batches = BodyBatches::new(body, Shape::Fields, &[], Bounds::ANSWER);
            let mut lengths = Vec::new();
            while let Some(batch) = batches.next::<Infallible>(aim).unwrap() {
                lengths.extend(batch.pieces().iter().map(|piece| piece.raw().len()));
            }
            assert_eq!(lengths, [3 << 10; 300], "{step}");
        }
    }

    #[test]
    fn a_batch_for_one_thread_is_one_group() {
        let mut batches = BodyBatches::new(BufReader::new(Made::new(300, 3 << 10)), Shape::Fields, &[], Bounds::ANSWER);
        let mut pieces = 0;
        while let Some(batch) = batches.next::<Infallible>(|| GROUP_BYTES).unwrap() {
            assert_eq!(groups(&batch.pieces()).len(), 1);
            pieces += batch.pieces().len();
        }
        assert_eq!(pieces, 300);
    }
}

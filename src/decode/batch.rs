//! Pieces of a body that wait to be decoded, within bounds.
//!
//! A batch holds some megabytes of whole pieces and the one that is still arriving. What it never holds is more than
//! [`Bounds`] say, whatever arrives: of a piece that is too long only the beginning is kept, and the piece is marked.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::truncate;
use crate::human;
use crate::interface::Ticker;

/// How much of a body is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The longest value that is decoded, in bytes.
    pub(super) piece: usize,
    /// The longest key, in bytes.
    pub(super) key: usize,
    /// The deepest nesting within a value.
    pub(super) depth: u64,
    /// The bytes of a full batch.
    pub(super) batch_bytes: usize,
    /// The pieces of a full batch.
    pub(super) batch_pieces: usize,
}

impl Bounds {
    /// The bounds of every answer.
    pub(super) const ANSWER: Self = Self {
        // The history of a ticker is about 90 KiB for five years of days.
        piece: 32 << 20,
        key: 1 << 10,
        // What most readers of JSON take, so that what is kept as JSON can be read elsewhere.
        depth: 128,
        batch_bytes: 4 << 20,
        batch_pieces: 4096,
    };
}

/// How much is kept of what is too long: a character more than is shown, so that the text is seen to go on.
const KEPT: usize = truncate::RAW + 4;

/// Why a piece is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    LongKey,
    /// By its length in bytes.
    LongValue(u64),
    Deep,
}

/// What a piece of a body is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Site {
    /// The whole body.
    #[default]
    Body,
    /// The value of a key of an object.
    Key,
    /// The element of an array, by its index.
    Element(u64),
}

/// A piece, as places in the bytes of its batch.
#[derive(Clone, Debug)]
struct PieceSpan {
    key: Range<usize>,
    value: Range<usize>,
    offset: u64,
    site: Site,
    flaw: Option<Flaw>,
    /// The objects in what was not kept of the value.
    objects: u64,
}

/// The piece that is still arriving.
#[derive(Clone, Copy, Debug, Default)]
struct Arriving {
    site: Site,
    offset: u64,
    key_start: usize,
    key_length: u64,
    value_start: usize,
    value_length: u64,
    /// The objects in what is not kept of the value.
    objects: u64,
}

/// Some pieces of a body, in its order.
#[derive(Debug)]
pub(super) struct Batch {
    bounds: Bounds,
    /// The bytes that fill it.
    aim: usize,
    bytes: Vec<u8>,
    spans: Vec<PieceSpan>,
    arriving: Arriving,
}

impl Batch {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, aim: bounds.batch_bytes, bytes: Vec::new(), spans: Vec::new(), arriving: Arriving::default() }
    }

    /// Sets the bytes that fill it, within its bounds.
    pub(super) fn aim_at(&mut self, bytes: usize) {
        self.aim = bytes.min(self.bounds.batch_bytes);
    }

    pub(super) fn is_full(&self) -> bool {
        let whole = self.spans.last().map_or(0, |last| last.value.end);
        whole >= self.aim || self.spans.len() >= self.bounds.batch_pieces
    }

    /// The memory that it takes for the text of its pieces.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether it holds no whole piece.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Begins a piece.
    pub(super) fn open(&mut self, site: Site) {
        let start = self.bytes.len();
        self.arriving = Arriving { site, key_start: start, value_start: start, ..Arriving::default() };
    }

    /// Adds to the key of the piece.
    pub(super) fn key(&mut self, bytes: &[u8]) {
        self.arriving.key_length += bytes.len() as u64;
        let room = (self.arriving.key_start + KEPT).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.arriving.value_start = self.bytes.len();
    }

    /// Begins the value of the piece, which stands at a byte of the body.
    pub(super) fn value_at(&mut self, offset: u64) {
        self.arriving.offset = offset;
    }

    /// Adds to the value of the piece.
    pub(super) fn value(&mut self, bytes: &[u8]) {
        self.arriving.value_length += bytes.len() as u64;
        if self.has_long_key() {
            self.arriving.objects += objects(bytes);
            return;
        }
        if self.arriving.value_length <= self.bounds.piece as u64 {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        let end = self.arriving.value_start + KEPT;
        let (kept, rest) = bytes.split_at(bytes.len().min(end.saturating_sub(self.bytes.len())));
        self.bytes.extend_from_slice(kept);
        self.arriving.objects += objects(rest) + self.bytes.get(end..).map_or(0, objects);
        self.bytes.truncate(end);
    }

    /// Ends the piece, whose brackets went so deep.
    pub(super) fn close(&mut self, deepest: u64) {
        let Arriving { site, offset, key_start, value_start, value_length, objects, .. } = self.arriving;
        let flaw = if self.has_long_key() {
            Some(Flaw::LongKey)
        } else if value_length > self.bounds.piece as u64 {
            Some(Flaw::LongValue(value_length))
        } else {
            (deepest > self.bounds.depth).then_some(Flaw::Deep)
        };
        let (key, value) = (key_start..value_start, value_start..self.bytes.len());
        self.spans.push(PieceSpan { key, value, offset, site, flaw, objects });
    }

    fn has_long_key(&self) -> bool {
        self.arriving.key_length > self.bounds.key as u64
    }

    /// The whole pieces.
    pub(super) fn pieces(&self) -> Vec<Piece<'_>> {
        let piece = |span: &PieceSpan| Piece {
            key: &self.bytes[span.key.clone()],
            value: &self.bytes[span.value.clone()],
            offset: span.offset,
            site: span.site,
            flaw: span.flaw,
            objects: span.objects,
            is_repeated: false,
            bounds: self.bounds,
        };
        self.spans.iter().map(piece).collect()
    }

    /// Makes room for the next pieces; called between pieces.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.bytes.clear();
        // A long piece is rare, and need not be paid for as long as the answer lasts.
        self.bytes.shrink_to(2 * self.bounds.batch_bytes);
    }
}

/// The objects in some JSON, as far as opening brackets tell: those within strings are counted, too.
pub(super) fn objects(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'{', bytes).count() as u64
}

/// The tickers that stood in a body so far. What is no ticker is rejected in any case, and need not be remembered.
#[derive(Debug, Default)]
pub(super) struct Met(HashSet<Ticker>);

impl Met {
    /// Marks the pieces whose ticker stood in the body before.
    pub(super) fn mark(&mut self, pieces: &mut [Piece<'_>]) {
        for piece in pieces.iter_mut().filter(|piece| piece.site == Site::Key) {
            let ticker = piece.name().ok().and_then(|name| name.parse().ok());
            piece.is_repeated = ticker.is_some_and(|ticker| !self.0.insert(ticker));
        }
    }
}

/// A key and its value, an element, or a whole body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The key as it is written between its quotes; nothing where there are no keys.
    pub(super) key: &'a [u8],
    /// The value.
    pub(super) value: &'a [u8],
    /// The byte of the body at which the value begins.
    pub(super) offset: u64,
    /// What it is of the body.
    pub(super) site: Site,
    /// Whether its key is a ticker that stood in the body before.
    pub(super) is_repeated: bool,
    flaw: Option<Flaw>,
    /// The objects in what was not kept of the value.
    objects: u64,
    bounds: Bounds,
}

impl<'a> Piece<'a> {
    /// The value as text, if it is one that can be looked into.
    pub(super) fn text(&self) -> Result<&'a str, String> {
        let Bounds { piece, key, depth, .. } = self.bounds;
        let offset = self.offset;
        match self.flaw {
            Some(Flaw::LongKey) => {
                Err(format!("the key is longer than {key} bytes; its value begins at byte {offset}"))
            }
            Some(Flaw::LongValue(length)) => {
                let (length, limit) = (human::bytes(length), human::bytes(piece as u64));
                Err(format!("{length} are over the limit of {limit} for one record; it begins at byte {offset}"))
            }
            Some(Flaw::Deep) => Err(format!("nested more than {depth} levels deep")),
            None => simdutf8::compat::from_utf8(self.value).map_err(|fault| {
                let byte = self.value.get(fault.valid_up_to()).copied().unwrap_or_default();
                format!("not UTF-8: `0x{byte:02x}` at byte {}", offset + fault.valid_up_to() as u64)
            }),
        }
    }

    /// The key as text, its escapes resolved.
    pub(super) fn name(&self) -> Result<Cow<'a, str>, String> {
        let text = std::str::from_utf8(self.key).map_err(|_| "the key is not UTF-8".to_owned())?;
        super::cursor::unescaped(text)
    }

    /// Its position in the body, as columns hold it.
    pub(super) fn position(&self) -> Result<i32, String> {
        let Site::Element(position) = self.site else { return Ok(0) };
        i32::try_from(position).map_err(|_| format!("position {position} is more than a column holds"))
    }

    /// The longest key, in bytes.
    pub(super) fn longest_key(&self) -> usize {
        self.bounds.key
    }

    /// Whether it is longer than any that is decoded.
    pub(super) fn is_too_long(&self) -> bool {
        matches!(self.flaw, Some(Flaw::LongValue(_)))
    }

    /// The objects in the value, as far as opening brackets tell.
    pub(super) fn objects(&self) -> u64 {
        objects(self.value) + self.objects
    }

    /// What is shown of it when it is rejected.
    pub(super) fn raw(&self) -> &'a [u8] {
        if self.flaw == Some(Flaw::LongKey) { self.key } else { self.value }
    }
}

//! Batches of pieces of a body, within bounds.
//!
//! A batch holds some megabytes of whole pieces and the one still arriving, and never more than its [`Bounds`]: only
//! the start of an oversized piece is kept, and the piece is marked.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use super::truncate;
use crate::text::human;

/// Limits on what a batch holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Maximum length of a value, in bytes.
    pub(super) piece: usize,
    /// Maximum length of a key, in bytes.
    pub(super) key: usize,
    /// Maximum nesting depth of a value.
    pub(super) depth: u64,
    /// Bytes of a full batch.
    pub(super) batch_bytes: usize,
    /// Pieces of a full batch.
    pub(super) batch_pieces: usize,
}

impl Bounds {
    /// The bounds of every answer.
    pub(super) const ANSWER: Self = Self {
        // Five years of daily history take about 90 KiB.
        piece: 32 << 20,
        key: 1 << 10,
        // The limit of most JSON parsers, so that they can read what is kept as JSON.
        depth: 128,
        batch_bytes: 4 << 20,
        batch_pieces: 4096,
    };
}

/// Bytes to keep of an oversized text: one character more than is shown, so that it is visibly truncated.
const KEPT: usize = truncate::RAW + 4;

/// Why a piece is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    LongKey,
    /// With its length in bytes.
    LongValue(u64),
    Deep,
}

/// Where a piece is in the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PiecePosition {
    /// The whole body.
    #[default]
    Body,
    /// The value of a key of an object.
    Key,
    /// The element of an array, by its index.
    Element(u64),
}

/// A piece, as ranges of the bytes of its batch.
#[derive(Clone, Debug, Default)]
struct PieceSpan {
    key: Range<usize>,
    value: Range<usize>,
    offset: u64,
    site: PiecePosition,
    flaw: Option<Flaw>,
    /// Number of objects in the dropped part of the value.
    objects: u64,
}

/// Consecutive pieces of a body.
#[derive(Debug)]
pub(super) struct Batch {
    bounds: Bounds,
    /// Bytes at which the batch is full.
    aim: usize,
    bytes: Vec<u8>,
    spans: Vec<PieceSpan>,
    /// Whether it was full when its last piece ended. It never gets full within a piece.
    pub(super) is_full: bool,
    /// The piece still arriving, and the lengths of its key and of its value, of which not all may be kept.
    arriving: PieceSpan,
    key_length: u64,
    value_length: u64,
}

impl Batch {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            aim: bounds.batch_bytes,
            bytes: Vec::new(),
            spans: Vec::new(),
            is_full: false,
            arriving: PieceSpan::default(),
            key_length: 0,
            value_length: 0,
        }
    }

    /// Sets the bytes at which it is full, within its bounds; takes effect when the next piece ends.
    pub(super) fn aim_at(&mut self, bytes: usize) {
        self.aim = bytes.min(self.bounds.batch_bytes);
    }

    /// Memory allocated for the text of its pieces.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether it has no whole piece.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Starts a piece.
    pub(super) fn open(&mut self, site: PiecePosition) {
        let start = self.bytes.len();
        self.arriving = PieceSpan { site, key: start..start, value: start..start, ..PieceSpan::default() };
        (self.key_length, self.value_length) = (0, 0);
    }

    /// Adds to the key of the piece.
    pub(super) fn key(&mut self, bytes: &[u8]) {
        self.key_length += bytes.len() as u64;
        let room = (self.arriving.key.start + KEPT).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let end = self.bytes.len();
        (self.arriving.key.end, self.arriving.value.start) = (end, end);
    }

    /// The key of the piece that is arriving.
    pub(super) fn arriving_key(&self) -> &[u8] {
        &self.bytes[self.arriving.key.clone()]
    }

    /// Sets where in the body the value of the piece starts.
    pub(super) fn value_at(&mut self, offset: u64) {
        self.arriving.offset = offset;
    }

    /// Adds to the value of the piece.
    pub(super) fn value(&mut self, bytes: &[u8]) {
        self.value_length += bytes.len() as u64;
        if self.key_length > self.bounds.key as u64 {
            self.arriving.objects += objects(bytes);
            return;
        }
        if self.value_length <= self.bounds.piece as u64 {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        let end = self.arriving.value.start + KEPT;
        let (kept, rest) = bytes.split_at(bytes.len().min(end.saturating_sub(self.bytes.len())));
        self.bytes.extend_from_slice(kept);
        self.arriving.objects += objects(rest) + self.bytes.get(end..).map_or(0, objects);
        self.bytes.truncate(end);
    }

    /// Ends the piece, given its nesting depth.
    pub(super) fn close(&mut self, deepest: u64) {
        let mut piece = mem::take(&mut self.arriving);
        piece.value.end = self.bytes.len();
        piece.flaw = if self.key_length > self.bounds.key as u64 {
            Some(Flaw::LongKey)
        } else if self.value_length > self.bounds.piece as u64 {
            Some(Flaw::LongValue(self.value_length))
        } else {
            (deepest > self.bounds.depth).then_some(Flaw::Deep)
        };
        self.is_full = piece.value.end >= self.aim || self.spans.len() + 1 >= self.bounds.batch_pieces;
        self.spans.push(piece);
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
        self.is_full = false;
        self.bytes.clear();
        // Long pieces are rare, and batches get smaller once other answers arrive; do not keep their memory for the rest of
        // the answer.
        self.bytes.shrink_to(2 * self.aim);
    }
}

/// Approximate number of objects in some JSON: opening brackets, including those in strings.
pub(super) fn objects(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'{', bytes).count() as u64
}

/// A key and its value, an element, or a whole body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The key as written between its quotes; empty if pieces have no keys.
    pub(super) key: &'a [u8],
    /// The value.
    pub(super) value: &'a [u8],
    /// Offset of the value in the body.
    pub(super) offset: u64,
    /// Where it is in the body.
    pub(super) site: PiecePosition,
    /// Whether its key is a ticker seen before in the body.
    pub(super) is_repeated: bool,
    flaw: Option<Flaw>,
    /// Number of objects in the dropped part of the value.
    objects: u64,
    pub(super) bounds: Bounds,
}

impl<'a> Piece<'a> {
    /// The value as text, or why it cannot be decoded.
    pub(super) fn text(&self) -> Result<&'a str, String> {
        let Bounds { piece, key, depth, .. } = self.bounds;
        let offset = self.offset;
        match self.flaw {
            Some(Flaw::LongKey) => {
                Err(format!("the key is longer than {key} bytes; its value starts at byte {offset}"))
            }
            Some(Flaw::LongValue(length)) => {
                let (length, limit) = (human::bytes(length), human::bytes(piece as u64));
                Err(format!("its size of {length} exceeds the limit of {limit}; it starts at byte {offset}"))
            }
            Some(Flaw::Deep) => Err(format!("nested more than {depth} levels deep")),
            None => simdutf8::compat::from_utf8(self.value).map_err(|fault| {
                let byte = self.value.get(fault.valid_up_to()).copied().unwrap_or_default();
                format!("not UTF-8: `0x{byte:02x}` at byte {}", offset + fault.valid_up_to() as u64)
            }),
        }
    }

    /// The same piece with another value.
    pub(super) fn saying<'b>(&self, value: &'b [u8]) -> Piece<'b>
    where
        'a: 'b,
    {
        Piece { value, ..*self }
    }

    /// The unescaped key.
    pub(super) fn name(&self) -> Result<Cow<'a, str>, String> {
        let text = std::str::from_utf8(self.key).map_err(|_| "the key is not UTF-8".to_owned())?;
        super::cursor::unescape(text)
    }

    /// Its position in the body, in the type of the column.
    pub(super) fn position(&self) -> Result<i32, String> {
        let PiecePosition::Element(position) = self.site else { return Ok(0) };
        i32::try_from(position).map_err(|_| format!("position {position} is out of range"))
    }

    /// Whether it exceeds the maximum length of a value.
    pub(super) fn is_too_long(&self) -> bool {
        matches!(self.flaw, Some(Flaw::LongValue(_)))
    }

    /// Approximate number of objects in the value.
    pub(super) fn objects(&self) -> u64 {
        objects(self.value) + self.objects
    }

    /// The text to show if it is rejected.
    pub(super) fn raw(&self) -> &'a [u8] {
        if self.flaw == Some(Flaw::LongKey) { self.key } else { self.value }
    }
}

//! The bytes of an object as they arrive, which must not take forever.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{Error as Fault, GetOptions, ObjectMeta, ObjectStore};

use crate::net::connection::check_pace;

/// The longest silence in an answer, and the longest time to send a part of a file.
pub(super) const STALL: Duration = Duration::from_secs(120);

/// Marks a request whose answer is streamed to a reader that bounds its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// The bytes of an object. Whoever reads them bounds their number.
pub(super) struct ObjectPieces {
    stream: BoxStream<'static, Result<Bytes, Fault>>,
    received: u64,
    waited: Duration,
}

impl ObjectPieces {
    /// Requests an object.
    pub(super) async fn of(objects: &dyn ObjectStore, key: &Key) -> Result<(ObjectMeta, Self), Fault> {
        let mut options = GetOptions::default();
        options.extensions.insert(Streamed);
        let got = objects.get_opts(key, options).await?;
        let meta = got.meta.clone();
        Ok((meta, Self { stream: got.into_stream(), received: 0, waited: Duration::ZERO }))
    }

    /// Waits for the next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let begun = Instant::now();
        let piece = self.stream.try_next().await?;
        self.waited += begun.elapsed();
        if let Some(piece) = &piece {
            self.received += piece.len() as u64;
            let slow = |error: std::io::Error| Fault::Generic { store: "store", source: error.into() };
            check_pace(self.received, self.waited, STALL).map_err(slow)?;
        }
        Ok(piece)
    }
}

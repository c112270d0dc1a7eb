//! Sealed folders: sent with the record last, and checked against it file by file when fetched.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use blake3::Hasher;
use bytes::Bytes;
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt, TryStreamExt};
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use super::leftovers::is_clearing;
use super::objects::{MAX_BYTES, ObjectPieces, Store};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, Result};

/// The most files of a folder in transfer at once.
const FILES_AT_ONCE: usize = 4;

/// The largest record of a run, a merge or a version; a pack's has those of its runs.
const MAX_RECORD_BYTES: u64 = 8 << 20;

/// A larger file is sent in parts of this size.
const PART_BYTES: usize = 8 << 20;

/// The most parts of a file in transfer at once.
const PARTS_AT_ONCE: usize = 3;

/// A folder that a record seals.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    /// The folder's key: `archive/acme/run=…`.
    pub at: String,
    /// Name of the record.
    pub record: &'static str,
    /// The files that the record describes.
    pub files: Vec<FileRecord>,
}

/// The outcome of sending a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the store now.
    Now,
    /// It already was.
    Before,
}

impl Sealed {
    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.at)
    }

    fn record_key(&self) -> String {
        self.key(self.record)
    }
}

impl Store {
    /// The text of a folder's record; `None` if there is none, or the folder is being cleared.
    pub(crate) async fn record(&self, at: &str, record: &str) -> Result<Option<Bytes>> {
        let most = if at.contains("/pack=") { MAX_BYTES } else { MAX_RECORD_BYTES };
        let content = self.get(&format!("{at}/{record}"), most).await?;
        Ok(content.map(|content| content.bytes).filter(|bytes| !is_clearing(bytes)))
    }

    /// The bytes of a small object; `None` if there is none.
    pub(crate) async fn read(&self, at: &str) -> Result<Option<Bytes>> {
        Ok(self.get(at, MAX_BYTES).await?.map(|content| content.bytes))
    }

    /// Puts a small object, unless there is one.
    pub(crate) async fn put_if_absent(&self, at: &str, bytes: Vec<u8>) -> Result<()> {
        self.create(at, bytes.into()).await.map(drop)
    }

    /// Sends a folder, and calls `sent` with the size of each file. Files that an interrupted upload left are not sent again.
    pub(crate) async fn send(&self, sealed: &Sealed, folder: &Path, sent: impl Fn(u64)) -> Result<Sent> {
        let record: Bytes = links::read(&folder.join(sealed.record))?.into();
        let there = self.list(&sealed.at).await?;
        let bytes_there = |name: &str| {
            let key = sealed.key(name);
            there.iter().find(|object| object.key == key).map(|object| object.bytes)
        };
        if bytes_there(sealed.record).is_some()
            && let Some(content) = self.get(&sealed.record_key(), MAX_BYTES).await?
        {
            return self.settle(sealed, &record, &content.bytes);
        }
        let mut files: Vec<&FileRecord> = sealed.files.iter().collect();
        // The first claims the folder's name: it is put only if absent.
        files.sort_by_key(|file| file.bytes);
        let (first, rest) = files.split_at(files.len().min(1));
        for file in first {
            self.send_file(sealed, file, folder, bytes_there(&file.name)).await?;
            sent(file.bytes);
        }
        let others = rest.iter().map(|file| async {
            self.send_file(sealed, file, folder, bytes_there(&file.name)).await?;
            sent(file.bytes);
            Ok::<(), Error>(())
        });
        stream::iter(others).buffer_unordered(FILES_AT_ONCE).try_collect::<()>().await?;
        if self.create(&sealed.record_key(), record.clone()).await? {
            return Ok(Sent::Now);
        }
        match self.get(&sealed.record_key(), MAX_BYTES).await? {
            Some(content) => self.settle(sealed, &record, &content.bytes),
            None => Err(self.being_cleared(sealed)),
        }
    }

    /// The outcome of an upload if a record is already there.
    fn settle(&self, sealed: &Sealed, ours: &Bytes, there: &Bytes) -> Result<Sent> {
        match there {
            there if there == ours => Ok(Sent::Before),
            there if is_clearing(there) => Err(self.being_cleared(sealed)),
            _ => Err(self.conflict(&sealed.at)),
        }
    }

    fn being_cleared(&self, sealed: &Sealed) -> Error {
        self.later("write", &sealed.at, "another machine is clearing an interrupted upload of it")
    }

    /// Sends a file, unless it is already there.
    async fn send_file(&self, sealed: &Sealed, file: &FileRecord, folder: &Path, there: Option<u64>) -> Result<()> {
        let (key, path) = (sealed.key(&file.name), folder.join(&file.name));
        links::refuse_below(folder, &path)?;
        if there.is_some() {
            return match self.matches(&key, file).await? {
                true => Ok(()),
                false => Err(self.conflict(&sealed.at)),
            };
        }
        if file.bytes > PART_BYTES as u64 {
            return self.send_in_parts(&key, file, &path).await;
        }
        let bytes: Bytes = links::read(&path)?.into();
        if digest::of(&bytes) != file.blake3 {
            return Err(differs(&path));
        }
        match self.create(&key, bytes).await? {
            true => Ok(()),
            false => Err(self.conflict(&sealed.at)),
        }
    }

    /// Sends a large file in parts, which become an object once all of them have arrived and match the record.
    async fn send_in_parts(&self, key: &str, file: &FileRecord, path: &Path) -> Result<()> {
        let failed = |fault: object_store::Error| self.failure("write", key, &fault);
        let at = self.key(key)?;
        let mut upload = self.in_turn(self.objects.put_multipart(&at)).await?.map_err(failed)?;
        let parts = self.parts(&mut upload, key, file, path).await;
        let completed = match parts {
            Ok(()) => self.in_turn(upload.complete()).await?.map(drop),
            Err(error) => {
                // If this fails, a rule of the bucket for incomplete uploads removes the parts.
                let _ = self.in_turn(upload.abort()).await;
                return Err(error);
            }
        };
        match completed {
            Ok(()) => Ok(()),
            // It may have completed anyway.
            Err(_) if self.matches(key, file).await? => Ok(()),
            Err(fault) => Err(failed(fault)),
        }
    }

    async fn parts(
        &self,
        upload: &mut Box<dyn MultipartUpload>,
        key: &str,
        file: &FileRecord,
        path: &Path,
    ) -> Result<()> {
        let failed = |fault: object_store::Error| self.failure("write", key, &fault);
        let unreadable = FileError::read(path);
        let (mut source, mut hasher) = (links::open(path)?, Hasher::new());
        let mut parts = FuturesUnordered::new();
        loop {
            let mut part = Vec::with_capacity(PART_BYTES);
            Read::by_ref(&mut source).take(PART_BYTES as u64).read_to_end(&mut part).map_err(unreadable)?;
            if part.is_empty() {
                break;
            }
            hasher.update(&part);
            parts.push(upload.put_part(PutPayload::from(part)));
            if parts.len() >= PARTS_AT_ONCE {
                self.in_turn(parts.try_next()).await?.map_err(failed)?;
            }
        }
        while self.in_turn(parts.try_next()).await?.map_err(failed)?.is_some() {}
        match digest::hex(&hasher.finalize()) == file.blake3 {
            true => Ok(()),
            false => Err(differs(path)),
        }
    }

    /// Whether an object is equal to a file.
    async fn matches(&self, key: &str, file: &FileRecord) -> Result<bool> {
        Ok(self.fault(key, file).await?.is_none())
    }

    /// How an object differs from a file's record, if it does. A missing object is a difference.
    pub(crate) async fn fault(&self, key: &str, file: &FileRecord) -> Result<Option<String>> {
        self.read_through(key, file, |_| Ok(())).await
    }

    /// Fetches all files of a folder, a few at once, and calls `fetched` with the size of each.
    pub(crate) async fn fetch(&self, sealed: &Sealed, into: &Path, fetched: impl Fn(u64)) -> Result<()> {
        let files = sealed.files.iter().map(|file| async {
            self.fetch_file(sealed, file, into).await?;
            fetched(file.bytes);
            Ok::<(), Error>(())
        });
        stream::iter(files).buffer_unordered(FILES_AT_ONCE).try_collect().await
    }

    async fn fetch_file(&self, sealed: &Sealed, file: &FileRecord, into: &Path) -> Result<()> {
        let (key, path) = (sealed.key(&file.name), into.join(&file.name));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FileError::write(folder))?;
        }
        let mut target: File = file::create(&path)?;
        let write = |piece: &[u8]| target.write_all(piece).map_err(FileError::write(&path));
        match self.read_through(&key, file, write).await? {
            None => Ok(()),
            Some(fault) => Err(self.damage(&key, fault)),
        }
    }

    /// Fetches an object into a new file, without checking its content.
    #[cfg(feature = "spark")]
    pub(crate) async fn download(&self, key: &str, path: &Path) -> Result<()> {
        let failed = |fault: object_store::Error| self.failure("read", key, &fault);
        let at = self.key(key)?;
        let mut target: File = file::create(path)?;
        let read = async {
            let (_, mut pieces) = ObjectPieces::open(&*self.objects, &at).await.map_err(failed)?;
            while let Some(piece) = pieces.next().await.map_err(failed)? {
                target.write_all(&piece).map_err(FileError::write(path))?;
            }
            Ok(())
        };
        self.in_turn(read).await?
    }

    /// Reads an object, never more of it than its record says, and returns how it differs from the record.
    async fn read_through(
        &self,
        key: &str,
        file: &FileRecord,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Option<String>> {
        let failed = |fault: object_store::Error| self.failure("read", key, &fault);
        let at = self.key(key)?;
        let read = async {
            let (meta, mut pieces) = match ObjectPieces::open(&*self.objects, &at).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(Some("it is missing".to_owned())),
                got => got.map_err(failed)?,
            };
            let expected = |found: u64| Ok(Some(format!("it has {found} bytes, expected {}", file.bytes)));
            if meta.size != file.bytes {
                return expected(meta.size);
            }
            let mut hasher = Hasher::new();
            while let Some(piece) = pieces.next().await.map_err(failed)? {
                if hasher.count() + piece.len() as u64 > file.bytes {
                    return expected(hasher.count() + piece.len() as u64);
                }
                hasher.update(&piece);
                take(&piece)?;
            }
            if hasher.count() != file.bytes {
                return expected(hasher.count());
            }
            let found = digest::hex(&hasher.finalize());
            Ok((found != file.blake3).then(|| format!("its BLAKE3 checksum is {found}, expected {}", file.blake3)))
        };
        self.in_turn(read).await?
    }
}

/// A local file that does not match its record.
fn differs(path: &Path) -> Error {
    FileError::damage(path, "it does not match its record, and was not sent")
}

//! Sealed folders: sent with the record last, and checked against it file by file when fetched.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use blake3::Hasher;
use bytes::Bytes;
use futures_util::stream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectStoreExt, WriteMultipart};

use super::contents::Listing;
use super::fault::{Failure, Verdict};
use super::objects::{MAX_BYTES, ObjectContent, ObjectPieces, Store};
use super::ours::{is_clearing, record_name, record_of};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, Result};

/// The most files of a folder in transfer at once.
const FILES_AT_ONCE: usize = 4;

/// A larger file is sent in parts of this size.
const PART_BYTES: usize = 8 << 20;

/// A folder that a record seals.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    /// The folder's key: `archive/acme/run=…`.
    pub(crate) at: String,
    /// The files that the record describes.
    pub(crate) files: Vec<FileRecord>,
}

impl Sealed {
    fn key(&self, file: &FileRecord) -> String {
        format!("{}/{}", self.at, file.name)
    }

    /// The size of its files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Store {
    /// The text of a folder's record; `None` if there is none, or the folder is being cleared.
    pub(super) async fn record(&self, at: &str) -> Result<Option<Bytes>> {
        // A pack's has those of its runs.
        let most = if at.contains("/pack=") { MAX_BYTES } else { 8 << 20 };
        let content = self.get(&record_of(at), most).await?;
        Ok(content.map(|content| content.bytes).filter(|bytes| !is_clearing(bytes)))
    }

    /// Sends a folder, and calls `sent` with the size of each file. Files that an interrupted upload left are not sent again.
    /// Returns whether it was not in the store before.
    pub(crate) async fn send(&self, sealed: &Sealed, folder: &Path, sent: impl Fn(u64)) -> Result<bool> {
        let (record_key, path) = (record_of(&sealed.at), folder.join(record_name(&sealed.at)));
        let (record, there) = (Bytes::from(links::read(&path)?), self.list(&sealed.at).await?);
        if there.0.contains_key(&record_key)
            && let Some(content) = self.get(&record_key, MAX_BYTES).await?
        {
            return self.settle(sealed, &record, Some(content));
        }
        let mut files: Vec<&FileRecord> = sealed.files.iter().collect();
        // The first claims the folder's name: it is put only if absent.
        files.sort_by_key(|file| file.bytes);
        let (first, rest) = files.split_at(files.len().min(1));
        for some in [first, rest] {
            let files = some.iter().map(|file| async {
                self.send_file(sealed, file, folder, &there).await?;
                sent(file.bytes);
                Ok::<(), Error>(())
            });
            stream::iter(files).buffer_unordered(FILES_AT_ONCE).try_collect::<()>().await?;
        }
        if self.put(&record_key, record.clone(), None).await? {
            return Ok(true);
        }
        self.settle(sealed, &record, self.get(&record_key, MAX_BYTES).await?)
    }

    /// The outcome of an upload if a record is already there.
    fn settle(&self, sealed: &Sealed, ours: &Bytes, there: Option<ObjectContent>) -> Result<bool> {
        match there {
            Some(there) if there.bytes == ours => Ok(false),
            Some(there) if !is_clearing(&there.bytes) => Err(self.conflict(&sealed.at)),
            _ => Err(self.later("write", &sealed.at, "another machine is clearing an interrupted upload of it")),
        }
    }

    /// Sends a file, unless it is already there.
    async fn send_file(&self, sealed: &Sealed, file: &FileRecord, folder: &Path, there: &Listing) -> Result<()> {
        let (key, path) = (sealed.key(file), folder.join(&file.name));
        links::refuse_below(folder, &path)?;
        let is_ours = if there.0.contains_key(&key) {
            self.fault(&key, file).await?.is_none()
        } else if file.bytes > PART_BYTES as u64 {
            return self.send_in_parts(&key, file, &path).await;
        } else {
            let bytes: Bytes = links::read(&path)?.into();
            if digest::of(&bytes) != file.blake3 {
                return Err(FileError::damage(&path, "it does not match its record, and was not sent"));
            }
            self.put(&key, bytes, None).await?
        };
        if is_ours { Ok(()) } else { Err(self.conflict(&sealed.at)) }
    }

    /// Sends a large file in parts, which become an object once all of them have arrived and match the record.
    async fn send_in_parts(&self, key: &str, file: &FileRecord, path: &Path) -> Result<()> {
        let failed = |fault: object_store::Error| self.failure("write", key, fault);
        let at = self.key(key)?;
        let upload = self.in_turn(self.client.objects.put_multipart(&at)).await?.map_err(failed)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let sent = async {
            let (mut source, mut hasher) = (links::open(path)?, Hasher::new());
            loop {
                let mut part = Vec::with_capacity(PART_BYTES);
                Read::by_ref(&mut source)
                    .take(PART_BYTES as u64)
                    .read_to_end(&mut part)
                    .map_err(FileError::read(path))?;
                if part.is_empty() {
                    break;
                }
                hasher.update(&part);
                self.in_turn(upload.wait_for_capacity(3)).await?.map_err(failed)?;
                upload.put(part.into());
            }
            match digest::hex(&hasher.finalize()) == file.blake3 {
                true => Ok(()),
                false => Err(FileError::damage(path, "it does not match its record, and was not sent")),
            }
        };
        if let Err(error) = sent.await {
            // If this fails, a rule of the bucket for incomplete uploads removes the parts.
            let _ = self.in_turn(upload.abort()).await;
            return Err(error);
        }
        match self.in_turn(upload.finish()).await? {
            // It may have completed anyway.
            Err(fault) if self.fault(key, file).await?.is_some() => Err(failed(fault)),
            _ => Ok(()),
        }
    }

    /// How an object differs from a file's record, if it does. A missing object is a difference.
    pub(super) async fn fault(&self, key: &str, file: &FileRecord) -> Result<Option<String>> {
        self.read_through(key, file, |_| Ok(())).await
    }

    /// Fetches all files of a folder, a few at once, and calls `fetched` with the size of each.
    pub(super) async fn fetch(&self, sealed: &Sealed, into: &Path, fetched: impl Fn(u64)) -> Result<()> {
        let files = sealed.files.iter().map(|file| async {
            let (key, path) = (sealed.key(file), into.join(&file.name));
            let folder = file::folder_of(&path);
            fs::create_dir_all(folder).map_err(FileError::write(folder))?;
            let mut target = file::create(&path)?;
            let write = |piece: &[u8]| target.write_all(piece).map_err(FileError::write(&path));
            if let Some(fault) = self.read_through(&key, file, write).await? {
                return Err(self.damage(&key, fault));
            }
            fetched(file.bytes);
            Ok(())
        });
        stream::iter(files).buffer_unordered(FILES_AT_ONCE).try_collect().await
    }

    /// Fetches an object into a new file, without checking its content.
    #[cfg(feature = "spark")]
    pub(crate) async fn download(&self, key: &str, path: &Path) -> Result<()> {
        let failed = |failure: Failure| self.failure("read", key, failure);
        let (at, mut target) = (self.key(key)?, file::create(path)?);
        let read = async {
            let (_, mut pieces) = ObjectPieces::open(&*self.client.objects, &at).await.map_err(failed)?;
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
        let failed = |failure: Failure| self.failure("read", key, failure);
        let at = self.key(key)?;
        let read = async {
            let (meta, mut pieces) = match ObjectPieces::open(&*self.client.objects, &at).await {
                Err(failure) if failure.verdict == Verdict::Missing => return Ok(Some("it is missing".to_owned())),
                got => got.map_err(failed)?,
            };
            let (mut hasher, mut found) = (Hasher::new(), meta.size);
            if found == file.bytes {
                found = 0;
                while let Some(piece) = pieces.next().await.map_err(failed)? {
                    found += piece.len() as u64;
                    if found > file.bytes {
                        break;
                    }
                    hasher.update(&piece);
                    take(&piece)?;
                }
            }
            let checksum = digest::hex(&hasher.finalize());
            Ok(match (found == file.bytes, checksum == file.blake3) {
                (true, true) => None,
                (true, false) => Some(format!("its BLAKE3 checksum is {checksum}, expected {}", file.blake3)),
                (false, _) => Some(differs_in_size(found, file)),
            })
        };
        self.in_turn(read).await?
    }
}

/// How an object of a size differs from its record.
pub(super) fn differs_in_size(found: u64, file: &FileRecord) -> String {
    format!("it has {found} bytes, expected {}", file.bytes)
}

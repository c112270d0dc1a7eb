//! The same folders in an object store: fetching, sending, and what keeps concurrent machines safe.
//!
//! ```text
//! s3://bucket/prefix/
//!     archive/acme/run=20261120T213000Z-7f3a/      the files of a sealed run of a service, `run.json` last
//!     archive/acme/pack=20261120T213000Z-01c2/     the files of a pack, and likewise of a merge
//!     datasets/demo/20261120T213000Z-7f3a/         the files of a published version, `dataset.json` last
//!     datasets/demo/latest.json                    names the latest version
//!     datasets/demo/pruned.json                    names the oldest version that was not pruned
//! ```
//!
//! A folder exists once its record does (`run.json`, `dataset.json`), which is put last and only if absent. A sealed
//! folder never changes, so a copy of one is never stale. The only objects that two machines change are `latest.json` and
//! `pruned.json`, which are replaced only if they are unchanged since they were read. In a bucket, nothing relies on renames, on the
//! order of a listing, on links or on locks. File systems have no conditional puts: in a `file:///` store, objects are
//! linked only if absent, and these two are replaced under a lock.
//!
//! A conditional put that failed may have succeeded: its acknowledgement may be lost and the retry refused, and some stores
//! answer 409 to both of two writers. So the outcome is always read back: ours, absent, or another's. Before anything is sent,
//! a [`probe`](Store::probe) tests that the store honours the conditions at all.
//!
//! The smallest file of a folder is sent first and only if absent, which claims the folder's name. An upload that was killed
//! has no record. The machine that has the folder resumes it, or any other clears it after a day. Clearing first puts a note in
//! place of the record, only if absent, so an upload and its clearing exclude each other.
//!
//! What was replaced long ago is removed on request alone, in the same way ([`Store::remove_folder`]). A repair moves what is
//! damaged and removes nothing ([`Store::set_aside`]). The
//! `object_store` crate reads credentials from where each provider's own tools keep them, and messages quote only the status
//! and error code of an answer.
//!
//! A store is not trusted: every answer is bounded in bytes and time, a redirect is not followed, what is not a listing is
//! not taken for an empty one, and what nothing of ours can be called is skipped.

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "cloud")]
mod cloud;
mod fault;
mod folder;
mod latest;
mod leftovers;
mod list;
#[cfg(any(feature = "cloud", feature = "harness"))]
pub(crate) mod listing;
mod objects;
#[cfg(test)]
mod tests;
#[cfg(feature = "cloud")]
mod traffic;

pub(crate) use folder::{Sealed, Sent};
pub(crate) use latest::Latest;
pub(crate) use leftovers::{abandoned_folders, by_folder, clear_staged, record_of};
pub(crate) use list::Object;
pub use objects::Access;
pub(crate) use objects::Store;

//! The same folders in an object store: what to bring down, what to send up.
//!
//! ```text
//! s3://bucket/prefix/
//!     archive/run=20261120T213000Z-7f3a/           the files of a sealed run, `run.json` last
//!     archive/pack=20261120T213000Z-01c2/          the files of a pack
//!     datasets/demo/20261120T213000Z-7f3a/         the files of a published version, `dataset.json` last
//!     datasets/demo/latest.json                    names the latest version
//! ```
//!
//! A folder exists once its record does (`run.json`, `dataset.json`), which is put last and only if absent. A sealed
//! folder never changes, so a copy of one is never stale, and two machines never change the same object, except
//! `latest.json`, which is put on condition that it is still what was read. In a bucket, nothing relies on renames, on the
//! order of a listing, on links or on locks. File systems have no conditional puts: in a `file:///` store, objects are
//! linked only if absent, and `latest.json` is replaced under a lock.
//!
//! A conditional put that failed may have succeeded: a retry hides an acknowledgement, and some stores answer 409 to
//! both of two writers. So its outcome is always read back: ours, absent, or another's. Before anything is sent to a
//! store, a [`probe`](Store::probe) tests that it honours the conditions at all.
//!
//! Before the first file of a folder, its smallest one is put only if absent, which claims the folder's name. An upload
//! that was killed has no record. It is taken up again by the machine that has the folder, or cleared after a day by
//! any other; a record that says so is put first, only if absent, so an upload and its clearing exclude each other.
//!
//! Nothing else is removed from a store. Credentials are read by the `object_store` crate from where each provider's
//! own tools have them, and no message quotes what a store answered beyond its status and error code.

mod error;
mod folder;
mod latest;
mod leftovers;
mod objects;
mod open;
mod probe;
#[cfg(feature = "aws")]
mod profile;
#[cfg(feature = "cloud")]
mod traffic;

pub(crate) use error::StoreError;
pub(crate) use folder::{Sealed, Sent};
pub(crate) use latest::Latest;
pub(crate) use leftovers::{by_folder, record_of};
pub(crate) use objects::{Object, Store};

/// The result of an operation on a store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

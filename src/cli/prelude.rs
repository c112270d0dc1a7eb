//! What most commands use.

pub(super) use std::path::{Path, PathBuf};

pub(super) use bellwether::error::{self, Error, ErrorKind};
pub(super) use bellwether::project::Project;
pub(super) use bellwether::run::{self, FetchItem};
pub(super) use bellwether::text::escape::escape;
pub(super) use bellwether::text::human::{bytes, count_of, group_digits, percent, portion};
pub(super) use bellwether::time::{Clock, to_record};
pub(super) use chrono::{DateTime, NaiveDate, Utc};
pub(super) use schemars::JsonSchema;
pub(super) use serde::Serialize;

pub(super) use super::log::{LogForm, LogLevel, LogOptions, PROGRESS, Timings};
pub(super) use super::options::*;
pub(super) use super::process::{cancellable, interruptible};
pub(super) use super::progress::{Form, observer};
pub(super) use super::talk::*;
pub(super) use crate::schedule::Folders;

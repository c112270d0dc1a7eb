//! The built-in service over HTTP, compared with the text of the interface: expected answers are written by hand, and
//! read by a client that does not share the service's types.

mod archived;
mod lifetime;
mod news;
mod presence;
mod requests;
mod signals;

use bellwether::interface::ChangeSet;

use crate::support::service::Server;

/// Starts a service at a change set: the demo itself, or an archive of it.
type Start<'a> = &'a dyn Fn(ChangeSet) -> Server;

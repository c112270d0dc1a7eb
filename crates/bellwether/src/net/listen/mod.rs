//! Listening on an address, only for requests that name this machine; for clients that this process does not know, with few
//! connections at once, each bounded in time.

mod connections;
mod host;

pub use connections::{Answer, Body, Connections, Requests, Site, stream, whole};
pub use host::{HostName, Hosts};

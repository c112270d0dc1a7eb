//! Listening on an address, only for requests that name this machine; for clients that this process does not know, with few
//! connections at once, each bounded in time.

mod answer;
mod connections;
mod host;

pub use answer::{Answer, Body, stream, whole};
pub use connections::{Connections, Requests, Site};
pub use host::HostName;
pub use host::Hosts;

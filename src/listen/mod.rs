//! Listening on an address: few connections at once, each bounded in time, and only for requests that name this machine.

mod connections;
mod host;

pub(crate) use connections::{Connections, Requests};
pub use host::HostName;
pub(crate) use host::Hosts;

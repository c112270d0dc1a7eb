//! Listening on an address: few connections at once, each bounded in time, and only for requests that name this machine.

mod connections;
mod host;

pub use connections::{Connections, Requests};
pub use host::HostName;
pub use host::Hosts;

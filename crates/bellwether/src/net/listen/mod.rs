//! Listening on an address: few connections at once, each bounded in time, and only for requests that name this machine.

mod answer;
mod connections;
mod host;

pub use answer::{Answer, Body, streamed, whole};
pub use connections::{Connections, Requests, Site};
pub use host::HostName;
pub use host::Hosts;

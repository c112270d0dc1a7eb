//! Networks: addresses, proxies and TLS, why connections fail, and listening.

pub mod address;
pub mod call;
pub(crate) mod connection;
pub mod listen;
pub(crate) mod proxies;
pub(crate) mod tls;

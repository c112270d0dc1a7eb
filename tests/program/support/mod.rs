//! Shared by the tests: the program in a temporary folder, services and their days, stores, and Python.

pub(crate) mod azurite;
pub(crate) mod bucket;
pub(crate) mod days;
pub(crate) mod peak;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod python;
pub(crate) mod random;
pub(crate) mod rows;
pub(crate) mod scripted;
#[cfg(feature = "spark")]
pub(crate) mod scripted_spark;
pub(crate) mod server_process;
pub(crate) mod service;
pub(crate) mod simulated_store;
pub(crate) mod stub_store;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod tools;

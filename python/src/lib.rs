//! The Python package: what `python/bellwether` is written on.
//!
//! It knows the public interface of the library and nothing else. Rows leave as Arrow C streams, which any frame library
//! takes without a copy; everything else leaves as JSON, which Python turns into its own types. Work is done on threads of
//! its own with the interpreter released; see `supervise`.

mod ask;
mod definition;
mod events;
mod fault;
mod load;
mod program;
mod publish;
mod rows;
mod service;
mod supervise;

/// The compiled part of `bellwether`.
#[pyo3::pymodule]
mod _bellwether {
    #[pymodule_export]
    use super::ask::{articles, datasets, diff, quality, report, revisions, runs};
    #[pymodule_export]
    use super::definition::{check, data_folder, plan};
    #[pymodule_export]
    use super::load::{built, matrices, published, published_wide};
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::publish::{Key, build, run};
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::service::Service;
}

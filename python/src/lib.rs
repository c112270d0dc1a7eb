//! The compiled part of the Python package `python/bellwether`.
//!
//! It uses only the public interface of the library. Rows are returned as Arrow C streams, which any data frame library
//! reads without a copy; everything else is returned as JSON. Operations run on separate threads with the interpreter
//! released; see `supervise`.

mod arguments;
mod ask;
mod definition;
mod events;
mod fault;
mod load;
mod now;
mod program;
mod publish;
mod rows;
mod store;
mod supervise;

/// The compiled part of `bellwether`.
#[pyo3::pymodule]
mod _bellwether {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python calls it so")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::ask::{
        articles, audit_table, datasets, demo_prices, diff, history, quality, query, report, revisions, runs, sectors,
        skill, tickers,
    };
    #[pymodule_export]
    use super::definition::{check, data_folder};
    #[pymodule_export]
    use super::load::load;
    #[pymodule_export]
    use super::now::get;
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::publish::{Key, build, run};
    #[pymodule_export]
    use super::rows::{Rows, restore};
    #[pymodule_export]
    use super::supervise::refuse_fork;
}

//! The compiled part of the Python package `python/bellwether`.
//!
//! It uses only the public interface of the library. Rows are returned as Arrow C streams, which any data frame library
//! reads without a copy; everything else is returned as JSON. Operations run on separate threads with the interpreter
//! released; see `call`.

mod arguments;
mod ask;
mod call;
mod load;
mod rows;
mod run;

/// The compiled part of `bellwether`.
#[pyo3::pymodule]
mod _bellwether {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python calls it so")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::arguments::{Key, data_folder};
    #[pymodule_export]
    use super::ask::{
        articles, audit_table, check, datasets, demo_prices, diff, get, history, quality, query, report, revisions,
        runs, sectors, skill, tickers,
    };
    #[pymodule_export]
    use super::call::refuse_fork;
    #[pymodule_export]
    use super::load::load;
    #[pymodule_export]
    use super::rows::{Rows, restore};
    #[pymodule_export]
    use super::run::{build, main, run};
}

//! Bellwether turns a vendor's trading signals and news scores into research data you can trust.
//!
//! A [`Project`](project::Project) is a folder with definitions, an archive and datasets:
//!
//! ```
//! use bellwether::load::Selection;
//! use bellwether::project::Project;
//!
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # std::fs::create_dir(root.join("pipelines"))?;
//! std::fs::write(
//!     root.join("pipelines/example.toml"),
//!     "source.service = \"demo\"
//!      signals.sectors = [\"utilities\"]",
//! )?;
//! let project = Project::at(root)?;
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let summary = runtime.block_on(project.run("example"))?;
//!
//! let of_nee = Selection { tickers: Some(["NEE".parse()?].into()), ..Selection::default() };
//! let rows = project.dataset("example")?.select(of_nee)?.batches()?.map(|batch| batch.map(|batch| batch.num_rows()));
//! assert!(rows.sum::<Result<usize, _>>()? < summary.rows as usize);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Below it are the [`Plan`](plan::Plan) of a definition, what is done with it in [`run`], and the datasets that [`load`]
//! reads.
//!
//! Long operations take a [`Control`](run::Control), through which a caller observes and cancels them. Failures are an
//! [`Error`](error::Error) with an [`ErrorKind`](error::ErrorKind), a hint and its causes. The library never prints.
//!
//! # The modules
//!
//! Data flows through the stages from left to right, and never back:
//!
//! ```text
//!     pipelines/*.toml                                                              output/
//!          |                                                                           ^
//!     definition -> plan -> fetch -> decode -> archive -> dataset -> export ----------+
//!     TOML with     typed   HTTP     bytes to  what was   features,  files that
//!     places        values, bodies   Arrow     said,      join,      appear whole
//!                   defaults         columns   and when   order
//! ```
//!
//! A stage imports the plan, the interface and the leaves, but no other stage: [`run`] connects them, and [`load`]
//! connects those that reading needs. [`audit`], [`report`] and [`sql`] read the archive and datasets; [`serve`]
//! answers the interface. The entry points are other crates: the program, with its commands and its scheduler, and the
//! Python package. Some modules are public for them alone, and hidden from these pages.
//!
//! | module | what it owns |
//! |---|---|
//! | [`interface`] | the service as types: operations, parameters, records, faults; the crate `bellwether-interface` |
//! | [`definition`] | the definition file: keys, values, and their locations |
//! | [`plan`] | the meaning of a definition: requests, columns, order, with every default filled in |
//! | `fetch` | requests, retries, proxies, limits |
//! | `decode` | JSON to typed columns and rejected records |
//! | [`archive`] | sealed runs: what the service said, and when |
//! | `dataset` | features of the news, joined to signals without look-ahead |
//! | [`export`] | Parquet, CSV and Arrow files, versions, publication |
//! | `frames` | data as Polars frames, in chunks of tickers |
//! | [`audit`] | revisions, contradictions, quality, look-ahead, differences |
//! | [`report`] | the report as a page and as text |
//! | [`sql`] | a dataset as one SQL statement over the archive, for other engines |
//! | `spark` | a Spark cluster that runs such a statement: the crate `bellwether-spark` (a cargo feature) |
//! | [`serve`] | the service's interface, answered from an archive or by the demo, whose market is the crate `bellwether-demo` |
//! | [`run`] | runs, builds, audits and upkeep; the same folders in an object store; observers and cancelling |
//! | [`load`] | datasets as record batches and frames, for other programs |
//!
//! The other modules are leaves. They import none of the above, except that `tables` uses the types of the interface
//! and `freshness` those of the plan.
//!
//! | leaf | what it owns |
//! |---|---|
//! | [`error`] | the one error, its kinds and hints |
//! | [`project`], [`trust`] | the project's root; which definitions may run commands, and use keys and stores |
//! | [`key`] | the API key, its sources, and its echoes in text |
//! | [`time`] | the clock, and how far another one is from it |
//! | `tables` | the schemas of the columns that travel between stages, dates of the service |
//! | `columns` | columns as runs of equal values, and the files written from them: the crate `bellwether-columns` |
//! | `disk` | files that appear whole, without following links; their names, locks, checksums and sizes; the only module that removes files |
//! | `net` | addresses, proxies, TLS, why connections fail; listening with bounded connections |
//! | `process` | cancelling, child processes, work in order, processor time and memory |
//! | [`text`] | problems of a definition with their places; text from outside made safe to show; numbers and durations for people |
//! | `freshness` | ages of data |
//!
//! `CONTRIBUTING.md` lists the files behind common questions, such as which one decides on a retry, and the files that
//! common changes touch.
//!
//! A definition can be planned without a service:
//!
//! ```
//! use bellwether::definition::DefinitionFile;
//! use bellwether::plan::Plan;
//!
//! let text = "
//!     source.service = \"demo\"
//!     signals.sectors = [\"energy\", \"utilities\"]
//!     signals.periods = [\"5d\", \"1m\"]
//! ";
//! let plan = Plan::of(DefinitionFile::new("example.toml".into(), text.into())?)?;
//!
//! let requests = plan.alternatives[0].requests(&[]);
//! assert_eq!(requests.len(), 4);
//! assert_eq!(requests[0].target(), "signals-history-all?sector=energy&period=5d&regime=neutral");
//! assert_eq!(plan.dataset.schema.field(0).name(), "ticker");
//! # Ok::<(), bellwether::error::Error>(())
//! ```

#[cfg(not(unix))]
compile_error!("bellwether runs on Unix systems");

pub mod archive;
pub mod audit;
#[doc(hidden)]
pub use bellwether_columns as columns;
#[doc(hidden)]
pub mod dataset;
#[doc(hidden)]
pub mod decode;
pub mod definition;
#[doc(hidden)]
pub mod disk;
pub mod error;
pub mod export;
pub mod facts;
mod fetch;
mod frames;
#[doc(hidden)]
pub mod freshness;
#[cfg(feature = "harness")]
#[doc(hidden)]
pub mod harness;
mod identity;
#[doc(inline)]
pub use bellwether_interface as interface;
#[cfg(feature = "spark")]
#[doc(hidden)]
pub use bellwether_spark as spark;
pub mod key;
pub mod load;
#[doc(hidden)]
pub mod net;
pub mod plan;
#[doc(hidden)]
pub mod prices;
pub mod process;
pub mod project;
pub mod report;
pub mod run;
pub mod serve;
mod sessions;
pub mod sql;
#[doc(hidden)]
pub mod tables;
pub mod text;
pub mod time;
pub mod trust;
mod universe;

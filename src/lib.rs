//! Bellwether turns a vendor's trading signals and news scores into research data you can trust.
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
//! A stage knows the plan, the interface and the leaves, but no other stage: [`run`] connects them, and [`load`] connects
//! those that reading takes. [`cli`] is the command line. [`audit`] and [`report`] ask questions of the archive and of
//! datasets; [`serve`] is the demo service.
//!
//! | module | what it owns |
//! |---|---|
//! | [`interface`] | the service as types: operations, parameters, records, faults |
//! | [`definition`] | the definition file: keys, values, and where they are |
//! | [`plan`] | what a definition means: requests, columns, order, with every default filled in |
//! | [`fetch`] | requests, retries, proxies, limits |
//! | [`decode`] | JSON to typed columns and rejected records |
//! | [`archive`] | sealed runs: what the service said, and when |
//! | [`dataset`] | features of the news, joined to signals without look-ahead |
//! | [`export`] | Parquet, CSV and Arrow files, versions, publication |
//! | [`audit`] | revisions, contradictions, quality, look-ahead, differences |
//! | [`report`] | the report as a page and as text |
//! | [`serve`] | the demo service |
//! | [`run`] | runs and builds |
//! | [`load`] | datasets as record batches and frames, for other programs |
//! | [`cli`] | the commands |
//!
//! The leaves import none of these: [`error`], [`problem`], [`address`], [`secret`], [`key_source`], [`time`],
//! [`file`](mod@file), [`lock`], [`meter`], [`trace`], [`tables`] (the schemas of the columns that travel between
//! stages), [`columns`] (columns as runs of equal values, and the Parquet files written from them), and private ones: the
//! only one that removes files, what escapes text before it is shown, the names of our files, and number formats. Only
//! [`cli`] prints. `CONTRIBUTING.md` lists the files that common changes touch.
//!
//! ```
//! use bellwether::definition::Found;
//! use bellwether::plan::Plan;
//!
//! let text = "
//!     source.service = \"demo\"
//!     signals.sectors = [\"energy\", \"utilities\"]
//!     signals.periods = [\"5d\", \"1m\"]
//! ";
//! let plan = Plan::of(Found::new("example.toml".into(), text.into())?)?;
//!
//! let requests = plan.ways[0].requests(&[]);
//! assert_eq!(requests.len(), 4);
//! assert_eq!(requests[0].target(), "signals-history-all?sector=energy&period=5d&regime=neutral");
//! assert_eq!(plan.dataset.schema.field(0).name(), "ticker");
//! # Ok::<(), bellwether::error::Error>(())
//! ```

pub mod address;
pub mod archive;
pub mod audit;
mod cancel;
pub mod cli;
pub mod columns;
pub mod dataset;
mod date;
pub mod decode;
pub mod definition;
mod digest;
mod echo;
pub mod error;
mod escape;
pub mod export;
pub mod fetch;
pub mod file;
pub mod interface;
pub mod key_source;
mod links;
pub mod load;
pub mod lock;
pub mod meter;
mod names;
mod numbers;
pub mod plan;
pub mod problem;
mod remove;
pub mod report;
pub mod run;
pub mod secret;
pub mod serve;
pub mod tables;
pub mod time;
pub mod trace;

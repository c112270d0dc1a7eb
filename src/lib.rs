//! Bellwether turns a vendor's trading signals and news scores into research data that can be trusted.
//!
//! Data takes one way through the house, from left to right, and never back:
//!
//! ```text
//!     pipelines/*.toml                                                              output/
//!          |                                                                           ^
//!     definition -> plan -> fetch -> decode -> archive -> dataset -> export ----------+
//!     what was      what    HTTP     bytes ->  what was   features,  sealed files
//!     typed         it      bodies   Arrow     said,      join,
//!                   means            columns   and when   order
//! ```
//!
//! A stage knows the plan, the interface and the leaves, never its neighbour: [`run`] wires them, and [`cli`] is how
//! people start it. Beside the corridor stand [`serve`], which answers the service's own interface, [`audit`], which asks
//! questions of the archive, and [`report`], which draws pages from answers.
//!
//! | room | what it is for |
//! |---|---|
//! | [`interface`] | the service as types: operations, parameters, records, faults |
//! | [`definition`] | what a person typed, with its places in the file |
//! | [`plan`] | what it means: requests, columns, order; every default filled in |
//! | [`fetch`] | asks the service, politely and stubbornly |
//! | [`decode`] | from bytes to typed columns; what cannot be typed is set aside |
//! | [`archive`] | sealed runs: what was said, and when |
//! | [`dataset`] | features of the news, joined to signals without look-ahead |
//! | [`export`] | files that appear whole |
//! | [`audit`] | what the vendor did to its past, where it contradicts itself, what is missing, whether the future leaks |
//! | [`report`] | what a dataset holds, on a page and in a terminal |
//! | [`serve`] | the service's interface, answered from a demo universe |
//! | [`run`] | wires the stages |
//! | [`load`] | datasets for other programs: columns and rows, and nothing written |
//! | [`cli`] | the commands |
//!
//! The leaves import none of these: [`error`], [`problem`], [`address`], [`secret`] and where a text repeats it,
//! [`key_source`], the only way by which text leaves the program, [`time`], [`file`](mod@file), [`lock`], [`meter`] and
//! [`trace`], the names of our files, the one place that removes any, the spelling of numbers, their ten-thousandths, the bits of a word, where columns turn, the Parquet
//! encoder, and [`tables`], the columns that travel between the stages.
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
mod bits;
pub mod cli;
pub mod dataset;
mod date;
pub mod decode;
pub mod definition;
mod digest;
mod echo;
mod encode;
pub mod error;
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
mod parts;
pub mod plan;
pub mod problem;
mod remove;
pub mod report;
pub mod run;
pub mod secret;
pub mod serve;
pub mod tables;
mod talk;
pub mod time;
pub mod trace;
mod turns;

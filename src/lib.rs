//! The program: its commands, and the scheduler.
//!
//! Only the commands print. What they do is in the library, [`bellwether`], which knows neither of them; so are the words
//! that a definition may say of schedules. The Python package brings the same commands, and records its runs like
//! the scheduler.

#[cfg(not(unix))]
compile_error!("bellwether runs on Unix systems");

mod cli;
mod explanation;
pub mod schedule;

pub use cli::{command, main, main_with, skill_in_words};

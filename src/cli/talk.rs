//! The only way for text to leave the program.
//!
//! Text is escaped (see [`escape`](crate::escape)), and keys are masked in everything that goes to standard error.
//! Datasets and rows on standard output are data: they are written unchanged, through [`data`].

use super::outcome::{Failure, Result};
use std::io::{self, IsTerminal, Write};

use crate::escape::laid_out;
use crate::secret::without_keys;

/// Writes text, with its own line endings, to standard output.
pub(super) fn say(text: &str) -> Result<()> {
    let mut out = data().lock();
    out.write_all(laid_out(text).as_bytes()).and_then(|()| out.flush()).map_err(Failure::of_stdout)
}

/// Writes a line to standard error.
pub(super) fn note(text: &str) {
    let mut line = laid_out(&without_keys(text)).into_owned();
    line.push('\n');
    // If standard error is closed, there is nobody to tell.
    let _ = stderr().write_all(line.as_bytes());
}

/// Standard output, for data.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub(super) fn data() -> io::Stdout {
    io::stdout()
}

/// Whether standard error is a terminal.
pub(super) fn is_terminal() -> bool {
    stderr().is_terminal()
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn stderr() -> io::Stderr {
    io::stderr()
}

//! Completions in zsh, whose words are quoted as they were typed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::{EnvCompleter, Zsh as Usual};

use super::bash::unquote;

pub(super) struct Zsh;

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        Usual.name()
    }

    fn is(&self, name: &str) -> bool {
        Usual.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        Usual.write_registration(variable, name, program, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let words = words.iter().map(|word| unquote(&word.to_string_lossy()).into()).collect();
        Usual.write_complete(command, words, here, out)
    }
}

//! `bellwether runs`: what is in the archive.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::say;
use crate::archive::{SealedRun, sealed_runs, unfinished_runs};
use crate::error::{Error, Result};
use crate::run::grouped;
use crate::time::to_record;

/// List the runs of an archive, or show one of them.
#[derive(Debug, clap::Args)]
pub(super) struct Runs {
    #[command(subcommand)]
    what: Option<What>,

    /// The folder for archive and datasets.
    #[arg(long, default_value = "output", value_name = "FOLDER", global = true)]
    output: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show one run: its files, and the fields that nobody knows.
    Show {
        /// The run's name, or the start of it.
        run: String,
    },
}

impl Runs {
    pub(super) fn execute(self) -> Result<()> {
        let archive = self.output.join("archive");
        let sealed = sealed_runs(&archive)?;
        match &self.what {
            None => say(&listed(&archive, &sealed)?),
            Some(What::Show { run }) => {
                let found = sealed.iter().find(|sealed| sealed.seal().run.starts_with(run.as_str()));
                let found = found.ok_or_else(|| Error::NoRun { run: run.clone(), archive })?;
                say(&shown(found))
            }
        }
    }
}

fn listed(archive: &Path, sealed: &[SealedRun]) -> Result<String> {
    let mut text = format!(
        "{:24} {:20} {:>9} {:>13} {:>13} {:>9}\n",
        "run", "definition", "requests", "signals", "bytes", "rejects"
    );
    for run in sealed {
        let seal = run.seal();
        let rows = |name: &str| seal.files.iter().find(|file| file.name == name).map_or(0, |file| file.rows);
        let bytes = seal.files.iter().map(|file| file.bytes).sum();
        let numbers = [rows("requests.parquet"), rows("signals.parquet"), bytes, rows("rejects.parquet")].map(grouped);
        let [requests, signals, bytes, rejects] = numbers;
        let (run, definition) = (&seal.run, &seal.definition);
        line(&mut text, format_args!("{run:24} {definition:20} {requests:>9} {signals:>13} {bytes:>13} {rejects:>9}"));
    }
    for run in unfinished_runs(archive)? {
        let (name, definition, answers) = (&run.run, &run.definition, grouped(run.answers as u64));
        line(&mut text, format_args!("{name:24} {definition:20} {answers:>9} not finished"));
    }
    Ok(text)
}

fn shown(run: &SealedRun) -> String {
    let seal = run.seal();
    let mut text = String::new();
    line(&mut text, format_args!("run         {}", seal.run));
    line(&mut text, format_args!("folder      {}", run.path().display()));
    line(&mut text, format_args!("definition  {}, SHA-256 {}", seal.definition, seal.definition_digest));
    line(&mut text, format_args!("started     {}", to_record(seal.started_at)));
    line(&mut text, format_args!("sealed      {}", to_record(seal.sealed_at)));
    line(&mut text, format_args!("written by  bellwether {}, layout {}", seal.bellwether, seal.layout));
    for file in &seal.files {
        let (rows, bytes) = (grouped(file.rows), grouped(file.bytes));
        line(&mut text, format_args!("file        {:26} {rows:>13} rows {bytes:>13} bytes", file.name));
    }
    for field in &seal.drift {
        line(
            &mut text,
            format_args!(
                "unknown     {} of {}, {} times, such as {}",
                field.field,
                field.endpoint,
                grouped(field.count),
                field.example
            ),
        );
    }
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a string takes any text");
}

//! `bellwether runs`: the runs in the archive.

use bellwether::archive::{Past, RunDetails, RunListing, SealedRun, open_all};
use bellwether::project::Project;
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, group_digits};
use bellwether::time::to_record;

use super::aligned::Aligned;
use super::document::AsJson;
use super::folders::Folders;
use super::outcome::{Failure, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// List the runs in the archive, or show one of them.
#[derive(Debug, clap::Args)]
pub(super) struct Runs {
    #[command(subcommand)]
    action: Option<RunsAction>,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum RunsAction {
    /// Show one run: its files, and unknown fields.
    Show {
        /// The run's name, or the beginning of it.
        run: String,
    },
}

impl Runs {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let folder = self.folders.archive(project);
        match &self.action {
            None => {
                let listing = RunListing::of(&folder)?;
                self.json.say(|| &listing, || run_lines(&listing))
            }
            Some(RunsAction::Show { run }) => {
                let archives = open_all(&folder)?;
                let runs: Vec<&SealedRun> = archives.iter().flat_map(|(_, archive)| archive.runs()).collect();
                let mut forgotten = archives.iter().flat_map(|(_, archive)| archive.forgotten_runs());
                if let Some(forgotten) = forgotten.find(|forgotten| forgotten.run == *run) {
                    return Err(Failure::ForgottenRun { what: forgotten.to_string() });
                }
                let found = find_run(&runs, run, &folder)?;
                let documented = RunDetails::of(found)?;
                self.json.say(|| &documented, || details(found, documented.listed.rejected))
            }
        }
    }
}

/// The run with a name, or the only one whose name begins with it.
fn find_run<'a>(runs: &[&'a SealedRun], name: &str, archive: &Path) -> Result<&'a SealedRun> {
    if let Some(run) = runs.iter().find(|run| run.name() == name) {
        return Ok(run);
    }
    let meant: Vec<&SealedRun> = runs.iter().copied().filter(|run| run.name().starts_with(name)).collect();
    match meant[..] {
        [] => Err(Failure::NoRun { run: name.to_owned(), archive: archive.to_owned() }),
        [run] => Ok(run),
        _ => Err(Failure::SeveralRuns {
            run: name.to_owned(),
            candidates: meant.iter().map(|run| run.name().to_owned()).collect(),
        }),
    }
}

fn run_lines(listing: &RunListing) -> String {
    let RunListing { runs, unfinished, packed_folders, forgotten, past } = listing;
    // The service is told where there are several.
    let services = runs.iter().map(|run| &run.service).chain(unfinished.iter().map(|run| &run.service));
    let are_several = services.collect::<BTreeSet<_>>().len() > 1;
    let of_service = |service: &str| are_several.then(|| service.to_owned());
    let mut table = match are_several {
        false => Aligned::new(2, ["run", "definition", "added", "revised", "withdrawn", "rejected", "size"]),
        true => Aligned::new(3, ["run", "service", "definition", "added", "revised", "withdrawn", "rejected", "size"]),
    };
    for run in runs {
        let counts = [run.added, run.revised, run.withdrawn, run.rejected].map(group_digits);
        let definition = run.definition.clone().unwrap_or_default();
        let names = [run.run.clone()].into_iter().chain(of_service(&run.service)).chain([definition]);
        table.row(names.chain(counts).chain([bytes(run.bytes)]));
    }
    for run in unfinished {
        let answers = count_of(run.answers as u64, "answer", "answers");
        let service = of_service(&run.service).map_or_else(String::new, |service| format!("{service}  "));
        table.row([format!("{}  {service}{}  unfinished, {answers}", run.run, run.definition)]);
    }
    let mut text = table.to_string();
    for run in forgotten {
        line(&mut text, format_args!("note: {}", run.in_words));
    }
    match *packed_folders {
        0 => {}
        1 => line(&mut text, format_args!("1 folder is packed; `bellwether archive prune` removes it")),
        count => {
            let count = group_digits(count as u64);
            line(&mut text, format_args!("{count} folders are packed; `bellwether archive prune` removes them"));
        }
    }
    for Past { service, sha256, .. } in past {
        let of_service = if past.len() > 1 { format!(" of {service}") } else { String::new() };
        line(&mut text, format_args!("past{of_service}: SHA-256 {sha256}"));
    }
    text
}

fn details(run: &SealedRun, rejected: u64) -> String {
    let seal = run.seal();
    let mut text = String::new();
    line(&mut text, format_args!("run         {}", seal.run));
    line(&mut text, format_args!("folder      {}", run.path().display()));
    line(&mut text, format_args!("service     {}", seal.service));
    if let Some(definition) = &seal.definition {
        line(&mut text, format_args!("definition  {}, BLAKE3 {}", definition.name, definition.digest));
    }
    line(&mut text, format_args!("started     {}", to_record(seal.started_at)));
    line(&mut text, format_args!("sealed      {}", to_record(seal.sealed_at)));
    if let Some(claim) = &seal.claimed {
        let (at, files) = (to_record(claim.imported_at), count_of(claim.files.len() as u64, "file", "files"));
        line(&mut text, format_args!("claimed     imported at {at} from {files}, which nobody witnessed"));
    }
    line(&mut text, format_args!("written by  bellwether {}, layout {}", seal.bellwether, seal.layout));
    let changes = seal.changes;
    let [added, revised, withdrawn] = [changes.added, changes.revised, changes.withdrawn].map(group_digits);
    line(&mut text, format_args!("cells       {added} added, {revised} revised, {withdrawn} withdrawn"));
    let [listed, delisted] = [changes.listed, changes.delisted].map(group_digits);
    line(&mut text, format_args!("series      {listed} listed, {delisted} no longer listed"));
    if rejected > 0 {
        line(&mut text, format_args!("rejected    {}", count_of(rejected, "record", "records")));
    }
    for file in &seal.files {
        let (rows, size) = (count_of(file.rows, "row", "rows"), bytes(file.bytes));
        line(&mut text, format_args!("file        {:26} {rows:>18} {size:>10}", file.name));
    }
    for field in &seal.drift {
        line(
            &mut text,
            format_args!(
                "unknown     {} of {}, {} times, such as {}",
                field.field,
                field.endpoint,
                group_digits(field.count),
                field.example
            ),
        );
    }
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{}", escape(&content.to_string())).expect("a string takes any text");
}

//! `bellwether list`: published versions, runs in the archive, and what a service offers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bellwether::archive::{Past, RejectGroup, RunDetails, RunListing, SealedRun, open_all};
use bellwether::definition;
use bellwether::disk::footprint::Footprint;
use bellwether::error::{Error, ErrorKind};
use bellwether::export::{self, ListedVersion, VersionKind};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{OfferOptions, offered_sectors, offered_tickers};
use bellwether::tables::Drift;
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, group_digits};
use bellwether::text::problem::nearest;
use bellwether::time::{Clock, to_record};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use super::interruptible;
use super::options::{COMMON, DataFolder, plan_of};
use super::talk::{Aligned, AsJson, Result, note};

/// List published versions, runs, or what a service offers.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether list
      every version of every dataset
  bellwether list runs
      every run in the archive
  bellwether list sectors demo
      which sectors the service of the definition has")]
pub(super) struct List {
    #[command(subcommand)]
    what: Option<Listing>,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folder: DataFolder,
}

#[derive(Debug, clap::Subcommand)]
enum Listing {
    /// List the published versions of every dataset, of one, or one version. This is the default.
    Datasets {
        /// A dataset, or one of its versions: NAME or NAME/VERSION. Default: all.
        #[arg(value_name = "DATASET")]
        name: Option<String>,
    },
    /// List the runs in the archive, or show one: its files, and unknown fields.
    Runs {
        /// The run's name, or the beginning of it. Default: all.
        #[arg(value_name = "RUN")]
        run: Option<String>,

        /// The archive. Default: `archive` in `--data`.
        #[arg(long, value_name = "FOLDER", env = "BELLWETHER_ARCHIVE", global = true, help_heading = COMMON)]
        archive: Option<PathBuf>,
    },
    /// Ask a service which sectors it has signals of: of the usual names, and of those in the definition.
    Sectors(Vendor),
    /// Ask a service which tickers it lists as available.
    Tickers(Vendor),
}

/// Whose service to ask.
#[derive(Debug, clap::Args)]
struct Vendor {
    /// A definition: a name in `pipelines/`, or a path. Default: the only one of the project.
    #[arg(value_name = "DEFINITION")]
    definition: Option<String>,
}

/// The published versions, by dataset, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Versions<'a> {
    versions: &'a [ListedVersion],
    /// The size of all data files on disk; one that versions share counts once.
    bytes: u64,
}

impl List {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let Self { what, json, folder } = self;
        match what.unwrap_or(Listing::Datasets { name: None }) {
            Listing::Datasets { name } => list_versions(name, &folder.datasets(project), json),
            Listing::Runs { run, archive } => {
                let archive = archive.unwrap_or_else(|| folder.data(project).join("archive"));
                match run {
                    None => {
                        let listing = RunListing::of(&archive)?;
                        json.say(|| &listing, || run_lines(&listing))
                    }
                    Some(run) => show_run(&run, &archive, json),
                }
            }
            Listing::Sectors(vendor) => {
                let offered =
                    vendor.ask(project, &folder, async |plan, options| offered_sectors(plan, options).await)?;
                if !json.is_wanted() {
                    let asked = count_of(offered.asked.len() as u64, "sector", "sectors");
                    note(&format!("note: the service lists no sectors; it was asked for {asked} by name"));
                }
                json.say(|| &offered, || lines(&offered.sectors))
            }
            Listing::Tickers(vendor) => {
                let offered =
                    vendor.ask(project, &folder, async |plan, options| offered_tickers(plan, options).await)?;
                if offered.rejected > 0 && !json.is_wanted() {
                    let rejected = count_of(offered.rejected, "entry", "entries");
                    note(&format!("warning: rejected {rejected} of the service's list: not a ticker"));
                }
                json.say(|| &offered, || lines(&offered.tickers))
            }
        }
    }
}

impl Vendor {
    /// Asks the service of the definition.
    fn ask<T>(
        self,
        project: &Project,
        folder: &DataFolder,
        question: impl AsyncFnOnce(&Plan, &OfferOptions) -> bellwether::error::Result<T>,
    ) -> Result<T> {
        let only = match self.definition {
            Some(name) => Some(name),
            None => match &definition::names(&project.definitions())?[..] {
                [only] => Some(only.clone()),
                _ => None,
            },
        };
        let (plan, data) = (plan_of(only.as_deref(), project)?, folder.data(project));
        Ok(interruptible(None, async |control| {
            question(&plan, &OfferOptions { data, clock: Clock::System, control }).await
        })?)
    }
}

fn lines<T: ToString>(names: &BTreeSet<T>) -> String {
    names.iter().map(|name| format!("{}\n", escape(&name.to_string()))).collect()
}

fn list_versions(name: Option<String>, datasets: &Path, json: AsJson) -> Result<()> {
    let mut versions = export::published_versions(datasets)?;
    if let Some(name) = name {
        let known = versions.iter().map(|version| version.dataset.as_str());
        let meant = nearest(&name, known).map(str::to_owned);
        versions.retain(|version| version.dataset == name || version.name == name);
        if versions.is_empty() {
            let is_version = name.contains('/');
            let what = if is_version { "version" } else { "dataset" };
            let hint = match meant.filter(|_| !is_version) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("`bellwether list datasets` lists the {what}s"),
            };
            return Err(Error::new(ErrorKind::NotFound, format!("no {what} `{name}`")).with_hint(hint).into());
        }
    }
    let mut footprint = Footprint::default();
    versions.iter().flat_map(|version| &version.files).for_each(|file| footprint.add(file));
    let size = footprint.bytes();
    json.say(|| Versions { versions: &versions, bytes: size }, || version_lines(&versions, size, datasets))
}

fn version_lines(versions: &[ListedVersion], size: u64, datasets: &Path) -> String {
    if versions.is_empty() {
        return format!("no datasets in `{}`; publish one with `bellwether run NAME`\n", datasets.display());
    }
    let mut table = Aligned::new(4, ["version", "", "first date", "last date", "rows", "size"]);
    for version in versions {
        let mut marks: Vec<&str> = match version.kind {
            VersionKind::Latest => vec!["latest"],
            VersionKind::Earlier | VersionKind::AdHoc => Vec::new(),
        };
        marks.extend(version.pins.iter().map(String::as_str));
        let date = |date: Option<NaiveDate>| date.map_or_else(|| "-".to_owned(), |date| date.to_string());
        let (first, last) = (date(version.first_date), date(version.last_date));
        let (rows, size) = (group_digits(version.rows), bytes(version.bytes));
        table.row([version.name.clone(), marks.join(", "), first, last, rows, size]);
    }
    let shared = match versions.iter().map(|version| version.bytes).sum::<u64>().saturating_sub(size) {
        0 => String::new(),
        saved => format!("; sharing files saves {}", bytes(saved)),
    };
    format!("{table}\n{}, {}{shared}\n", count_of(versions.len() as u64, "version", "versions"), bytes(size))
}

const LISTED: &str = "`bellwether list runs` lists the runs";

fn show_run(name: &str, archive: &Path, json: AsJson) -> Result<()> {
    let archives = open_all(archive)?;
    let runs: Vec<&SealedRun> = archives.iter().flat_map(|(_, archive)| archive.runs()).collect();
    let mut forgotten = archives.iter().flat_map(|(_, archive)| archive.forgotten_runs());
    if let Some(forgotten) = forgotten.find(|forgotten| forgotten.run == name) {
        return Err(Error::new(ErrorKind::NotFound, forgotten.to_string()).with_hint(LISTED).into());
    }
    let found = find_run(&runs, name, archive)?;
    let documented = RunDetails::of(found)?;
    json.say(|| &documented, || details(found, documented.listed.rejected, &documented.reject_reasons))
}

/// The run with a name, or the only one whose name begins with it.
fn find_run<'a>(runs: &[&'a SealedRun], name: &str, archive: &Path) -> Result<&'a SealedRun> {
    if let Some(run) = runs.iter().find(|run| run.name() == name) {
        return Ok(run);
    }
    let meant: Vec<&SealedRun> = runs.iter().copied().filter(|run| run.name().starts_with(name)).collect();
    match meant[..] {
        [] => {
            let what = format!("no run `{name}` in `{}`", archive.display());
            Err(Error::new(ErrorKind::NotFound, what).with_hint(LISTED).into())
        }
        [run] => Ok(run),
        _ => {
            /// How many are listed, the last first.
            const SHOWN: usize = 8;
            let runs = count_of(meant.len() as u64, "run", "runs");
            let shown: Vec<&str> = meant.iter().rev().take(SHOWN).map(|run| run.name()).collect();
            let more = match meant.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {} more", group_digits(more as u64)),
            };
            Err(Error::usage(
                format!("`{name}` begins the names of {runs}"),
                format!("the candidates are {}{more}", shown.join(", ")),
            )
            .into())
        }
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
        let definition = if run.in_part.is_some() { format!("{definition}, in part") } else { definition };
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
        1 => line(&mut text, format_args!("1 folder is packed; `bellwether prune` removes it")),
        count => {
            let count = group_digits(count as u64);
            line(&mut text, format_args!("{count} folders are packed; `bellwether prune` removes them"));
        }
    }
    for Past { service, sha256, .. } in past {
        let of_service = if past.len() > 1 { format!(" of {service}") } else { String::new() };
        line(&mut text, format_args!("past{of_service}: SHA-256 {sha256}"));
    }
    text
}

fn details(run: &SealedRun, rejected: u64, groups: &[RejectGroup]) -> String {
    let seal = run.seal();
    let mut rows = vec![
        ("run", seal.run.clone()),
        ("folder", run.path().display().to_string()),
        ("service", seal.service.to_string()),
    ];
    let definition = seal.definition.as_ref();
    rows.extend(definition.map(|own| ("definition", format!("{}, BLAKE3 {}", own.name, own.digest))));
    rows.push(("started", to_record(seal.started_at)));
    rows.push(("sealed", to_record(seal.sealed_at)));
    if let Some(claim) = &seal.claimed {
        let (at, files) = (to_record(claim.imported_at), count_of(claim.files.len() as u64, "file", "files"));
        rows.push(("claimed", format!("imported at {at} from {files}, which nobody witnessed")));
    }
    rows.extend(seal.in_part.iter().map(|why| ("in part", why.to_string())));
    rows.push(("written by", format!("bellwether {}, layout {}", seal.bellwether, seal.layout)));
    let changes = seal.changes;
    let [added, revised, withdrawn] = [changes.added, changes.revised, changes.withdrawn].map(group_digits);
    rows.push(("cells", format!("{added} added, {revised} revised, {withdrawn} withdrawn")));
    let [listed, delisted] = [changes.listed, changes.delisted].map(group_digits);
    rows.push(("series", format!("{listed} listed, {delisted} no longer listed")));
    rows.extend((rejected > 0).then(|| ("rejected", count_of(rejected, "record", "records"))));
    rows.extend(groups.iter().map(|group| ("", group.to_string())));
    for file in &seal.files {
        let (count, size) = (count_of(file.rows, "row", "rows"), bytes(file.bytes));
        rows.push(("file", format!("{:26} {count:>18} {size:>10}", file.name)));
    }
    for Drift { field, endpoint, count, example } in &seal.drift {
        let count = group_digits(*count);
        rows.push(("unknown", format!("{field} of {endpoint}, {count} times, such as {example}")));
    }
    rows.iter().map(|(name, text)| format!("{name:12}{}\n", escape(text))).collect()
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{}", escape(&content.to_string())).expect("a string takes any text");
}

//! `bellwether list`: published versions, runs in the archive, and what a service offers.

use std::collections::BTreeSet;

use bellwether::archive::{Past, RunDetails, RunListing, SealedRun, open_all};
use bellwether::definition;
use bellwether::disk::footprint::Footprint;
use bellwether::export::{self, ListedVersion, VersionKind};
use bellwether::plan::Plan;
use bellwether::run::OfferOptions;
use bellwether::tables::Drift;
use bellwether::text::problem::nearest;

use super::prelude::*;

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
                if let Some(run) = run {
                    return show_run(&run, &archive, json);
                }
                let listing = RunListing::of(&archive)?;
                json.say(|| &listing, || run_lines(&listing))
            }
            Listing::Sectors(vendor) => {
                let (plan, data) = (vendor.plan(project)?, folder.data(project));
                let offered = interruptible(None, async |control| {
                    run::offered_sectors(&plan, &OfferOptions { data, clock: Clock::System, control }).await
                })?;
                if !json.is_wanted() {
                    let asked = count_of(offered.asked.len() as u64, "sector", "sectors");
                    note(&format!("note: the service lists no sectors; it was asked for {asked} by name"));
                }
                json.say(|| &offered, || lines(&offered.sectors))
            }
            Listing::Tickers(vendor) => {
                let (plan, data) = (vendor.plan(project)?, folder.data(project));
                let offered = interruptible(None, async |control| {
                    run::offered_tickers(&plan, &OfferOptions { data, clock: Clock::System, control }).await
                })?;
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
    /// The definition that is named, or the only one.
    fn plan(&self, project: &Project) -> error::Result<Plan> {
        if self.definition.is_some() {
            return plan_of(self.definition.as_deref(), project);
        }
        let names = definition::names(&project.definitions())?;
        let only = names.first().filter(|_| names.len() == 1);
        plan_of(only.map(String::as_str), project)
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
        let latest = (version.kind == VersionKind::Latest).then_some("latest");
        let marks: Vec<&str> = latest.into_iter().chain(version.pins.iter().map(String::as_str)).collect();
        let [first, last] = [version.first_date, version.last_date].map(|date| or_dash(date, |date| date.to_string()));
        let (rows, size) = (group_digits(version.rows), bytes(version.bytes));
        table.row([version.name.clone(), marks.join(", "), first, last, rows, size]);
    }
    let shared = match versions.iter().map(|version| version.bytes).sum::<u64>().saturating_sub(size) {
        0 => String::new(),
        saved => format!("; sharing files saves {}", bytes(saved)),
    };
    format!("{table}\n{}, {}{shared}\n", count_of(versions.len() as u64, "version", "versions"), bytes(size))
}

fn show_run(name: &str, archive: &Path, json: AsJson) -> Result<()> {
    let listed = "`bellwether list runs` lists the runs";
    let archives = open_all(archive)?;
    let mut forgotten = archives.iter().flat_map(|(_, archive)| archive.forgotten_runs());
    if let Some(forgotten) = forgotten.find(|forgotten| forgotten.run == name) {
        return Err(Error::new(ErrorKind::NotFound, forgotten.to_string()).with_hint(listed).into());
    }
    // The run with the name, or the only one whose name begins with it.
    let runs = archives.iter().flat_map(|(_, archive)| archive.runs()).filter(|run| run.name().starts_with(name));
    let runs: Vec<&SealedRun> = runs.collect();
    let run = match runs[..] {
        [] => {
            let what = format!("no run `{name}` in `{}`", archive.display());
            return Err(Error::new(ErrorKind::NotFound, what).with_hint(listed).into());
        }
        [run] => run,
        _ => runs.iter().copied().find(|run| run.name() == name).ok_or_else(|| {
            // Eight are shown, the last first.
            let shown: Vec<&str> = runs.iter().rev().take(8).map(|run| run.name()).collect();
            let more = match runs.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {} more", group_digits(more as u64)),
            };
            let what = format!("`{name}` begins the names of {}", count_of(runs.len() as u64, "run", "runs"));
            Error::usage(what, format!("the candidates are {}{more}", shown.join(", ")))
        })?,
    };
    let documented = RunDetails::of(run)?;
    json.say(|| &documented, || details(run, &documented))
}

fn run_lines(listing: &RunListing) -> String {
    let RunListing { runs, unfinished, packed_folders, forgotten, past } = listing;
    // The service is told where there are several.
    let services = runs.iter().map(|run| &run.service).chain(unfinished.iter().map(|run| &run.service));
    let are_several = services.collect::<BTreeSet<_>>().len() > 1;
    let named = |run: &str, service: &str, definition: String| {
        let service = are_several.then(|| service.to_owned());
        [Some(run.to_owned()), service, Some(definition)].into_iter().flatten().collect::<Vec<_>>()
    };
    let names = named("run", "service", "definition".to_owned());
    let counts = ["added", "revised", "withdrawn", "rejected", "size"];
    let mut table = Aligned::new(names.len(), names.iter().map(String::as_str).chain(counts));
    for run in runs {
        let in_part = if run.in_part.is_some() { ", in part" } else { "" };
        let definition = run.definition.clone().unwrap_or_default() + in_part;
        let counts = [run.added, run.revised, run.withdrawn, run.rejected].map(group_digits);
        table.row(named(&run.run, &run.service, definition).into_iter().chain(counts).chain([bytes(run.bytes)]));
    }
    for run in unfinished {
        let answers = count_of(run.answers as u64, "answer", "answers");
        let names = named(&run.run, &run.service, run.definition.clone()).join("  ");
        table.row([format!("{names}  unfinished, {answers}")]);
    }
    let mut text = table.to_string();
    for run in forgotten {
        text += &format!("note: {}\n", escape(&run.in_words));
    }
    text += &match *packed_folders as u64 {
        0 => String::new(),
        1 => "1 folder is packed; `bellwether prune` removes it\n".to_owned(),
        count => format!("{} folders are packed; `bellwether prune` removes them\n", group_digits(count)),
    };
    for Past { service, sha256, .. } in past {
        let of_service = if past.len() > 1 { format!(" of {}", escape(service)) } else { String::new() };
        text += &format!("past{of_service}: SHA-256 {sha256}\n");
    }
    text
}

fn details(run: &SealedRun, details: &RunDetails) -> String {
    let (seal, rejected) = (run.seal(), details.listed.rejected);
    let mut text = String::new();
    let mut tell = |name: &str, content: String| text += &format!("{name:12}{}\n", escape(&content));
    tell("run", seal.run.clone());
    tell("folder", run.path().display().to_string());
    tell("service", seal.service.to_string());
    if let Some(own) = &seal.definition {
        tell("definition", format!("{}, BLAKE3 {}", own.name, own.digest));
    }
    tell("started", to_record(seal.started_at));
    tell("sealed", to_record(seal.sealed_at));
    if let Some(claim) = &seal.claimed {
        let (at, files) = (to_record(claim.imported_at), count_of(claim.files.len() as u64, "file", "files"));
        tell("claimed", format!("imported at {at} from {files}, which nobody witnessed"));
    }
    seal.in_part.iter().for_each(|why| tell("in part", why.to_string()));
    tell("written by", format!("bellwether {}, layout {}", seal.bellwether, seal.layout));
    let changes = seal.changes;
    let [added, revised, withdrawn] = [changes.added, changes.revised, changes.withdrawn].map(group_digits);
    tell("cells", format!("{added} added, {revised} revised, {withdrawn} withdrawn"));
    let [listed, delisted] = [changes.listed, changes.delisted].map(group_digits);
    tell("series", format!("{listed} listed, {delisted} no longer listed"));
    if rejected > 0 {
        tell("rejected", count_of(rejected, "record", "records"));
    }
    details.reject_reasons.iter().for_each(|group| tell("", group.to_string()));
    for file in &seal.files {
        let (count, size) = (count_of(file.rows, "row", "rows"), bytes(file.bytes));
        tell("file", format!("{:26} {count:>18} {size:>10}", file.name));
    }
    for Drift { field, endpoint, count, example } in &seal.drift {
        let count = group_digits(*count);
        tell("unknown", format!("{field} of {endpoint}, {count} times, such as {example}"));
    }
    text
}

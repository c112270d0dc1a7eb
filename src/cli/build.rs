//! `bellwether build`: a dataset from the archive, as of an instant.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::IsTerminal as _;

use bellwether::disk::footprint;
use bellwether::interface::{Period, Signal};
use bellwether::load::Dataset;
use bellwether::plan::{AdHoc, Added, Claims, Confidence, Filter, Format, Plan, RowKind, Shape, Vintage};
#[cfg(feature = "spark")]
use bellwether::run::ClusterOptions;
use bellwether::run::{AsOf, BuildOptions, Past, Summary};
#[cfg(feature = "spark")]
use bellwether::spark::TOKEN;

use super::prelude::*;

/// Rebuild a dataset from the archive, offline.
///
/// With `--as-of`, `--vintage`, `--format` or a filter the build is ad hoc: it goes to `builds/` in the dataset's
/// folder, does not move `latest`, does not count towards `keep`, and stays until you remove it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether build demo --as-of 2026-03-31
      what was known at the end of March
  bellwether build demo --ticker XOM,CVX --output two.csv
      two tickers in one file")]
pub(super) struct Build {
    /// A definition: its name in `pipelines/`, or a path.
    ///
    /// Without one, all are listed.
    definition: Option<String>,

    /// What was known at an instant, or by a version.
    ///
    /// Only the runs sealed by then are used. Without it, everything in the archive counts. An instant is `2026-03-31` (the end of that day in UTC) or
    /// `2026-03-31T18:00:00Z`. A version, such as `20260331T180000Z-7f3a`, is rebuilt from its own runs and its own
    /// definition. A run of the archive stands for all that it knew, itself included, and for the definition as it was in
    /// it.
    #[arg(long, value_name = "WHEN", value_parser = as_of)]
    as_of: Option<AsOf>,

    /// Which observation of a signal.
    ///
    /// `latest` is the signal as revised, `first` as it was first published.
    #[arg(long, value_name = "VINTAGE", value_parser = one_of::<Vintage>(Vintage::ALL.iter().map(|it| it.as_str())))]
    vintage: Option<Vintage>,

    #[command(flatten)]
    include: Include,

    #[command(flatten)]
    wanted: WantedRows,

    /// Only buys, or sells.
    #[arg(long, value_name = "SIGNAL", value_parser = one_of::<Signal>(Signal::ALL.map(Signal::as_str)), help_heading = SELECTION)]
    signal: Option<Signal>,

    /// Only signals with at least this confidence.
    ///
    /// It is on the scale of the column `confidence`: `0.6`, or `60` if the service gives percentages.
    #[arg(long, value_name = "N", value_parser = definition_value::<Confidence>, allow_negative_numbers = true, help_heading = SELECTION)]
    min_confidence: Option<Confidence>,

    /// Other formats than the definition's.
    #[arg(long = "format", value_name = "FORMAT", value_delimiter = ',', value_parser = one_of::<Format>(Format::ALL.iter().map(|it| it.as_str())), help_heading = OUTPUT)]
    formats: Vec<Format>,

    /// Add columns that the dataset does not have: `tradable_at`, `known_at`, `first_observed_at`.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', value_parser = one_of::<Added>(Added::ALL.iter().map(|it| it.as_str())), hide_possible_values = true, hide_short_help = true, help_heading = OUTPUT)]
    add: Vec<Added>,

    /// Add the returns over these horizons: `5d`, `1m`.
    ///
    /// They begin at the first close at which a signal could be entered, as those of `audit skill`, and look ahead by design.
    /// Prices are those of `[prices]`, or the demo's.
    #[arg(long, value_name = "HORIZON", value_delimiter = ',', value_parser = service_value::<Period>, hide_short_help = true, help_heading = OUTPUT)]
    labels: Vec<Period>,

    /// Enter backfilled signals this many sessions after their date, instead of the definition's `lag` of `[labels]`.
    #[arg(long, value_name = "SESSIONS", requires = "labels", allow_negative_numbers = true, hide_short_help = true, help_heading = OUTPUT)]
    lag: Option<u32>,

    /// Write the rows to a file, or to standard output (`-`).
    ///
    /// No version is published then. With `--engine`, it is the store that gets the version.
    #[arg(long, value_name = "FILE|URL", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,

    /// Have a Spark cluster compute it: `spark://host:15002`.
    ///
    /// That is the address of its Spark Connect server. The dataset is written to the store that `--output` names, where it
    /// is checked and published. Every worker must be able to read the archive: keep it in a store.
    #[arg(long, value_name = "URL", requires = "output", help_heading = OUTPUT)]
    engine: Option<String>,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    timings: Timings,

    /// Print nothing but errors.
    #[arg(long, short, help_heading = PROGRESS)]
    quiet: bool,

    #[command(flatten)]
    json: AsJson,
}

/// What was built.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Built {
    /// A version.
    Version(Box<Summary>),
    /// A file.
    File(SavedFile),
}

/// A file that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SavedFile {
    /// Its path, as `--output` gave it.
    file: PathBuf,
    /// How many rows it has.
    rows: u64,
    /// How many bytes it has.
    bytes: u64,
}

impl Build {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let folders = self.folders.of_project(project);
        let (name, claims) = (self.definition.as_deref(), self.include.claims());
        let past = self.store.past(name, self.as_of.as_ref(), claims, &folders, project)?;
        let ad_hoc = self.ad_hoc(&past)?;
        let plan = past.plan;
        let is_stream = self.output.as_deref() == Some(Path::new("-"));
        let output = match &self.output {
            Some(output) if self.engine.is_none() => Some((output, self.format(output, &plan, &ad_hoc)?)),
            _ => None,
        };
        if output.is_some() && is_stream && stdout().is_terminal() {
            say(&super::show::first_rows(&Dataset::from_archive(plan, &folders.archive, &ad_hoc)?)?)?;
            note("these are the first rows; for all of them, pipe the output into a program or use `--output FILE`");
            return Ok(());
        }
        let data = match output {
            None if self.engine.is_none() => self.folders.data_of(&plan.path, project)?,
            _ => folders.data,
        };
        let store = self.store.url(None)?;
        let is_quiet = self.quiet || output.is_some() && is_stream;
        let observer = observer(if is_quiet { Form::Quiet(LogForm::Text) } else { Form::Text });
        let recording = self.timings.begin(LogOptions { form: LogForm::Text, level: LogLevel::Off })?;
        let built = interruptible(observer, async |control| {
            let options = BuildOptions { ad_hoc, store, control, ..BuildOptions::new(folders.archive) };
            match output {
                None => {
                    let summary = match &self.engine {
                        Some(engine) => self.on_cluster(engine, plan, data, options).await?,
                        None => run::build(plan, data, options).await?,
                    };
                    Ok(Some(Built::Version(Box::new(summary))))
                }
                Some((_, format)) if is_stream => run::stream(plan, format, stdout(), options).await.map(|()| None),
                Some((file, format)) => {
                    let rows = run::save(plan, format, self.force.file(file.clone()), options).await?;
                    Ok(Some(Built::File(SavedFile { bytes: footprint::size(file), file: file.clone(), rows })))
                }
            }
        });
        let built = built.map_err(Failure::of_run)?;
        let summary = match &built {
            // The JSON summary always has the timings.
            Some(Built::Version(summary)) if !self.json.is_wanted() => Some(&**summary),
            _ => None,
        };
        self.timings.tell(summary, recording)?;
        // Of rows on standard output there is nothing to tell.
        let Some(built) = built.filter(|_| !self.quiet) else { return Ok(()) };
        self.json.say(
            || &built,
            || match &built {
                Built::Version(summary) => summary.to_string(),
                Built::File(SavedFile { file, rows, bytes: size }) => {
                    format!("wrote {}, {}, to {}\n", count_of(*rows, "row", "rows"), bytes(*size), file.display())
                }
            },
        )
    }

    /// Has a cluster build it.
    #[cfg(feature = "spark")]
    async fn on_cluster(&self, engine: &str, plan: Plan, data: PathBuf, build: BuildOptions) -> error::Result<Summary> {
        // Not by the parser, which would repeat a token in the address.
        let engine = engine.parse().map_err(|refusal: String| {
            let hint = format!("use an address such as `spark://host:15002`; a token comes from `{TOKEN}`");
            Error::usage(format!("invalid `--engine`: {refusal}"), hint)
        })?;
        let output = self.output.as_deref().unwrap_or(Path::new("")).to_string_lossy().parse().map_err(|_| {
            let hint = "use `s3a://bucket/prefix`, `gs://…`, `abfss://…` or `file:///folder`";
            Error::usage("with `--engine`, `--output` is the address of a store", hint)
        })?;
        run::build_on_cluster(plan, ClusterOptions { engine, output, data, build }).await
    }

    #[cfg(not(feature = "spark"))]
    async fn on_cluster(&self, _: &str, _: Plan, _: PathBuf, _: BuildOptions) -> error::Result<Summary> {
        Err(usage("this build has no client of Spark", "install bellwether with `--features spark`"))
    }

    /// The format of the file, or of the rows on standard output.
    fn format(&self, output: &Path, plan: &Plan, ad_hoc: &AdHoc) -> error::Result<Format> {
        if output.is_dir() {
            let what = format!("`{}` is a folder", output.display());
            return Err(usage(&what, "name a file, or the folder of the datasets and the archive with `--data`"));
        }
        let is_stream = output == Path::new("-");
        if is_stream && self.json.is_wanted() {
            return Err(usage("standard output has the rows, and no room for `--json`", "name a file with `--output`"));
        }
        let by_name = Format::of_file(output);
        let format = match (&ad_hoc.formats[..], &plan.files.formats[..]) {
            ([format], _) => *format,
            ([], [format]) if is_stream => *format,
            ([], _) if !is_stream => by_name.ok_or_else(|| {
                let hint = "add `--format`; the folder of the datasets and the archive is `--data`";
                unknown_format(output, hint)
            })?,
            _ if is_stream => return Err(usage("standard output takes one format", "choose one: `--format arrow`")),
            _ => return Err(usage("a file takes one format", "choose one: `--format parquet`")),
        };
        if !is_stream && by_name.is_some_and(|named| named != format) {
            return Err(name_mismatch(output, format.as_str()));
        }
        if plan.dataset.shape != Shape::Long {
            let hint = "leave out `--output` to publish it";
            return Err(usage("a wide dataset has many files and cannot be written to one", hint));
        }
        Ok(format)
    }

    /// The options that override the definition.
    fn ad_hoc(&self, past: &Past) -> error::Result<AdHoc> {
        let Past { plan, as_of, version, .. } = past;
        let wanted = &self.wanted;
        for (is_given, what, options) in [
            (
                !wanted.periods.is_empty() || !wanted.regimes.is_empty(),
                "periods and no regimes",
                "`--period` and `--regime`",
            ),
            (self.signal.is_some(), "signals", "`--signal`"),
            (self.min_confidence.is_some(), "confidences", "`--min-confidence`"),
        ] {
            if is_given && plan.dataset.rows == RowKind::Article {
                let hint = format!("remove {options}, or build the dataset of the signals");
                return Err(usage(&format!("a dataset of news has no {what}"), &hint));
            }
        }
        let own = &plan.dataset.filter;
        let filter = Filter {
            tickers: narrow("ticker", &wanted.tickers, own.tickers.as_ref())?,
            sectors: narrow("sector", &wanted.sectors, own.sectors.as_ref())?,
            periods: narrow("period", &wanted.periods, own.periods.as_ref())?,
            regimes: narrow("regime", &wanted.regimes, own.regimes.as_ref())?,
            pairs: None,
            signals: narrow("signal", self.signal.as_slice(), own.signals.as_ref())?,
            min_confidence: self.min_confidence,
            from: wanted.from,
            to: wanted.to,
            universe: None,
        };
        if let Filter { from: Some(from), to: Some(to), .. } = own.clone().and(filter.clone())
            && from >= to
        {
            let what = format!("empty date range: {from} to {to}");
            return Err(usage(&what, "`--to` is exclusive: choose a day after `--from`"));
        }
        let mut formats = Vec::new();
        for &format in &self.formats {
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        // What the definition counts anyway is no option of the build.
        let claims = if plan.claims == Claims::Included { Claims::LeftOut } else { self.include.claims() };
        let (as_of, version, vintage, lag) = (*as_of, version.clone(), self.vintage, self.lag);
        let (add, labels) = (self.add.clone(), self.labels.clone());
        Ok(AdHoc { as_of, version, vintage, claims, filter, formats, add, labels, lag })
    }
}

/// The given values, all of which the definition must accept.
fn narrow<T: Ord + Clone + Display>(
    what: &str,
    typed: &[T],
    own: Option<&BTreeSet<T>>,
) -> error::Result<Option<BTreeSet<T>>> {
    if let Some(other) = typed.iter().find(|value| own.is_some_and(|own| !own.contains(value))) {
        let refusal = format!("the definition filters out {what} `{other}`");
        return Err(usage(&refusal, "remove it, or add it to `[filter]` in the definition"));
    }
    Ok(set(typed))
}

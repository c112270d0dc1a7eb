//! The options that commands share, and the parsers of their values.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bellwether::definition;
use bellwether::disk::file::{TargetFile, WhenExists};
use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::error::{self, Error, ErrorKind};
use bellwether::export::{Coding, Destination, RowEncoding, RowFormat, RowOutput};
use bellwether::interface::{Period, Regime, Sector, Ticker, Unknown};
use bellwether::plan::{Claims, Format, Plan, StoreUrl};
use bellwether::project::Project;
use bellwether::run::{AsOf, FetchItem, Past, PastQuery, RemoteStore, StoreAccess, store_of, store_of_environment};
use bellwether::text::escape::escape;
pub(super) use bellwether::time::day;
use bellwether::time::{self, Clock};
use chrono::{DateTime, NaiveDate, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::process::interruptible;
use super::progress::{Form, observer};
use super::talk::{Result, columns_of_stderr, note, padding, stdout, wrap};
use crate::schedule::Folders;

/// The headings of options, in the order in which they appear.
pub(super) const SELECTION: &str = "Selection";
pub(super) const OUTPUT: &str = "Output";
pub(super) const COMMON: &str = "Common options";

/// The folder of the datasets.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DataFolder {
    /// The data folder. Default: `output`.
    ///
    /// It has the datasets and the archive; by default it is `output` in the project.
    #[arg(long, value_name = "FOLDER", env = "BELLWETHER_DATA", global = true, help_heading = COMMON)]
    data: Option<PathBuf>,
}

impl DataFolder {
    /// The folder of the datasets and the archive.
    pub(super) fn data(&self, project: &Project) -> PathBuf {
        self.data.clone().unwrap_or_else(|| project.data())
    }

    /// The folder of the published datasets.
    pub(super) fn datasets(&self, project: &Project) -> PathBuf {
        self.data(project).join("datasets")
    }
}

/// The folders of the datasets and the archive.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FolderOptions {
    #[command(flatten)]
    folder: DataFolder,

    /// The archive. Default: `archive` in `--data`.
    #[arg(long, value_name = "FOLDER", env = "BELLWETHER_ARCHIVE", global = true, help_heading = COMMON)]
    archive: Option<PathBuf>,
}

impl FolderOptions {
    /// The folders that are meant in a project.
    pub(super) fn of_project(&self, project: &Project) -> Folders {
        let data = self.folder.data(project);
        let archive = self.archive.clone().unwrap_or_else(|| data.join("archive"));
        Folders { definitions: project.definitions(), data, archive }
    }

    /// The folder that a definition publishes in.
    pub(super) fn data_of(&self, definition: &Path, project: &Project) -> error::Result<PathBuf> {
        self.folder.data.clone().map_or_else(|| project.data_of(definition), Ok)
    }
}

/// The store to use.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct StoreOption {
    /// The object store: `s3://bucket/prefix`, `gs://…`, `az://…` or `file:///…`.
    ///
    /// It keeps the archive and the datasets. Default: `BELLWETHER_STORE`, or `url` in `[store]` of the definition.
    #[arg(long = "store", value_name = "URL", value_parser = definition_value::<StoreUrl>, global = true, help_heading = COMMON)]
    store: Option<StoreUrl>,
}

impl StoreOption {
    /// The address from the command line or the environment, or else that of a definition.
    pub(super) fn url(&self, plan: Option<&Plan>) -> error::Result<Option<StoreUrl>> {
        store_of(self.store.as_ref(), plan)
    }

    /// Fetches what this machine does not have of what a command reads, if there is a store.
    pub(super) fn fetch(&self, plan: Option<&Plan>, folders: &Folders, items: &[FetchItem<'_>]) -> error::Result<()> {
        let Some(url) = self.url(plan)?.filter(|_| !items.is_empty()) else { return Ok(()) };
        interruptible(observer(Form::Text), async |control| {
            let store = RemoteStore::open(&url, StoreAccess::Read, &folders.archive, &folders.data, &control)?;
            store.pull_items(items).await
        })
    }

    /// Fetches a version of a dataset, `NAME/VERSION` or `NAME` for the latest, if there is a store: the one of its
    /// definition, unless another is given.
    pub(super) fn fetch_version(&self, given: &str, folders: &Folders, project: &Project) -> error::Result<()> {
        let (dataset, item) = match given.split_once('/') {
            Some((dataset, version)) if is_unique(version) => (dataset, FetchItem::NamedVersion(dataset, version)),
            Some(_) => return Ok(()),
            None => (given, FetchItem::Version(given)),
        };
        if !is_dataset(dataset) {
            return Ok(());
        }
        self.fetch(Plan::find(dataset, project).ok().as_ref(), folders, &[item])
    }

    /// The plan of a definition and the state of the archive that is meant, once what names it was fetched.
    pub(super) fn past(
        &self,
        name: Option<&str>,
        as_of: Option<&AsOf>,
        claims: Claims,
        folders: &Folders,
        project: &Project,
    ) -> error::Result<Past> {
        let plan = plan_of(name, project)?;
        self.fetch(Some(&plan), folders, &FetchItem::of_name(&plan.name, as_of))?;
        let past = PastQuery { data: &folders.data, archive: &folders.archive, claims }.find(plan, as_of)?;
        past.note.iter().for_each(|text| note(&format!("note: {text}")));
        Ok(past)
    }
}

/// The store of a command that is about this machine or about a store.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct StoreSide {
    /// The object store instead of this machine: its address, or a definition with a `[store]`.
    ///
    /// Without a value, it is that of `BELLWETHER_STORE`, or of the definitions if they have one alone.
    #[arg(long = "store", value_name = "DEFINITION|URL", num_args = 0..=1)]
    store: Option<Option<String>>,
}

impl StoreSide {
    /// The address of the store; `None` if this machine is meant.
    pub(super) fn url(&self, project: &Project) -> error::Result<Option<StoreUrl>> {
        let Some(named) = &self.store else { return Ok(None) };
        match named {
            Some(named) if named.contains("://") => named.parse().map(Some).map_err(|refusal: String| {
                usage(&format!("invalid value `{named}` for `--store`"), &refusal.replace('\n', "; "))
            }),
            Some(named) => Ok(Some(store_of(None, Some(&plan_of(Some(named), project)?))?.ok_or_else(no_store)?)),
            None => match &stores_of(project)?[..] {
                [] => Err(no_store()),
                [store] => Ok(Some(store.clone())),
                stores => {
                    let what = format!("the definitions have {} stores", stores.len());
                    Err(usage(&what, "name one: `--store DEFINITION`, or its address"))
                }
            },
        }
    }
}

/// The store that `BELLWETHER_STORE` names, or else those of the valid definitions of a project, each once.
pub(super) fn stores_of(project: &Project) -> error::Result<Vec<StoreUrl>> {
    if let Some(store) = store_of_environment()? {
        return Ok(vec![store]);
    }
    let mut stores: Vec<StoreUrl> = Vec::new();
    for name in definition::names(&project.definitions())? {
        let Ok(plan) = Plan::find(&name, project) else { continue };
        if let Some(store) = plan.trusted_store()?.filter(|store| !stores.contains(store)) {
            stores.push(store.clone());
        }
    }
    Ok(stores)
}

pub(super) fn no_store() -> Error {
    usage("no store", "name one with `--store`, `BELLWETHER_STORE`, or a definition that has a `[store]`")
}

/// What a command counts that the definition leaves out.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Include {
    /// Count imported data too.
    #[arg(long, value_name = "WHAT", value_parser = ["claimed"])]
    include: Option<String>,
}

impl Include {
    /// Whether claims count that the definition leaves out.
    pub(super) fn claims(&self) -> Claims {
        if self.include.is_some() { Claims::Included } else { Claims::LeftOut }
    }

    /// A plan with what it leaves out.
    pub(super) fn in_plan(&self, plan: Plan) -> Plan {
        if self.include.is_some() { plan.with_claims() } else { plan }
    }
}

/// The options that choose rows; without them all are wanted.
#[derive(Debug, clap::Args)]
pub(super) struct WantedRows {
    /// Only these tickers, separated by commas.
    #[arg(long = "ticker", value_name = "TICKER", value_delimiter = ',', value_parser = service_value::<Ticker>, help_heading = SELECTION)]
    pub(super) tickers: Vec<Ticker>,

    /// Only these sectors.
    #[arg(long = "sector", value_name = "SECTOR", value_delimiter = ',', value_parser = service_value::<Sector>, help_heading = SELECTION)]
    pub(super) sectors: Vec<Sector>,

    /// Only these horizons: 1d to 30d, 1m to 6m.
    #[arg(long = "period", value_name = "PERIOD", value_delimiter = ',', value_parser = service_value::<Period>, help_heading = SELECTION)]
    pub(super) periods: Vec<Period>,

    /// Only these market regimes.
    #[arg(long = "regime", value_name = "REGIME", value_delimiter = ',', value_parser = one_of::<Regime>(Regime::ALL.map(Regime::as_str)), help_heading = SELECTION)]
    pub(super) regimes: Vec<Regime>,

    /// Only dates from this day on.
    #[arg(long, value_name = "DAY", value_parser = day, help_heading = SELECTION)]
    pub(super) from: Option<NaiveDate>,

    /// Only dates before this day.
    #[arg(long, value_name = "DAY", value_parser = day, help_heading = SELECTION)]
    pub(super) to: Option<NaiveDate>,
}

/// The values of an option; none if it was not given.
pub(super) fn set<T: Ord + Clone>(values: &[T]) -> Option<BTreeSet<T>> {
    (!values.is_empty()).then(|| values.iter().cloned().collect())
}

/// What to do with a file that exists.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Force {
    /// Replace the file of `--output` if it exists.
    #[arg(long, requires = "output", help_heading = OUTPUT)]
    force: bool,
}

impl Force {
    /// A file to write.
    pub(super) fn file(self, path: PathBuf) -> TargetFile {
        TargetFile { path, when_exists: if self.force { WhenExists::Replace } else { WhenExists::Refuse } }
    }
}

/// The formats of rows, by their names.
const FORMATS: [(&str, RowFormat); 5] = [
    ("parquet", RowFormat::Parquet),
    ("csv", RowFormat::Csv(Coding::Plain)),
    ("csv.gz", RowFormat::Csv(Coding::Gzip)),
    ("csv.zst", RowFormat::Csv(Coding::Zstd)),
    ("json", RowFormat::Json),
];

/// The format of rows by the extension of a file, with its name.
pub(super) fn row_format(path: &Path) -> Option<(&'static str, RowFormat)> {
    let name = match Format::of_file(path) {
        Some(format) => format.as_str(),
        None => matches!(path.extension()?.to_str()?, "json" | "jsonl" | "ndjson").then_some("json")?,
    };
    FORMATS.into_iter().find(|(known, _)| *known == name)
}

pub(super) fn unknown_format(path: &Path, hint: &str) -> Error {
    usage(&format!("cannot tell the format of `{}` from its extension", path.display()), hint)
}

/// A file that is named as if it had another format.
pub(super) fn name_mismatch(path: &Path, format: &str) -> Error {
    let what = format!("`--format {format}` does not fit the name `{}`", path.display());
    usage(&what, "leave out `--format`, or choose another name")
}

/// Where to write rows, besides the tables that are printed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RowsTo {
    /// The format of the rows. Default: by the extension of `--output`.
    ///
    /// `json` is one object per line.
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.map(|(name, _)| name)), help_heading = OUTPUT)]
    format: Option<String>,

    /// Write the rows to a file, or to standard output (`-`).
    ///
    /// Standard output then has nothing else.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,
}

impl RowsTo {
    /// Whether standard output is for the rows alone.
    pub(super) fn is_stdout(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }

    /// Where further rows go: to a file beside the other one, `x.news.parquet` beside `x.parquet`.
    pub(super) fn beside(&self, what: &str) -> Self {
        let beside = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
            path.with_file_name(format!("{stem}.{what}.{ending}"))
        };
        Self { output: self.output.as_ref().map(beside), ..self.clone() }
    }

    /// Computes an answer, and writes the rows that it delivers if they are wanted.
    pub(super) fn fill<T>(
        &self,
        schema: SchemaRef,
        ask: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> error::Result<()>) -> error::Result<T>,
    ) -> error::Result<T> {
        let Some(output) = &self.output else {
            return match self.format {
                Some(_) => Err(usage("`--format` needs `--output`", "add `--output FILE`, or `--output -`")),
                None => ask(&mut |_| Ok(())),
            };
        };
        let mut rows_out = self.begin(output, schema)?;
        let found = ask(&mut |rows| rows_out.write(rows))?;
        rows_out.finish()?;
        Ok(found)
    }

    fn begin(&self, output: &Path, schema: SchemaRef) -> error::Result<RowOutput<'static>> {
        // A difference has columns beside those of the dataset, whose names a definition chooses.
        let mut names = BTreeSet::new();
        if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
            let what = format!("two columns of `{}` would have the name `{}`", output.display(), twice.name());
            return Err(usage(&what, "change `rename` in the definition, build it again, and compare that"));
        }
        let named = row_format(output);
        let chosen = self.format.as_ref().and_then(|name| FORMATS.into_iter().find(|(known, _)| known == name));
        let hint = "add `--format parquet`, `--format csv` or `--format json`";
        let (name, format) = chosen.or(named).ok_or_else(|| unknown_format(output, hint))?;
        if named.is_some_and(|(_, named)| named != format) {
            return Err(name_mismatch(output, name));
        }
        if self.is_stdout() && format == RowFormat::Parquet && stdout().is_terminal() {
            return Err(usage("a terminal cannot show Parquet", "use a file or a pipe, or `--format csv`"));
        }
        let destination = match self.is_stdout() {
            true => Destination::Stream(Box::new(stdout())),
            false => Destination::File(self.force.file(output.to_owned())),
        };
        RowOutput::begin(format, destination, schema, &RowEncoding::default())
    }
}

/// An instant in the past. The current day means now.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    time::as_of(text, Clock::System.now())
}

/// An instant in the past, or the name of a version or a run.
pub(super) fn as_of(text: &str) -> Result<AsOf, String> {
    AsOf::parse(text, Clock::System.now())
}

/// Arguments that do not go together.
pub(super) fn usage<E: From<Error>>(what: &str, hint: &str) -> E {
    Error::usage(what, hint).into()
}

/// A value from a small set, which help, errors and completions list.
pub(super) fn one_of<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::fmt::Debug> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|text| text.parse().expect("each of the names is one of a value"))
}

/// The plan of a definition: by name in the project, or by path. A name that is missing or unknown fails with a list of
/// those that there are.
pub(super) fn plan_of(name: Option<&str>, project: &Project) -> error::Result<Plan> {
    let (what, mut hint) = match name.map(|name| Plan::find(name, project)) {
        Some(Ok(plan)) => return Ok(plan),
        Some(Err(error)) if error.kind() == ErrorKind::NoDefinition => {
            (error.to_string(), error.hint().unwrap_or_default().to_owned())
        }
        Some(Err(error)) => return Err(error),
        None => ("no definition given".to_owned(), "give the name of a definition".to_owned()),
    };
    let folder = project.definitions();
    let catalog = definition::catalog(&folder)?;
    if catalog.is_empty() {
        let what = if name.is_none() { format!("no definitions in `{}`", folder.display()) } else { what };
        let hint =
            "write one with `bellwether init`, try the built-in `demo`, or name another project with `--directory`";
        return Err(Error::new(ErrorKind::NoDefinition, what).with_hint(hint));
    }
    if name.is_some() && !hint.starts_with("did you mean") {
        hint = "use one of these names".to_owned();
    }
    hint += &format!("\ndefinitions in `{}`:", folder.display());
    let width = catalog.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, description) in catalog {
        let line = format!("  {name}{}  {}", padding(&name, width), escape(&description.unwrap_or_default()));
        hint = hint + "\n" + wrap(&line, width + 4, columns_of_stderr()).trim_end();
    }
    Err(Error::new(ErrorKind::NoDefinition, what).with_hint(hint))
}

/// The plan of a definition, if one is named.
pub(super) fn named_plan(name: Option<&str>, project: &Project) -> error::Result<Option<Plan>> {
    name.map(|name| plan_of(Some(name), project)).transpose()
}

/// A value from a closed set of the service; an error has its hint.
pub(super) fn service_value<T: FromStr<Err = Unknown>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|unknown: Unknown| format!("{unknown}; {}", unknown.hint))
}

/// A value from a closed set of definitions; an error has its hint.
pub(super) fn definition_value<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|refusal: String| refusal.replace('\n', "; "))
}

/// A share: `0.5%`, or `0.005`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    match number.parse::<f64>().map(|number| number / scale) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("use a percentage such as `0.5%`, or a number from 0 to 1".to_owned()),
    }
}

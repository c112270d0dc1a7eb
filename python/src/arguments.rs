//! Python arguments as values of the library. A refusal names the argument, in the words of the program.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bellwether::definition::{DefinitionFile, find, path_of};
use bellwether::disk::names::is_dataset;
use bellwether::error::{Error, ErrorKind, Result};
use bellwether::export::latest;
use bellwether::interface::Unknown;
use bellwether::key::ApiKey;
use bellwether::key::source::KeySource;
use bellwether::load::Selection;
use bellwether::plan::{AdHoc, Claims, Plan, Source};
use bellwether::project::Project;
use bellwether::run::{AsOf, Control, FetchItem, Past, PastQuery, RemoteStore, StoreAccess, store_of};
use bellwether::time::{self, Clock};
use bellwether::trust::Author;
use chrono::{DateTime, NaiveDate, Utc};
use pyo3::prelude::*;

use crate::call::{block_on, raise};

/// A definition.
#[derive(Clone, FromPyObject)]
pub(crate) enum Given {
    /// A name in `pipelines/`, or a path.
    Named(String),
    /// A name, and a text that Python made from a dict.
    Written(String, String),
}

impl Given {
    /// Its plan.
    pub(crate) fn plan(&self) -> Result<Plan> {
        Plan::of(self.file()?)
    }

    /// Its text, and where that is from.
    pub(crate) fn file(&self) -> Result<DefinitionFile> {
        let project = Project::find()?;
        let found = match self {
            Self::Named(name) => find(name, &project.definitions())?,
            Self::Written(name, text) => {
                let file = DefinitionFile::new(self.path(&project), text.clone());
                file.ok().filter(|_| !name.contains('/')).ok_or_else(|| {
                    let what = format!("a definition cannot be named `{name}`");
                    Error::usage(what, "use at most 64 letters, digits, `-` and `_` in `name`")
                })?
            }
        };
        Ok(found.below(project.root()))
    }

    /// Where it is, or would be.
    pub(crate) fn path(&self, project: &Project) -> PathBuf {
        match self {
            Self::Named(name) => path_of(name, &project.definitions()),
            Self::Written(name, _) => format!("{name}.toml").into(),
        }
    }

    /// Its plan; for a name without a file, that of the latest version published under the name.
    fn plan_or_published(&self, data: &Path) -> Result<Plan> {
        let plan = self.plan();
        if plan.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoDefinition)
            && let Self::Named(name) = self
            && let Ok(Some(recorded)) = latest(&data.join("datasets"), Some(name))
        {
            // Whoever can write the record could have written the definition in it.
            let path = data.join("datasets").join(&recorded.name).join(&recorded.version).join("dataset.json");
            let plan = Self::Written(recorded.name, recorded.definition).plan()?;
            return Ok(Plan { author: Author::File, path, ..plan });
        }
        plan
    }
}

/// The folder of the datasets and the archive; with a definition, that in which it publishes.
#[pyfunction]
#[pyo3(signature = (definition=None))]
pub(crate) fn data_folder(definition: Option<Given>) -> PyResult<PathBuf> {
    let project = Project::find().map_err(raise)?;
    // As for the program.
    let given = std::env::var_os("BELLWETHER_DATA").filter(|given| !given.is_empty()).map(PathBuf::from);
    match (definition, given) {
        (Some(Given::Written(name, _)), _) if path_of(&name, &project.definitions()).exists() => {
            Err(raise(Error::usage(
                format!("the project has a definition `{name}`, whose dataset would be taken over"),
                "give the dict another `name`, or name the folder to publish in with `data`",
            )))
        }
        (_, Some(given)) => Ok(given),
        (Some(Given::Named(name)), None) => project.data_of(&path_of(&name, &project.definitions())).map_err(raise),
        _ => Ok(project.data()),
    }
}

/// What a call is about: a definition, or all that is known of a service, in its folders; and which data of it: as of an
/// instant, a version or a run, of which vintage, and with what the definition leaves out.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Subject {
    pub(crate) definition: Option<Given>,
    pub(crate) service: Option<String>,
    pub(crate) data: PathBuf,
    pub(crate) archive: PathBuf,
    pub(crate) as_of: Option<String>,
    pub(crate) vintage: Option<String>,
    pub(crate) claimed: bool,
}

impl Subject {
    /// The plan of its definition.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let definition = self.definition.as_ref().expect("Python names one where it is needed");
        definition.plan_or_published(&self.data)
    }

    /// The plan, with what it leaves out if that counts.
    pub(crate) fn plan_with_claims(&self) -> Result<Plan> {
        Ok(if self.claimed { self.plan()?.with_claims() } else { self.plan()? })
    }

    /// The plan and the options of an ad hoc build, and what its user must know.
    pub(crate) fn past(&self, control: &Control) -> Result<(Plan, AdHoc, Option<String>)> {
        let vintage = optional("vintage", self.vintage.as_deref(), str::parse)?;
        let as_of = optional("as_of", self.as_of.as_deref(), |text| {
            let forms = "use a day, a datetime with a time zone, text such as `2026-03-31T18:00:00Z`, or the name of a \
                         version or a run";
            AsOf::parse(text, Clock::System.now()).map_err(|refusal| format!("{refusal}\n{forms}"))
        })?;
        let plan = self.plan()?;
        // What the definition includes anyway is no option of the build.
        let is_option = self.claimed && plan.claims == Claims::LeftOut;
        let claims = if is_option { Claims::Included } else { Claims::LeftOut };
        let query = PastQuery { data: &self.data, archive: &self.archive, claims };
        self.fetch(Some(&plan), &FetchItem::of_name(&plan.name, as_of.as_ref()), control)?;
        let Past { plan, as_of, version, note } = query.find(plan, as_of.as_ref())?;
        Ok((plan, AdHoc { as_of, version, vintage, claims, ..AdHoc::default() }, note))
    }

    /// Fetches what only the store has that the environment or the definition names, as the program does.
    pub(crate) fn fetch(&self, plan: Option<&Plan>, items: &[FetchItem<'_>], control: &Control) -> Result<()> {
        let Some(url) = store_of(None, plan)?.filter(|_| !items.is_empty()) else { return Ok(()) };
        let control = Control { stop: control.stop.clone(), ..Control::default() };
        block_on(async {
            let store = RemoteStore::open(&url, StoreAccess::Read, &self.archive, &self.data, &control)?;
            store.pull_items(items).await
        })
    }

    /// Fetches the latest version of a dataset, if it is named alone, and what else is needed of it.
    pub(crate) fn fetch_version(&self, name: &str, more: &[FetchItem<'_>], control: &Control) -> Result<()> {
        let dataset = name.split('/').next().unwrap_or(name);
        let version = is_dataset(name).then_some(FetchItem::Version(name));
        let items: Vec<FetchItem<'_>> = version.into_iter().chain(more.iter().copied()).collect();
        if items.is_empty() || !is_dataset(dataset) {
            return Ok(());
        }
        let plan = Project::find().and_then(|project| Plan::find(dataset, &project)).ok();
        self.fetch(plan.as_ref(), &items, control)
    }
}

/// A part of a dataset.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Part {
    columns: Option<Vec<String>>,
    tickers: Option<Vec<String>>,
    sectors: Option<Vec<String>>,
    periods: Option<Vec<String>>,
    regimes: Option<Vec<String>>,
    start: Option<String>,
    end: Option<String>,
}

impl Part {
    pub(crate) fn selection(&self) -> Result<Selection> {
        Ok(Selection {
            columns: self.columns.clone(),
            tickers: each("tickers", self.tickers.as_deref())?,
            sectors: each("sectors", self.sectors.as_deref())?,
            periods: each("periods", self.periods.as_deref())?,
            regimes: each("regimes", self.regimes.as_deref())?,
            from: optional("start", self.start.as_deref(), day)?,
            to: optional("end", self.end.as_deref(), day)?,
        })
    }
}

/// An API key, which is never shown.
#[pyclass(frozen, from_py_object, module = "bellwether._bellwether")]
#[derive(Clone)]
pub(crate) struct Key(ApiKey);

#[pymethods]
impl Key {
    #[new]
    fn new(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        // A refusal never has the value.
        let refusal = match text.extract::<String>() {
            Ok(text) => match ApiKey::new(&text) {
                Some(key) => return Ok(Self(key)),
                None => "it is empty",
            },
            Err(_) => "it is not text",
        };
        Err(raise(Error::usage(format!("invalid value for `key`: {refusal}"), "give the API key as text")))
    }

    fn __repr__(&self) -> &'static str {
        "Key(…)"
    }
}

/// Makes a plan use the key that was given, if any.
pub(crate) fn take_key(plan: &mut Plan, key: Option<Key>) {
    if let (Source::Remote(remote), Some(Key(key))) = (&mut plan.source, key) {
        remote.key = KeySource::Given(key);
    }
}

/// An argument that is text for something.
pub(crate) fn value<T>(argument: &str, text: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T> {
    parse(text).map_err(|refusal| invalid(argument, text, &refusal))
}

/// The same of an argument that may be left out.
pub(crate) fn optional<T>(
    argument: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>> {
    text.map(|text| value(argument, text, parse)).transpose()
}

/// Values of a closed set of the service.
fn each<T: FromStr<Err = Unknown> + Ord>(argument: &str, texts: Option<&[String]>) -> Result<Option<BTreeSet<T>>> {
    texts.map(|texts| texts.iter().map(|text| value(argument, text, of_service)).collect()).transpose()
}

/// A value of a closed set of the service.
pub(crate) fn of_service<T: FromStr<Err = Unknown>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|unknown: Unknown| format!("{unknown}\n{}", unknown.hint))
}

/// A calendar day.
pub(crate) fn day(text: &str) -> Result<NaiveDate, String> {
    time::day(text).map_err(|refusal| format!("{refusal}\na day is a date, or text such as `2026-03-31`"))
}

/// An instant, or the end of a day.
pub(crate) fn instant(argument: &str, text: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    optional(argument, text, |text| {
        let forms = "an instant is a day, a datetime with a time zone, or text such as `2026-03-31T18:00:00Z`";
        time::as_of(text, Clock::System.now()).map_err(|refusal| format!("{refusal}\n{forms}"))
    })
}

/// The refusal of an argument, which may have a hint on a second line.
pub(crate) fn invalid(argument: &str, given: impl Display, refusal: &str) -> Error {
    let (what, hint) = refusal.split_once('\n').unwrap_or((refusal, "choose another one"));
    Error::usage(format!("invalid value `{given}` for `{argument}`: {what}"), hint)
}

//! What a service says now of some tickers, asked for once.
//!
//! That is an ordinary run, of a definition that is written here: the service, its key and its conventions are those of a
//! definition, of the environment, or the demo's. It works in a temporary folder that is removed with the answer, so nothing
//! is kept. On request, its archive is one that stays: then the run is sealed there as any other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use tempfile::TempDir;
use toml::{Table, Value};

use super::{Dataset, Selection};
use crate::definition::{DefinitionFile, RelativeDay, find, names};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::interface::{Period, Regime, Ticker};
use crate::plan::{Column, Plan, RequestLimits};
use crate::project::Project;
use crate::run::{self, Control, Options, PATIENCE};

/// What is taken over of the definition of a service: sections, or those of their keys that say what its answers mean.
const KEPT: [(&str, &[&str]); 5] = [
    ("source", &[]),
    ("dates", &[]),
    ("rejects", &[]),
    ("signals", &["complete", "made_at", "tolerance"]),
    ("sentiment", &["complete", "delay", "duplicates", "order"]),
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The tickers.
    pub tickers: BTreeSet<Ticker>,
    /// The horizons; empty for the default one.
    pub periods: BTreeSet<Period>,
    /// The market regimes; empty for the default one.
    pub regimes: BTreeSet<Regime>,
    /// How far back.
    pub last: Last,
    /// Whether news is wanted: the articles, and their features joined to the signals.
    pub news: bool,
    /// Whether the built-in demo is asked.
    pub demo: bool,
}

/// How far back from today: `30d`, `6m` or `2y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last(String);

impl FromStr for Last {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match format!("-{text}").parse::<RelativeDay>() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(format!("`{text}` is not a time\nuse days, months or years, such as `30d`, `6m` or `2y`")),
        }
    }
}

/// What the service said.
#[derive(Debug)]
pub struct Answer {
    /// The signals.
    pub signals: Dataset,
    /// The articles, if news was asked for.
    pub news: Option<Dataset>,
    /// Where they are read from.
    _folder: TempDir,
}

impl Question {
    /// The plan of the question, for the service of a definition, which need not say anything else; or for that of the only
    /// definition of a project, or of the environment.
    ///
    /// # Errors
    ///
    /// When there is no service to ask, or its definition has problems.
    pub fn plan(&self, given: Option<DefinitionFile>, project: &Project) -> Result<Plan> {
        let given = match given {
            _ if self.demo => None,
            None => self.only(project)?,
            given => given,
        };
        let text = self.definition(given.as_ref()).to_string();
        let written = DefinitionFile::new("get.toml".into(), text)?.below(project.root());
        // Who wrote the addresses and the key chose whom they are sent to.
        let written = match given.clone() {
            Some(DefinitionFile { path, author, root, .. }) => DefinitionFile { path, author, root, ..written },
            None => written,
        };
        // The lines of the other definition are those that the user knows.
        let plan = Plan::of(written).map_err(|error| match given.map(Plan::of) {
            Some(Err(problems)) => problems,
            _ => error,
        })?;
        // A person waits for the answer, where a run has the night.
        let limits = RequestLimits { patience: plan.limits.patience.min(PATIENCE), ..plan.limits };
        Ok(Plan { limits, ..plan })
    }

    /// The only definition of a project; none if the environment names the service.
    fn only(&self, project: &Project) -> Result<Option<DefinitionFile>> {
        let definitions = names(&project.definitions())?;
        if let [only] = &definitions[..] {
            return Ok(Some(find(only, &project.definitions())?.below(project.root())));
        }
        let mut missing = Vec::new();
        for (name, is_needed) in [("BELLWETHER_BASE_URL", true), ("BELLWETHER_SENTIMENT_BASE_URL", self.news)] {
            if is_needed && std::env::var_os(name).is_none_or(|value| value.is_empty()) {
                missing.push(format!("`{name}`"));
            }
        }
        if missing.is_empty() {
            return Ok(None);
        }
        let what = match definitions.len() {
            0 => format!("no service to ask: there is no definition in `{}`", project.definitions().display()),
            _ => format!("which service? There are several definitions: {}", definitions.join(", ")),
        };
        let hint = format!("name a definition, ask the demo, or set {}", missing.join(" and "));
        Err(Error::new(ErrorKind::NoDefinition, what).with_hint(hint))
    }

    /// The definition of the question, with the service of another one.
    fn definition(&self, given: Option<&DefinitionFile>) -> Table {
        // What is no TOML has problems, which are told when it is read.
        let given: Table = given.and_then(|given| given.text.parse().ok()).unwrap_or_default();
        let mut written = Table::from_iter([("signals".to_owned(), Table::new().into())]);
        for (section, keys) in KEPT {
            let mut kept = given.get(section).and_then(Value::as_table).cloned().unwrap_or_default();
            kept.retain(|key, _| keys.is_empty() || keys.contains(&key));
            if !kept.is_empty() && (self.news || section != "sentiment") {
                written.insert(section.to_owned(), kept.into());
            }
        }
        let mut set = |section: &str, key: &str, value: Value| {
            let section = written.entry(section).or_insert_with(|| Table::new().into());
            section.as_table_mut().expect("it is a section").insert(key.to_owned(), value);
        };
        set("signals", "tickers", texts(&self.tickers));
        if !self.periods.is_empty() {
            set("signals", "periods", texts(&self.periods));
        }
        if !self.regimes.is_empty() {
            set("signals", "regimes", texts(&self.regimes));
        }
        set("dataset", "kind", if self.news { "joined" } else { "signals" }.into());
        set("filter", "from", format!("-{}", self.last.0).into());
        if self.demo {
            set("source", "service", "demo".into());
        }
        written
    }

    /// Asks the service. With an archive, the run is sealed there; otherwise nothing is kept.
    ///
    /// # Errors
    ///
    /// Those of a run: when there is no key, when the service fails, or has no data of one of the tickers.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe, as [`run`](run::run()).
    pub async fn ask(&self, plan: Plan, archive: Option<PathBuf>, control: Control) -> Result<Answer> {
        let folder = tempfile::Builder::new().prefix("bellwether-").tempdir();
        let folder = folder.context(ErrorKind::Write, || "cannot create a temporary folder".to_owned())?;
        let (data, is_kept) = (folder.path().to_owned(), archive.is_some());
        let archive = archive.unwrap_or_else(|| data.join("archive"));
        let options = Options { archive: archive.clone(), control, ..Options::new(&data) };
        let ran = run::run(plan.clone(), options).await;
        // What the hint of a run says is kept, is not.
        ran.map_err(|error| match error.kind() {
            _ if is_kept => error,
            ErrorKind::Checks => error.with_hint("nothing was kept; ask for what the service has"),
            ErrorKind::Temporary => error.with_hint("nothing was kept; ask again later"),
            ErrorKind::NotFound => error.with_hint("the service has nothing that new: go further back"),
            _ => error,
        })?;
        let signals = Dataset::find(&data.join("datasets"), &plan.name)?;
        let news = if self.news {
            // When each was first seen, and how often it was revised, is nothing to know of what was asked once.
            let columns = [Column::Ticker, Column::Date, Column::Score, Column::Title, Column::Link];
            let columns = Some(columns.map(|column| column.name().to_owned()).into());
            let part = Selection { columns, from: plan.dataset.filter.from, ..Selection::default() };
            Some(Dataset::articles(&plan, &archive, None)?.select(part)?)
        } else {
            None
        };
        Ok(Answer { signals, news, _folder: folder })
    }
}

fn texts<T: ToString>(values: &BTreeSet<T>) -> Value {
    values.iter().map(T::to_string).collect::<Vec<_>>().into()
}

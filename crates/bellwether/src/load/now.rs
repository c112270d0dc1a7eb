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

/// The name of its definition.
const NAME: &str = "get";

/// The variables that hold the addresses of a service which no definition names.
const VARIABLES: [&str; 2] = ["BELLWETHER_BASE_URL", "BELLWETHER_SENTIMENT_BASE_URL"];

/// The keys of a definition that say what the answers of its service mean.
const CONVENTIONS: [(&str, &[&str]); 2] =
    [("signals", &["complete", "made_at", "tolerance"]), ("sentiment", &["complete", "delay", "duplicates", "order"])];

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

/// Whose service is asked.
#[derive(Clone, Debug)]
pub enum Whose {
    /// The built-in demo.
    Demo,
    /// That of a definition, which need not say anything else.
    Definition(Box<DefinitionFile>),
    /// That of the only definition, or of the environment.
    Only,
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
    /// The plan of the question, for the service of a project.
    ///
    /// # Errors
    ///
    /// When there is no service to ask, or its definition has problems.
    pub fn plan(&self, whose: &Whose, project: &Project) -> Result<Plan> {
        let given = match whose {
            Whose::Demo => None,
            Whose::Definition(given) => Some(DefinitionFile::clone(given)),
            Whose::Only => self.only(project)?,
        };
        // What is no TOML has problems, which are told below.
        let of_given = given.as_ref().and_then(|given| given.text.parse().ok()).unwrap_or_default();
        let mut text = self.definition(&of_given);
        if matches!(whose, Whose::Demo) {
            text.insert("source".to_owned(), Table::from_iter([("service".to_owned(), "demo".into())]).into());
        }
        let written = DefinitionFile::new(format!("{NAME}.toml").into(), text.to_string())?.below(project.root());
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
        let needed = &VARIABLES[..if self.news { 2 } else { 1 }];
        let is_unset = |name: &&&str| std::env::var_os(name).is_none_or(|value| value.is_empty());
        let missing: Vec<String> = needed.iter().filter(is_unset).map(|name| format!("`{name}`")).collect();
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
    fn definition(&self, given: &Table) -> Table {
        let texts = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::from).collect());
        let mut written = Table::new();
        for section in ["source", "dates", "rejects"] {
            written.extend(given.get_key_value(section).map(|(name, value)| (name.clone(), value.clone())));
        }
        for (section, keys) in CONVENTIONS {
            let of_section = given.get(section).and_then(Value::as_table);
            let kept = keys.iter().filter_map(|key| of_section?.get_key_value(*key));
            let kept: Table = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
            if section == "signals" || self.news && !kept.is_empty() {
                written.insert(section.to_owned(), kept.into());
            }
        }
        let signals = written.get_mut("signals").and_then(Value::as_table_mut).expect("it was inserted");
        signals.insert("tickers".to_owned(), texts(self.tickers.iter().map(ToString::to_string).collect()));
        let periods: Vec<String> = self.periods.iter().map(ToString::to_string).collect();
        let regimes: Vec<String> = self.regimes.iter().map(ToString::to_string).collect();
        for (key, values) in [("periods", periods), ("regimes", regimes)] {
            if !values.is_empty() {
                signals.insert(key.to_owned(), texts(values));
            }
        }
        let kind = if self.news { "joined" } else { "signals" };
        written.insert("dataset".to_owned(), Table::from_iter([("kind".to_owned(), kind.into())]).into());
        let from = format!("-{}", self.last.0);
        written.insert("filter".to_owned(), Table::from_iter([("from".to_owned(), from.into())]).into());
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
        ran.map_err(|error| if is_kept { error } else { of_what_is_not_kept(error) })?;
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

/// The failure of a run that leaves nothing behind, whose hint tells of what is kept.
fn of_what_is_not_kept(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Checks => error.with_hint("nothing was kept; ask for what the service has"),
        ErrorKind::Temporary => error.with_hint("nothing was kept; ask again later"),
        ErrorKind::NotFound => error.with_hint("the service has nothing that new: go further back"),
        _ => error,
    }
}

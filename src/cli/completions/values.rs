//! The names that a project has, as candidates.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bellwether::definition::{self, DefinitionFile};
use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::export::version_of;
use bellwether::interface::{Period, Regime};
use bellwether::plan::{Plan, RequestList, Shape, TickerSource};
use bellwether::run::latest_facts;
use clap::CommandFactory as _;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};

use super::context::Context;
use super::kind::Kind;
use crate::cli::Cli;

impl Context {
    /// The candidates for a value that begins with a text.
    pub(super) fn candidates(&self, kind: Kind, current: &str) -> Vec<CompletionCandidate> {
        let names = match kind {
            Kind::Definition if current.contains('/') => return PathCompleter::file().complete(current.as_ref()),
            Kind::Definition => return starting_with(self.definitions(), current),
            Kind::Dataset if current.contains('/') => self.versions(),
            Kind::Dataset => self.datasets(),
            Kind::Version => self.versions(),
            Kind::Run => self.runs(),
            Kind::VersionOrRun => self.states(),
            Kind::Service => self.services(),
            Kind::Ticker => self.tickers(),
            Kind::Sector => self.sectors(),
            Kind::Period => self.pairs().map_or_else(
                || Period::all().map(|period| period.to_string()).collect(),
                |pairs| distinct(pairs.iter().map(|(period, _)| *period)),
            ),
            Kind::Regime => self.pairs().map_or_else(
                || Regime::ALL.map(|regime| regime.to_string()).to_vec(),
                |pairs| distinct(pairs.iter().map(|(_, regime)| *regime)),
            ),
            Kind::Column => self.columns(),
            Kind::Command => self.commands(),
            Kind::Folder | Kind::File | Kind::Free => Vec::new(),
        };
        starting_with(names.into_iter().map(CompletionCandidate::new).collect(), current)
    }

    fn definitions(&self) -> Vec<CompletionCandidate> {
        let project = self.project();
        let catalog = project.and_then(|project| definition::catalog(&project.definitions()).ok()).unwrap_or_default();
        let described = |(name, description): (String, Option<String>)| {
            CompletionCandidate::new(name).help(description.map(Into::into))
        };
        catalog.into_iter().map(described).collect()
    }

    fn datasets(&self) -> Vec<String> {
        let Some(data) = self.data() else { return Vec::new() };
        folders(&data.join("datasets")).into_iter().filter(|name| is_dataset(name)).collect()
    }

    /// The versions of every dataset, the newest first, and its ad hoc builds.
    fn versions(&self) -> Vec<String> {
        let Some(data) = self.data() else { return Vec::new() };
        let mut versions = Vec::new();
        for dataset in self.datasets() {
            let folder = data.join("datasets").join(&dataset);
            let own = folders(&folder).into_iter().rev().filter(|name| is_unique(name));
            versions.extend(own.map(|version| format!("{dataset}/{version}")));
            let builds = folders(&folder.join("builds")).into_iter().rev();
            versions.extend(builds.map(|build| format!("{dataset}/builds/{build}")));
        }
        versions
    }

    /// The runs, the newest first.
    fn runs(&self) -> Vec<String> {
        let Some(archive) = self.archive() else { return Vec::new() };
        let services = folders(&archive);
        let folders = services.iter().flat_map(|service| folders(&archive.join(service)));
        let mut runs: Vec<String> = folders
            .filter_map(|name| Some(name.strip_prefix("run=")?.to_owned()))
            .filter(|name| is_unique(name))
            .collect();
        runs.sort_unstable_by(|one, other| other.cmp(one));
        runs
    }

    /// The versions of the dataset that is named, and the runs.
    fn states(&self) -> Vec<String> {
        let of_dataset = |version: String| {
            let (dataset, version) = version.split_once('/')?;
            let is_meant = self.subject().is_none_or(|subject| subject == dataset) && is_unique(version);
            is_meant.then(|| version.to_owned())
        };
        let versions: Vec<String> = self.versions().into_iter().filter_map(of_dataset).collect();
        let others: Vec<String> = self.runs().into_iter().filter(|run| !versions.contains(run)).collect();
        [versions, others].concat()
    }

    fn services(&self) -> Vec<String> {
        let folders = self.archive().map(|archive| folders(&archive)).unwrap_or_default();
        folders.into_iter().filter(|name| !name.starts_with('.')).collect()
    }

    /// The dataset or the definition that is named.
    fn subject(&self) -> Option<&str> {
        self.names.first().and_then(|name| name.split('/').next())
    }

    /// The plan of what is named: of the published version, or else of the definition.
    fn plan(&self) -> Option<Plan> {
        let name = self.names.first()?;
        if let Ok((_, version)) = version_of(&self.data()?.join("datasets"), Some(name)) {
            let path = Path::new(&version.name).with_extension("toml");
            return Plan::of(DefinitionFile::new(path, version.definition).ok()?).ok();
        }
        Plan::find(name, &self.project()?).ok()
    }

    /// The tickers of the published dataset, or else those that the definition lists.
    fn tickers(&self) -> Vec<String> {
        if let (Some(data), Some(subject)) = (self.data(), self.subject())
            && let Some(facts) = latest_facts(&data, subject)
        {
            return facts.tickers.into_iter().map(|ticker| ticker.name).collect();
        }
        let lists = |list: &RequestList| match list {
            RequestList::EachTicker(TickerSource::Listed(tickers), _) => tickers.clone(),
            _ => Vec::new(),
        };
        self.plan()
            .iter()
            .flat_map(|plan| &plan.alternatives)
            .flat_map(|operation| lists(&operation.list))
            .map(|it| it.to_string())
            .collect()
    }

    fn sectors(&self) -> Vec<String> {
        let plan = self.plan();
        let requests = plan.iter().flat_map(|plan| &plan.alternatives).flat_map(|operation| match &operation.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(tickers, _) => tickers.listing(),
        });
        distinct(requests.filter_map(|request| request.sector))
    }

    /// The periods and regimes of what is named; none if nothing is, or they are not known.
    fn pairs(&self) -> Option<Vec<(Period, Regime)>> {
        let pairs: Vec<(Period, Regime)> = match latest_facts(&self.data()?, self.subject()?) {
            Some(facts) => facts.pairs.iter().map(|pair| (pair.period, pair.regime)).collect(),
            None => {
                let of_operation = |list: RequestList| match list {
                    RequestList::Listed(requests) => {
                        requests.iter().filter_map(|request| Some((request.period?, request.regime?))).collect()
                    }
                    RequestList::EachTicker(_, pairs) => pairs,
                };
                self.plan()?.alternatives.into_iter().flat_map(|operation| of_operation(operation.list)).collect()
            }
        };
        (!pairs.is_empty()).then_some(pairs)
    }

    /// The columns of what is named, or the values of its matrices.
    fn columns(&self) -> Vec<String> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let written = &plan.dataset.written;
        match &plan.dataset.shape {
            Shape::Long => written.schema().fields().iter().map(|field| field.name().clone()).collect(),
            Shape::Wide(values) => values.iter().map(|value| written.names().of(value).to_owned()).collect(),
        }
    }

    /// The commands with a manual page after those that were named.
    fn commands(&self) -> Vec<String> {
        let command = Cli::command();
        let named = self.names.iter().try_fold(&command, |command, name| command.find_subcommand(name));
        named.into_iter().flat_map(|command| command.get_subcommands()).map(|it| it.get_name().to_owned()).collect()
    }
}

fn starting_with(candidates: Vec<CompletionCandidate>, current: &str) -> Vec<CompletionCandidate> {
    let is_begun = |candidate: &CompletionCandidate| candidate.get_value().to_string_lossy().starts_with(current);
    candidates.into_iter().filter(is_begun).collect()
}

fn distinct<T: Ord + ToString>(values: impl Iterator<Item = T>) -> Vec<String> {
    values.collect::<BTreeSet<_>>().iter().map(ToString::to_string).collect()
}

/// The names of the visible folders in a folder, sorted; none if it cannot be read.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let names = entries.filter(is_folder).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort_unstable();
    names
}

//! The settings of `bellwether schedule`: what a platform's command takes over of them, and what it leaves out.
//!
//! Nothing that is set when a file is printed is dropped in silence: an option is among the words of the command, or a
//! comment names it with the reason. Variables that are no options, such as a proxy's, are named without their values,
//! which may be secret.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bellwether::plan::StoreUrl;

use crate::schedule::HostName;

/// What is set, by options or variables, when a file is printed; none for a default.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How many definitions may run at once.
    pub jobs: Option<NonZeroUsize>,
    /// The address to answer on.
    pub listen: Option<SocketAddr>,
    /// More names of the host that it answers as.
    pub listen_hosts: Vec<HostName>,
    /// The file of metrics.
    pub metrics: Option<PathBuf>,
    /// The store.
    pub store: Option<StoreUrl>,
    /// The format of events.
    pub log: Option<String>,
    /// The level of log messages.
    pub log_level: Option<String>,
    /// The file with the key.
    pub key_file: Option<PathBuf>,
    /// The names of the variables that no option stands for, and that the program reads.
    pub variables: Vec<String>,
}

/// What a platform calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action<'a> {
    /// `bellwether schedule`.
    Keep,
    /// `bellwether schedule --once`.
    Once,
    /// `bellwether run NAME`.
    Run(&'a str),
}

impl Action<'_> {
    /// The words of the command.
    pub(super) fn words(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Keep => &["schedule"],
            Self::Once => &["schedule", "--once"],
            Self::Run(name) => &["run", name, "--wait"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl Settings {
    /// The options of a command that stand for the settings.
    pub(super) fn options(&self, action: Action<'_>) -> Vec<String> {
        let runs_one = matches!(action, Action::Run(_));
        let metrics = self.metrics.as_deref().map(|path| match action {
            Action::Run(name) => metrics_of(path, name),
            _ => path.to_owned(),
        });
        let given = [
            ("--jobs", self.jobs.filter(|_| !runs_one).map(|jobs| jobs.to_string())),
            ("--listen", self.listen.filter(|_| action == Action::Keep).map(|address| address.to_string())),
            ("--metrics", metrics.map(|path| path.to_string_lossy().into_owned())),
            ("--store", self.store.as_ref().map(ToString::to_string)),
            ("--log", self.log.clone()),
            ("--log-level", self.log_level.clone()),
        ];
        let hosts = self.listen_hosts.iter().filter(|_| action == Action::Keep);
        let hosts = hosts.map(|host| ("--listen-host", Some(host.to_string())));
        let given = given.into_iter().chain(hosts);
        given.filter_map(|(option, value)| Some([option.to_owned(), value?])).flatten().collect()
    }

    /// What is set but left out of a command, a sentence each.
    pub(super) fn left_out(&self, action: Action<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(jobs) = self.jobs.filter(|_| matches!(action, Action::Run(_))) {
            notes.push(format!("Left out: `--jobs {jobs}`. Each definition is a job of its own."));
        }
        if let Some(address) = self.listen.filter(|_| action != Action::Keep) {
            notes.push(format!("Left out: `--listen {address}`. Nothing listens between the runs."));
            let hosts = self.listen_hosts.iter().map(|host| format!("Left out: `--listen-host {host}`, likewise."));
            notes.extend(hosts);
        }
        if !self.variables.is_empty() {
            let names = self.variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            notes.push(format!("Left out: {names}. Set them there if the program needs them."));
        }
        notes
    }

    /// The folders outside the project that the program writes to.
    pub(super) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let metrics = self.metrics.as_deref().and_then(Path::parent).map(Path::to_owned);
        metrics.into_iter().chain(self.store.as_ref().and_then(StoreUrl::folder))
    }
}

/// The file of metrics of one definition: with its name, as each run writes the metrics of its own definition.
fn metrics_of(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let renamed = path.with_file_name(format!("{stem}-{name}"));
    path.extension().map_or(renamed.clone(), |extension| {
        let mut whole = renamed.into_os_string();
        whole.push(".");
        whole.push(extension);
        whole.into()
    })
}

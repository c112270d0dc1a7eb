//! The service of a plan, how it is asked, and the limits on requests to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use url::Url;

use super::{ServiceIdentity, Validator};
use crate::definition::{Address, BaseUrl, DatasetKind, KeyPlace, TimeSpan, TrustedClock};
use crate::interface::{Endpoint, Ticker};
use crate::key::source::KeySource;
use crate::net::address::is_loopback;
use crate::text::problem::suggestion;

/// The service.
#[derive(Clone, Debug)]
pub enum Source {
    /// The built-in service. Its first run begins with runs of earlier days.
    Demo {
        /// How many.
        earlier_runs: u8,
    },
    /// A service elsewhere.
    Remote(Box<Remote>),
}

/// A service elsewhere.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The base address of the signals.
    pub base_url: Url,
    /// The base address of news and sentiment.
    pub sentiment_base_url: Url,
    /// The source of the API key.
    pub key: KeySource,
    /// How it is asked.
    pub asking: Asking,
}

/// How a service is asked, where that differs from the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The header that the key is sent in; none for the query.
    pub key_header: Option<String>,
    /// The parameter of the query that the key is sent in, if not `api_key`.
    pub key_parameter: Option<String>,
    /// Further parameters of every request.
    pub query: Vec<(String, String)>,
    /// Other paths of operations, below the base address.
    pub paths: BTreeMap<Endpoint, String>,
    /// The names of fields that the service writes otherwise: those of the interface, and its own.
    pub fields: BTreeMap<String, String>,
    /// The members that may hold an answer.
    pub unwrap: Vec<String>,
    /// The tickers that have another name among news.
    pub news_tickers: BTreeMap<Ticker, Ticker>,
    /// Whether this machine's clock counts where that of the service differs.
    pub trusts_own_clock: bool,
}

/// Limits on the requests to the service.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The number of concurrent requests.
    pub connections: usize,
    /// The maximum number of requests per second to a host; none for no limit.
    pub per_second: Option<u16>,
    /// How long an answer may stall.
    pub stall: Duration,
    /// How long a run keeps retrying.
    pub patience: Duration,
}

/// An address of a definition.
#[derive(Clone)]
enum ResolvedAddress {
    /// It is neither typed nor in the environment.
    Absent,
    /// It has a problem, which was reported.
    Faulty,
    /// The address, and the key or section that gives it.
    Known(BaseUrl, &'static str),
}

/// The fields of answers that may have other names.
const FIELDS: [&str; 15] = [
    "avg_article",
    "confidence",
    "date",
    "debtor",
    "high_article",
    "items",
    "link",
    "low_article",
    "period",
    "predictions",
    "regime",
    "score",
    "signal",
    "ticker",
    "title",
];

/// The parameters that requests have anyway.
const PARAMETERS: [&str; 3] = ["sector", "period", "regime"];

impl Validator<'_> {
    /// The service, if it has no problems, and the variables of the environment that its addresses come from.
    pub(super) fn source(&mut self) -> (Option<Source>, Vec<String>) {
        let section = &self.definition.source;
        let earlier_runs = section.earlier_runs.unwrap_or_default();
        if section.service.is_some() {
            for key in ["source.base_url", "source.sentiment_base_url"] {
                if self.has(key) {
                    let hint = "the demo service is built in: remove `service`, or the addresses";
                    self.object(key, "`service` and an address are mutually exclusive", hint);
                }
            }
            let keys = ["source.api_key_file", "source.api_key_command"];
            self.without_effect(&keys, "on the demo service", "it needs no key: remove it");
            let keys =
                ["key", "query", "paths", "unwrap", "fields", "tickers", "clock"].map(|key| format!("source.{key}"));
            self.without_effect(&keys, "on the demo service", "it is asked as the interface says: remove it");
            if earlier_runs > 12 {
                let what = format!("`{earlier_runs}` earlier runs are too many");
                self.object("source.earlier_runs", what, "use a number from 0 to 12");
            }
            return (Some(Source::Demo { earlier_runs }), Vec::new());
        }
        if section.earlier_runs.is_some() {
            let hint = "remove it: what a vendor said before cannot be asked for";
            self.object("source.earlier_runs", "`earlier_runs` has an effect on the demo service alone", hint);
        }
        let mut variables = Vec::new();
        let typed = section.base_url.as_ref();
        let signals = self.address("source.base_url", typed, "BELLWETHER_BASE_URL", &mut variables);
        let typed = section.sentiment_base_url.as_ref();
        let sentiment = match &signals {
            // No request is made to the other address.
            ResolvedAddress::Known(..) if self.kind() == DatasetKind::Signals && typed.is_none() => signals.clone(),
            _ => self.address("source.sentiment_base_url", typed, "BELLWETHER_SENTIMENT_BASE_URL", &mut variables),
        };
        let key = self.key_source();
        let (missing, operations, given) = match (signals, sentiment) {
            (ResolvedAddress::Known(signals, _), ResolvedAddress::Known(sentiment, _)) => {
                let (BaseUrl(base_url), BaseUrl(sentiment_base_url)) = (signals, sentiment);
                let asking = self.asking();
                let remote = Remote { base_url, sentiment_base_url, key, asking };
                return (Some(Source::Remote(Box::new(remote))), variables);
            }
            (ResolvedAddress::Absent, ResolvedAddress::Absent) => {
                let hint = "set both `base_url` and `sentiment_base_url`, or `service = \"demo\"`";
                self.miss("source", "source", "no service", hint);
                return (None, variables);
            }
            (ResolvedAddress::Known(_, given), ResolvedAddress::Absent) => ("sentiment_base_url", "sentiment", given),
            (ResolvedAddress::Absent, ResolvedAddress::Known(_, given)) => ("base_url", "signals", given),
            (ResolvedAddress::Faulty, _) | (_, ResolvedAddress::Faulty) => return (None, variables),
        };
        let hint = format!("add the address of the {operations} operations: `{missing} = \"https://…\"`");
        self.miss("source", given, format!("`{missing}` is missing"), hint);
        (None, variables)
    }

    /// The identity of the service: its name, given or made from its address.
    pub(super) fn service(&mut self, source: Option<&Source>, variables: &[String]) -> ServiceIdentity {
        let mut service = match source {
            Some(Source::Remote(remote)) => ServiceIdentity {
                name: ServiceIdentity::name_of(&remote.base_url),
                base_url: Some(remote.base_url.to_string()),
                sentiment_base_url: (self.kind() != DatasetKind::Signals)
                    .then(|| remote.sentiment_base_url.to_string()),
            },
            Some(Source::Demo { .. }) | None => ServiceIdentity::demo(),
        };
        if let Some(name) = &self.definition.source.name {
            if !ServiceIdentity::is_name(name) {
                let hint = "use letters, digits, `-`, `_` and `.`, and begin with a letter or digit";
                self.object("source.name", format!("`{name}` cannot be the name of a service"), hint);
            } else if matches!(source, Some(Source::Remote(_))) && name == ServiceIdentity::DEMO {
                let hint = "choose another name: data of different services never meets";
                self.object("source.name", "`demo` is the built-in service", hint);
            } else if let Some(variable) = variables.first() {
                let what = format!("`name` would be that of every service whose address `{variable}` may hold");
                let hint = "remove it, so that each address has a history of its own; or write the address";
                self.object("source.name", what, hint);
            }
            service.name.clone_from(name);
        }
        service
    }

    /// How the service is asked.
    fn asking(&mut self) -> Asking {
        let section = &self.definition.source;
        let mut asking = Asking {
            unwrap: section.unwrap.as_ref().map(|names| names.to_vec()).unwrap_or_default(),
            news_tickers: section.tickers.clone().unwrap_or_default(),
            trusts_own_clock: section.clock == Some(TrustedClock::Ours),
            ..Asking::default()
        };
        if let Some(KeyPlace { header, query }) = &section.key {
            let refusal = match (header, query) {
                (Some(name), None) if HeaderName::try_from(name.as_str()).is_err() => Some((
                    format!("`{name}` cannot be the name of a header"),
                    "use the name that the vendor documents, such as `X-API-Key`",
                )),
                (None, Some(name)) if name.is_empty() || PARAMETERS.contains(&name.as_str()) => Some((
                    format!("the key cannot be sent as `{name}`"),
                    "use the name that the vendor documents, such as `apikey`",
                )),
                (Some(_), None) | (None, Some(_)) => None,
                (Some(_), Some(_)) | (None, None) => Some((
                    "the key is sent in a header or in the query".to_owned(),
                    "say one of them: `{ header = \"X-API-Key\" }` or `{ query = \"apikey\" }`",
                )),
            };
            if let Some((what, hint)) = refusal {
                self.object("source.key", what, hint);
            }
            (asking.key_header, asking.key_parameter) = (header.clone(), query.clone());
        }
        let key = asking.key_parameter.as_deref().unwrap_or("api_key");
        for (name, value) in section.query.iter().flatten() {
            if PARAMETERS.contains(&name.as_str()) || name == key {
                let hint = "the definition and the key say what it is: leave it out of `query`";
                self.object("source.query", format!("`{name}` is sent already"), hint);
            }
            asking.query.push((name.clone(), value.clone()));
        }
        self.paths(&mut asking.paths);
        for (ours, theirs) in section.fields.iter().flatten() {
            let (what, hint) = if !FIELDS.contains(&ours.as_str()) {
                (format!("the interface has no field `{ours}`"), suggestion(ours, &FIELDS, "fields are"))
            } else if theirs.is_empty() || theirs.contains(['"', '\\']) {
                (format!("`{theirs}` cannot be the name of a field"), "use the name in the vendor's answers".to_owned())
            } else if asking.fields.values().any(|known| known == theirs) {
                (format!("`{theirs}` is given two names"), "keep one of them".to_owned())
            } else {
                asking.fields.insert(ours.clone(), theirs.clone());
                continue;
            };
            self.object(&format!("source.fields.{ours}"), what, hint);
        }
        if asking.unwrap.iter().any(|name| name.is_empty() || name.contains(['"', '\\'])) {
            let hint = "use its name in the vendor's answers, such as `data`";
            self.object("source.unwrap", "no answer is held by such a member", hint);
        }
        asking
    }

    /// Other paths of operations.
    fn paths(&mut self, paths: &mut BTreeMap<Endpoint, String>) {
        for (operation, path) in self.definition.source.paths.iter().flatten() {
            let is_path = !path.trim_matches('/').is_empty()
                && !path.contains(['?', '#', '\\', '%'])
                && !path.chars().any(|letter| letter.is_control() || letter.is_whitespace())
                && !path.split('/').any(|part| matches!(part, "." | ".."));
            let (what, hint) = match operation.parse::<Endpoint>() {
                Err(_) => {
                    let hint = suggestion(operation, &Endpoint::ALL.map(Endpoint::as_str), "operations are");
                    (format!("unknown operation `{operation}`"), hint)
                }
                Ok(_) if !is_path => {
                    let hint = "write what follows the base address, such as `v2/history`; parameters go to `query`";
                    (format!("`{path}` is not a path"), hint.to_owned())
                }
                Ok(endpoint) if path.contains("{ticker}") && !endpoint.is_of_one_ticker() => {
                    (format!("`{operation}` is not asked for a ticker"), "leave out `{ticker}`".to_owned())
                }
                Ok(endpoint) => {
                    paths.insert(endpoint, path.trim_matches('/').to_owned());
                    continue;
                }
            };
            self.object(&format!("source.paths.{operation}"), what, hint);
        }
    }

    /// An address: as typed, from the variable that is named instead, or from the usual one. The value of a variable may be
    /// a secret that was named by mistake, and is not repeated.
    fn address(
        &mut self,
        key: &'static str,
        typed: Option<&Address>,
        usual: &str,
        variables: &mut Vec<String>,
    ) -> ResolvedAddress {
        let (name, at) = match typed {
            Some(Address::Written(address)) => return ResolvedAddress::Known(address.clone(), key),
            Some(Address::Variable(name)) => (name.as_str(), key),
            None => (usual, "source"),
        };
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
            if typed.is_none() {
                return ResolvedAddress::Absent;
            }
            let hint = format!("set it: `export {name}=https://api.example.com/v1`");
            self.object(at, format!("the variable `{name}` is not set"), hint);
            return ResolvedAddress::Faulty;
        };
        variables.push(name.to_owned());
        let of_web = value.to_str().filter(|text| text.starts_with("https://") || text.starts_with("http://"));
        let refusal = match of_web.map(str::parse::<BaseUrl>) {
            Some(Ok(address)) => return ResolvedAddress::Known(address, at),
            Some(Err(refusal)) => refusal,
            None => "not an address of the web\nuse a full address, such as `https://api.example.com/v1`".to_owned(),
        };
        let (what, hint) = refusal.split_once('\n').unwrap_or((&refusal, "use a full address"));
        self.object(at, format!("the variable `{name}`: {what}"), hint);
        ResolvedAddress::Faulty
    }

    /// The source of the API key.
    fn key_source(&mut self) -> KeySource {
        let (file, command) = (&self.definition.source.api_key_file, &self.definition.source.api_key_command);
        if file.is_some() && command.is_some() {
            let hint = "keep `api_key_file` or `api_key_command`, not both";
            self.object("source.api_key_command", "two sources for the API key", hint);
        }
        let what = match command.as_deref() {
            Some([]) => Some("an empty command"),
            // It is run without a shell, and few programs have a space in their names.
            Some([only]) if only.contains(' ') && !only.contains('/') => {
                Some("a command takes its arguments one by one")
            }
            _ => None,
        };
        if let Some(what) = what {
            let hint = "list the program and its arguments: `[\"pass\", \"show\", \"signals\"]`";
            self.object("source.api_key_command", what, hint);
        }
        let key = match (file, command) {
            (Some(file), _) => KeySource::File(PathBuf::from(file)),
            (None, Some(command)) => KeySource::Command { words: command.to_vec(), root: PathBuf::new() },
            (None, None) => KeySource::Environment { root: PathBuf::new() },
        };
        key.below(self.root)
    }

    /// The limits on requests.
    pub(super) fn limits(&mut self, source: Option<&Source>) -> RequestLimits {
        let section = &self.definition.source;
        let is_near = match source {
            Some(Source::Remote(remote)) => is_loopback(&remote.base_url) && is_loopback(&remote.sentiment_base_url),
            _ => true,
        };
        let connections = section.connections.unwrap_or(8);
        if !(1..=64).contains(&connections) {
            let what = format!("{connections} connections are out of range");
            self.object("source.connections", what, "use a number from 1 to 64");
        }
        if section.requests_per_second == Some(0) {
            self.object("source.requests_per_second", "`requests_per_second` must be positive", "use a number from 1");
        }
        RequestLimits {
            connections: usize::from(connections),
            per_second: section.requests_per_second.or((!is_near).then_some(25)),
            stall: section.stall.map_or(Duration::from_secs(30), |TimeSpan(span)| span),
            patience: section.patience.map_or(Duration::from_secs(15 * 60), |TimeSpan(span)| span),
        }
    }
}

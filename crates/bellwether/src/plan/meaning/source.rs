//! The service of a plan, and the limits on requests to it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderName;

use super::Validator;
use super::kinds::kind_of;
use crate::definition::{
    Address, BaseUrl, DatasetKind, Definition, KeyPlace, Placed, Service, SourceSection, TrustedClock,
};
use crate::interface::Endpoint;
use crate::key::source::KeySource;
use crate::net::address::is_loopback;
use crate::plan::{Asking, Remote, RequestLimits, ServiceIdentity, Source};
use crate::text::problem::{Problem, suggestion};

const DEFAULT_CONNECTIONS: usize = 8;
const DEFAULT_REQUESTS_PER_SECOND: u16 = 25;
const DEFAULT_STALL: Duration = Duration::from_secs(30);
const DEFAULT_PATIENCE: Duration = Duration::from_secs(15 * 60);
const MAX_EARLIER_RUNS: u8 = 12;

/// The variables that hold addresses which a definition leaves out.
const VARIABLES: [&str; 2] = ["BELLWETHER_BASE_URL", "BELLWETHER_SENTIMENT_BASE_URL"];

/// The service of a definition, and the variables of the environment that its addresses come from.
pub(super) struct ResolvedSource {
    /// None if it has problems.
    pub(super) source: Option<Source>,
    pub(super) variables: Vec<String>,
}

/// An address of a definition.
#[derive(Clone)]
enum ResolvedAddress {
    /// It is neither typed nor in the environment.
    Absent,
    /// It has a problem, which was reported.
    Faulty,
    Known(BaseUrl, Range<usize>),
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

impl Validator {
    /// The identity of the service: its name, given or made from its address.
    pub(super) fn service(
        &mut self,
        definition: &Definition,
        source: Option<&Source>,
        variables: &[String],
    ) -> ServiceIdentity {
        let mut service = match source {
            Some(Source::Remote(remote)) => ServiceIdentity {
                name: ServiceIdentity::name_of(&remote.base_url),
                base_url: Some(remote.base_url.to_string()),
                sentiment_base_url: (kind_of(definition) != DatasetKind::Signals)
                    .then(|| remote.sentiment_base_url.to_string()),
            },
            Some(Source::Demo { .. }) | None => ServiceIdentity::demo(),
        };
        if let Some(name) = &definition.source.name {
            let is_remote = matches!(source, Some(Source::Remote(_)));
            if !ServiceIdentity::is_name(name) {
                let problem = Problem::new(format!("`{}` cannot be the name of a service", **name), name.span());
                self.object(
                    problem.with_hint("use letters, digits, `-`, `_` and `.`, and begin with a letter or digit"),
                );
            } else if is_remote && name.as_str() == ServiceIdentity::DEMO {
                let problem = Problem::new("`demo` is the built-in service", name.span());
                self.object(problem.with_hint("choose another name: data of different services never meets"));
            } else if let Some(variable) = variables.first() {
                let what = format!("`name` would be that of every service whose address `{variable}` may hold");
                let hint = "remove it, so that each address has a history of its own; or write the address";
                self.object(Problem::new(what, name.span()).with_hint(hint));
            }
            service.name = (**name).clone();
        }
        service
    }

    pub(super) fn source(&mut self, definition: &Definition, root: &Path) -> ResolvedSource {
        let section = &definition.source;
        let SourceSection { service, base_url, sentiment_base_url, api_key_file, api_key_command, .. } = &**section;
        let addresses = [base_url.as_ref(), sentiment_base_url.as_ref()];
        if let Some(service) = service {
            let Service::Demo = **service;
            for address in addresses.into_iter().flatten() {
                let problem = Problem::new("`service` and an address are mutually exclusive", address.span());
                self.object(problem.with_hint("the demo service is built in: remove `service`, or the addresses"));
            }
            let (keyless, plain) = ("it needs no key: remove it", "it is asked as the interface says: remove it");
            let without_effect = [
                ("api_key_file", api_key_file.as_ref().map(Placed::span), keyless),
                ("api_key_command", api_key_command.as_ref().map(Placed::span), keyless),
                ("key", section.key.as_ref().map(Placed::span), plain),
                ("query", section.query.as_ref().map(Placed::span), plain),
                ("paths", section.paths.as_ref().map(Placed::span), plain),
                ("unwrap", section.unwrap.as_ref().map(Placed::span), plain),
                ("fields", section.fields.as_ref().map(Placed::span), plain),
                ("tickers", section.tickers.as_ref().map(Placed::span), plain),
                ("clock", section.clock.as_ref().map(Placed::span), plain),
            ];
            for (key, span, hint) in without_effect {
                if let Some(span) = span {
                    let problem = Problem::new(format!("`{key}` has no effect on the demo service"), span);
                    self.object(problem.with_hint(hint));
                }
            }
            let earlier_runs = section.earlier_runs.as_ref().map_or(0, |number| **number);
            if let Some(number) = &section.earlier_runs
                && **number > MAX_EARLIER_RUNS
            {
                let problem = Problem::new(format!("`{}` earlier runs are too many", **number), number.span());
                self.object(problem.with_hint("use a number from 0 to 12"));
            }
            return ResolvedSource { source: Some(Source::Demo { earlier_runs }), variables: Vec::new() };
        }
        if let Some(number) = &section.earlier_runs {
            let problem = Problem::new("`earlier_runs` has an effect on the demo service alone", number.span());
            self.object(problem.with_hint("remove it: what a vendor said before cannot be asked for"));
        }
        let key = self.key(section).below(root);
        let mut variables = Vec::new();
        let mut resolved = |typed, index: usize| self.address(section, typed, VARIABLES[index], &mut variables);
        let signals = resolved(base_url.as_ref(), 0);
        // No request is made to the other address.
        let is_one_enough = kind_of(definition) == DatasetKind::Signals && sentiment_base_url.is_none();
        let sentiment = match &signals {
            ResolvedAddress::Known(..) if is_one_enough => signals.clone(),
            _ => resolved(sentiment_base_url.as_ref(), 1),
        };
        ResolvedSource { source: self.remote(section, (signals, sentiment), key), variables }
    }

    /// The service at two addresses.
    fn remote(
        &mut self,
        section: &Placed<SourceSection>,
        addresses: (ResolvedAddress, ResolvedAddress),
        key: KeySource,
    ) -> Option<Source> {
        match addresses {
            (ResolvedAddress::Known(signals, _), ResolvedAddress::Known(sentiment, _)) => {
                let (base_url, sentiment_base_url) = (signals.as_url().clone(), sentiment.as_url().clone());
                let asking = self.asking(section);
                return Some(Source::Remote(Box::new(Remote { base_url, sentiment_base_url, key, asking })));
            }
            (ResolvedAddress::Absent, ResolvedAddress::Absent) => {
                let hint = "set both `base_url` and `sentiment_base_url`, or `service = \"demo\"`";
                self.miss("source", Problem::new("no service", section.span()).with_hint(hint));
            }
            (ResolvedAddress::Known(_, given), ResolvedAddress::Absent) => {
                self.one_address(given, "sentiment_base_url", "sentiment");
            }
            (ResolvedAddress::Absent, ResolvedAddress::Known(_, given)) => {
                self.one_address(given, "base_url", "signals");
            }
            (ResolvedAddress::Faulty, _) | (_, ResolvedAddress::Faulty) => {}
        }
        None
    }

    /// How the service is asked.
    fn asking(&mut self, section: &SourceSection) -> Asking {
        let mut asking = Asking::default();
        let own = ["sector", "period", "regime"];
        if let Some(place) = &section.key {
            let KeyPlace { header, query } = &**place;
            let (what, hint) = match (header, query) {
                (Some(name), None) if HeaderName::try_from(name.as_str()).is_err() => (
                    format!("`{name}` cannot be the name of a header"),
                    "use the name that the vendor documents, such as `X-API-Key`",
                ),
                (None, Some(name)) if name.is_empty() || own.contains(&name.as_str()) => (
                    format!("the key cannot be sent as `{name}`"),
                    "use the name that the vendor documents, such as `apikey`",
                ),
                (Some(_), Some(_)) | (None, None) => {
                    let what = "the key is sent in a header or in the query".to_owned();
                    (what, "say one of them: `{ header = \"X-API-Key\" }` or `{ query = \"apikey\" }`")
                }
                (Some(_), None) | (None, Some(_)) => (String::new(), ""),
            };
            if !what.is_empty() {
                self.object(Problem::new(what, place.span()).with_hint(hint));
            }
            (asking.key_header, asking.key_parameter) = (header.clone(), query.clone());
        }
        if let Some(query) = &section.query {
            let key = asking.key_parameter.as_deref().unwrap_or("api_key");
            for name in query.keys().filter(|name| own.contains(&name.as_str()) || *name == key) {
                let problem = Problem::new(format!("`{name}` is sent already"), query.span());
                self.object(problem.with_hint("the definition and the key say what it is: leave it out of `query`"));
            }
            asking.query = query.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        for (operation, path) in section.paths.iter().flat_map(|paths| paths.iter()) {
            let is_path = !path.trim_matches('/').is_empty()
                && !path.contains(['?', '#', '\\', '%'])
                && !path.chars().any(|letter| letter.is_control() || letter.is_whitespace())
                && !path.split('/').any(|part| matches!(part, "." | ".."));
            let endpoint = operation.parse::<Endpoint>();
            let (what, hint) = match &endpoint {
                Err(_) => {
                    let operations = Endpoint::ALL.map(Endpoint::as_str);
                    let hint = suggestion(operation, &operations, "operations are");
                    (format!("unknown operation `{operation}`"), hint)
                }
                Ok(_) if !is_path => {
                    let hint = "write what follows the base address, such as `v2/history`; parameters go to `query`";
                    (format!("`{}` is not a path", **path), hint.to_owned())
                }
                Ok(endpoint) if path.contains("{ticker}") && !endpoint.is_of_one_ticker() => {
                    (format!("`{operation}` is not asked for a ticker"), "leave out `{ticker}`".to_owned())
                }
                Ok(endpoint) => {
                    asking.paths.insert(*endpoint, path.trim_matches('/').to_owned());
                    continue;
                }
            };
            self.object(Problem::new(what, path.span()).with_hint(hint));
        }
        for (ours, theirs) in section.fields.iter().flat_map(|fields| fields.iter()) {
            let (what, hint) = if !FIELDS.contains(&ours.as_str()) {
                (format!("the interface has no field `{ours}`"), suggestion(ours, &FIELDS, "fields are"))
            } else if theirs.is_empty() || theirs.contains(['"', '\\']) {
                (
                    format!("`{}` cannot be the name of a field", **theirs),
                    "use the name in the vendor's answers".to_owned(),
                )
            } else if asking.fields.values().any(|known| *known == **theirs) {
                (format!("`{}` is given two names", **theirs), "keep one of them".to_owned())
            } else {
                asking.fields.insert(ours.clone(), (**theirs).clone());
                continue;
            };
            self.object(Problem::new(what, theirs.span()).with_hint(hint));
        }
        if let Some(unwrap) = &section.unwrap {
            asking.unwrap = unwrap.iter().map(|name| (**name).clone()).collect();
            if asking.unwrap.iter().any(|name| name.is_empty() || name.contains(['"', '\\'])) {
                let problem = Problem::new("no answer is held by such a member", unwrap.span());
                self.object(problem.with_hint("use its name in the vendor's answers, such as `data`"));
            }
        }
        asking.news_tickers = section.tickers.as_deref().cloned().unwrap_or_default();
        asking.trusts_own_clock = section.clock.as_deref() == Some(&TrustedClock::Ours);
        asking
    }

    /// An address: as typed, from the variable that is named instead, or from the usual one. The value of a variable may be
    /// a secret that was named by mistake, and is not repeated.
    fn address(
        &mut self,
        section: &Placed<SourceSection>,
        typed: Option<&Placed<Address>>,
        usual: &str,
        variables: &mut Vec<String>,
    ) -> ResolvedAddress {
        let (name, at) = match typed.map(|typed| (&**typed, typed.span())) {
            Some((Address::Written(address), at)) => return ResolvedAddress::Known(address.clone(), at),
            Some((Address::Variable(name), at)) => (name.as_str(), at),
            None => (usual, section.span()),
        };
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
            if typed.is_none() {
                return ResolvedAddress::Absent;
            }
            let problem = Problem::new(format!("the variable `{name}` is not set"), at);
            self.object(problem.with_hint(format!("set it: `export {name}=https://api.example.com/v1`")));
            return ResolvedAddress::Faulty;
        };
        variables.push(name.to_owned());
        let is_of_web = |text: &&str| ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
        let refusal = match value.to_str().filter(is_of_web).map(str::parse::<BaseUrl>) {
            Some(Ok(address)) => return ResolvedAddress::Known(address, at),
            Some(Err(refusal)) => refusal,
            None => "not an address of the web\nuse a full address, such as `https://api.example.com/v1`".to_owned(),
        };
        let (what, hint) = refusal.split_once('\n').unwrap_or((&refusal, "use a full address"));
        self.object(Problem::new(format!("the variable `{name}`: {what}"), at).with_hint(hint));
        ResolvedAddress::Faulty
    }

    /// Reports that one of the two addresses is missing.
    fn one_address(&mut self, given: Range<usize>, missing: &str, operations: &str) {
        let problem = Problem::new(format!("`{missing}` is missing"), given);
        let hint = format!("add the address of the {operations} operations: `{missing} = \"https://…\"`");
        self.miss("source", problem.with_hint(hint));
    }

    /// The source of the API key.
    fn key(&mut self, section: &SourceSection) -> KeySource {
        let SourceSection { api_key_file, api_key_command, .. } = section;
        if let (Some(_), Some(command)) = (api_key_file, api_key_command) {
            let problem = Problem::new("two sources for the API key", command.span());
            self.object(problem.with_hint("keep `api_key_file` or `api_key_command`, not both"));
        }
        let what = api_key_command.as_ref().and_then(|command| match &***command {
            [] => Some("an empty command"),
            // It is run without a shell, and few programs have a space in their names.
            [only] if only.contains(' ') && !only.contains('/') => Some("a command takes its arguments one by one"),
            _ => None,
        });
        if let (Some(what), Some(command)) = (what, api_key_command) {
            let problem = Problem::new(what, command.span());
            self.object(problem.with_hint("list the program and its arguments: `[\"pass\", \"show\", \"signals\"]`"));
        }
        match (api_key_file, api_key_command) {
            (Some(file), _) => KeySource::File(PathBuf::from(file.as_str())),
            (None, Some(command)) => {
                let words = command.iter().map(|word| (**word).clone()).collect();
                KeySource::Command { words, root: PathBuf::new() }
            }
            (None, None) => KeySource::Environment { root: PathBuf::new() },
        }
    }

    pub(super) fn limits(&mut self, section: &SourceSection, source: Option<&Source>) -> RequestLimits {
        let is_near = match source {
            Some(Source::Remote(remote)) => is_loopback(&remote.base_url) && is_loopback(&remote.sentiment_base_url),
            _ => true,
        };
        if let Some(connections) = section.connections.as_ref().filter(|count| !(1..=64).contains(&***count)) {
            let problem = Problem::new(format!("{} connections are out of range", **connections), connections.span());
            self.object(problem.with_hint("use a number from 1 to 64"));
        }
        if let Some(rate) = section.requests_per_second.as_ref().filter(|rate| ***rate == 0) {
            let problem = Problem::new("`requests_per_second` must be positive", rate.span());
            self.object(problem.with_hint("use a number from 1"));
        }
        let typed_rate = section.requests_per_second.as_deref().copied();
        RequestLimits {
            connections: section.connections.as_deref().map_or(DEFAULT_CONNECTIONS, |&count| usize::from(count)),
            per_second: typed_rate.or((!is_near).then_some(DEFAULT_REQUESTS_PER_SECOND)),
            stall: section.stall.as_deref().map_or(DEFAULT_STALL, |span| span.duration()),
            patience: section.patience.as_deref().map_or(DEFAULT_PATIENCE, |span| span.duration()),
        }
    }
}

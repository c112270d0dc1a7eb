//! The service of a plan, and the limits on requests to it.

use std::path::PathBuf;
use std::time::Duration;

use super::Validator;
use super::kinds::kind_of;
use crate::address::is_loopback;
use crate::definition::{BaseUrl, DatasetKind, Definition, Placed, Service, SourceSection};
use crate::key_source::KeySource;
use crate::plan::{Remote, RequestLimits, ServiceIdentity, Source};
use crate::problem::Problem;

const DEFAULT_CONNECTIONS: usize = 8;
const DEFAULT_REQUESTS_PER_SECOND: u16 = 25;
const DEFAULT_STALL: Duration = Duration::from_secs(30);
const DEFAULT_PATIENCE: Duration = Duration::from_secs(15 * 60);

impl Validator {
    /// The identity of the service: its name, given or made from its address.
    pub(super) fn service(&mut self, definition: &Definition, source: Option<&Source>) -> ServiceIdentity {
        let mut service = match source {
            Some(Source::Remote(remote)) => ServiceIdentity {
                name: ServiceIdentity::name_of(&remote.base_url),
                base_url: Some(remote.base_url.to_string()),
                sentiment_base_url: (kind_of(definition) != DatasetKind::Signals)
                    .then(|| remote.sentiment_base_url.to_string()),
            },
            Some(Source::Demo) | None => ServiceIdentity::demo(),
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
            }
            service.name = (**name).clone();
        }
        service
    }

    pub(super) fn source(&mut self, definition: &Definition) -> Option<Source> {
        let section = &definition.source;
        let SourceSection { service, base_url, sentiment_base_url, api_key_file, api_key_command, .. } = &**section;
        let addresses = [base_url.as_ref(), sentiment_base_url.as_ref()];
        if let Some(service) = service {
            let Service::Demo = **service;
            for address in addresses.into_iter().flatten() {
                let problem = Problem::new("`service` and an address are mutually exclusive", address.span());
                self.object(problem.with_hint("the demo service is built in: remove `service`, or the addresses"));
            }
            let keys = [
                ("api_key_file", api_key_file.as_ref().map(Placed::span)),
                ("api_key_command", api_key_command.as_ref().map(Placed::span)),
            ];
            for (key, span) in keys.into_iter().filter_map(|(key, span)| Some((key, span?))) {
                let problem = Problem::new(format!("`{key}` has no effect on the demo service"), span);
                self.object(problem.with_hint("it needs no key: remove it"));
            }
            return Some(Source::Demo);
        }
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
        let key = match (api_key_file, api_key_command) {
            (Some(file), _) => KeySource::File(PathBuf::from(file.as_str())),
            (None, Some(command)) => KeySource::Command(command.iter().map(|word| (**word).clone()).collect()),
            (None, None) => KeySource::Environment { root: PathBuf::new() },
        };
        let addresses = match addresses {
            // No request is made to the other address.
            [Some(signals), None] if kind_of(definition) == DatasetKind::Signals => [Some(signals), Some(signals)],
            addresses => addresses,
        };
        match addresses {
            [Some(signals), Some(sentiment)] => Some(Source::Remote(Box::new(Remote {
                base_url: BaseUrl::as_url(signals).clone(),
                sentiment_base_url: BaseUrl::as_url(sentiment).clone(),
                key,
            }))),
            [None, None] => {
                let hint = "set both `base_url` and `sentiment_base_url`, or `service = \"demo\"`";
                self.miss("source", Problem::new("no service", section.span()).with_hint(hint));
                None
            }
            [Some(given), None] => self.one_address(given, "sentiment_base_url", "sentiment"),
            [None, Some(given)] => self.one_address(given, "base_url", "signals"),
        }
    }

    /// Reports that one of the two addresses is missing.
    fn one_address(&mut self, given: &Placed<BaseUrl>, missing: &str, operations: &str) -> Option<Source> {
        let problem = Problem::new(format!("`{missing}` is missing"), given.span());
        let hint = format!("add the address of the {operations} operations: `{missing} = \"https://…\"`");
        self.miss("source", problem.with_hint(hint));
        None
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

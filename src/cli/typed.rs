//! Parsers of arguments.

use std::str::FromStr;

use bellwether::definition;
use bellwether::error::Error;
use bellwether::error::ErrorKind;
use bellwether::interface::Unknown;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::AsOf;
use bellwether::text::escape::escape;
use bellwether::time::{self, Clock};
use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};

pub(super) use bellwether::time::day;

use super::aligned::padding;
use super::outcome::Result;
use super::wrap::{columns_of_stderr, wrap};

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
pub(super) fn plan_of(name: Option<&str>, project: &Project) -> Result<Plan> {
    let (what, hint) = match name.map(|name| Plan::find(name, project)) {
        Some(Ok(plan)) => return Ok(plan),
        Some(Err(error)) if error.kind() == ErrorKind::NoDefinition => {
            (error.to_string(), error.hint().unwrap_or_default().to_owned())
        }
        Some(Err(error)) => return Err(error.into()),
        None => ("no definition given".to_owned(), "give the name of a definition".to_owned()),
    };
    let folder = project.definitions();
    let catalog = definition::catalog(&folder)?;
    if catalog.is_empty() {
        let what = if name.is_none() { format!("no definitions in `{}`", folder.display()) } else { what };
        let hint =
            "write one with `bellwether init`, try the built-in `demo`, or name another project with `--directory`"
                .to_owned();
        return Err(Error::new(ErrorKind::NoDefinition, what).with_hint(hint).into());
    }
    let hint =
        if name.is_some() && !hint.starts_with("did you mean") { "use one of these names".to_owned() } else { hint };
    let mut known = format!("definitions in `{}`:\n", folder.display());
    let width = catalog.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, description) in catalog {
        let description = description.unwrap_or_default();
        let line = format!("  {name}{}  {}", padding(&name, width), escape(&description));
        known.push_str(wrap(&line, width + 4, columns_of_stderr()).trim_end());
        known.push('\n');
    }
    Err(Error::new(ErrorKind::NoDefinition, what).with_hint(format!("{hint}\n{}", known.trim_end())).into())
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

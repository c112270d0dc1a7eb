//! Which request a file is the answer to, and since when, as far as its name tells.

use std::collections::BTreeMap;
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, Utc};
use url::form_urlencoded;

use crate::interface::{Endpoint, Period, Regime, Sector, Ticker};
use crate::plan::Request;
use crate::text::problem::{choices, suggestion};
use crate::time;

/// What the name of a file may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameField {
    Ticker,
    Sector,
    Period,
    Regime,
    ObservedAt,
}

impl NameField {
    const ALL: [Self; 5] = [Self::Ticker, Self::Sector, Self::Period, Self::Regime, Self::ObservedAt];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ticker => "ticker",
            Self::Sector => "sector",
            Self::Period => "period",
            Self::Regime => "regime",
            Self::ObservedAt => "observed_at",
        }
    }

    /// Whether a text can be its value.
    fn takes(self, text: &str) -> bool {
        match self {
            Self::Ticker => text.parse::<Ticker>().is_ok(),
            Self::Sector => text.parse::<Sector>().is_ok(),
            Self::Period => text.parse::<Period>().is_ok(),
            Self::Regime => text.parse::<Regime>().is_ok(),
            Self::ObservedAt => instant_in(text).is_some(),
        }
    }
}

/// An instant in the name of a file: as options have it, or without the letters that names cannot have.
fn instant_in(text: &str) -> Option<DateTime<Utc>> {
    const FORMS: [&str; 3] = ["%Y%m%dT%H%M%SZ", "%Y-%m-%dT%H%M%SZ", "%Y-%m-%dT%H-%M-%SZ"];
    let compact = FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || match text.len() {
        8 if text.is_ascii() => time::instant(&format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..])).ok(),
        _ => time::instant(text).ok(),
    };
    compact.map(|instant| instant.and_utc()).or_else(day)
}

/// A part of a pattern.
#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Field(NameField),
}

/// The parts of a text with fields in braces.
fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a `{` without its `}`")?;
        let names = NameField::ALL.map(NameField::as_str);
        let field = NameField::ALL.into_iter().find(|field| field.as_str() == name);
        let field =
            field.ok_or_else(|| format!("no field `{{{name}}}`; {}", suggestion(name, &names, "choose one of")))?;
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        parts.push(Part::Field(field));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}

/// What the names of files look like: `{ticker}-{observed_at}.json`.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    parts: Vec<Part>,
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = parts(text)?;
        let is_field = |part: &Part| matches!(part, Part::Field(_));
        if !parts.iter().any(is_field) {
            let fields = NameField::ALL.map(|field| format!("{{{}}}", field.as_str()));
            return Err(format!("it has no field; fields are {}", choices(fields.iter().map(String::as_str))));
        }
        if parts.windows(2).any(|pair| pair.iter().all(is_field)) {
            return Err("two fields with nothing between them".to_owned());
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

/// What the name of a file tells.
#[derive(Clone, Debug, Default)]
pub(super) struct NameFields(BTreeMap<NameField, String>);

impl NameFields {
    /// The instant at which it was observed.
    pub(super) fn observed_at(&self) -> Option<DateTime<Utc>> {
        self.0.get(&NameField::ObservedAt).and_then(|text| instant_in(text))
    }
}

impl NamePattern {
    /// What a name tells; an error says that it does not look like that.
    pub(super) fn read(&self, name: &str) -> Result<NameFields, String> {
        let mut values = BTreeMap::new();
        let is_read = fits(name, &self.parts, &mut values);
        is_read.then_some(NameFields(values)).ok_or_else(|| format!("its name does not look like `{}`", self.text))
    }

    /// Whether it tells when files were observed.
    pub fn has_instant(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field(NameField::ObservedAt)))
    }
}

/// Whether a name has some parts, with valid values for its fields, the shortest first.
fn fits(name: &str, parts: &[Part], values: &mut BTreeMap<NameField, String>) -> bool {
    match parts.split_first() {
        None => name.is_empty(),
        Some((Part::Literal(literal), rest)) => {
            name.strip_prefix(&**literal).is_some_and(|name| fits(name, rest, values))
        }
        Some((&Part::Field(field), rest)) => {
            let ends = name.char_indices().map(|(at, letter)| at + letter.len_utf8());
            ends.collect::<Vec<_>>().into_iter().any(|end| {
                let (text, after) = name.split_at(end);
                let is_known = values.get(&field).is_none_or(|known| known == text);
                if !is_known || !field.takes(text) || !fits(after, rest, values) {
                    return false;
                }
                values.insert(field, text.to_owned());
                true
            })
        }
    }
}

/// The request whose answers files are, as its path and query below the base address, with fields that the names of the
/// files tell: `signals-history-all?sector={sector}&period=15d&regime=neutral`.
#[derive(Clone, Debug)]
pub struct RequestTemplate(Vec<Part>);

impl FromStr for RequestTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = parts(text)?;
        let has_instant = parts.iter().any(|part| matches!(part, Part::Field(NameField::ObservedAt)));
        if has_instant {
            return Err("a request has no `{observed_at}`".to_owned());
        }
        let template = Self(parts);
        // With any values, so that a mistake is found before a file is.
        let example = |field: NameField| match field {
            NameField::Ticker => "A".to_owned(),
            NameField::Sector => "energy".to_owned(),
            NameField::Period => Period::default().to_string(),
            NameField::Regime => Regime::default().to_string(),
            NameField::ObservedAt => String::new(),
        };
        parse(&template.fill(&|field| Some(example(field)))?)?;
        Ok(template)
    }
}

impl RequestTemplate {
    /// The request of a file whose name tells some fields.
    pub(super) fn of(&self, named: &NameFields) -> Result<Request, String> {
        parse(&self.fill(&|field| named.0.get(&field).cloned())?)
    }

    fn fill(&self, value: &dyn Fn(NameField) -> Option<String>) -> Result<String, String> {
        let mut target = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => target.push_str(literal),
                Part::Field(field) => {
                    let value = value(*field);
                    let value = value.ok_or_else(|| format!("its name does not tell `{{{}}}`", field.as_str()))?;
                    match target.contains('?') {
                        true => target.extend(form_urlencoded::byte_serialize(value.as_bytes())),
                        false => target.push_str(&value),
                    }
                }
            }
        }
        Ok(target)
    }
}

/// The request of a target, with the service's own defaults.
fn parse(target: &str) -> Result<Request, String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.trim_start_matches('/');
    let of = |endpoint: Endpoint| match endpoint.is_of_one_ticker() {
        true => Request::ticker_of(endpoint, path).map(|ticker| Request::of_ticker(endpoint, ticker)),
        false => (endpoint.path() == path).then(|| Request::bare(endpoint)),
    };
    let archived = || Endpoint::ALL.into_iter().filter(|endpoint| !endpoint.as_str().starts_with("signals-legacy"));
    let Some(mut request) = archived().find_map(of) else {
        return Err(format!(
            "`{path}` is no operation that is archived; they are {}",
            choices(archived().map(Endpoint::path))
        ));
    };
    let has_series =
        |endpoint| matches!(endpoint, Endpoint::SignalsHistoryAll | Endpoint::SignalsHistory | Endpoint::Signals);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let unknown = |unknown: crate::interface::Unknown| format!("{unknown}; {}", unknown.hint);
        match &*key {
            "sector" if request.endpoint == Endpoint::SignalsHistoryAll => {
                request.sector = Some(value.parse().map_err(unknown)?);
            }
            "period" if has_series(request.endpoint) => request.period = Some(value.parse().map_err(unknown)?),
            "regime" if has_series(request.endpoint) => request.regime = Some(value.parse().map_err(unknown)?),
            _ => return Err(format!("`{}` takes no parameter `{key}` here", request.endpoint)),
        }
    }
    if request.endpoint == Endpoint::SignalsHistoryAll && request.sector.is_none() {
        return Err(format!("`{}` needs a `sector`", request.endpoint));
    }
    if has_series(request.endpoint) {
        request.period = Some(request.period.unwrap_or_default());
        request.regime = Some(request.regime.unwrap_or_default());
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::{NamePattern, RequestTemplate};

    #[test]
    fn a_name_is_read_so_that_every_field_has_a_value_that_it_can_have() {
        let read = |pattern: &str, name: &str, target: &str| {
            let named = pattern.parse::<NamePattern>().unwrap().read(name)?;
            let request = target.parse::<RequestTemplate>().unwrap().of(&named)?;
            Ok::<_, String>((request.to_string(), named.observed_at().map(crate::time::to_record)))
        };
        let end = Some("2025-03-01T23:59:59.999999Z".to_owned());
        for (name, instant) in [
            ("BRK-B-2025-03-01.json", end.clone()),
            ("BRK-B-20250301.json", end),
            ("BRK-B-20250301T213000Z.json", Some("2025-03-01T21:30:00.000000Z".to_owned())),
            ("BRK-B-2025-03-01T21-30-00Z.json", Some("2025-03-01T21:30:00.000000Z".to_owned())),
        ] {
            let found = read("{ticker}-{observed_at}.json", name, "news_articles/{ticker}");
            assert_eq!(found, Ok(("news_articles/BRK-B".to_owned(), instant)), "{name}");
        }
        let target = "signals-history-all?sector={sector}&period={period}";
        let found = read("{sector}.{period}.json", "real estate.5d.json", target).unwrap().0;
        assert_eq!(found, "signals-history-all sector=real estate period=5d regime=neutral");
        assert!(read("{ticker}-{observed_at}.json", "XOM.json", "news_articles/{ticker}").is_err());
        assert!(read("{period}.json", "15d.json", "news_articles/{ticker}").is_err());
    }

    #[test]
    fn what_is_no_pattern_or_no_request_is_refused() {
        for odd in ["x.json", "{ticker}{period}", "{tickr}.json", "{ticker"] {
            assert!(odd.parse::<NamePattern>().is_err(), "{odd}");
        }
        for odd in [
            "signals-history-all",
            "signals-history-all?sector=energy&perod=5d",
            "signals-legacy/XOM",
            "prices/XOM",
            "news_articles/XOM?period=5d",
            "news_articles/{observed_at}",
        ] {
            assert!(odd.parse::<RequestTemplate>().is_err(), "{odd}");
        }
    }
}

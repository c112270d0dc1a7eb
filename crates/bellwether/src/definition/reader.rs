//! Reads a definition and gathers every problem of the file.
//!
//! Deserializing stops at the first error. So each value is first deserialized on its own, in a table that holds
//! nothing else, and removed from the file if it fails. The rest deserializes as a whole and can still be checked. The
//! types of the definition remain the only description of the format: values of the wrong kind, such as text where a number
//! belongs, are explained by the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use schemars::Schema;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::values::is_list;
use super::{Definition, json_schema};
use crate::text::problem::{Problem, SHOWN, choices, suggestion};

type Key<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

static SCHEMA: LazyLock<Schema> = LazyLock::new(json_schema);

/// The parsed part of a definition, and the problems of the rest.
#[derive(Clone, Debug, Default)]
pub struct ParsedDefinition {
    /// The parsed part.
    pub(crate) definition: Definition,
    /// The bytes of the file that hold each value of it: of a section `join`, of a key `join.lag`, of an element of a list or
    /// an entry of a table `join.windows.0`.
    pub(crate) places: BTreeMap<String, Range<usize>>,
    /// The problems of the rest.
    pub problems: Vec<Problem>,
    /// The sections that something was removed from: they may lack something for that reason.
    pub flawed: BTreeSet<String>,
}

impl ParsedDefinition {
    /// Reads a definition.
    pub fn read(text: &str) -> Self {
        let (document, faults) = DeTable::parse_recoverable(text);
        let mut reading = Self::default();
        if !faults.is_empty() {
            // What follows a broken line may be misread: report only syntax errors.
            reading.problems = faults.iter().map(|fault| problem_of(fault, text.len()..text.len())).collect();
            reading.flawed.extend(names(SCHEMA.as_value()).into_iter().map(str::to_owned));
            return reading;
        }
        let mut unknown = Vec::new();
        let table = reading.prune(None, document.into_inner(), SCHEMA.as_value(), &mut unknown);
        unknown.sort_by_key(|unknown| unknown.key.span().start);
        for (position, UnknownKey { key, section, schema }) in unknown.into_iter().enumerate() {
            let (given, section): (&str, _) = (key.get_ref(), section.as_deref());
            let place = section.map_or_else(String::new, |section| format!(" in `[{section}]`"));
            let mut problem = Problem::new(format!("unknown key `{given}`{place}"), key.span());
            // Only those that are shown get a hint, since finding the nearest name is slow.
            if position < SHOWN {
                problem = problem.with_hint(hint_for_key(given, section, &names(schema)));
            }
            reading.problems.push(problem);
        }
        match Definition::deserialize(Spanned::new(0..text.len(), table).into_deserializer()) {
            Ok(definition) => reading.definition = definition,
            Err(fault) => reading.problems.push(problem_of(&fault, 0..0)),
        }
        reading
    }

    /// Removes unknown keys and invalid values from a section, or from the whole definition.
    fn prune<'i>(
        &mut self,
        section: Option<&Key<'i>>,
        table: DeTable<'i>,
        schema: &'static Json,
        unknown: &mut Vec<UnknownKey<'i>>,
    ) -> DeTable<'i> {
        let mut kept = DeTable::new();
        for (key, value) in table {
            let Some(known) = property(schema, key.get_ref()) else {
                unknown.push(UnknownKey { key, section: section.map(|name| name.get_ref().to_string()), schema });
                continue;
            };
            let (before, span, inner) = (self.problems.len() + unknown.len(), value.span(), resolve(known));
            let path = section.map_or_else(String::new, |name| format!("{}.", name.get_ref())) + key.get_ref();
            match value.into_inner() {
                DeValue::Table(entries) if section.is_none() && !names(inner).is_empty() => {
                    let entries = self.prune(Some(&key), entries, inner, unknown);
                    self.places.insert(path, span.clone());
                    kept.insert(key.clone(), Spanned::new(span, DeValue::Table(entries)));
                }
                value => {
                    let entry = LocatedKey { section, key: &key, schema: known };
                    if let Some(value) = entry.prune(Spanned::new(span, value), &mut self.problems) {
                        self.locate(path, &value);
                        kept.insert(key.clone(), value);
                    }
                }
            }
            if section.is_none() && self.problems.len() + unknown.len() > before {
                self.flawed.insert(key.get_ref().to_string());
            }
        }
        kept
    }

    /// Notes where a value is, and what is in it.
    fn locate(&mut self, path: String, value: &Value<'_>) {
        match value.get_ref() {
            DeValue::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.locate(format!("{path}.{index}"), element);
                }
            }
            DeValue::Table(entries) => {
                for (key, value) in entries {
                    self.locate(format!("{path}.{}", key.get_ref()), value);
                }
            }
            _ => {}
        }
        self.places.insert(path, value.span());
    }
}

/// An unknown key, the section that it is in, and the keys that it may have.
struct UnknownKey<'i> {
    key: Key<'i>,
    section: Option<String>,
    schema: &'static Json,
}

/// A key, its section, and what it takes.
#[derive(Clone, Copy)]
struct LocatedKey<'k, 'i> {
    section: Option<&'k Key<'i>>,
    key: &'k Key<'i>,
    schema: &'static Json,
}

impl<'i> LocatedKey<'_, 'i> {
    /// What is `items` of a list, or `additionalProperties` of a table whose keys are free.
    fn inner(self, name: &str) -> &'static Json {
        alternatives(self.schema).into_iter().find_map(|schema| schema.get(name)).unwrap_or(&Json::Null)
    }

    /// The same key for the elements of its list, if it takes one.
    fn element(self) -> Option<Self> {
        Some(Self { schema: self.inner("items"), ..self }).filter(|element| *element.schema != Json::Null)
    }

    /// A value without its invalid parts: a list keeps its valid elements, any other value is kept or removed.
    fn prune(self, value: Value<'i>, problems: &mut Vec<Problem>) -> Option<Value<'i>> {
        let value = self.normal(value);
        if let (DeValue::Array(elements), Some(entry)) = (value.get_ref(), self.element())
            && !elements.is_empty()
        {
            let mut kept = DeArray::new();
            for element in elements.iter() {
                let alone = DeValue::Array([element.clone()].into_iter().collect());
                let alone = Spanned::new(element.span(), alone);
                if entry.is_of_kind(element, problems) && entry.probe(alone, problems) {
                    kept.push(element.clone());
                }
            }
            return (!kept.is_empty()).then(|| Spanned::new(value.span(), DeValue::Array(kept)));
        }
        (self.is_of_kind(&value, problems) && self.probe(value.clone(), problems)).then_some(value)
    }

    /// A value in the form that the types take: a date as its text, and the only value of a list in brackets.
    fn normal(self, value: Value<'i>) -> Value<'i> {
        let span = value.span();
        let value = match (value.into_inner(), self.element()) {
            (DeValue::Array(elements), Some(entry)) => {
                DeValue::Array(elements.into_iter().map(|element| entry.normal(element)).collect())
            }
            (value @ (DeValue::Array(_) | DeValue::Table(_)), _) => value,
            (value, Some(entry)) if is_list(self.schema) => {
                DeValue::Array([entry.normal(Spanned::new(span.clone(), value))].into_iter().collect())
            }
            (DeValue::Datetime(date), _) if kinds(self.schema).contains(&DAY) => {
                DeValue::String(date.to_string().into())
            }
            (value, _) => value,
        };
        Spanned::new(span, value)
    }

    /// Whether a value is text, a number, a list or a table of such as its key takes it.
    fn is_of_kind(self, value: &Value<'i>, problems: &mut Vec<Problem>) -> bool {
        if let Some((message, hint)) = self.refusal(value.get_ref()) {
            problems.push(Problem::new(message, value.span()).with_hint(hint));
            return false;
        }
        let DeValue::Table(entries) = value.get_ref() else { return true };
        let (before, schema) = (problems.len(), self.inner("additionalProperties"));
        for (key, value) in entries {
            LocatedKey { section: Some(self.key), key, schema }.is_of_kind(value, problems);
        }
        problems.len() == before
    }

    /// The problem with the kind of a value, with a hint; `None` if the kind is right.
    fn refusal(self, value: &DeValue<'_>) -> Option<(String, String)> {
        let (mut kinds, key) = (kinds(self.schema), self.key.get_ref());
        let (first, given) = (*kinds.first()?, kind_of_value(value));
        if kinds.iter().any(|kind| *kind == given || matches!((*kind, given), (NUMBER, WHOLE) | (DAY, TEXT))) {
            return None;
        }
        kinds.dedup();
        let given = match value {
            DeValue::Boolean(flag) => format!("`{flag}`"),
            DeValue::Integer(_) => NUMBER.to_owned(),
            DeValue::Float(number) => format!("`{}`", number.as_str()),
            _ => given.to_owned(),
        };
        let message = format!("`{key}` takes {}, not {given}", kinds.join(" or "));
        Some((message, hint_for_kind(key, first, alternatives(self.schema)[0], value)))
    }

    /// Whether a value is valid on its own.
    fn probe(self, value: Value<'i>, problems: &mut Vec<Problem>) -> bool {
        let span = value.span();
        let mut table = DeTable::from_iter([(self.key.clone(), value)]);
        if let Some(section) = self.section {
            table = DeTable::from_iter([(section.clone(), Spanned::new(span.clone(), DeValue::Table(table)))]);
        }
        let Err(fault) = Definition::deserialize(Spanned::new(span.clone(), table).into_deserializer()) else {
            return true;
        };
        let number = ["invalid value: integer `", "invalid type: integer `"].into_iter().find_map(|what| {
            let (number, _) = fault.message().strip_prefix(what)?.split_once('`')?;
            Some(number)
        });
        let description = self.schema.get("description").and_then(Json::as_str);
        problems.push(match (number, description.and_then(|text| text.split(". ").next())) {
            (Some(number), Some(description)) => {
                let problem = Problem::new(format!("{number} is out of range"), fault.span().unwrap_or(span));
                let (first, rest) = description.trim_end_matches('.').split_at(1);
                problem.with_hint(format!("`{}` is {}{rest}", self.key.get_ref(), first.to_lowercase()))
            }
            _ => problem_of(&fault, span),
        });
        false
    }
}

const TEXT: &str = "text";
const DAY: &str = "a date";
const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";
const FLAG: &str = "`true` or `false`";
const LIST: &str = "a list";
const TABLE: &str = "a table";

/// The kinds of values that a schema takes, in words.
fn kinds(schema: &'static Json) -> Vec<&'static str> {
    let kind = |schema: &Json| match schema.get("type")?.as_str()? {
        "string" if schema.get("format").and_then(Json::as_str) == Some("date") => Some(DAY),
        "string" => Some(TEXT),
        "integer" => Some(WHOLE),
        "number" => Some(NUMBER),
        "boolean" => Some(FLAG),
        "array" => Some(LIST),
        "object" => Some(TABLE),
        _ => None,
    };
    alternatives(schema).into_iter().filter_map(kind).collect()
}

fn kind_of_value(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => TEXT,
        DeValue::Integer(_) => WHOLE,
        DeValue::Float(_) => NUMBER,
        DeValue::Boolean(_) => FLAG,
        DeValue::Datetime(_) => DAY,
        DeValue::Array(_) => LIST,
        DeValue::Table(_) => TABLE,
    }
}

/// How to write a value of the expected kind.
fn hint_for_kind(key: &str, wanted: &str, schema: &Json, value: &DeValue<'_>) -> String {
    let is_quoted_by_mistake = match (wanted, value) {
        (WHOLE, DeValue::String(text)) => text.parse::<i64>().is_ok(),
        (NUMBER, DeValue::String(text)) => text.parse::<f64>().is_ok(),
        (FLAG, DeValue::String(text)) => matches!(&**text, "true" | "false"),
        _ => false,
    };
    match (wanted, value) {
        (TABLE, DeValue::Array(_)) => format!("write `[{key}]` once, in single brackets"),
        (TABLE, _) => format!("write `[{key}]` on a line of its own, and its keys below it"),
        (_, DeValue::String(text)) if is_quoted_by_mistake => format!("write it without quotes: `{key} = {text}`"),
        (WHOLE | NUMBER, DeValue::String(_)) => "write a number, without quotes".to_owned(),
        (FLAG, _) => "write `true` or `false`, without quotes".to_owned(),
        (WHOLE | NUMBER, DeValue::Array(_)) => "write one number, without brackets".to_owned(),
        (WHOLE | NUMBER, _) => format!("write {wanted}"),
        (TEXT | DAY, DeValue::Array(_)) => "write one value, without brackets".to_owned(),
        _ => {
            let list = |name: &str| schema.get(name).and_then(Json::as_array).into_iter().flatten();
            let of_set: Vec<&str> = list("oneOf").filter_map(|value| value.get("const")?.as_str()).collect();
            match list("examples").find_map(Json::as_str) {
                _ if !of_set.is_empty() => format!("write one of these in quotes: {}", choices(of_set)),
                Some(example) => format!("write it in quotes, such as `{key} = \"{example}\"`"),
                None => "write it in quotes".to_owned(),
            }
        }
    }
}

/// An error of the deserializer as a problem. Our own types put a hint on a second line of the message.
fn problem_of(fault: &toml::de::Error, otherwise: Range<usize>) -> Problem {
    let span = fault.span().unwrap_or(otherwise);
    match fault.message().split_once('\n') {
        Some((message, hint)) => Problem::new(message, span).with_hint(hint),
        None => Problem::new(fault.message(), span),
    }
}

/// What to do about a key that a section does not know. It may belong elsewhere.
fn hint_for_key(given: &str, section: Option<&str>, known: &[&str]) -> String {
    if section == Some("source") && matches!(given, "api_key" | "key" | "apikey" | "token") {
        return "API keys do not belong in shared files: remove it, revoke it, and set a new one with `BELLWETHER_API_KEY`, \
                `api_key_file` or `api_key_command`"
            .to_owned();
    }
    if (section, given) == (Some("output"), "columns") {
        return "use `add` in `[dataset]` to add columns, or `columns` to choose all of them".to_owned();
    }
    let root = SCHEMA.as_value();
    let has_key = |name: &&str| property(root, name).is_some_and(|known| property(resolve(known), given).is_some());
    let sections: Vec<String> = names(root).into_iter().filter(has_key).map(|name| format!("`[{name}]`")).collect();
    if known.iter().any(|known| strsim::damerau_levenshtein(known, given) == 1) {
        suggestion(given, known, "known keys")
    } else if section.is_some() && property(root, given).is_some() {
        format!("`{given}` belongs at the top, before the first section")
    } else if !sections.is_empty() {
        format!("`{given}` belongs in {}", sections.join(" or "))
    } else {
        suggestion(given, known, "known keys")
    }
}

fn property(schema: &'static Json, key: &str) -> Option<&'static Json> {
    schema.get("properties")?.get(key)
}

fn names(schema: &'static Json) -> Vec<&'static str> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

/// The section that a property refers to, through `$ref` or an optional one's `anyOf`.
fn resolve(property: &'static Json) -> &'static Json {
    let reference = property.get("$ref").or_else(|| property.get("anyOf")?.get(0)?.get("$ref"));
    let pointer = reference.and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| SCHEMA.as_value().pointer(pointer)).unwrap_or(property)
}

/// The schemas that a value may have.
fn alternatives(schema: &'static Json) -> Vec<&'static Json> {
    let schema = if schema.get("$ref").is_some() { resolve(schema) } else { schema };
    match schema.get("anyOf").and_then(Json::as_array) {
        Some(some) => some.iter().flat_map(alternatives).collect(),
        None => vec![schema],
    }
}

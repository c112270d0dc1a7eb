//! Reads a definition and gathers every problem of the file.
//!
//! Deserializing stops at the first error. So each value is first deserialized on its own, in a table that holds
//! nothing else, and removed from the file if it fails. The rest deserializes as a whole and can still be checked. The
//! types of the definition remain the only description of the format.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use schemars::Schema;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::Definition;
use super::kinds::ExpectedKind;
use super::values::is_list;
use crate::text::problem::{Problem, SHOWN, suggestion};

type Key<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

static SCHEMA: LazyLock<Schema> = LazyLock::new(Definition::json_schema);

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
        let schema = &*SCHEMA;
        if !faults.is_empty() {
            // What follows a broken line may be misread: report only syntax errors.
            reading.problems = faults.iter().map(|fault| problem_of(fault, text.len()..text.len())).collect();
            reading.flawed.extend(names(schema.as_value()).into_iter().map(str::to_owned));
            return reading;
        }
        let mut unknown = Vec::new();
        let table = reading.prune(None, document.into_inner(), schema, schema.as_value(), &mut unknown);
        reading.problems.extend(unknown_keys(unknown, schema.as_value()));
        let whole = Spanned::new(0..text.len(), table);
        match Definition::deserialize(whole.into_deserializer()) {
            Ok(definition) => reading.definition = definition,
            Err(fault) => reading.problems.push(problem_of(&fault, 0..0)),
        }
        reading
    }

    /// Removes unknown keys and invalid values from a section, or from the whole definition.
    fn prune<'i, 's>(
        &mut self,
        section: Option<&Key<'i>>,
        table: DeTable<'i>,
        root: &'s Schema,
        schema: &'s Json,
        unknown: &mut Vec<UnknownKey<'i, 's>>,
    ) -> DeTable<'i> {
        let mut kept = DeTable::new();
        for (key, value) in table {
            let Some(known) = property(schema, key.get_ref()) else {
                unknown.push(UnknownKey { key, section: section.map(|name| name.get_ref().to_string()), schema });
                continue;
            };
            let (before, span) = (self.problems.len() + unknown.len(), value.span());
            let inner = resolve(root.as_value(), known);
            let path = section
                .map_or_else(|| key.get_ref().to_string(), |name| format!("{}.{}", name.get_ref(), key.get_ref()));
            let is_section = section.is_none() && !names(inner).is_empty();
            match value.into_inner() {
                DeValue::Table(entries) if is_section => {
                    let entries = self.prune(Some(&key), entries, root, inner, unknown);
                    self.places.insert(path, span.clone());
                    kept.insert(key.clone(), Spanned::new(span, DeValue::Table(entries)));
                }
                value => {
                    let entry = LocatedKey { section, key: &key, expected: ExpectedKind { root, schema: known } };
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
                elements
                    .iter()
                    .enumerate()
                    .for_each(|(index, element)| self.locate(format!("{path}.{index}"), element));
            }
            DeValue::Table(entries) => {
                entries.iter().for_each(|(key, value)| self.locate(format!("{path}.{}", key.get_ref()), value));
            }
            _ => {}
        }
        self.places.insert(path, value.span());
    }
}

/// An unknown key.
struct UnknownKey<'i, 's> {
    key: Key<'i>,
    /// The section that it is in.
    section: Option<String>,
    /// The keys that it may have.
    schema: &'s Json,
}

/// Unknown keys as problems. Only those that are shown get a hint, since finding the nearest name is slow.
fn unknown_keys(mut unknown: Vec<UnknownKey<'_, '_>>, root: &Json) -> impl Iterator<Item = Problem> {
    unknown.sort_by_key(|unknown| unknown.key.span().start);
    unknown.into_iter().enumerate().map(|(position, UnknownKey { key, section, schema })| {
        let given: &str = key.get_ref();
        let place = section.as_ref().map_or_else(String::new, |section| format!(" in `[{section}]`"));
        let problem = Problem::new(format!("unknown key `{given}`{place}"), key.span());
        if position >= SHOWN {
            return problem;
        }
        problem.with_hint(hint_for_key(given, section.as_deref(), &names(schema), root))
    })
}

/// A key, its location, and its expected type.
#[derive(Clone, Copy)]
struct LocatedKey<'k, 'i, 's> {
    section: Option<&'k Key<'i>>,
    key: &'k Key<'i>,
    expected: ExpectedKind<'s>,
}

impl<'i> LocatedKey<'_, 'i, '_> {
    /// A value without its invalid parts: a list keeps its valid elements, any other value is kept or removed.
    fn prune(self, value: Value<'i>, problems: &mut Vec<Problem>) -> Option<Value<'i>> {
        let span = value.span();
        match self.normal(value).into_inner() {
            DeValue::Array(elements) if !elements.is_empty() && self.expected.element().is_known() => {
                let entry = Self { expected: self.expected.element(), ..self };
                let mut kept = DeArray::new();
                for element in elements.iter() {
                    let mut alone = DeArray::new();
                    alone.push(element.clone());
                    let alone = Spanned::new(element.span(), DeValue::Array(alone));
                    if entry.is_of_kind(element, problems) && entry.probe(alone, problems) {
                        kept.push(element.clone());
                    }
                }
                (!kept.is_empty()).then(|| Spanned::new(span, DeValue::Array(kept)))
            }
            value => {
                let value = Spanned::new(span, value);
                (self.is_of_kind(&value, problems) && self.probe(value.clone(), problems)).then_some(value)
            }
        }
    }

    /// A value in the form that the types take: a date as its text, and the only value of a list in brackets.
    fn normal(self, value: Value<'i>) -> Value<'i> {
        let span = value.span();
        let value = match value.into_inner() {
            DeValue::Array(elements) if self.expected.element().is_known() => {
                let entry = Self { expected: self.expected.element(), ..self };
                DeValue::Array(elements.into_iter().map(|element| entry.normal(element)).collect())
            }
            value @ (DeValue::Array(_) | DeValue::Table(_)) => value,
            value if is_list(self.expected.schema) => {
                let entry = Self { expected: self.expected.element(), ..self };
                DeValue::Array([entry.normal(Spanned::new(span.clone(), value))].into_iter().collect())
            }
            DeValue::Datetime(date) if self.expected.is_day() => DeValue::String(date.to_string().into()),
            value => value,
        };
        Spanned::new(span, value)
    }

    /// Whether a value is text, a number, a list or a table of such as its key takes it.
    fn is_of_kind(self, value: &Value<'i>, problems: &mut Vec<Problem>) -> bool {
        if let Some((message, hint)) = self.expected.refusal(self.key.get_ref(), value.get_ref()) {
            problems.push(Problem::new(message, value.span()).with_hint(hint));
            return false;
        }
        let DeValue::Table(entries) = value.get_ref() else { return true };
        let entry = |key| LocatedKey { section: Some(self.key), key, expected: self.expected.value_of_any_key() };
        let before = problems.len();
        for (key, value) in entries {
            entry(key).is_of_kind(value, problems);
        }
        problems.len() == before
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
        let number = ["value", "type"].into_iter().find_map(|what| {
            let (what, rest) = (format!("invalid {what}: integer `"), fault.message());
            rest.strip_prefix(&what)?.split_once('`')
        });
        problems.push(match (number, self.expected.description()) {
            (Some((number, _)), Some(description)) => {
                let problem = Problem::new(format!("{number} is out of range"), fault.span().unwrap_or(span));
                let (first, rest) = description.split_at(1);
                problem.with_hint(format!("`{}` is {}{rest}", self.key.get_ref(), first.to_lowercase()))
            }
            _ => problem_of(&fault, span),
        });
        false
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

/// Where a key belongs that is known in another place, if it has one name for one thing there.
fn elsewhere(given: &str, section: Option<&str>, root: &Json) -> Option<String> {
    if section.is_some() && property(root, given).is_some() {
        return Some(format!("`{given}` belongs at the top, before the first section"));
    }
    let has_key = |name: &&str| property(resolve(root, property(root, name).unwrap_or(&Json::Null)), given).is_some();
    let sections: Vec<String> = names(root).into_iter().filter(has_key).map(|name| format!("`[{name}]`")).collect();
    (!sections.is_empty()).then(|| format!("`{given}` belongs in {}", sections.join(" or ")))
}

fn hint_for_key(given: &str, section: Option<&str>, known: &[&str], root: &Json) -> String {
    if section == Some("source") && matches!(given, "api_key" | "key" | "apikey" | "token") {
        return "API keys do not belong in shared files: remove it, revoke it, and set a new one with `BELLWETHER_API_KEY`, \
                `api_key_file` or `api_key_command`"
            .to_owned();
    }
    if (section, given) == (Some("output"), "columns") {
        return "use `add` in `[dataset]` to add columns, or `columns` to choose all of them".to_owned();
    }
    let is_slip = known.iter().any(|known| strsim::damerau_levenshtein(known, given) == 1);
    let elsewhere = elsewhere(given, section, root).filter(|_| !is_slip);
    elsewhere.unwrap_or_else(|| suggestion(given, known, "known keys"))
}

fn property<'s>(schema: &'s Json, key: &str) -> Option<&'s Json> {
    schema.get("properties")?.get(key)
}

fn names(schema: &Json) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

/// The section that a property refers to, through `$ref` or an optional one's `anyOf`.
fn resolve<'s>(root: &'s Json, property: &'s Json) -> &'s Json {
    let reference = property.get("$ref").or_else(|| property.get("anyOf")?.get(0)?.get("$ref"));
    let pointer = reference.and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(property)
}

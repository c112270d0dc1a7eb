//! Reads a definition and gathers every problem of the file.
//!
//! Deserializing stops at the first thing that is wrong. So each value is first deserialized by itself, in a table that
//! holds nothing else, and taken out of the file when it fails. What is left deserializes as a whole. The types of the
//! definition stay the only description of what is right.

use std::path::Path;

use schemars::Schema;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::Definition;
use crate::problem::{Problem, Problems, nearest};

type Key<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    ///
    /// Every problem of the text, each with its place; `path` is only what the problems call the file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Problems> {
        let (document, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            // What follows a broken line may be misread: say what is broken, and no more.
            let problems = faults.iter().map(|fault| problem_of(fault, text.len()..text.len())).collect();
            return Err(Problems::new(path, text, problems));
        }
        let mut problems = Vec::new();
        let table = prune(document.into_inner(), &mut problems);
        if !problems.is_empty() {
            return Err(Problems::new(path, text, problems));
        }
        let whole = Spanned::new(0..text.len(), table);
        Self::deserialize(whole.into_deserializer())
            .map_err(|fault| Problems::new(path, text, vec![problem_of(&fault, 0..0)]))
    }
}

/// Takes out of a definition what is not known or not right.
fn prune<'i>(document: DeTable<'i>, problems: &mut Vec<Problem>) -> DeTable<'i> {
    let schema = Definition::json_schema();
    let mut kept = DeTable::new();
    for (key, value) in document {
        let Some(section) = property(schema.as_value(), key.get_ref()) else {
            problems.push(unknown_key(&key, None, &names(schema.as_value())));
            continue;
        };
        match value.get_ref() {
            DeValue::Table(_) if !names(resolve(&schema, section)).is_empty() => {
                let value = prune_section(&key, value, resolve(&schema, section), problems);
                kept.insert(key, value);
            }
            _ => {
                if probe(&[], &key, &value, problems) {
                    kept.insert(key, value);
                }
            }
        }
    }
    kept
}

/// Takes out of a section what is not known or not right.
fn prune_section<'i>(section: &Key<'i>, value: Value<'i>, schema: &Json, problems: &mut Vec<Problem>) -> Value<'i> {
    let span = value.span();
    let mut kept = DeTable::new();
    if let DeValue::Table(entries) = value.into_inner() {
        for (key, value) in entries {
            if property(schema, key.get_ref()).is_none() {
                problems.push(unknown_key(&key, Some(section.get_ref()), &names(schema)));
            } else if probe(std::slice::from_ref(section), &key, &value, problems) {
                kept.insert(key, value);
            }
        }
    }
    Spanned::new(span, DeValue::Table(kept))
}

/// Whether a value is right when it stands alone; lists are tried element by element.
fn probe<'i>(sections: &[Key<'i>], key: &Key<'i>, value: &Value<'i>, problems: &mut Vec<Problem>) -> bool {
    let before = problems.len();
    match value.get_ref() {
        DeValue::Array(elements) if !elements.is_empty() => {
            for element in elements.iter() {
                let mut alone = DeArray::new();
                alone.push(element.clone());
                probe_alone(sections, key, Spanned::new(element.span(), DeValue::Array(alone)), problems);
            }
        }
        _ => probe_alone(sections, key, value.clone(), problems),
    }
    problems.len() == before
}

fn probe_alone<'i>(sections: &[Key<'i>], key: &Key<'i>, value: Value<'i>, problems: &mut Vec<Problem>) {
    let span = value.span();
    let mut table = DeTable::from_iter([(key.clone(), value)]);
    for section in sections {
        table = DeTable::from_iter([(section.clone(), Spanned::new(span.clone(), DeValue::Table(table)))]);
    }
    if let Err(fault) = Definition::deserialize(Spanned::new(span.clone(), table).into_deserializer()) {
        problems.push(problem_of(&fault, span));
    }
}

/// A fault of the deserializer as a problem; our own types put a hint on a second line of the message.
fn problem_of(fault: &toml::de::Error, otherwise: std::ops::Range<usize>) -> Problem {
    let span = fault.span().unwrap_or(otherwise);
    match fault.message().split_once('\n') {
        Some((message, hint)) => Problem::new(message, span).with_hint(hint),
        None => Problem::new(fault.message(), span),
    }
}

fn unknown_key(key: &Key<'_>, section: Option<&str>, known: &[&str]) -> Problem {
    let given: &str = key.get_ref();
    let place = section.map_or_else(String::new, |section| format!(" in `[{section}]`"));
    let problem = Problem::new(format!("unknown key `{given}`{place}"), key.span());
    if section == Some("source") && matches!(given, "api_key" | "key" | "apikey" | "token") {
        return problem.with_hint(
            "a key does not belong in a file that is shared: take it out, make a new one, and give it in \
             `BELLWETHER_API_KEY`, or name an `api_key_file` or an `api_key_command`",
        );
    }
    match nearest(given, known.iter().copied()) {
        Some(meant) => problem.with_hint(format!("did you mean `{meant}`?")),
        None => problem.with_hint(format!("known here: {}", known.join(", "))),
    }
}

fn property<'s>(schema: &'s Json, key: &str) -> Option<&'s Json> {
    schema.get("properties")?.get(key)
}

fn names(schema: &Json) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

/// The section that a property refers to, through `$ref` or an optional one's `anyOf`.
fn resolve<'s>(schema: &'s Schema, property: &'s Json) -> &'s Json {
    let reference = property.get("$ref").or_else(|| property.get("anyOf")?.get(0)?.get("$ref"));
    let pointer = reference.and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| schema.as_value().pointer(pointer)).unwrap_or(property)
}

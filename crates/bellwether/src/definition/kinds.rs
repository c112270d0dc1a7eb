//! Values of the wrong kind, explained in words: text where a number belongs, a list where one value does.

use schemars::Schema;
use serde_json::Value as Json;
use toml::de::DeValue;

use crate::text::problem::choices;

/// What a key takes, as the schema describes it.
#[derive(Clone, Copy)]
pub(super) struct ExpectedKind<'s> {
    /// The schema of the whole definition.
    pub(super) root: &'s Schema,
    /// The schema of the value.
    pub(super) schema: &'s Json,
}

const TEXT: &str = "text";
const DAY: &str = "a date";
const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";
const FLAG: &str = "`true` or `false`";
const LIST: &str = "a list";
const TABLE: &str = "a table";

/// The kind that a schema describes, in words.
fn kind_of_schema(schema: &Json) -> Option<&'static str> {
    match schema.get("type")?.as_str()? {
        "string" if schema.get("format").and_then(Json::as_str) == Some("date") => Some(DAY),
        "string" => Some(TEXT),
        "integer" => Some(WHOLE),
        "number" => Some(NUMBER),
        "boolean" => Some(FLAG),
        "array" => Some(LIST),
        "object" => Some(TABLE),
        _ => None,
    }
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

impl<'s> ExpectedKind<'s> {
    /// What the elements of a list must be.
    pub(super) fn element(self) -> Self {
        self.inner("items")
    }

    /// What the values of a table must be whose keys are free.
    pub(super) fn value_of_any_key(self) -> Self {
        self.inner("additionalProperties")
    }

    fn inner(self, name: &str) -> Self {
        let inner = self.alternatives().into_iter().find_map(|schema| schema.get(name));
        Self { schema: inner.unwrap_or(&Json::Null), ..self }
    }

    /// Whether anything is known of it.
    pub(super) fn is_known(self) -> bool {
        *self.schema != Json::Null
    }

    /// Whether a day of the calendar is taken.
    pub(super) fn is_day(self) -> bool {
        self.alternatives().into_iter().any(|schema| kind_of_schema(schema) == Some(DAY))
    }

    /// The first words of its description.
    pub(super) fn description(self) -> Option<&'s str> {
        self.schema.get("description")?.as_str()?.split(". ").next().map(|first| first.trim_end_matches('.'))
    }

    /// The schemas that a value may have.
    fn alternatives(self) -> Vec<&'s Json> {
        let pointer = self.schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
        let resolved = pointer.and_then(|pointer| self.root.as_value().pointer(pointer)).unwrap_or(self.schema);
        match resolved.get("anyOf").and_then(Json::as_array) {
            Some(some) => some.iter().flat_map(|schema| Self { schema, ..self }.alternatives()).collect(),
            None => vec![resolved],
        }
    }

    /// The problem with the type of a key's value, with a hint; `None` if the type is right.
    pub(super) fn refusal(self, key: &str, value: &DeValue<'_>) -> Option<(String, String)> {
        let alternatives = self.alternatives();
        let mut kinds: Vec<&str> = alternatives.iter().filter_map(|schema| kind_of_schema(schema)).collect();
        let (first, given) = (*kinds.first()?, kind_of_value(value));
        let is_taken = |kind: &str| kind == given || matches!((kind, given), (NUMBER, WHOLE) | (DAY, TEXT));
        if kinds.iter().any(|kind| is_taken(kind)) {
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
        Some((message, hint(key, first, alternatives[0], value)))
    }
}

/// How to write a value of the expected kind.
fn hint(key: &str, wanted: &str, schema: &Json, value: &DeValue<'_>) -> String {
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
        _ => text_example(key, schema),
    }
}

/// How to write a text.
fn text_example(key: &str, schema: &Json) -> String {
    let list = |name: &str| schema.get(name).and_then(Json::as_array).into_iter().flatten();
    let of_set: Vec<&str> = list("oneOf").filter_map(|value| value.get("const")?.as_str()).collect();
    let example = list("examples").find_map(Json::as_str);
    match example {
        _ if !of_set.is_empty() => format!("write one of these in quotes: {}", choices(of_set)),
        Some(example) => format!("write it in quotes, such as `{key} = \"{example}\"`"),
        None => "write it in quotes".to_owned(),
    }
}

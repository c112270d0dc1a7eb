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

/// A kind of value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Day,
    Whole,
    Number,
    Flag,
    List,
    Table,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Day => "a date",
            Self::Whole => "a whole number",
            Self::Number => "a number",
            Self::Flag => "`true` or `false`",
            Self::List => "a list",
            Self::Table => "a table",
        }
    }

    /// The kind that a schema describes.
    fn of_schema(schema: &Json) -> Option<Self> {
        let is_day = schema.get("format").and_then(Json::as_str) == Some("date");
        match schema.get("type")?.as_str()? {
            "string" if is_day => Some(Self::Day),
            "string" => Some(Self::Text),
            "integer" => Some(Self::Whole),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Flag),
            "array" => Some(Self::List),
            "object" => Some(Self::Table),
            _ => None,
        }
    }

    fn of_value(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(_) => Self::Text,
            DeValue::Integer(_) => Self::Whole,
            DeValue::Float(_) => Self::Number,
            DeValue::Boolean(_) => Self::Flag,
            DeValue::Datetime(_) => Self::Day,
            DeValue::Array(_) => Self::List,
            DeValue::Table(_) => Self::Table,
        }
    }

    /// Whether a value of another kind is taken for one of this kind.
    fn takes(self, given: Self) -> bool {
        self == given || matches!((self, given), (Self::Number, Self::Whole) | (Self::Day, Self::Text))
    }
}

impl<'s> ExpectedKind<'s> {
    /// What the elements of a list must be.
    pub(super) fn element(self) -> Self {
        let items = self.alternatives().into_iter().find_map(|schema| schema.get("items"));
        Self { schema: items.unwrap_or(&Json::Null), ..self }
    }

    /// What the values of a table must be whose keys are free.
    pub(super) fn of_any_key(self) -> Self {
        let values = self.alternatives().into_iter().find_map(|schema| schema.get("additionalProperties"));
        Self { schema: values.unwrap_or(&Json::Null), ..self }
    }

    /// Whether anything is known of it.
    pub(super) fn is_known(self) -> bool {
        *self.schema != Json::Null
    }

    /// Whether a day of the calendar is taken.
    pub(super) fn is_day(self) -> bool {
        self.alternatives().into_iter().any(|schema| Kind::of_schema(schema) == Some(Kind::Day))
    }

    /// The first words of its description.
    pub(super) fn description(self) -> Option<&'s str> {
        self.schema.get("description")?.as_str()?.split(". ").next().map(|first| first.trim_end_matches('.'))
    }

    /// The schemas that a value may have.
    fn alternatives(self) -> Vec<&'s Json> {
        let pointer = self.schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
        let referred = pointer.and_then(|pointer| self.root.as_value().pointer(pointer));
        let resolved = referred.unwrap_or(self.schema);
        match resolved.get("anyOf").and_then(Json::as_array) {
            Some(some) => some.iter().flat_map(|schema| Self { schema, ..self }.alternatives()).collect(),
            None => vec![resolved],
        }
    }

    /// The problem with the type of a key's value, with a hint; `None` if the type is right.
    pub(super) fn refusal(self, key: &str, value: &DeValue<'_>) -> Option<(String, String)> {
        let alternatives = self.alternatives();
        let kinds: Vec<Kind> = alternatives.iter().filter_map(|schema| Kind::of_schema(schema)).collect();
        let given = Kind::of_value(value);
        if kinds.is_empty() || kinds.iter().any(|kind| kind.takes(given)) {
            return None;
        }
        let mut wanted: Vec<&str> = kinds.iter().map(|kind| kind.words()).collect();
        wanted.dedup();
        let message = format!("`{key}` takes {}, not {}", wanted.join(" or "), words(value));
        Some((message, hint(key, kinds[0], alternatives[0], value)))
    }
}

/// A value's kind in words.
fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Integer(_) => "a number".to_owned(),
        DeValue::Float(number) => format!("`{}`", number.as_str()),
        other => Kind::of_value(other).words().to_owned(),
    }
}

/// How to write a value of the expected type.
fn hint(key: &str, wanted: Kind, schema: &Json, value: &DeValue<'_>) -> String {
    let without_quotes = |text: &str| match wanted {
        Kind::Whole => text.parse::<i64>().is_ok(),
        Kind::Number => text.parse::<f64>().is_ok(),
        Kind::Flag => matches!(text, "true" | "false"),
        _ => false,
    };
    match (wanted, value) {
        (Kind::Table, DeValue::Array(_)) => format!("write `[{key}]` once, in single brackets"),
        (Kind::Table, _) => format!("write `[{key}]` on a line of its own, and its keys below it"),
        (_, DeValue::String(text)) if without_quotes(text) => format!("write it without quotes: `{key} = {text}`"),
        (Kind::Whole | Kind::Number, DeValue::String(_)) => "write a number, without quotes".to_owned(),
        (Kind::Flag, _) => "write `true` or `false`, without quotes".to_owned(),
        (Kind::Whole | Kind::Number, DeValue::Array(_)) => "write one number, without brackets".to_owned(),
        (Kind::Whole | Kind::Number, _) => format!("write {}", wanted.words()),
        (Kind::Text | Kind::Day, DeValue::Array(_)) => "write one value, without brackets".to_owned(),
        (Kind::Text | Kind::Day | Kind::List, _) => text_example(key, schema),
    }
}

/// How to write a text.
fn text_example(key: &str, schema: &Json) -> String {
    let list = |name: &str| schema.get(name).and_then(Json::as_array).into_iter().flatten();
    let of_set: Vec<&str> = list("oneOf").filter_map(|value| value.get("const")?.as_str()).collect();
    let examples: Vec<&str> = list("examples").filter_map(Json::as_str).collect();
    match (of_set, examples) {
        (of_set, _) if !of_set.is_empty() => format!("write one of these in quotes: {}", choices(of_set)),
        (_, examples) if !examples.is_empty() => format!("write it in quotes, such as `{key} = \"{}\"`", examples[0]),
        _ => "write it in quotes".to_owned(),
    }
}

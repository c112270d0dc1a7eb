//! A list, which may be typed as its only value: `"energy"` is `["energy"]`.
//!
//! The reader puts brackets around a single value, which so keeps its place; the schema offers both forms.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use super::Placed;

/// Values, each with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List<T>(Vec<Placed<T>>);

impl<T> Deref for List<T> {
    type Target = [Placed<T>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// Whether a schema is that of a list, which may be typed as its only value.
pub(super) fn is_list(schema: &Json) -> bool {
    let alternatives = schema.get("anyOf").and_then(Json::as_array).map(Vec::as_slice);
    matches!(alternatives, Some([one, list]) if list.get("items") == Some(one))
}

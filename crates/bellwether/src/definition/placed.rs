//! A value together with the bytes of the file that it was read from.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A value, and where it was typed; a default was typed nowhere, which is the start of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    value: T,
    span: Range<usize>,
}

impl<T> Placed<T> {
    /// The bytes of the file that hold the value.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        let span = spanned.span();
        Ok(Self { value: spanned.into_inner(), span })
    }
}

/// To a reader of the schema the place is not there.
impl<T: JsonSchema> JsonSchema for Placed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

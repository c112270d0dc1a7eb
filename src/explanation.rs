//! What failed, as JSON.

use std::error::Error as StdError;
use std::path::PathBuf;

use bellwether::error::{Error, causes};
use bellwether::text::human::count_of;
use bellwether::text::problem::PlacedProblem;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// What failed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Explanation {
    /// A definition is invalid.
    Problems {
        /// How many problems it has.
        message: String,
        /// Its file.
        file: PathBuf,
        /// The problems, first place first.
        problems: Vec<PlacedProblem>,
    },
    /// Anything else.
    Reasons {
        /// What failed.
        message: String,
        /// Why, the nearest reason first.
        because: Vec<String>,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl Explanation {
    /// That of an error of the library.
    pub(crate) fn of(error: &Error) -> Self {
        let Some(problems) = error.problems() else {
            return Self::with_hint(error, error.hint().map(str::to_owned));
        };
        let (file, problems) = (problems.path().to_owned(), problems.list());
        let count = count_of(problems.len() as u64, "problem", "problems");
        Self::Problems { message: format!("{count} in `{}`", file.display()), file, problems }
    }

    /// That of an error whose hint is known.
    pub(crate) fn with_hint(error: &(dyn StdError + 'static), hint: Option<String>) -> Self {
        let because = causes(error).map(ToString::to_string).collect();
        Self::Reasons { message: error.to_string(), because, hint }
    }

    /// Serializes an error.
    pub(crate) fn serialize_of<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
        Self::of(error).serialize(serializer)
    }
}

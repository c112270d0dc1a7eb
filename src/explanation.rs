//! What failed, as JSON.

use std::path::PathBuf;

use bellwether::error::Error;
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
    /// Explains an error of the library.
    pub(crate) fn new(error: &Error) -> Self {
        if let Some(problems) = error.problems() {
            let (file, problems) = (problems.path().to_owned(), problems.list());
            let count = count_of(problems.len() as u64, "problem", "problems");
            return Self::Problems { message: format!("{count} in `{}`", file.display()), file, problems };
        }
        let because = error.causes().map(ToString::to_string).collect();
        Self::Reasons { message: error.to_string(), because, hint: error.hint().map(str::to_owned) }
    }

    /// Serializes an error.
    pub(crate) fn serialize_of<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
        Self::new(error).serialize(serializer)
    }
}

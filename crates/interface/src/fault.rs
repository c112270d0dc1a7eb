//! The only error that the interface documents: 422, with a location, a message and a type for each problem.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The body of a 422.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValidationFault {
    /// The problems of the request.
    pub detail: Vec<ValidationProblem>,
}

/// One problem of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValidationProblem {
    /// Its location: `["query", "sector"]`.
    pub loc: Vec<Location>,
    /// The message, for people.
    pub msg: String,
    /// The type, for programs.
    #[serde(rename = "type")]
    pub kind: String,
}

/// One step of a problem's location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Location {
    /// A position in a list.
    Index(i64),
    /// The name of a parameter, or of the part of the request it is in.
    Name(String),
}

impl ValidationProblem {
    /// The parameter it is about, if it names one.
    pub fn parameter(&self) -> Option<&str> {
        match self.loc.last() {
            Some(Location::Name(name)) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(formatter),
            Self::Name(name) => name.fmt(formatter),
        }
    }
}

impl fmt::Display for ValidationProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.loc.iter().map(ToString::to_string).collect();
        write!(formatter, "`{}`: {}", steps.join("."), self.msg)
    }
}

impl fmt::Display for ValidationFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<String> = self.detail.iter().map(ToString::to_string).collect();
        formatter.write_str(&problems.join("; "))
    }
}

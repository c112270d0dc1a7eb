//! The key: where it comes from, and a type that cannot be printed.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{PoisonError, RwLock};

use url::form_urlencoded::byte_serialize;

use crate::error::{Error, Result};

/// The environment variable that holds the key.
pub const VARIABLE: &str = "BELLWETHER_API_KEY";

/// A caller's key. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key of the built-in service, which is no secret.
    pub fn of_the_demo() -> Self {
        Self("demo".to_owned())
    }

    /// A key from text; none when the text is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.lines().next().unwrap_or_default().trim();
        (!text.is_empty()).then(|| {
            let key = Self(text.to_owned());
            KNOWN.write().unwrap_or_else(PoisonError::into_inner).push(key.clone());
            key
        })
    }

    /// The ways in which the key may be written where it was part of an address, the longest first.
    pub fn spellings(&self) -> Vec<String> {
        let escaped: String = byte_serialize(self.0.as_bytes()).collect();
        let mut spellings = vec![escaped.replace('+', "%20"), escaped, self.0.clone()];
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.dedup();
        spellings
    }

    /// A text without the key in it.
    pub fn masked(&self, text: &str) -> String {
        self.spellings().iter().fold(text.to_owned(), |text, spelling| text.replace(spelling.as_str(), "***"))
    }

    /// The key itself, for the request and for nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Every key of this process, so that none of them is logged.
static KNOWN: RwLock<Vec<ApiKey>> = RwLock::new(Vec::new());

/// A text that may have come from anywhere, without any key of this process in it.
pub fn without_keys(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().fold(text.to_owned(), |text, key| key.masked(&text))
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

/// Where a definition says that the key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The environment variable.
    Environment,
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command prints.
    Command(Vec<String>),
}

impl KeySource {
    /// Reads the key; `host` is whom it is for.
    ///
    /// # Errors
    ///
    /// When there is none, or the file or command fails. What they gave is never part of the error.
    pub fn read(&self, host: &str) -> Result<ApiKey> {
        let text = match self {
            Self::Environment => std::env::var(VARIABLE).unwrap_or_default(),
            Self::File(path) => fs::read_to_string(path).map_err(|error| self.failed(error))?,
            Self::Command(words) => self.run(words)?,
        };
        ApiKey::new(&text).ok_or_else(|| match self {
            Self::Environment => Error::NoKey { host: host.to_owned() },
            _ => self.failed("it is empty"),
        })
    }

    /// What is wrong with the place of the key, though the key can be read: a file that others can read too.
    pub fn warning(&self) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;

        const OTHERS: u32 = 0o077;
        let Self::File(path) = self else { return None };
        let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
        let shown = path.display();
        (mode & OTHERS != 0)
            .then(|| format!("others can read the API key in `{shown}`: `chmod 600 {shown}` mends that"))
    }

    fn run(&self, words: &[String]) -> Result<String> {
        let (program, arguments) = words.split_first().ok_or_else(|| self.failed("it names no program"))?;
        let output = Command::new(program).args(arguments).output().map_err(|error| self.failed(error))?;
        if !output.status.success() {
            return Err(self.failed(format!("it failed with {}", output.status)));
        }
        // The bytes of an output that is not text are part of the error of the conversion: they are not kept.
        String::from_utf8(output.stdout).map_err(|_| self.failed("what it printed is not text"))
    }

    fn failed(&self, reason: impl Into<crate::error::Reason>) -> Error {
        let place = match self {
            Self::Environment => format!("`{VARIABLE}`"),
            Self::File(path) => format!("`{}`", path.display()),
            Self::Command(words) => format!("the command `{}`", words.first().map_or("", String::as_str)),
        };
        Error::KeySource { place, source: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::ApiKey;

    #[test]
    fn a_key_is_the_first_line_and_cannot_be_printed() {
        let key = ApiKey::new("  S3CRET \nsecond\n").unwrap();
        assert_eq!(key.expose(), "S3CRET");
        assert!(!format!("{key:?}").contains("S3CRET"));
        assert!(ApiKey::new(" \n").is_none());
    }
}

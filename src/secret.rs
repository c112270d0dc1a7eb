//! The key: where it comes from, and a type that cannot be printed.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, PoisonError, RwLock};

use crate::echo::Echo;
use crate::error::{Error, Result};

/// The environment variable that holds the key.
pub const VARIABLE: &str = "BELLWETHER_API_KEY";

/// A caller's key. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone)]
pub struct ApiKey {
    text: String,
    echo: Arc<Echo>,
}

impl ApiKey {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned(), echo: Arc::new(Echo::of(text)) }
    }

    /// The key of the built-in service, which is no secret.
    pub fn of_the_demo() -> Self {
        Self::of("demo")
    }

    /// A key from text; none when the text is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.lines().next().unwrap_or_default().trim();
        (!text.is_empty()).then(|| {
            let key = Self::of(text);
            KNOWN.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&key.echo));
            key
        })
    }

    /// What finds the key in what a service says, unless the key is too short to be told from ordinary text.
    pub(crate) fn echo(&self) -> Option<&Arc<Echo>> {
        /// Shorter keys are words that a headline may hold: masking them would change data.
        const SHORTEST: usize = 8;
        (self.text.len() >= SHORTEST).then_some(&self.echo)
    }

    /// The key itself, for the request and for nothing else.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// Every key of this process, so that none of them is shown.
static KNOWN: RwLock<Vec<Arc<Echo>>> = RwLock::new(Vec::new());

/// A text that may have come from anywhere, without any key of this process in it.
pub fn without_keys(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().fold(text.to_owned(), |text, echo| echo.masked(&text).into_owned())
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

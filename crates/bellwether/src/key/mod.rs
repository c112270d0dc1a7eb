//! The API key: where it comes from, and what keeps it from being shown. It is a type that cannot be printed.

pub(crate) mod echo;
pub mod source;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::key::echo::Echo;

/// A caller's key. It has no `Display`, and its `Debug` shows nothing.
#[derive(Clone)]
pub struct ApiKey {
    text: String,
    echo: Arc<Echo>,
}

/// The key of the built-in service.
const DEMO: &str = "demo";

impl ApiKey {
    fn from_text(text: &str) -> Self {
        Self { text: text.to_owned(), echo: Arc::new(Echo::new(text)) }
    }

    /// The key of the built-in service, which is not secret.
    pub fn of_the_demo() -> Self {
        Self::from_text(DEMO)
    }

    /// A key from the first line of a text, without a byte order mark; `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
        (!text.is_empty()).then(|| {
            let key = Self::from_text(text);
            if text == DEMO {
                // Masking it would mask a word of many messages.
                return key;
            }
            KNOWN.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&key.echo));
            key
        })
    }

    /// A matcher for echoes of the key, unless it is too short to tell from ordinary text.
    pub(crate) fn echo(&self) -> Option<&Arc<Echo>> {
        /// Shorter keys may be words of a headline: masking them would change data.
        const SHORTEST: usize = 8;
        (self.text.len() >= SHORTEST).then_some(&self.echo)
    }

    /// The key itself, for the request only.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// Every key of this process, so that none is ever shown.
static KNOWN: RwLock<Vec<Arc<Echo>>> = RwLock::new(Vec::new());

/// Masks other secrets wherever text is shown.
pub fn mask(secrets: impl IntoIterator<Item = String>) {
    secrets.into_iter().for_each(|secret| drop(ApiKey::new(&secret)));
}

/// A text from anywhere, with all keys of this process masked.
pub fn without_keys(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().fold(text.to_owned(), |text, echo| echo.mask(&text).into_owned())
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiKey, without_keys};

    #[test]
    fn a_key_is_the_first_line_and_cannot_be_printed() {
        let key = ApiKey::new("  S3CRET \nsecond\n").unwrap();
        assert_eq!(key.expose(), "S3CRET");
        assert!(!format!("{key:?}").contains("S3CRET"));
        assert!(ApiKey::new(" \n").is_none());
    }

    #[test]
    fn every_key_but_the_demo_key_is_masked_in_text() {
        ApiKey::new("masked-in-texts").unwrap();
        ApiKey::new("demo").unwrap();
        assert_eq!(without_keys("demo: masked-in-texts"), "demo: ***");
    }
}

//! News and sentiment: articles, the summary of a ticker, its history.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::ticker::Ticker;

/// The same number; zero for negative zero.
pub fn unsigned_zero(number: f64) -> f64 {
    // The sum of two zeros of different signs has none.
    number + 0.0
}

/// A score as received: a number, or a string with a decimal number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Score<'a> {
    /// `0.25`
    Number(f64),
    /// `"0.25"`
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl Score<'_> {
    /// Its value, zero without a sign; `None` if it is not a finite number.
    pub fn value(&self) -> Option<f64> {
        let value = match self {
            Self::Number(value) => *value,
            // Stricter than Rust's float parser: no `inf`, no `nan`.
            Self::Text(text) if text.bytes().any(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            Self::Text(_) => return None,
        };
        value.is_finite().then_some(unsigned_zero(value))
    }
}

/// A scored news article.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewsArticle<'a> {
    /// The calendar date, YYYY-MM-DD.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// The headline.
    #[serde(borrow)]
    pub title: Cow<'a, str>,
    /// The score; null if the service has none.
    #[serde(borrow)]
    pub score: Option<Score<'a>>,
    /// The address of the article.
    #[serde(borrow)]
    pub link: Cow<'a, str>,
}

/// An article that a summary refers to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArticleReference<'a> {
    /// The calendar date, YYYY-MM-DD.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// The score.
    #[serde(borrow)]
    pub score: Score<'a>,
    /// The address of the article.
    #[serde(borrow)]
    pub link: Cow<'a, str>,
}

/// The sentiment summary of a ticker; `R` is [`ArticleReference`] or its raw text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SentimentSummary<'a, R = ArticleReference<'a>> {
    /// The company's name.
    #[serde(borrow)]
    pub debtor: Cow<'a, str>,
    /// The symbol.
    pub ticker: Ticker,
    /// The article that scores lowest.
    pub low_article: R,
    /// The article that scores highest.
    pub high_article: R,
    /// The article closest to the average.
    pub avg_article: R,
}

/// The sentiment summary before change set G, over the latest thirty days.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the change record names these fields without describing them")]
pub struct TrailingSummary<'a> {
    #[serde(borrow)]
    pub debtor: Cow<'a, str>,
    pub ticker: Ticker,
    #[serde(borrow)]
    pub crawl_date: Cow<'a, str>,
    #[serde(borrow)]
    pub low_score_latest30: Score<'a>,
    #[serde(borrow)]
    pub low_link_latest30: Cow<'a, str>,
    #[serde(borrow)]
    pub low_summary_latest30: Cow<'a, str>,
    #[serde(borrow)]
    pub high_score_latest30: Score<'a>,
    #[serde(borrow)]
    pub high_link_latest30: Cow<'a, str>,
    #[serde(borrow)]
    pub high_summary_latest30: Cow<'a, str>,
    #[serde(borrow)]
    pub avg_score_latest30: Score<'a>,
    #[serde(borrow)]
    pub avg_link_latest30: Cow<'a, str>,
    #[serde(borrow)]
    pub avg_summary_latest30: Cow<'a, str>,
}

/// A day of historical sentiment. Its fields are not documented; these are the built-in service's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HistoricalSentiment<'a> {
    /// The calendar date, YYYY-MM-DD.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// The mean score of the day's articles.
    pub score: f64,
    /// Number of articles of the day.
    pub articles: u32,
}

#[cfg(test)]
mod tests {
    use super::{Score, unsigned_zero};

    #[test]
    fn a_score_is_a_number_or_a_decimal_string() {
        let value = |json: &str| serde_json::from_str::<Score<'_>>(json).ok().and_then(|score| score.value());
        assert_eq!(value("0.25"), Some(0.25));
        assert_eq!(value("\"0.25\""), Some(0.25));
        assert_eq!(value("\"-1\""), Some(-1.0));
        assert_eq!(value("\"1e-3\""), Some(0.001));
        for json in ["\"\"", "\"n/a\"", "\"nan\"", "\"inf\"", "\"-infinity\"", "\" 1\"", "\"1e999\"", "true", "[1]"] {
            assert_eq!(value(json), None, "{json}");
        }
    }

    #[test]
    fn only_negative_zero_changes() {
        assert_eq!(unsigned_zero(-0.0).to_bits(), 0);
        for number in [0.0, 5e-324, -5e-324, -0.5, f64::MAX, f64::MIN] {
            assert_eq!(unsigned_zero(number).to_bits(), number.to_bits(), "{number}");
        }
    }
}

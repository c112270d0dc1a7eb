//! What the answers that are claimed hold.

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::max;
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, TimeDelta};

use super::ClaimedAnswer;
use super::error::ImportError;
use crate::decode::{AnswerPart, Rules};
use crate::error::Result;
use crate::tables::Series;
use crate::text::escape::escape;

/// How far ahead of UTC a naive date may be that somebody wrote: in the easternmost time zone the day begins then.
const AHEAD: TimeDelta = TimeDelta::hours(14);

/// What is in an answer.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) records: u64,
    pub(super) rejected: u64,
    /// The first rejected record, and why.
    first: Option<String>,
    /// The newest date, and whose.
    newest: Option<(i64, String)>,
}

impl Survey {
    pub(super) fn of(answer: &ClaimedAnswer, rules: Rules) -> Result<Self> {
        let mut survey = Self::default();
        answer.decode(rules, |decoded| {
            survey.rejected += decoded.rejected;
            survey.records += decoded.rejected;
            let reject = decoded.rejects.first().filter(|_| survey.first.is_none());
            survey.first =
                survey.first.take().or(reject.map(|reject| format!("{}: {}", reject.pointer, reject.reason)));
            for part in &decoded.parts {
                survey.records += match part {
                    AnswerPart::Series(series) => series.rows.num_rows() as u64,
                    AnswerPart::Tickers(tickers) => tickers.len() as u64,
                };
                if let AnswerPart::Series(Series { key, rows }) = part
                    && let Some(date) = newest_date(rows)
                    && survey.newest.as_ref().is_none_or(|(newest, _)| date > *newest)
                {
                    survey.newest = Some((date, key.ticker.to_string()));
                }
            }
            Ok(())
        })?;
        Ok(survey)
    }

    pub(super) fn check(&self, answer: &ClaimedAnswer, max_share: f64) -> Result<(), ImportError> {
        let (path, at) = (answer.path.clone(), answer.at);
        let Self { records, rejected, first, newest } = self;
        if *rejected as f64 > *records as f64 * max_share {
            let first = escape(first.as_deref().unwrap_or_default()).into_owned();
            return Err(ImportError::Rejected { path, rejected: *rejected, records: *records, max_share, first });
        }
        let limit = (at + AHEAD).timestamp_micros();
        match newest.as_ref().filter(|(date, _)| *date > limit) {
            Some((date, ticker)) => {
                let date = DateTime::from_timestamp_micros(*date).unwrap_or_default().naive_utc();
                Err(ImportError::Ahead { path, ticker: ticker.clone(), date, at })
            }
            None => Ok(()),
        }
    }
}

/// The newest date of some rows; none if they have no dates.
fn newest_date(rows: &RecordBatch) -> Option<i64> {
    max(rows.column_by_name("date")?.as_primitive_opt::<TimestampMicrosecondType>()?)
}

//! An answer to decode, and the checks on its records.

use std::collections::BTreeMap;

use super::record::{self, Fields, RecordField};
use super::truncate;
use crate::interface::{Base, Ticker};
use crate::plan::{Plan, Request, Source};
use crate::tables::{Leniencies, SeriesKey, Table};

/// Options for decoding answers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Whether unknown fields are kept as well as counted.
    pub keep_extra: bool,
    /// The names of fields, as the service writes them, and those of the interface.
    pub fields: BTreeMap<String, String>,
    /// The members that may hold the answer, if it is an object that wraps it.
    pub unwrap: Vec<String>,
    /// The tickers that have another name among news.
    pub news_tickers: BTreeMap<Ticker, Ticker>,
}

/// An answer to decode: everything but its body.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The request.
    pub request: &'a Request,
    /// How to decode it.
    pub rules: &'a Rules,
}

impl Answer<'_> {
    pub(super) fn asked_ticker(&self) -> &Ticker {
        self.request.ticker.as_ref().expect("a request for one ticker has a ticker")
    }

    /// The key of rows that belong to the requested ticker as a whole.
    pub(super) fn asked_key(&self) -> SeriesKey {
        SeriesKey::of_ticker(self.request.endpoint, self.asked_ticker().clone())
    }

    /// The series that ticker, period and regime name, after checking that it is the requested one, as far as the request
    /// names it.
    pub(super) fn key(
        &self,
        asked: &str,
        [ticker, period, regime]: [RecordField<'_>; 3],
        lenient: &mut Leniencies,
    ) -> Result<SeriesKey, String> {
        let mut spelled = Leniencies::default();
        let ticker = match ticker.if_given() {
            Some(ticker) => ticker.one_of()?,
            None => {
                spelled.echoes += 1;
                RecordField::parse(asked)?
            }
        };
        let period = period.echo(self.request.period, &mut spelled)?;
        let regime = regime.echo(self.request.regime, &mut spelled)?;
        lenient.echoes += u64::from(spelled.echoes > 0);
        self.check_ticker(asked, &ticker)?;
        if self.request.period.is_some_and(|asked| asked != period) {
            return Err(format!("period `{period}` was not requested"));
        }
        if self.request.regime.is_some_and(|asked| asked != regime) {
            return Err(format!("regime `{regime}` was not requested"));
        }
        let table = Table::of(self.request.endpoint);
        Ok(SeriesKey { ticker, period: Some(period), regime: Some(regime), table })
    }

    pub(super) fn check_ticker(&self, asked: &str, ticker: &Ticker) -> Result<(), String> {
        let is_of_news = self.request.endpoint.base() == Base::Sentiment;
        let among_news = self.request.ticker.as_ref().filter(|_| is_of_news);
        let renamed = among_news.and_then(|asked| self.rules.news_tickers.get(asked));
        if ticker.as_str() == asked || renamed == Some(ticker) {
            Ok(())
        } else {
            Err(format!("its ticker is `{ticker}`, expected `{}`", truncate::excerpt(asked)))
        }
    }
}

impl Rules {
    /// How the answers of a plan's service are decoded.
    pub(crate) fn from_plan(plan: &Plan) -> Self {
        let mut rules = Self { keep_extra: plan.keep_extra, ..Self::default() };
        if let Source::Remote(remote) = &plan.source {
            for (ours, theirs) in &remote.asking.fields {
                rules.fields.insert(theirs.clone(), ours.clone());
                // A field that has the name already is another one.
                rules.fields.entry(ours.clone()).or_insert_with(|| format!("{ours}*"));
            }
            rules.unwrap.clone_from(&remote.asking.unwrap);
            rules.news_tickers.clone_from(&remote.asking.news_tickers);
        }
        rules
    }

    /// Unknown fields as JSON, if they are kept.
    pub(super) fn extra(&self, unknown: &Fields<'_>) -> Option<String> {
        if self.keep_extra { record::as_object(unknown.iter().map(|(name, json)| (&**name, *json))) } else { None }
    }
}

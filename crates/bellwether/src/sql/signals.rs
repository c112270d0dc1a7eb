//! The signals: series, vintage and filter of the definition.

use std::collections::BTreeSet;
use std::fmt::Display;

use chrono::{DateTime, NaiveDate};

use super::Question;
use super::news::NewsQuery;
use super::text::{indent, one_of, quote, rows, wrap};
use super::view::{SectorsOf, View, cell};
use crate::archive::{ANSWERS, watches};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Column, DayCount, Filter, Request, Vintage};
use crate::tables::{ClaimedUntil, Table};
use crate::time::to_record;

/// The signals of a plan.
pub(super) struct SignalQuery<'a> {
    pub(super) question: &'a Question<'a>,
    pub(super) view: &'a View<'a>,
    pub(super) news: &'a NewsQuery<'a>,
}

impl SignalQuery<'_> {
    /// The named relations, in order.
    pub(super) fn relations(&self) -> Vec<(&'static str, String)> {
        let mut relations = vec![
            ("sealed", self.view.sealed_folders()),
            ("listed", self.view.listed_series()),
            ("series", self.series()),
        ];
        if self.needs_changes() {
            relations.push(("signal_changes", self.view.changes(Table::Signals)));
        }
        if self.needs_past() {
            relations.push(("seals", self.seals()));
        }
        relations.push(("signals", self.signals()));
        relations.push(("selected", self.selected_signals()));
        if self.question.plan.has_sectors() {
            relations.push(("sector_listings", self.view.sector_listings(&self.and_asks_for_sectors())));
        }
        if self.has(Column::Sector) {
            relations.push(("sectors", View::sectors(SectorsOf::Seen)));
        }
        if self.has(Column::SectorLatest) {
            relations.push(("latest_sectors", View::sectors(SectorsOf::Now)));
        }
        if self.has(Column::Id) {
            relations.push(("ids", self.ids()));
        }
        if self.has(Column::WatchedUntil) {
            relations.push(("watched", self.watch_ends()));
        }
        if self.has_inputs() {
            relations.push(("inputs", self.inputs()));
            relations.push(("known_inputs", self.known_inputs()));
        }
        relations
    }

    fn has(&self, column: Column) -> bool {
        self.question.plan.columns.contains(&column)
    }

    /// The condition that a listing is by a request of the definition, if that asks for sectors.
    fn and_asks_for_sectors(&self) -> String {
        let asks = self.question.requests.iter().any(|request| Request::sector_of(request).is_some());
        if asks { format!("\n    and {}", self.is_requested()) } else { String::new() }
    }

    /// The joins that add facts about tickers to the signals.
    pub(super) fn joins(&self) -> Vec<String> {
        let mut joins = Vec::new();
        if self.has(Column::Sector) {
            let key = "sectors.ticker = s.ticker and sectors.seen_by = s.seen_by";
            joins.push(format!("left join sectors on {key}"));
        }
        if self.has(Column::SectorLatest) {
            joins.push("left join latest_sectors on latest_sectors.ticker = s.ticker".to_owned());
        }
        if self.has(Column::Id) {
            joins.push(
                "left join ids on ids.ticker = s.ticker and s.day between ids.first_day and ids.last_day".to_owned(),
            );
        }
        if self.has(Column::WatchedUntil) {
            let key = "watched.ticker = s.ticker and watched.period = s.period and watched.regime = s.regime";
            joins.push(format!("left join watched on {key}"));
        }
        if self.has_inputs() {
            joins.push("left join known_inputs w on w.ticker = s.ticker and w.seen_by = s.seen_by".to_owned());
        }
        joins
    }

    /// Whether it matters when the news was asked for.
    fn has_inputs(&self) -> bool {
        self.has(Column::Backfilled) && self.has_features()
    }

    fn has_features(&self) -> bool {
        !self.question.plan.features.is_empty()
    }

    /// Whether columns describe the history of a signal.
    fn has_past(&self) -> bool {
        let is_past = |column: &Column| {
            matches!(
                column,
                Column::FirstObservedAt | Column::ObservedAt | Column::Revisions | Column::Backfilled | Column::Claimed
            )
        };
        self.question.plan.columns.iter().any(is_past)
    }

    /// Whether it matters when the signals were first seen.
    fn needs_past(&self) -> bool {
        self.question.plan.needs_past()
    }

    /// When the run was sealed that answered a series at an instant.
    fn seals(&self) -> String {
        format!(
            "select ticker, period, regime, observed_at as first_observed_at, {} as seen_by\n{}\n    \
             and period is not null\ngroup by ticker, period, regime, observed_at",
            self.view.dialect.in_utc("min(greatest(sealed_at, observed_at))"),
            self.view.rows(ANSWERS)
        )
    }

    /// Whether it matters which observation said a value first.
    fn needs_changes(&self) -> bool {
        self.needs_past()
            || self.has_past()
            || self.question.plan.columns.contains(&Column::Source)
            || self.news.is_timed()
    }

    /// The series in the latest answers to the definition's requests.
    fn series(&self) -> String {
        let is_requested = self.is_requested();
        let tickers = self.question.excluded.iter().map(|ticker| quote(ticker.as_str()));
        let left_out = wrap(tickers);
        let taken = if left_out.is_empty() { String::new() } else { format!("\n    and ticker not in ({left_out})") };
        format!("select distinct ticker, period, regime\nfrom listed\nwhere {is_requested}{taken}")
    }

    /// The condition that something was said in answer to a request of the definition.
    fn is_requested(&self) -> String {
        let requests = self.question.requests;
        match Product::of(requests) {
            Some(product) => product.text(),
            None => one_of("request", requests.iter().map(|request| quote(request))),
        }
    }

    fn signals(&self) -> String {
        let plan = self.question.plan;
        let mut columns =
            vec!["ticker, date, period, regime, signal, cast(date as date) as day, confidence".to_owned()];
        if self.news.is_timed() {
            let end = self.news.end_of_day();
            let midnight = format!("cast(cast(date as date) as {})", self.view.dialect.naive());
            columns.push(format!(
                "case when utc_offset_minutes_known is null and date = {midnight} then {end} else date end as made"
            ));
        }
        if self.has_past() {
            columns.push("first_observed_at, observed_at, revisions".to_owned());
        }
        if plan.columns.contains(&Column::Source) {
            columns.push("source".to_owned());
        }
        let seals = if self.needs_past() {
            let first = self.view.dialect.in_utc("first_observed_at");
            columns.push(format!("{first} as first_seen, coalesce(seen_by, {first}) as seen_by"));
            "\nleft join seals using (ticker, period, regime, first_observed_at)"
        } else {
            ""
        };
        let (number, order) = match plan.vintage {
            Vintage::Latest => ("newest", "observed_at desc, change desc"),
            Vintage::First => ("oldest", "observed_at, change"),
        };
        let cell = cell(Table::Signals);
        let known = match (self.needs_changes(), plan.vintage) {
            (true, _) => {
                let past = format!(
                    ",\n    min(observed_at) over (partition by {cell}) as first_observed_at,\n    \
                     cast(count(*) over (partition by {cell}) - 1 as int) as revisions"
                );
                format!(
                    "select *, row_number() over (partition by {cell} order by {order}) as {number}{}\nfrom signal_changes",
                    if self.has_past() || self.needs_past() { &past } else { "" }
                )
            }
            (false, Vintage::Latest) => self.view.newest(Table::Signals),
            (false, Vintage::First) => self.view.oldest(Table::Signals),
        };
        format!(
            "select {}\nfrom (\n{}\n) join series using (ticker, period, regime){seals}\n\
             where {number} = 1 and change <> 'withdrawn' and date is not null",
            columns.join(",\n    "),
            indent(&known),
        )
    }

    /// The signals that pass the filter, each with the last day of news that it may use.
    fn selected_signals(&self) -> String {
        let from = match self.question.plan.lag {
            DayCount::Calendar(days) if self.has_features() => {
                format!("select *, day - {} as cutoff\nfrom signals s", days.count())
            }
            DayCount::Calendar(_) | DayCount::Trading(_) => "select *\nfrom signals s".to_owned(),
        };
        let conditions = conditions(&self.question.plan.filter);
        if conditions.is_empty() { from } else { format!("{from}\nwhere {}", conditions.join("\n    and ")) }
    }

    /// The condition that an instant was too late for a signal to be live.
    fn is_late(&self, instant: &str) -> String {
        // `check` refuses a limit in trading days.
        let (DayCount::Calendar(days) | DayCount::Trading(days)) = self.question.plan.live_within;
        format!("{instant} > s.date + interval '{}' day", days.count())
    }

    /// The condition that a signal rests on claims.
    fn is_claimed(&self) -> String {
        let Some(ClaimedUntil { observed, dated }) = self.question.claimed else { return "false".to_owned() };
        let instant = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap_or_default();
        let is_observed = format!("s.observed_at <= '{}'", to_record(instant(observed)));
        match dated {
            None => is_observed,
            Some(i64::MAX) => "true".to_owned(),
            Some(until) => format!("{is_observed} or s.date <= '{}'", instant(until).naive_utc()),
        }
    }

    /// When the last of the inputs of each signal was first answered by a run that knew the signal; only if all were.
    fn known_inputs(&self) -> String {
        let inputs = self.question.plan.inputs();
        let known = "select k.ticker, k.seen_by, i.source, min(i.observed) as known\n\
             from (select distinct ticker, seen_by from selected) k\n\
             join inputs i on i.ticker = k.ticker and i.sealed >= k.seen_by\ngroup by k.ticker, k.seen_by, i.source";
        format!(
            "select ticker, seen_by, max(known) as known\nfrom (\n{}\n)\ngroup by ticker, seen_by\nhaving count(*) = {}",
            indent(known),
            inputs.len()
        )
    }

    /// The id of each ticker that the file names, with its days.
    fn ids(&self) -> String {
        let line = |(ticker, [from, to], id): (&Ticker, [Option<NaiveDate>; 2], &str)| {
            let day = |day: Option<NaiveDate>, open: &str| {
                format!("date '{}'", day.map_or(open.to_owned(), |day| day.to_string()))
            };
            let (first, last) = (day(from, "0001-01-01"), day(to, "9999-12-31"));
            format!("{}, {first}, {last}, {}", quote(ticker.as_str()), quote(id))
        };
        let lines = self.question.plan.identity.lines().map(line);
        format!("select *\nfrom {}", rows("i", "ticker, first_day, last_day, id", lines))
    }

    /// Until when the vendor told of each series: its last answer, or the one that no longer listed it.
    fn watch_ends(&self) -> String {
        let operations = Endpoint::ALL.into_iter().filter(|other| watches(self.question.source, *other));
        let tells = one_of("source", operations.map(|operation| quote(operation.as_str())));
        let answered = format!(
            "select request, max(observed_at) as answered\n{}\n    and {tells}\ngroup by request",
            self.view.rows(ANSWERS)
        );
        format!(
            "select ticker, period, regime, max(coalesce(case when change = 'added' then answered end, observed_at)) as until\n\
             from (\n{}\n) left join (\n{}\n) using (request)\n\
             where newest = 1 and {tells}\ngroup by ticker, period, regime",
            indent(&self.view.newest_listings()),
            indent(&answered)
        )
    }

    /// The answers that features come from.
    fn inputs(&self) -> String {
        let in_utc = |column: &str| self.view.dialect.in_utc(column);
        let inputs = self.question.plan.inputs();
        format!(
            "select ticker, source, {} as observed, {} as sealed\n{}\n    and {}",
            in_utc("observed_at"),
            in_utc("greatest(sealed_at, observed_at)"),
            self.view.rows(ANSWERS),
            one_of("source", inputs.iter().map(|input| quote(input.as_str())))
        )
    }

    /// A signal column as an expression over the joined relations.
    pub(super) fn column(&self, column: Column) -> String {
        match column {
            Column::Backfilled => {
                let first = self.view.dialect.in_utc("s.first_observed_at");
                let is_late = |instant: &str| self.is_late(instant);
                return match (self.has_features(), self.question.news) {
                    (false, _) => is_late(&first),
                    (true, None) => format!("{} or coalesce({}, true)", is_late(&first), is_late("w.known")),
                    (true, Some(asked)) => {
                        let is_asked = one_of("s.ticker", asked.iter().map(|ticker| quote(ticker.as_str())));
                        let of_inputs = is_late("w.known");
                        format!("{} or ({is_asked} and coalesce({of_inputs}, true))", is_late(&first))
                    }
                };
            }
            Column::Score => return "case when s.signal = 'sell' then -s.confidence else s.confidence end".to_owned(),
            Column::Sector => return "sectors.sector".to_owned(),
            Column::Id => {
                let names = self.question.plan.identity.names();
                let is_named = one_of("s.ticker", names.into_iter().map(quote));
                return format!("case when {is_named} then ids.id else s.ticker end");
            }
            Column::WatchedUntil => return "watched.until".to_owned(),
            Column::Claimed => return self.is_claimed(),
            Column::SectorLatest => return "latest_sectors.sector".to_owned(),
            _ => {}
        }
        format!("s.{}", column.name())
    }
}

/// The conditions of a filter.
fn conditions(filter: &Filter) -> Vec<String> {
    fn each<T: Display>(values: &BTreeSet<T>) -> impl Iterator<Item = String> {
        values.iter().map(|value| quote(&value.to_string()))
    }
    let Filter { tickers, sectors, periods, regimes, pairs, signals, min_confidence, from, to, universe: _ } = filter;
    let mut conditions = Vec::new();
    conditions.extend(tickers.as_ref().map(|tickers| one_of("s.ticker", each(tickers))));
    conditions.extend(sectors.as_ref().map(|sectors| {
        let is_of =
            |sector: &dyn Display| format!("contains(request, {})", quote(&format!(" sector={sector} period=")));
        let is_of: Vec<String> = sectors.iter().map(|sector| is_of(sector)).collect();
        let is_of = if is_of.is_empty() { "false".to_owned() } else { is_of.join(" or ") };
        format!("s.ticker in (select ticker from listed where place = 1 and ({is_of}))")
    }));
    conditions.extend(periods.as_ref().map(|periods| one_of("s.period", each(periods))));
    conditions.extend(regimes.as_ref().map(|regimes| one_of("s.regime", each(regimes))));
    conditions.extend(pairs.as_ref().map(|pairs| {
        let pairs = pairs.iter().map(|(period, regime)| quote(&format!("{period} {regime}")));
        one_of("concat(s.period, ' ', s.regime)", pairs)
    }));
    conditions.extend(signals.as_ref().map(|signals| one_of("s.signal", each(signals))));
    conditions.extend(min_confidence.map(|least| format!("s.confidence >= cast('{least}' as double)")));
    conditions.extend(from.map(|day| format!("s.date >= '{day}'")));
    conditions.extend(to.map(|day| format!("s.date < '{day}'")));
    conditions
}

/// Requests for every combination of sector or ticker, period and regime, the usual case.
struct Product<'a> {
    heads: BTreeSet<&'a str>,
    periods: BTreeSet<&'a str>,
    regimes: BTreeSet<&'a str>,
}

impl<'a> Product<'a> {
    /// The requests as a product, if they are one and worth writing as one.
    fn of(requests: &'a BTreeSet<String>) -> Option<Self> {
        const FEW: usize = 3;
        let mut product = Self { heads: BTreeSet::new(), periods: BTreeSet::new(), regimes: BTreeSet::new() };
        for request in requests {
            let (rest, regime) = request.rsplit_once(" regime=")?;
            let (head, period) = rest.rsplit_once(" period=")?;
            product.heads.insert(head);
            product.periods.insert(period);
            product.regimes.insert(regime);
        }
        let count = product.heads.len() * product.periods.len() * product.regimes.len();
        (count == requests.len() && count > FEW).then_some(product)
    }

    fn text(&self) -> String {
        let of = |name: &str, column: &str, values: &BTreeSet<&str>| {
            rows(name, column, values.iter().map(|value| quote(value)))
        };
        let requests = format!(
            "select concat(asked, ' period=', for_period, ' regime=', for_regime)\nfrom {}\ncross join {}\ncross join {}",
            of("a", "asked", &self.heads),
            of("p", "for_period", &self.periods),
            of("r", "for_regime", &self.regimes),
        );
        format!("request in (\n{}\n)", indent(&requests))
    }
}

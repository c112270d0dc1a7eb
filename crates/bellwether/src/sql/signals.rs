//! The signals: series, vintage and filter of the definition.

use std::collections::BTreeSet;
use std::fmt::Display;

use chrono::{DateTime, NaiveDate};

use super::view::cell;
use super::{Question, indent, one_of, quote, relation, wrap};
use crate::archive::{ANSWERS, watches};
use crate::interface::Endpoint;
use crate::plan::{Column, DayCount, Filter, Request, Vintage};
use crate::tables::{ClaimedUntil, Table};
use crate::time::to_record;

impl Question<'_> {
    /// The named relations of the signals, in order.
    pub(super) fn signal_relations(&self) -> Vec<(&'static str, String)> {
        let plan = self.plan;
        let mut relations =
            vec![("sealed", self.sealed_folders()), ("listed", self.listed_series()), ("series", self.series())];
        if self.needs_changes() {
            relations.push(("signal_changes", self.changes(Table::Signals)));
        }
        if plan.needs_past() {
            relations.push(("seals", self.seals()));
        }
        relations.push(("signals", self.signals()));
        relations.push(("selected", self.selected_signals()));
        if plan.has_sectors() {
            let asks = self.requests.iter().any(|request| Request::sector_of(request).is_some());
            let by_request = if asks { format!("\n    and {}", self.is_requested()) } else { String::new() };
            relations.push(("sector_listings", self.sector_listings(&by_request)));
        }
        if self.has(Column::Sector) {
            let seen = "from (select distinct ticker, seen_by from selected)\njoin sector_listings using (ticker)\n\
                        where sealed <= seen_by";
            relations.push(("sectors", Self::sectors("ticker, seen_by", seen)));
        }
        if self.has(Column::SectorLatest) {
            relations.push(("latest_sectors", Self::sectors("ticker", "from sector_listings")));
        }
        if self.has(Column::Id) {
            relations.push(("ids", self.ids()));
        }
        if self.has(Column::WatchedUntil) {
            relations.push(("watched", self.watch_ends()));
        }
        if self.has_inputs() {
            let inputs = one_of("source", plan.inputs().iter().map(|input| quote(input.as_str())));
            relations.push(("inputs", self.answers("ticker, source", &inputs)));
            relations.push(("known_inputs", self.known_inputs()));
        }
        relations
    }

    fn has(&self, column: Column) -> bool {
        self.plan.columns.contains(&column)
    }

    /// The joins that add facts about tickers to the signals.
    pub(super) fn signal_joins(&self) -> Vec<String> {
        let joins = [
            (
                self.has(Column::Sector),
                "left join sectors on sectors.ticker = s.ticker and sectors.seen_by = s.seen_by",
            ),
            (self.has(Column::SectorLatest), "left join latest_sectors on latest_sectors.ticker = s.ticker"),
            (
                self.has(Column::Id),
                "left join ids on ids.ticker = s.ticker and s.day between ids.first_day and ids.last_day",
            ),
            (
                self.has(Column::WatchedUntil),
                "left join watched on watched.ticker = s.ticker and watched.period = s.period and watched.regime = s.regime",
            ),
            (self.has_inputs(), "left join known_inputs w on w.ticker = s.ticker and w.seen_by = s.seen_by"),
        ];
        joins.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, join)| join.to_owned()).collect()
    }

    /// Whether it matters when the news was asked for.
    fn has_inputs(&self) -> bool {
        self.has(Column::Backfilled) && !self.plan.features.is_empty()
    }

    /// Whether columns describe the history of a signal.
    fn has_past(&self) -> bool {
        use Column::{Backfilled, Claimed, FirstObservedAt, ObservedAt, Revisions};
        [FirstObservedAt, ObservedAt, Revisions, Backfilled, Claimed].into_iter().any(|column| self.has(column))
    }

    /// When the run was sealed that answered a series at an instant.
    fn seals(&self) -> String {
        format!(
            "select ticker, period, regime, observed_at as first_observed_at, {} as seen_by\n{}\n    \
             and period is not null\ngroup by ticker, period, regime, observed_at",
            self.dialect.in_utc("min(greatest(sealed_at, observed_at))"),
            self.rows(ANSWERS)
        )
    }

    /// Whether it matters which observation said a value first.
    fn needs_changes(&self) -> bool {
        self.plan.needs_past() || self.has_past() || self.has(Column::Source) || self.is_timed()
    }

    /// The series in the latest answers to the definition's requests.
    fn series(&self) -> String {
        let is_requested = self.is_requested();
        let tickers = self.excluded.iter().map(|ticker| quote(ticker.as_str()));
        let left_out = wrap(tickers);
        let taken = if left_out.is_empty() { String::new() } else { format!("\n    and ticker not in ({left_out})") };
        format!("select distinct ticker, period, regime\nfrom listed\nwhere {is_requested}{taken}")
    }

    /// The condition that something was said in answer to a request of the definition. Requests for every combination of sector
    /// or ticker, period and regime, the usual case, are written as a product.
    fn is_requested(&self) -> String {
        let mut parts: [BTreeSet<&str>; 3] = Default::default();
        for request in self.requests {
            let (rest, regime) = request.rsplit_once(" regime=").unwrap_or_default();
            let (head, period) = rest.rsplit_once(" period=").unwrap_or_default();
            for (values, value) in parts.iter_mut().zip([head, period, regime]) {
                values.insert(value);
            }
        }
        let count: usize = parts.iter().map(BTreeSet::len).product();
        // Those without a period and a regime have an empty head. A few are listed.
        if count != self.requests.len() || count <= 3 || parts[0].contains("") {
            return one_of("request", self.requests.iter().map(|request| quote(request)));
        }
        let names = [("a", "asked"), ("p", "for_period"), ("r", "for_regime")];
        let relations = names
            .into_iter()
            .zip(parts)
            .map(|((name, column), values)| relation(name, column, values.into_iter().map(quote)));
        let requests = format!(
            "select concat(asked, ' period=', for_period, ' regime=', for_regime)\nfrom {}",
            relations.collect::<Vec<_>>().join("\ncross join ")
        );
        format!("request in (\n{}\n)", indent(&requests))
    }

    fn signals(&self) -> String {
        let plan = self.plan;
        let mut columns =
            vec!["ticker, date, period, regime, signal, cast(date as date) as day, confidence".to_owned()];
        if self.is_timed() {
            let end = self.end_of_day();
            let midnight = format!("cast(cast(date as date) as {})", self.dialect.naive());
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
        let seals = if plan.needs_past() {
            let first = self.dialect.in_utc("first_observed_at");
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
                    if self.has_past() || plan.needs_past() { &past } else { "" }
                )
            }
            (false, Vintage::Latest) => self.newest(Table::Signals),
            (false, Vintage::First) => self.oldest(Table::Signals),
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
        let from = match self.plan.lag {
            DayCount::Calendar(days) if !self.plan.features.is_empty() => {
                format!("select *, day - {} as cutoff\nfrom signals s", days.count())
            }
            DayCount::Calendar(_) | DayCount::Trading(_) => "select *\nfrom signals s".to_owned(),
        };
        let conditions = conditions(&self.plan.filter);
        if conditions.is_empty() { from } else { format!("{from}\nwhere {}", conditions.join("\n    and ")) }
    }

    /// The condition that an instant was too late for a signal to be live.
    fn is_late(&self, instant: &str) -> String {
        // `check` refuses a limit in trading days.
        let (DayCount::Calendar(days) | DayCount::Trading(days)) = self.plan.live_within;
        format!("{instant} > s.date + interval '{}' day", days.count())
    }

    /// The condition that a signal rests on claims.
    fn is_claimed(&self) -> String {
        let Some(ClaimedUntil { observed, dated }) = self.view.claimed_until(self.plan) else {
            return "false".to_owned();
        };
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
        let inputs = self.plan.inputs();
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
        let day = |day: Option<NaiveDate>, open: &str| day.map_or(open.to_owned(), |day| day.to_string());
        let lines = self.plan.identity.lines().map(|(ticker, [from, to], id)| {
            let (first, last) = (day(from, "0001-01-01"), day(to, "9999-12-31"));
            format!("{}, date '{first}', date '{last}', {}", quote(ticker.as_str()), quote(id))
        });
        format!("select *\nfrom {}", relation("i", "ticker, first_day, last_day, id", lines))
    }

    /// Until when the vendor told of each series: its last answer, or the one that no longer listed it.
    fn watch_ends(&self) -> String {
        let operations = Endpoint::ALL.into_iter().filter(|other| watches(self.source, *other));
        let tells = one_of("source", operations.map(|operation| quote(operation.as_str())));
        let answered = format!(
            "select request, max(observed_at) as answered\n{}\n    and {tells}\ngroup by request",
            self.rows(ANSWERS)
        );
        format!(
            "select ticker, period, regime, max(coalesce(case when change = 'added' then answered end, observed_at)) as until\n\
             from (\n{}\n) left join (\n{}\n) using (request)\n\
             where newest = 1 and {tells}\ngroup by ticker, period, regime",
            indent(&self.newest_listings()),
            indent(&answered)
        )
    }

    /// A signal column as an expression over the joined relations.
    pub(super) fn column(&self, column: Column) -> String {
        match column {
            Column::Backfilled => {
                let first = self.is_late(&self.dialect.in_utc("s.first_observed_at"));
                let of_inputs = format!("coalesce({}, true)", self.is_late("w.known"));
                match (self.has_inputs(), self.news) {
                    (false, _) => first,
                    (true, None) => format!("{first} or {of_inputs}"),
                    (true, Some(asked)) => {
                        let is_asked = one_of("s.ticker", asked.iter().map(|ticker| quote(ticker.as_str())));
                        format!("{first} or ({is_asked} and {of_inputs})")
                    }
                }
            }
            Column::Score => "case when s.signal = 'sell' then -s.confidence else s.confidence end".to_owned(),
            Column::Sector => "sectors.sector".to_owned(),
            Column::Id => {
                let is_named = one_of("s.ticker", self.plan.identity.names().into_iter().map(quote));
                format!("case when {is_named} then ids.id else s.ticker end")
            }
            Column::WatchedUntil => "watched.until".to_owned(),
            Column::Claimed => self.is_claimed(),
            Column::SectorLatest => "latest_sectors.sector".to_owned(),
            _ => format!("s.{}", column.name()),
        }
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
        let is_of = sectors.iter().map(|sector| quote(&format!(" sector={sector} period=")));
        let is_of: Vec<String> = is_of.map(|part| format!("contains(request, {part})")).collect();
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

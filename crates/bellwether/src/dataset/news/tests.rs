//! Which news a signal knows, decided by hand.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int16Array, Int32Array, StringArray};
use arrow::datatypes::DataType;

use super::*;
use crate::dataset::keys::Limit;
use crate::definition::DefinitionFile;
use crate::plan::{Days, Plan, Vintage};
use crate::tables::{ArticlePieces, Table, symbol_runs};
use crate::time::MICROS_PER_DAY;

const HOUR: i64 = 3_600_000_000;

/// An hour of a day, in microseconds since 1970.
fn at(day: i64, hour: i64) -> i64 {
    day * MICROS_PER_DAY + hour * HOUR
}

fn plan(change: impl FnOnce(&mut DatasetPlan)) -> DatasetPlan {
    let text = "source.service = \"demo\"\nsignals.sectors = \"energy\"\n".to_owned();
    let mut plan = Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap().dataset;
    change(&mut plan);
    plan
}

fn plan_of_observed() -> DatasetPlan {
    plan(|plan| plan.availability = Availability::Observed)
}

/// What a signal knows that was made at an hour of day 10, of news until that day, by a run sealed at an instant.
fn cutoff(hour: Option<i64>, seen_by: i64, plan: &DatasetPlan) -> Cutoff {
    let made = hour.map_or(Moment::END, |hour| Timing::new(plan).made_at(at(10, hour), Some(0)));
    Cutoff::new(&NewsKey { ticker: 0, day: 10, limit: Limit { made, seen_by } }, 10, plan)
}

/// A row of news: its ticker, its values by column, and from when until when it was observed.
type Row<'a> = (&'a str, HashMap<&'a str, f64>, i64, Option<i64>);

/// Rows of a table of news; a value that a row does not name is null, and no number of it is.
fn news_rows(table: Table, rows: &[Row<'_>], records: &[&str]) -> RecordBatch {
    let schema = Slab::news_schema(table);
    let column = |name: &str, data_type: &DataType| -> ArrayRef {
        let value = |row: &Row<'_>| row.1.get(name).copied();
        let whole = |row: &Row<'_>| value(row).map(|value| value as i64);
        match name {
            "ticker" => symbol_runs(rows.iter().map(|row| (row.0, 1))),
            "record" => Arc::new(StringArray::from(records.to_vec())),
            "seen_from" => {
                Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.2)).with_timezone("UTC"))
            }
            "seen_until" => {
                Arc::new(rows.iter().map(|row| row.3).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
            _ => match data_type {
                DataType::Timestamp(..) => Arc::new(rows.iter().map(whole).collect::<TimestampMicrosecondArray>()),
                DataType::Float64 => Arc::new(rows.iter().map(value).collect::<Float64Array>()),
                DataType::Int16 => {
                    Arc::new(rows.iter().map(|row| whole(row).map(|it| it as i16)).collect::<Int16Array>())
                }
                _ => Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| whole(row).unwrap_or(0) as i32))),
            },
        }
    };
    let columns = schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

fn slab(articles: RecordBatch, summaries: RecordBatch, records: RecordBatch) -> Slab {
    Slab {
        signals: RecordBatch::new_empty(Table::Signals.known_schema()),
        articles: ArticlePieces::in_memory(vec![articles]),
        summaries,
        records,
        watched: Arc::default(),
    }
}

fn lists<'a>(plan: &'a DatasetPlan, past: Option<&'a Past>, watched: Watched) -> Lists<'a> {
    let mut tickers = TickerCodes::default();
    assert_eq!(["AAA", "never listed"].map(|name| tickers.code(name)), [0, 1]);
    let none = || RecordBatch::new_empty(Slab::news_schema(Table::Articles));
    let mut slab = slab(none(), none(), none());
    slab.watched = Arc::new([("AAA".parse().unwrap(), watched)].into());
    Lists::new(&slab, plan, past, &tickers)
}

#[test]
fn an_observation_counts_if_it_was_made_by_the_cutoff_by_the_signal_and_by_its_run() {
    let as_observed = plan_of_observed();
    let first = plan(|plan| plan.vintage = Vintage::First);
    let dated = plan(|_| {});
    for (instant, hour, seen_by, expected) in [
        (at(9, 12), Some(12), at(11, 0), [true, true, true]),
        (at(10, 12), Some(12), at(11, 0), [true, true, true]),
        (at(10, 13), Some(12), at(11, 0), [false, true, true]),
        (at(10, 13), None, at(11, 0), [true, true, true]),
        (at(11, 0), None, at(11, 0), [false, true, true]),
        (at(10, 1), None, at(10, 1), [true, true, true]),
        (at(10, 2), None, at(10, 1), [false, false, true]),
        (at(10, 2), Some(12), at(10, 1), [false, false, true]),
    ] {
        let has_seen =
            [&as_observed, &first, &dated].map(|plan| cutoff(hour, seen_by, plan).has_seen(available(instant, plan)));
        assert_eq!(has_seen, expected, "{instant} {hour:?} {seen_by}");
    }
}

#[test]
fn a_value_is_known_from_when_it_was_observed_until_it_was_replaced_and_never_before_its_date() {
    let plan = plan_of_observed();
    let rows = |from, until, date, offset| {
        let mut values: HashMap<&str, f64> = [("date", date as f64)].into();
        values.extend(Some(("utc_offset_minutes", 0.0)).filter(|_| offset));
        [("AAA", values, from, until)]
    };
    let is_known = |rows: &[Row<'_>; 1]| {
        let lists = lists(&plan, None, Watched { from: 0, until: None });
        let rows = news_rows(Table::Articles, rows, &[]);
        let mut tickers = TickerCodes::default();
        let article = read_articles(&rows, &plan, &lists, &mut tickers)[0];
        let cut = cutoff(Some(12), i64::MAX, &plan);
        (article.is_known(cut), article.is_listed(cut))
    };
    let (before, after) = (at(9, 0), at(10, 13));
    assert_eq!(is_known(&rows(before, None, at(9, 0), true)), (true, true));
    assert_eq!(is_known(&rows(before, Some(after), at(9, 0), true)), (true, true));
    assert_eq!(is_known(&rows(before, Some(at(10, 12)), at(9, 0), true)), (false, true));
    assert_eq!(is_known(&rows(after, None, at(9, 0), true)), (false, false));
    assert_eq!(is_known(&rows(before, None, at(10, 12), true)), (true, true));
    assert_eq!(is_known(&rows(before, None, at(10, 13), true)), (false, true));
    // Without an offset, it is known from the end of its day.
    assert_eq!(is_known(&rows(before, None, at(9, 23), false)), (true, true));
    assert_eq!(is_known(&rows(before, None, at(10, 1), false)), (false, true));
}

#[test]
fn a_list_tells_of_the_days_between_its_first_answer_and_the_day_of_its_last() {
    let (dated, as_observed) = (plan(|_| {}), plan_of_observed());
    let tells = |plan: &DatasetPlan, watched, day| {
        let cut = Cutoff { day, ..cutoff(None, i64::MAX, plan) };
        let lists = lists(plan, None, watched);
        assert!(!lists.tell(1, cut), "a ticker that was never listed");
        lists.tell(0, cut)
    };
    let open = Watched { from: at(5, 12), until: None };
    let ended = Watched { until: Some(at(8, 12)), ..open };
    for (day, expected) in [(Day::MIN, [false; 4]), (4, [true, true, false, false]), (5, [true; 4]), (7, [true; 4])] {
        let found = [(&dated, open), (&dated, ended), (&as_observed, open), (&as_observed, ended)];
        assert_eq!(found.map(|(plan, watched)| tells(plan, watched, day)), expected, "{day}");
    }
    for (day, expected) in [(8, [true, false, true, false]), (9, [true, false, true, false])] {
        let found = [(&dated, open), (&dated, ended), (&as_observed, open), (&as_observed, ended)];
        assert_eq!(found.map(|(plan, watched)| tells(plan, watched, day)), expected, "{day}");
    }
}

#[test]
fn a_list_tells_what_the_runs_knew_that_were_sealed_by_then() {
    let mut past = Past::default();
    let (ticker, other) = ("AAA".parse().unwrap(), "B".parse().unwrap());
    past.add_list(&ticker, at(5, 0), at(5, 1));
    past.add_list(&ticker, at(8, 0), at(8, 1));
    past.add_list(&other, at(12, 0), at(12, 1));
    // Whether a signal knows the list for a day, by the day on which its run was sealed.
    let watched = Watched { from: at(5, 0), until: Some(at(8, 0)) };
    for plan in [plan_of_observed(), plan(|plan| plan.vintage = Vintage::First)] {
        let lists = lists(&plan, Some(&past), watched);
        let tells = |sealed, day| lists.tell(0, Cutoff { day, ..cutoff(None, at(sealed, 2), &plan) });
        assert!(!tells(4, 7), "before its first answer");
        assert!(tells(5, 7) && tells(9, 8) && tells(9, 9), "while every run has an answer");
        assert!(tells(12, 7) && !tells(12, 8) && !tells(12, 9), "a later run has none");
    }
    // A dataset of the latest values takes all answers together, whenever a signal was seen.
    let dated = plan(|_| {});
    let lists = lists(&dated, Some(&past), watched);
    let tells = |sealed, day| lists.tell(0, Cutoff { day, ..cutoff(None, at(sealed, 2), &dated) });
    assert!(tells(4, 7) && !tells(9, 8));
}

#[test]
fn lists_are_cut_off_unless_they_are_said_to_be_complete() {
    for is_complete in [true, false] {
        let plan = plan(|plan| plan.are_lists_complete = is_complete);
        assert_eq!(lists(&plan, None, Watched { from: 0, until: None }).are_cut_off(), !is_complete);
    }
}

#[test]
fn articles_are_counted_by_their_latest_values() {
    let ended = ObservedSpan { from: Sighting::ALWAYS, until: Sighting::ALWAYS };
    let scored = || NewsItem::always_known(0, 0, 0, Some(0.5));
    let unscored = || NewsItem::always_known(0, 0, 0, None);
    let repeated = |item: NewsItem| NewsItem { is_counted: false, ..item };
    let replaced = |item: NewsItem| NewsItem { seen: ended, ..item };
    let articles = [
        scored(),
        unscored(),
        unscored(),
        repeated(scored()),
        repeated(unscored()),
        replaced(scored()),
        replaced(unscored()),
    ];
    let expected = ArticleCounts { all: 5, unscored: 2, repeated: 2 };
    assert_eq!(counts(&articles), expected);
}

#[test]
fn articles_are_read_if_a_feature_comes_from_them() {
    let historical = || Feature::Historical("score".into());
    for (features, expected) in [
        (Vec::new(), false),
        (vec![Feature::Summary(Reference::Low), Feature::SummaryDaysSince], false),
        (vec![historical()], false),
        (vec![Feature::SummaryDaysSince, historical(), Feature::LastScore], true),
        (vec![Feature::count(Days::new(7))], true),
    ] {
        let text = format!("{features:?}");
        assert_eq!(has_articles(&plan(|plan| plan.features = features)), expected, "{text}");
    }
}

#[test]
fn offsets_behind_utc_matter_for_dates_as_written_alone() {
    let article = |minutes: f64| ("AAA", [("date", 0.0), ("utc_offset_minutes", minutes)].into(), 0, None);
    let record = |offset: &str| format!("{{\"date\":\"2025-01-02T00:00:00{offset}\",\"score\":1}}");
    let behind = |dates: NaiveRule, features: &[Feature], minutes: &[f64], offset: &str| {
        let plan = plan(|plan| (plan.dates, plan.features) = (dates, features.to_vec()));
        let articles = news_rows(Table::Articles, &minutes.iter().map(|it| article(*it)).collect::<Vec<_>>(), &[]);
        let records = news_rows(Table::SentimentHistory, &[("AAA", HashMap::new(), 0, None)], &[&record(offset)]);
        let summaries = RecordBatch::new_empty(Slab::news_schema(Table::Summaries));
        let slab = slab(articles, summaries, records);
        TickerNews::read(&slab, &plan, &mut TickerCodes::default()).behind_minutes(&slab, &plan).unwrap()
    };
    let (last, historical) = (Feature::LastScore, Feature::Historical("score".into()));
    let both = [last.clone(), historical.clone()];
    assert_eq!(behind(NaiveRule::Wall, &both, &[-300.0, 60.0], "-02:00"), 300);
    assert_eq!(behind(NaiveRule::Wall, &both, &[-60.0, 60.0], "-02:00"), 120);
    assert_eq!(behind(NaiveRule::Wall, &both, &[60.0], "+02:00"), 0);
    assert_eq!(behind(NaiveRule::Wall, std::slice::from_ref(&historical), &[-300.0], "-02:00"), 120);
    assert_eq!(behind(NaiveRule::Wall, std::slice::from_ref(&last), &[-60.0], "-02:00"), 60);
    assert_eq!(behind(NaiveRule::Utc, &both, &[-300.0], "-02:00"), 0);
}

#[test]
fn articles_are_ordered_by_ticker_date_and_place_and_a_repetition_counts_if_the_plan_says_so() {
    let article = |ticker, date, offset: Option<f64>, place: f64, repeats: f64, from| {
        let mut values: HashMap<&str, f64> =
            [("date", date as f64), ("place", place), ("repeats", repeats), ("score", place)].into();
        values.extend(offset.map(|offset| ("utc_offset_minutes", offset)));
        (ticker, values, from, None)
    };
    let late = || article("AAA", at(3, 0), None, 0.0, 0.0, 5);
    // Two articles with one date, the later place first, and one that the clock of the rule dates alike.
    let of_one_date = || {
        [
            article("AAA", at(2, 0), None, 4.0, 0.0, 6),
            article("AAA", at(2, 0), None, 3.0, 1.0, 5),
            article("AAA", at(1, 22), Some(120.0), 9.0, 0.0, 5),
        ]
    };
    let other = || article("B", at(1, 0), None, 1.0, 0.0, 5);
    let [a, b, c] = of_one_date();
    let by_date = vec![a, b, c, late(), other()];
    let [a, b, c] = of_one_date();
    let in_any_order = vec![late(), a, b, c, other()];
    for duplicates in [Duplicates::Once, Duplicates::Keep] {
        let plan = plan(|plan| (plan.dates, plan.duplicates) = (NaiveRule::Wall, duplicates));
        for rows in [&by_date, &in_any_order] {
            let rows = news_rows(Table::Articles, rows, &[]);
            let lists = lists(&plan, None, Watched { from: 5, until: None });
            let mut tickers = TickerCodes::default();
            let articles = read_articles(&rows, &plan, &lists, &mut tickers);
            let found: Vec<_> =
                articles.iter().map(|it| (it.ticker, it.order(), it.is_counted, it.is_of_first)).collect();
            let is_counted = duplicates == Duplicates::Keep;
            let expected = [
                (0, (at(2, 0), at(1, 22), 9), true, true),
                (0, (at(2, 0), at(2, 0), 3), is_counted, true),
                (0, (at(2, 0), at(2, 0), 4), true, false),
                (0, (at(3, 0), at(3, 0), 0), true, true),
                (1, (at(1, 0), at(1, 0), 1), true, false),
            ];
            assert_eq!(found, expected);
            assert_eq!(articles[0].score, Some(ExactScore::new(9.0)));
        }
    }
}

#[test]
fn summaries_count_from_the_day_on_which_they_were_seen() {
    let summary = |ticker, low: f64, from, until| (ticker, [("low_score", low)].into(), from, until);
    let rows = [
        summary("B", 1.0, at(3, 0), None),
        summary("AAA", 3.0, at(5, 1), None),
        summary("AAA", 2.0, at(4, 1), Some(at(5, 1))),
    ];
    let none = |table| RecordBatch::new_empty(Slab::news_schema(table));
    let slab = slab(none(Table::Articles), news_rows(Table::Summaries, &rows, &[]), none(Table::SentimentHistory));
    let mut tickers = TickerCodes::default();
    assert_eq!(["AAA", "B"].map(|name| tickers.code(name)), [0, 1]);
    let plan = plan(|plan| plan.features = vec![Feature::Summary(Reference::Low)]);
    let news = TickerNews::read(&slab, &plan, &mut tickers);
    let found: Vec<_> = news.summaries.iter().map(|it| (it.ticker, it.day, it.values.clone())).collect();
    let values = |low| vec![Some(low), None, None];
    assert_eq!(found, [(0, 4, values(2.0)), (0, 5, values(3.0)), (1, 3, values(1.0))]);
    // Observed values count from their instant on, even if news counts by its date.
    let is_known = |index: usize, seen_by| news.summaries[index].is_known(cutoff(Some(12), seen_by, &plan));
    assert!(!is_known(0, i64::MAX) && is_known(1, i64::MAX));
}

#[test]
fn records_hold_the_numbers_of_their_fields_and_come_in_the_order_in_which_they_were_known() {
    let records = [
        r#"{"date":"1970-01-05","score":"0.25","other":true}"#,
        r#"{"date":"1970-01-04","score":0.5,"other":-0.0}"#,
        r#"{"date":"1970-01-05","score":1,"other":"x"}"#,
        r#"{"score":1}"#,
    ];
    let places = [1.0, 0.0, 0.0, 0.0].map(|place| ("AAA", HashMap::from([("place", place)]), 0, None));
    let none = |table| RecordBatch::new_empty(Slab::news_schema(table));
    let slab =
        slab(none(Table::Articles), none(Table::Summaries), news_rows(Table::SentimentHistory, &places, &records));
    let plan = plan(|plan| plan.features = ["score", "other"].map(|name| Feature::Historical(name.into())).into());
    let news = TickerNews::read(&slab, &plan, &mut TickerCodes::default());
    let found: Vec<_> = news.records.iter().map(|it| (it.day, it.place, it.values.clone())).collect();
    let expected = [(3, 0, vec![Some(0.5), Some(0.0)]), (4, 0, vec![Some(1.0), None]), (4, 1, vec![Some(0.25), None])];
    assert_eq!(found, expected);
    assert!(news.records[0].values[1].unwrap().is_sign_positive());
    assert!(news.summaries.is_empty());
    // A record without an offset is known from the end of its day.
    let cut = |day, hour| Cutoff { day, ..cutoff(Some(hour), i64::MAX, &plan) };
    assert!(news.records[0].is_known(cut(10, 12)));
    let made = Timing::new(&plan).made_at(at(3, 12), Some(0));
    assert!(!news.records[0].is_known(Cutoff { made, ..cut(10, 12) }));
}

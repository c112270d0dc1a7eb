//! Articles of a ticker, whose list comes in pieces.

use std::collections::{BTreeMap, HashMap};

use arrow::array::Int32Array;
use arrow::datatypes::{Float64Type, Int32Type};

use super::*;
use crate::archive::Counts;
use crate::archive::coverage::Coverage;
use crate::archive::sealed::layout::REJECTS;
use crate::disk::digest;

/// An article of a list; its date is a day.
#[derive(Clone, Debug)]
struct Article {
    day: i64,
    title: String,
    score: i32,
}

fn article(day: i64, number: i64, score: i32) -> Article {
    Article { day, title: format!("{day:06}/{number}"), score }
}

/// One article on every third day, two on the next and three on the one after, newest first.
fn every_day(days: std::ops::Range<i64>) -> Vec<Article> {
    days.rev().flat_map(|day| (0..=day % 3).rev().map(move |number| article(day, number, 1))).collect()
}

fn of_articles(ticker: &str) -> SeriesKey {
    SeriesKey::of_ticker(Endpoint::NewsArticles, ticker.parse().unwrap())
}

/// A list in pieces of some articles.
fn pieces(ticker: &str, list: &[Article], articles: usize) -> Vec<(SeriesKey, RecordBatch)> {
    let piece = |(index, of_piece): (usize, &[Article])| {
        let first = (index * articles) as i32;
        let count = of_piece.len();
        let dates = TimestampMicrosecondArray::from_iter_values(of_piece.iter().map(|article| article.day * DAY));
        let titles = StringArray::from_iter_values(of_piece.iter().map(|article| article.title.clone()));
        let scores = Float64Array::from_iter_values(of_piece.iter().map(|article| f64::from(article.score)));
        let columns: [(&str, ArrayRef); 5] = [
            ("position", Arc::new(Int32Array::from_iter_values(first..first + count as i32))),
            ("date", Arc::new(dates)),
            ("title", Arc::new(titles)),
            ("score", Arc::new(scores)),
            ("link", Arc::new(StringArray::from(vec!["link"; count]))),
        ];
        (of_articles(ticker), Table::Articles.list(&columns).unwrap())
    };
    list.chunks(articles).enumerate().map(piece).collect()
}

fn tell(request: &'static str, at: i64, series: Vec<(SeriesKey, RecordBatch)>) -> Told {
    Told::new(Endpoint::NewsArticles, request, at, series)
}

/// What a run stores of an article: its day, title and copy, the change, and its place and score.
type Stored = (i64, String, i32, &'static str, Option<(i32, i32)>);

/// What a run stored of the articles of a ticker.
fn stored_articles(run: &SealedRun, ticker: &str) -> Vec<Stored> {
    let rows = rows(run, &Table::Articles.file(), &Table::Articles.file_schema());
    let numbers = |name: &str| rows.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
    let (copies, places) = (numbers("copy"), numbers("place"));
    let scores = rows.column_by_name("score").unwrap().as_primitive::<Float64Type>().clone();
    let (titles, changes, days) = (texts(&rows, "title"), texts(&rows, "change"), days(&rows));
    let stored = |row: usize| {
        let title = titles[row].as_ref().unwrap().trim_end_matches('x').to_owned();
        let change =
            ["added", "revised", "withdrawn"].into_iter().find(|change| changes[row].as_deref() == Some(change));
        let value = places.is_valid(row).then(|| (places.value(row), scores.value(row) as i32));
        (days[row], title, copies.value(row), change.unwrap(), value)
    };
    let tickers = texts(&rows, "ticker");
    (0..rows.num_rows()).filter(|row| tickers[*row].as_deref() == Some(ticker)).map(stored).collect()
}

/// Known articles, by day and title: place and score.
type Known = BTreeMap<(i64, String), (i32, i32)>;

/// Takes over a list of different articles; returns what it changed. Those of a day are numbered from the last listed.
fn take_over(known: &mut Known, list: &[Article]) -> Vec<Stored> {
    let oldest = list.iter().map(|article| article.day).min().unwrap();
    let (mut now, mut places) = (Known::new(), HashMap::<i64, i32>::new());
    for Article { day, title, score } in list.iter().rev() {
        let place = places.entry(*day).or_default();
        now.insert((*day, title.clone()), (*place, *score));
        *place += 1;
    }
    let mut changes = BTreeMap::new();
    for (cell, value) in &now {
        match known.insert(cell.clone(), *value) {
            None => _ = changes.insert(cell.clone(), ("added", Some(*value))),
            Some(before) if before != *value => _ = changes.insert(cell.clone(), ("revised", Some(*value))),
            Some(_) => {}
        }
    }
    let gone: Vec<_> = known.keys().filter(|cell| cell.0 > oldest && !now.contains_key(*cell)).cloned().collect();
    for cell in gone {
        known.remove(&cell);
        changes.insert(cell, ("withdrawn", None));
    }
    changes.into_iter().map(|((day, title), (change, value))| (day, title, 0, change, value)).collect()
}

fn counts(changes: &[Stored]) -> Counts {
    let count = |kind: &str| changes.iter().filter(|(_, _, _, change, _)| *change == kind).count() as u64;
    let (added, revised, withdrawn) = (count("added"), count("revised"), count("withdrawn"));
    Counts { added, revised, withdrawn, ..Counts::default() }
}

/// The lists of four answers: one of 120 articles, a later one in any order, the same again, and a short one.
fn lists() -> [Vec<Article>; 4] {
    let mut later: Vec<Article> = every_day(30..62).into_iter().filter(|article| article.day != 40).collect();
    later.retain(|article| article.title != "000041/1");
    later.iter_mut().filter(|article| article.day == 50).for_each(|article| article.score = 2);
    let count = later.len();
    let in_any_order: Vec<Article> = (0..count).map(|index| later[index * 41 % count].clone()).collect();
    let short = every_day(45..61).into_iter().filter(|article| article.day != 55).collect();
    [every_day(0..60), in_any_order.clone(), in_any_order, short]
}

#[test]
fn articles_of_a_ticker_are_compared_whatever_their_order() {
    let place = Place::new(&[]);
    let mut known = Known::new();
    for (pull, list) in lists().into_iter().enumerate() {
        assert_eq!(
            list.iter().map(|article| &article.title).collect::<std::collections::BTreeSet<_>>().len(),
            list.len()
        );
        let second = 100 * (pull as i64 + 1);
        let few = |ticker| pieces(ticker, &[article(1, 0, pull as i32)], 1);
        let before = known.len() as u64;
        let settled = place.run(
            second,
            vec![
                Told::new(
                    Endpoint::SignalsHistoryAll,
                    "signals",
                    second - 3,
                    vec![(signals_of("M", "5d"), history(&[(1, true)]))],
                ),
                tell("before", second - 6, few("A")),
                tell("many", second - 5, pieces("M", &list, 20)),
                tell("after", second - 4, few("Z")),
            ],
        );
        let expected = take_over(&mut known, &list);
        assert_eq!(stored_articles(&settled.run, "M"), expected, "pull {pull}");
        let others = u64::from(pull > 0);
        assert_eq!(settled.known, before + 3 * others, "pull {pull}");
        // The one article of the other tickers is new at first, and has another score each time.
        let (new, other) = (if pull == 0 { (3, 0) } else { (0, 2) }, counts(&expected));
        let changes = &settled.run.seal().changes;
        let found = (changes.added, changes.revised, changes.withdrawn);
        assert_eq!(found, (other.added + new.0, other.revised + new.1, other.withdrawn), "pull {pull}");
        for ticker in ["A", "Z"] {
            let change = if pull == 0 { "added" } else { "revised" };
            let expected = (1, "000001/0".to_owned(), 0, change, Some((0, pull as i32)));
            assert_eq!(stored_articles(&settled.run, ticker), [expected], "pull {pull}");
        }

        let oldest = list.iter().map(|article| article.day).min().unwrap();
        let answers = settled.run.answers().unwrap();
        let tickers: Vec<&str> = answers.iter().map(|answer| answer.key.ticker.as_str()).collect();
        assert_eq!(tickers, ["A", "M", "M", "Z"]);
        let answer = answers.iter().find(|answer| &*answer.request == "many").unwrap();
        assert_eq!(answer.rows, list.len() as u64);
        assert_eq!(answer.covers, Coverage::Dates { from: oldest * DAY, until: i64::MAX });
        assert_eq!((answer.observed_at, answer.sealed_at), (at(second - 5), at(second)));
        let title = format!("{oldest:06}/0");
        let edge = digest::of(format!("{title}\nlink\n0").as_bytes());
        assert_eq!(answer.edge.text().as_deref(), Some(&edge[..8]), "pull {pull}");
    }
}

#[test]
fn copies_at_the_end_of_a_list_continue_the_known_ones() {
    let copy = |score| Article { day: 0, title: "copied".to_owned(), score };
    let other = Article { day: 0, title: "only at first".to_owned(), score: 1 };
    let mut first = every_day(1..60);
    first.extend([copy(3), other, copy(2), copy(1)]);
    // Cut off within the first day, before its oldest articles.
    let mut later = every_day(1..60);
    later.extend([copy(3), copy(2)]);
    let place = Place::new(&[]);
    let articles = |list: &[Article]| pieces("M", list, 20);
    let settled = place.run(100, vec![tell("many", 90, articles(&first))]);
    let of_day = |run: &SealedRun| -> Vec<Stored> {
        let mut stored = stored_articles(run, "M");
        stored.retain(|article| article.0 == 0);
        stored.sort();
        stored
    };
    let expected = [
        (0, "copied".to_owned(), 0, "added", Some((0, 1))),
        (0, "copied".to_owned(), 1, "added", Some((1, 2))),
        (0, "copied".to_owned(), 2, "added", Some((3, 3))),
        (0, "only at first".to_owned(), 0, "added", Some((2, 1))),
    ];
    assert_eq!(of_day(&settled.run), expected);

    let settled = place.run(200, vec![tell("many", 190, articles(&later))]);
    // They are the second and the third; what their list lacks comes before all of them.
    let expected =
        [(0, "copied".to_owned(), 1, "revised", Some((3, 2))), (0, "copied".to_owned(), 2, "revised", Some((4, 3)))];
    assert_eq!(stored_articles(&settled.run, "M"), expected);
    let edge = |copy: i32| {
        let title = "copied";
        digest::of(format!("{title}\nlink\n{copy}").as_bytes())[..8].to_owned()
    };
    let answers = settled.run.answers().unwrap();
    assert_eq!(answers[0].edge.text(), Some(format!("{}{}", edge(1), edge(2))));
}

#[test]
fn a_whole_list_withdraws_what_it_lacks_on_its_oldest_date_too_however_many_articles_there_are() {
    let mut first = every_day(3..60);
    first.extend([article(2, 1, 1), article(2, 0, 1), article(1, 0, 1)]);
    let mut later = every_day(3..60);
    later.push(article(2, 0, 1));
    let place = Place::new(&[Table::Articles]);
    let articles = |list: &[Article]| pieces("M", list, 20);
    place.run(100, vec![tell("many", 90, articles(&first))]);
    let settled = place.run(200, vec![tell("many", 190, articles(&later))]);
    let gone = |day, number: i64| (day, format!("{day:06}/{number}"), 0, "withdrawn", None);
    assert_eq!(stored_articles(&settled.run, "M"), [gone(1, 0), gone(2, 1)]);
    assert_eq!(settled.run.answers().unwrap()[0].edge.text(), None);
}

#[test]
fn a_list_that_another_request_repeats_is_rejected_if_it_differs_anywhere() {
    let list = every_day(0..60);
    let changed = |day: i64| {
        let mut list = list.clone();
        list.iter_mut().filter(|article| article.day == day).for_each(|article| article.score = 7);
        list
    };
    let place = Place::new(&[]);
    let articles = |list: &[Article]| pieces("M", list, 20);
    let settled = place.run(
        100,
        vec![
            tell("1 first", 90, articles(&list)),
            tell("2 same", 91, articles(&list)),
            tell("3 old differs", 92, articles(&changed(0))),
            tell("4 new differs", 93, articles(&changed(59))),
        ],
    );
    assert_eq!(settled.run.seal().changes.added, 120);
    let rejects = rows(&settled.run, REJECTS, &Reject::schema());
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(texts(&rejects, "request"), [some("3 old differs"), some("4 new differs")]);
    assert_eq!(texts(&rejects, "ticker"), [some("M"), some("M")]);
    assert_eq!(seconds(&rejects, "observed_at"), [92, 93]);
    let requests = settled.run.requests().unwrap();
    let found: Vec<_> = requests.iter().map(|it| (it.request.as_str(), it.rows, it.rejects)).collect();
    let expected = [("1 first", 120, 0), ("2 same", 120, 0), ("3 old differs", 0, 120), ("4 new differs", 0, 120)];
    assert_eq!(found, expected);
}

#[test]
fn more_known_articles_than_are_read_at_once_are_compared() {
    let place = Place::new(&[]);
    let mut known = Known::new();
    let all: Vec<Article> = (0..70_000).rev().map(|day| article(day, 0, 1)).collect();
    let mut most = all.clone();
    most.retain(|article| article.day % 7 > 1);
    most.iter_mut().filter(|article| article.day % 7 == 6).for_each(|article| article.score = 2);
    // Few, of a ticker with very many.
    let few: Vec<Article> = most.iter().filter(|article| article.day % 7 == 3).cloned().collect();
    for (pull, list) in [all, most, few].iter().enumerate() {
        let second = 100 * (pull as i64 + 1);
        let before = known.len() as u64;
        let settled = place.run(second, vec![tell("many", second - 5, pieces("M", list, 10_000))]);
        assert_eq!(settled.known, before, "pull {pull}");
        let expected = take_over(&mut known, list);
        let found = stored_articles(&settled.run, "M");
        let differing = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert_eq!(differing, None, "pull {pull}");
        assert_eq!(found.len(), expected.len(), "pull {pull}");
        assert!(pull == 0 || expected.len() > 15_000);
    }
}

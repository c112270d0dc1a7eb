//! A ticker with very many articles is compared, read and packed correctly.

use std::collections::BTreeMap;
use std::fmt::Write;

use bellwether::tables::Table;
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::program::{Outcome, Place};
use crate::support::rows::{columns, known_rows, read};
use crate::support::scripted::{Scripted, ScriptedRequest, json};

/// Articles by date, in units of forty seconds, and title.
type Articles = BTreeMap<(usize, String), u32>;

fn date(number: usize) -> String {
    let first: DateTime<Utc> = "2025-01-01T00:00:00Z".parse().expect("a date");
    (first + TimeDelta::seconds(40 * number as i64)).format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The articles listed in a pull: first all of them, newest first; then most of them and some new ones, shuffled, with
/// some other titles and scores; then the newest few, with other scores.
fn list(pull: usize) -> Vec<(usize, String, u32)> {
    let article = |number: usize| {
        let version = if pull > 0 && number.is_multiple_of(100) { "again" } else { "at first" };
        let title = format!("what was said of the company {version}, in a title of some length: {number}");
        let score = number % 1_000 + usize::from(pull > 0 && number % 7 == 3) + usize::from(pull > 1);
        (number, title, score as u32)
    };
    match pull {
        0 => (0..60_000).rev().map(article).collect(),
        1 => (0..57_999).map(|place| article(3_001 + place * 7_919 % 57_999)).collect(),
        _ => (60_501..61_000).rev().map(article).collect(),
    }
}

/// The state after an answer, and the number of articles that it added, revised and withdrew.
fn after(before: &Articles, listed: &[(usize, String, u32)]) -> (Articles, [usize; 3]) {
    let now: Articles = listed.iter().map(|(number, title, score)| ((*number, title.clone()), *score)).collect();
    let oldest = now.keys().next().expect("something is listed").0;
    let mut known = before.clone();
    known.retain(|article, _| article.0 <= oldest || now.contains_key(article));
    let withdrawn = before.len() - known.len();
    let added = now.keys().filter(|article| !before.contains_key(*article)).count();
    let revised = now.iter().filter(|(article, score)| before.get(*article).is_some_and(|old| old != *score)).count();
    known.extend(now);
    (known, [added, revised, withdrawn])
}

fn answer(request: &ScriptedRequest) -> String {
    if request.target.contains("news_articles") {
        let mut text = String::new();
        for (number, title, score) in list(request.before) {
            let (comma, date) = (if text.is_empty() { "" } else { "," }, date(number));
            let link = format!("https://news.example.com/articles/{number}");
            write!(text, "{comma}{{\"date\":\"{date}\",\"title\":\"{title}\",\"score\":{score},\"link\":\"{link}\"}}")
                .expect("texts take texts");
        }
        return format!("[{text}]");
    }
    let entry = |day| format!("{{\"date\":\"2025-01-{day:02}T00:00:00\",\"signal\":\"buy\",\"confidence\":0.5}}");
    let entries: Vec<String> = (1..=31).rev().map(entry).collect();
    let items = entries.join(",");
    format!("{{\"AAA\":{{\"items\":[{items}],\"period\":\"15d\",\"regime\":\"neutral\",\"ticker\":\"AAA\"}}}}")
}

/// The known articles of an archive.
fn known_articles(place: &Place) -> Vec<[String; 3]> {
    let rows = known_rows(&place.file("output/archive/vendor"), Table::Articles, DateTime::<Utc>::MAX_UTC);
    columns(&rows, ["date", "title", "score"])
}

#[test]
fn a_giant_ticker_is_compared_and_packed_like_a_small_one() {
    let service = Scripted::start(|request| json("200 OK", &answer(request)));
    let place = Place::new();
    let rest = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = true\n";
    place.define("it", &format!("[source]\n{}{rest}", service.source()));
    let mut expected = Articles::new();
    let mut rewritten = [0; 2];
    for pull in 0..3 {
        let ran = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        let (known, [added, revised, withdrawn]) = after(&expected, &list(pull));
        let signals = if pull == 0 { 31 } else { 0 };
        let line = ran.stdout.lines().find(|line| line.starts_with("changes")).expect("the changes").replace(',', "");
        rewritten = [rewritten[0] + revised, rewritten[1] + withdrawn];
        let changes = format!("changes   {} added {revised} revised {withdrawn} withdrawn", added + signals);
        assert_eq!(line, changes, "pull {pull}");
        expected = known;
        assert_eq!(known_articles(&place).len(), expected.len(), "pull {pull}");
        for ([date, title, score], ((number, expected_title), expected_score)) in
            known_articles(&place).iter().zip(&expected)
        {
            assert_eq!(title, expected_title);
            assert!(date.starts_with(&self::date(*number)), "{date} is not that of {number}");
            assert_eq!(score.parse::<f64>(), Ok(f64::from(*expected_score)), "{title}");
        }
    }
    // The second answer has other titles on dates covered by the first one.
    let late = (3_001..60_000).filter(|number| number % 100 == 0).count();
    place.run(["audit", "revisions", "it", "--output", "revisions.parquet"]).expect_success();
    let kinds = columns(&read(&place.file("revisions.parquet")), ["kind"]);
    let count = |kind: &str| kinds.iter().filter(|[found]| found == kind).count();
    assert_eq!([count("revised"), count("withdrawn"), count("added_late")], [rewritten[0], rewritten[1], late]);
    let before = known_articles(&place);
    place.pack();
    place.run(["verify"]).expect_success();
    place.prune_packed();
    assert!(known_articles(&place) == before, "packing changes nothing that is known");
}

//! An archive of the demo, served: it passes the tests of the demo, as far as runs asked for it.

use std::fs;

use bellwether::definition::DefinitionFile;
use bellwether::interface::ChangeSet;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::time::Clock;
use chrono::TimeDelta;

use super::{news, presence, requests, signals};
use crate::support::days::evening;
use crate::support::program::Place;
use crate::support::service::{KEY, Server, day};

/// The definitions that fetch what the tests ask for.
const DEFINITIONS: [&str; 6] = [
    "[signals]\nsectors = [\"energy\"]\nperiods = [\"1m\"]\nregimes = [\"bull\"]\n[sentiment]\narticles = false\n",
    "[signals]\nsectors = [\"utilities\"]\n[sentiment]\narticles = false\n",
    "[signals]\ntickers = [\"AAPL\", \"BRK.B\"]\nperiods = [\"5d\", \"15d\", \"30d\"]\nregimes = [\"bear\", \"bull\", \"neutral\"]\n\
     [sentiment]\narticles = false\n",
    "[signals]\ntickers = [\"AAPL\"]\nhistory = \"latest\"\nperiods = [\"5d\", \"15d\"]\nregimes = [\"bull\", \"neutral\"]\n\
     [sentiment]\narticles = false\n",
    "[signals]\ntickers = [\"AAPL\", \"BRK.B\", \"EL\", \"XOM\"]\n[sentiment]\nsummary = true\nhistorical = true\n",
    "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n",
];

/// Fetches with some of the definitions.
fn fetch(definitions: &[&str]) -> Place {
    let (place, server) = (Place::new(), Server::of(ChangeSet::All));
    let key = place.file("key");
    fs::write(&key, KEY).expect("a key");
    for (number, rest) in definitions.iter().enumerate() {
        let (signals, sentiment) = (server.running.base_url(), server.running.sentiment_base_url());
        let definition = format!(
            "[source]\nname = \"vendor\"\nbase_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\napi_key_file = {key:?}\n{rest}"
        );
        let name = format!("fetch{number}.toml");
        let plan = Plan::of(DefinitionFile::new(name.into(), definition).expect("a name")).expect("a plan");
        let now = evening(day(2026, 11, 20)) + TimeDelta::minutes(number as i64);
        let options = Options { clock: Clock::Fixed(now), ..Options::new(place.file("output")) };
        server.runtime.block_on(run(plan, options)).expect("a run");
    }
    place
}

#[test]
fn an_archive_answers_as_the_service_did() {
    let place = fetch(&DEFINITIONS);
    let start = |set: ChangeSet| Server::of_archive(&place.file("output/archive"), set);
    presence::presence(&start, &presence::CURRENT);
    presence::methods(&start);
    requests::keys(&start);
    requests::problems(&start);
    requests::limits(&start);
    signals::sector(&start);
    signals::batch(&start);
    signals::histories(&start);
    signals::limits(&start);
    signals::latest(&start);
    news::articles(&start);
    news::summaries(&start);
    news::daily_sentiment(&start);
}

#[test]
fn an_archive_is_as_undated_as_the_service_was() {
    let tickers = ["AAPL", "MSFT", "XOM", "BRK.B", "JPM"];
    let periods: Vec<String> = bellwether::interface::Period::all().map(|period| period.to_string()).collect();
    let latest = format!(
        "[signals]\ntickers = {tickers:?}\nhistory = \"latest\"\nperiods = {periods:?}\n[sentiment]\narticles = false\n"
    );
    let histories = "[signals]\ntickers = [\"AAPL\", \"XOM\"]\nperiods = [\"1d\", \"2d\", \"3d\", \"4d\"]\n[sentiment]\narticles = false\n";
    let place = fetch(&[histories, &latest]);
    let (archive, demo) = (Server::of_archive(&place.file("output/archive"), ChangeSet::B), Server::of(ChangeSet::B));
    let mut undated = 0;
    for target in tickers
        .iter()
        .flat_map(|ticker| periods.iter().map(move |period| format!("/api/signals/{ticker}?period={period}")))
    {
        let answer = archive.json(&target);
        assert_eq!(answer, demo.json(&target), "{target}");
        undated += usize::from(answer["date"].is_null());
    }
    assert!((1..20).contains(&undated), "{undated}");
}

#[test]
fn news_is_answered_byte_for_byte_but_for_the_form_of_scores() {
    let place = fetch(&DEFINITIONS[4..5]);
    let (archive, demo) =
        (Server::of_archive(&place.file("output/archive"), ChangeSet::All), Server::of(ChangeSet::All));
    for ticker in ["AAPL", "BRK.B", "EL", "XOM"] {
        for path in ["news_articles", "social_sentiment", "historical_ss_data"] {
            let target = format!("/sentiment/{path}/{ticker}");
            let [answer, expected] = [&archive, &demo].map(|server| with_numbers(server.json(&target)));
            assert_eq!(answer, expected, "{target}");
        }
        let target = format!("/api/signals-history/{ticker}");
        assert_eq!(archive.get(&target).body, demo.get(&target).body, "{target}");
    }
}

/// A value with the scores that are texts as numbers.
fn with_numbers(mut value: serde_json::Value) -> serde_json::Value {
    match &mut value {
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| *item = with_numbers(item.take())),
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                let number = field.as_str().filter(|_| name == "score").and_then(|text| text.parse::<f64>().ok());
                *field = number.map_or_else(|| with_numbers(field.take()), Into::into);
            }
        }
        _ => {}
    }
    value
}

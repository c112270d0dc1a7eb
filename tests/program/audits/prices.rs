//! Prices that are wrong in one way each, made from a simulated market; and markets with nothing wrong that look odd.

use std::fmt::Write as _;
use std::fs;

use bellwether::serve::Universe;
use chrono::{Datelike, Days, NaiveDate, Weekday};
use serde_json::Value;

use super::{entries, run, sector};
use crate::support::program::Place;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};
use crate::support::service::day;

/// The tickers with signals, and the date of the newest.
const SIGNALS: [&str; 5] = ["AA", "BB", "CC", "DD", "EE"];
const NEWEST: (i32, u32, u32) = (2026, 1, 16);

/// A market: the closes of each name by session, not a number where there is none.
#[derive(Clone)]
struct Market {
    names: Vec<String>,
    days: Vec<NaiveDate>,
    closes: Vec<Vec<f64>>,
}

/// A number from a normal distribution, nearly.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.below(1_000_001) as f64 / 1e6).sum::<f64>() - 6.0
}

fn is_weekend(day: NaiveDate) -> bool {
    matches!(day.weekday(), Weekday::Sat | Weekday::Sun)
}

impl Market {
    /// Names that follow a market, over the weekdays up to the newest signal.
    fn new(seed: u64, names: usize, sessions: usize) -> Self {
        let mut random = Random::of(seed);
        let last = day(NEWEST.0, NEWEST.1, NEWEST.2);
        let mut days: Vec<NaiveDate> =
            (0..).map(|back| last - Days::new(back)).filter(|day| !is_weekend(*day)).take(sessions).collect();
        days.reverse();
        let market: Vec<f64> = days.iter().map(|_| 0.009 * normal(&mut random)).collect();
        let letter = |number: usize| char::from(b'A' + number as u8 % 26).to_string();
        let names: Vec<String> = (0..names).map(|number| letter(number).repeat(2 + number / 26)).collect();
        let mut of_name = |_: &String| {
            let mut close = 5.0 + random.below(300) as f64;
            let mut step = |of_market: &f64| {
                close *= 1.0 + 0.0003 + of_market + 0.018 * normal(&mut random);
                close
            };
            market.iter().map(&mut step).collect()
        };
        let closes = names.iter().map(&mut of_name).collect();
        Self { names, days, closes }
    }

    /// The same market with a change.
    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut market = self.clone();
        change(&mut market);
        market
    }

    /// Multiplies the closes of a name from one session to before another.
    fn multiply(&mut self, name: usize, sessions: std::ops::Range<usize>, factor: f64) {
        self.closes[name][sessions].iter_mut().for_each(|close| *close *= factor);
    }

    fn rows(&self) -> String {
        let mut text = "ticker,date,close\n".to_owned();
        for (name, closes) in self.names.iter().zip(&self.closes) {
            for (day, close) in self.days.iter().zip(closes).filter(|(_, close)| !close.is_nan()) {
                writeln!(text, "{name},{day},{close}").expect("text");
            }
        }
        text
    }
}

/// A project with signals of five tickers, whose prices are a file.
struct Project {
    place: Place,
    service: Scripted,
}

impl Project {
    fn new() -> Self {
        let newest = day(NEWEST.0, NEWEST.1, NEWEST.2);
        let dates: Vec<String> = (0..12).map(|back| (newest - Days::new(back)).to_string()).collect();
        let listed: Vec<(&str, &str, f64)> = dates.iter().map(|date| (date.as_str(), "buy", 0.5)).collect();
        let answer = sector(&SIGNALS.map(|ticker| (ticker, entries(&listed))));
        let service = Scripted::of_histories(move |_| json("200 OK", &answer));
        let project = Self { place: Place::new(), service };
        run(&project.place, &project.service, "it", Self::DEFINITION);
        project
    }

    const DEFINITION: &str = "[signals]\nsectors = \"energy\"\nperiods = \"15d\"\n[dataset]\nkind = \"signals\"\n\
         [calendar]\nexchange = \"weekdays\"\n";

    /// What the audit warns of, or the error that it ends with.
    fn audit(&self, market: &Market) -> Result<Vec<String>, String> {
        fs::write(self.place.file("closes.csv"), market.rows()).expect("prices");
        let words = ["audit", "skill", "it", "--prices", "closes.csv", "--allow-missing", "--json"];
        let outcome = self.place.run(words);
        if outcome.code != Some(0) {
            return Err(outcome.failed_with(1).stderr);
        }
        let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let warnings = found["warnings"].as_array().expect("warnings").iter();
        Ok(warnings.map(|warning| warning.as_str().expect("a sentence").to_owned()).collect())
    }

    /// The only warning begins and goes on like this.
    #[track_caller]
    fn warns(&self, market: &Market, parts: &[&str]) {
        let warnings = self.audit(market).expect("no refusal");
        assert!(warnings.len() == 1 && parts.iter().all(|part| warnings[0].contains(part)), "{parts:?}: {warnings:?}");
    }

    #[track_caller]
    fn refuses(&self, market: &Market, expected: &str) {
        let refusal = self.audit(market).expect_err("a refusal");
        assert!(refusal.contains(expected), "{expected}: {refusal}");
    }
}

#[test]
fn a_market_with_crashes_jumps_and_names_that_hardly_trade_is_not_warned_of() {
    let project = Project::new();
    for seed in 1..=3 {
        let market = Market::new(seed, 60, 400);
        let odd = market.with(|market| {
            // A crash of 55 % and one of 42 %, a jump by 120 %, and a name that ends with a total loss.
            for (name, session, ratio) in [(1, 120, 0.45), (2, 200, 0.58), (3, 300, 2.2)] {
                let own = market.closes[name][session] / market.closes[name][session - 1];
                market.multiply(name, session..400, ratio / own);
            }
            market.closes[4][350..].fill(f64::NAN);
            // A third of the names trades on every seventh day.
            let mut random = Random::of(seed);
            for closes in &mut market.closes[40..] {
                for session in 1..closes.len() {
                    if !random.one_in(7) {
                        closes[session] = closes[session - 1];
                    }
                }
            }
        });
        assert_eq!(project.audit(&odd), Ok(Vec::new()), "seed {seed}");
        // All names hardly trade; few names; a week; quiet closes below ten.
        let quiet = market.with(|market| {
            let mut random = Random::of(seed);
            for closes in &mut market.closes {
                for session in 1..closes.len() {
                    if !random.one_in(3) {
                        closes[session] = closes[session - 1];
                    }
                }
            }
        });
        assert_eq!(project.audit(&quiet), Ok(Vec::new()), "seed {seed}");
        let low = market.with(|market| {
            market.closes.iter_mut().for_each(|closes| {
                let first = closes[0];
                closes.iter_mut().for_each(|close| *close = 3.0 * (*close / first).powf(0.4));
            });
        });
        assert_eq!(project.audit(&low), Ok(Vec::new()), "seed {seed}");
        let pennies = market.with(|market| {
            let round = |close: &mut f64| *close = (*close * 2.0).round().max(1.0) / 100.0;
            market.closes.iter_mut().flatten().for_each(round);
        });
        assert_eq!(project.audit(&pennies), Ok(Vec::new()), "seed {seed}");
        for (names, sessions) in [(5, 400), (60, 5), (12, 70)] {
            assert_eq!(project.audit(&Market::new(seed, names, sessions)), Ok(Vec::new()), "seed {seed}");
        }
    }
    let universe = Universe::new(124, day(2026, 1, 16));
    let (mut names, mut closes) = (Vec::new(), Vec::new());
    for (ticker, of_ticker) in universe.closing_prices() {
        names.push(ticker.to_string());
        closes.push(of_ticker[of_ticker.len() - 300..].to_vec());
    }
    let days = universe.trading_days()[universe.trading_days().len() - 300..].to_vec();
    let warnings = project.audit(&Market { names, days, closes }).expect("no refusal");
    assert!(
        warnings.iter().all(|warning| {
            // The market of the demo keeps holidays, which each Monday to Friday does not.
            warning.contains(" of 5 tickers with signals have no price: ")
                || warning.contains("of the calendar have no closes")
        }),
        "{warnings:?}"
    );
}

#[test]
fn each_defect_of_prices_is_told_with_its_ticker_and_date() {
    let project = Project::new();
    let market = Market::new(7, 60, 400);
    let on = |session: usize| market.days[session].to_string();

    let split = market.with(|market| market.multiply(1, 0..150, 4.0));
    project.warns(&split, &["1 close changes by the factor of a split: BB falls to 1/4 on ", &on(150)]);
    let reverse = market.with(|market| market.multiply(1, 0..150, 0.1));
    project.warns(&reverse, &["BB rises to 10 times on ", &on(150)]);
    let one = market.with(|market| market.multiply(2, 77..78, 100.0));
    project.warns(&one, &["1 close is far from those before and after: CC rises to 100 times on ", &on(77)]);
    let unit = market.with(|market| (0..60).for_each(|name| market.multiply(name, 200..400, 100.0)));
    project.refuses(&unit, &format!("the close of 60 of 60 tickers rises to 100 times on {}", on(200)));

    let logarithms =
        market.with(|market| market.closes.iter_mut().flatten().for_each(|close| *close = close.ln().max(0.1)));
    project.warns(&logarithms, &["the closes look like logarithms"]);
    let below_zero = market.with(|market| market.closes[0][3] = -0.25);
    project.refuses(&below_zero, "row 4 of `closes.csv`: a close of -0.25");

    let early = market.with(|market| {
        market.days.truncate(160);
        market.closes.iter_mut().for_each(|closes| closes.truncate(160));
    });
    let behind = (market.days[399] - market.days[159]).num_days();
    let ends = format!("the prices end on {}, {behind} days before the newest signal (2026-01-16)", on(159));
    project.warns(&early, &[&ends]);
    let without = market.with(|market| {
        market.names.remove(1);
        market.closes.remove(1);
    });
    project.warns(&without, &["1 of 5 tickers with signals has no price: BB"]);
    let frozen = market.with(|market| {
        let last = market.closes[3][340];
        market.closes[3][341..].fill(last);
    });
    project.warns(&frozen, &["1 ticker repeats its close to the end: DD since ", &on(340)]);
    let filled = market.with(|market| {
        for closes in &mut market.closes {
            (closes[90], closes[250]) = (closes[89], closes[249]);
        }
    });
    project.warns(&filled, &["on 2 sessions nearly all closes repeat those before, the first ", &on(90), "60 of 60"]);
    let weekly = market.with(|market| {
        market.closes.iter_mut().for_each(|closes| {
            for session in 1..closes.len() {
                if session % 5 != 0 {
                    closes[session] = closes[session - 1];
                }
            }
        });
    });
    project.warns(&weekly, &["on 320 sessions nearly all closes repeat those before"]);

    // The text says the same, and fits the terminal.
    fs::write(project.place.file("closes.csv"), split.rows()).expect("prices");
    let text = project.place.run(["audit", "skill", "it", "--prices", "closes.csv"]).expect_success().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("warning: 1 close changes by the factor of a split: BB falls to 1/4 on "), "{text}");
}

#[test]
fn days_without_trading_and_dates_a_day_off_are_told() {
    let project = Project::new();
    let market = Market::new(3, 60, 400);
    // Each weekend repeats Friday.
    let filled = |only: Option<usize>| {
        let mut all = market.with(|market| market.days = Vec::new());
        all.closes = vec![Vec::new(); 60];
        for day in market.days[0].iter_days().take_while(|day| *day <= market.days[399]) {
            let session = market.days.partition_point(|session| *session <= day) - 1;
            all.days.push(day);
            for (name, closes) in all.closes.iter_mut().enumerate() {
                let is_left_out = is_weekend(day) && only.is_some_and(|only| only != name);
                closes.push(if is_left_out { f64::NAN } else { market.closes[name][session] });
            }
        }
        all
    };
    let saturday = market.days.iter().find(|day| day.weekday() == Weekday::Fri).expect("a Friday").succ_opt().unwrap();
    let weekends = filled(None).days.iter().filter(|day| is_weekend(**day)).count();
    let expected =
        format!("{weekends} sessions are on days without trading, the first Saturday {saturday} with AA, AAA");
    project.warns(&filled(None), &[&expected]);
    let expected = format!("{weekends} sessions are on days without trading, the first Saturday {saturday} with CC:");
    project.warns(&filled(Some(2)), &[&expected]);

    // A market that really trades from Tuesday to Saturday needs a calendar.
    let late = market.with(|market| market.days.iter_mut().for_each(|day| *day = *day + Days::new(1)));
    project.refuses(&late, "the dates of the prices are a day late");
    let early = market.with(|market| market.days.iter_mut().for_each(|day| *day = *day - Days::new(1)));
    project.refuses(&early, "the dates of the prices are a day early");
    let mut one = late.with(|market| {
        market.names.truncate(1);
        market.closes.truncate(1);
    });
    one.names[0] = "QZ".to_owned();
    fs::write(project.place.file("closes-1.csv"), market.rows()).expect("prices");
    fs::write(project.place.file("closes-2.csv"), one.rows()).expect("prices");
    let words = ["audit", "skill", "it", "--json", "--prices", "closes-*.csv"];
    let found: Value = serde_json::from_str(&project.place.run(words).expect_success().stdout).expect("JSON");
    let warnings = found["warnings"].as_array().expect("warnings");
    let expected =
        "the dates of 1 of 61 tickers are a day late, since they are trading days if each is the day before: QZ";
    assert_eq!(warnings, &[expected]);

    // With a calendar, holidays are no trading days, and its trading days need closes.
    let [first, holiday, missing] = [0, 30, 50].map(|session| market.days[session].to_string());
    let calendar = Project::DEFINITION.replace("exchange = \"weekdays\"", &format!("holidays = [\"{holiday}\"]"));
    run(&project.place, &project.service, "it", &calendar);
    let gap = market.with(|market| market.closes.iter_mut().for_each(|closes| closes[50] = f64::NAN));
    let warnings = project.audit(&gap).expect("no refusal");
    assert_eq!(warnings.len(), 2, "{first}: {warnings:?}");
    assert!(warnings[0].starts_with("1 session is on a day without trading, the first "), "{warnings:?}");
    assert!(warnings[0].contains(&holiday), "{warnings:?}");
    assert_eq!(warnings[1], format!("1 trading day of the calendar has no closes, the first {missing}"));
}

#[test]
fn closes_in_no_order_are_refused_and_names_that_do_not_move_together_are_told() {
    let project = Project::new();
    for seed in 1..=2 {
        let market = Market::new(seed, 60, 400);
        let mut random = Random::of(seed);
        let by_date = market.with(|market| market.closes.iter_mut().for_each(|closes| random.shuffle(closes)));
        project.refuses(&by_date, "the closes are in no order");
        let by_name = market.with(|market| {
            for session in 0..400 {
                let mut of_day: Vec<f64> = market.closes.iter().map(|closes| closes[session]).collect();
                random.shuffle(&mut of_day);
                market.closes.iter_mut().zip(of_day).for_each(|(closes, close)| closes[session] = close);
            }
        });
        project.refuses(&by_name, "the closes are in no order");
        // The returns of each name in another order: every close looks right by itself.
        let returns = market.with(|market| {
            for closes in &mut market.closes {
                let mut steps: Vec<f64> = closes.windows(2).map(|pair| pair[1] / pair[0]).collect();
                random.shuffle(&mut steps);
                (1..closes.len()).for_each(|session| closes[session] = closes[session - 1] * steps[session - 1]);
            }
        });
        project.warns(&returns, &["the 60 tickers do not move together"]);
    }
}

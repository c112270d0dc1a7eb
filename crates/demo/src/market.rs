//! Closing prices of the universe, which its signals predict a little, and its rewritten signals more.
//!
//! The return of a company on a session is the sum of four parts: the market's, noise of its own, a pull of its mood on
//! the session before, and a pull of its signals that turn. The mood is what signals as first published know of the
//! future: the *skill*. A signal that turns once its horizon is over turns more often than not towards what the price
//! did, since the price leans that way over the horizon: the *hindsight*. Nothing of it depends on the universe's today,
//! so returns of the same session are the same in all universes of a seed, apart from rounding.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bellwether_interface::{Period, Regime, Signal, Ticker};
use chrono::{Datelike, Days, NaiveDate, NaiveTime};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::calendar::is_trading_day;
use crate::companies::{self, Company};
use crate::draw::{Draw, Mood, purpose};
use crate::prediction::{Model, Outlook};
use crate::universe::Universe;

const MARKET: u64 = purpose("market");
const PRICE: u64 = purpose("price");

/// What a session adds on average.
const DRIFT: f64 = 0.0003;
/// The standard deviation of the market's return on a session.
const MARKET_NOISE: f64 = 0.009;
/// The standard deviation of a company's own return on a session.
const OWN_NOISE: f64 = 0.018;
/// The return of a session after a day of the best mood. Most of it makes up for signals that turn, whose pull is against
/// what they said first, which is the mood: what remains is a rank correlation of about 0.04.
const SKILL: f64 = 0.0042;
/// How far the price leans towards a signal that turns once its horizon is over, over the whole horizon, in standard
/// deviations of a company's own return over it.
const HINDSIGHT: f64 = 0.4;

/// Sessions of a month.
const SESSIONS_OF_MONTH: usize = 21;

/// Longer than the longest horizon of signals that can turn after it.
const BEFORE: Days = Days::new(200);

/// The columns of [`Universe::price_rows`].
pub fn price_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let ticker = Field::new("ticker", DataType::Utf8, false);
        let fields = vec![
            ticker,
            Field::new("date", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            Field::new("close", DataType::Float64, false),
        ];
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

impl Universe {
    /// The closing prices as rows, ticker by ticker.
    pub fn price_rows(&self) -> impl Iterator<Item = RecordBatch> {
        let micros = |day: &NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        let days: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from_iter_values(self.trading_days().iter().map(micros)));
        self.closing_prices().into_iter().map(move |(ticker, closes)| {
            let tickers: StringArray = std::iter::repeat_n(Some(ticker.as_str()), closes.len()).collect();
            let columns: [ArrayRef; 3] = [Arc::new(tickers), Arc::clone(&days), Arc::new(Float64Array::from(closes))];
            RecordBatch::try_new(price_schema(), columns.to_vec()).expect("a close for each trading day")
        })
    }

    /// The closing prices of every ticker, in the order of the symbols: one per trading day.
    pub fn closing_prices(&self) -> Vec<(Ticker, Vec<f64>)> {
        self.closing_prices_of(&companies::all().iter().collect::<Vec<_>>())
    }

    fn closing_prices_of(&self, companies: &[&'static Company]) -> Vec<(Ticker, Vec<f64>)> {
        let Some(first) = self.trading_days().first() else { return Vec::new() };
        let begin = first.checked_sub_days(BEFORE).unwrap_or(*first);
        let days: Vec<NaiveDate> =
            begin.iter_days().take_while(|day| *day <= self.today()).filter(|day| is_trading_day(*day)).collect();
        let shown = days.len() - self.trading_days().len();
        let market = self.draw().at(MARKET);
        let market: Vec<f64> = days.iter().map(|day| DRIFT + MARKET_NOISE * noise(market, *day)).collect();
        let close = |company: &&'static Company| {
            let symbol = company.ticker.as_str();
            let own = self.draw().at(PRICE).of(symbol);
            let mood = Mood::of(self.draw(), symbol);
            let pull = self.pull_of_turns(company, &days);
            // From 10 to 190.
            let mut price = 100.0 + 90.0 * own.signed_fraction();
            let mut closes = Vec::with_capacity(days.len());
            for (index, day) in days.iter().enumerate() {
                let before = index.checked_sub(1).map_or(0.0, |before| mood.on(days[before]));
                price *= 1.0 + market[index] + OWN_NOISE * noise(own, *day) + SKILL * before + pull[index];
                closes.push((price * 10_000.0).round() / 10_000.0);
            }
            (company.ticker.clone(), closes.split_off(shown))
        };
        companies.par_iter().map(close).collect()
    }

    /// What a company's signals that turn after their horizon add to its return on each session.
    fn pull_of_turns(&self, company: &'static Company, days: &[NaiveDate]) -> Vec<f64> {
        // Each horizon adds to its first session and takes away after its last.
        let mut steps = vec![0.0; days.len() + 1];
        let index_of: HashMap<NaiveDate, usize> = days.iter().enumerate().map(|(index, day)| (*day, index)).collect();
        for (period, regime) in Period::all().flat_map(|period| Regime::ALL.map(|regime| (period, regime))) {
            let series = self.series(company, Outlook { model: Model::Current, period, regime });
            let sessions = sessions_of(period);
            // Seven days have five sessions, and holidays are few.
            let over = Days::new((sessions * 7 / 5 + 5) as u64);
            for day in days {
                let Some(revision) = series.revision(*day) else { continue };
                let is_after = day.checked_add_days(over).is_some_and(|end| revision.on > end);
                let signals = [*day, revision.on].map(|today| series.get(*day, today).signal());
                if !is_after || signals[0] == signals[1] {
                    continue;
                }
                let side = if signals[1] == Signal::Buy { 1.0 } else { -1.0 };
                let step = side * HINDSIGHT * OWN_NOISE / (sessions as f64).sqrt();
                // Bought at the close of the next session, so the one after is the first that counts.
                let from = (index_of[day] + 2).min(days.len());
                steps[from] += step;
                steps[(from + sessions).min(days.len())] -= step;
            }
        }
        let mut sum = 0.0;
        steps[..days.len()]
            .iter()
            .map(|step| {
                sum += step;
                sum
            })
            .collect()
    }
}

/// The horizon of a period in sessions.
fn sessions_of(period: Period) -> usize {
    let (number, unit) = period.as_str().split_at(period.as_str().len() - 1);
    let number: usize = number.parse().unwrap_or(1);
    if unit == "m" { number * SESSIONS_OF_MONTH } else { number }
}

/// A number of mean 0 and standard deviation 1 for a day.
fn noise(draw: Draw, day: NaiveDate) -> f64 {
    let of_day = draw.on(day.num_days_from_ce());
    // The variance of each is a third.
    (0..3).map(|index| of_day.at(index).signed_fraction()).sum()
}

#[cfg(test)]
mod tests {
    use bellwether_interface::{Period, Regime, Signal, Ticker};
    use chrono::NaiveDate;

    use super::{Universe, sessions_of};
    use crate::companies::{self, Company};
    use crate::prediction::{Model, Outlook};

    fn day(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    /// One company in some.
    fn some(step: usize) -> Vec<&'static Company> {
        companies::all().iter().step_by(step).collect()
    }

    #[test]
    fn returns_of_a_session_are_the_same_whatever_today_is() {
        let (earlier, later) = (Universe::new(1, day(2026, 3, 2)), Universe::new(1, day(2026, 11, 20)));
        let common: Vec<NaiveDate> =
            earlier.trading_days().iter().filter(|date| later.trading_days().contains(date)).copied().collect();
        let returns = |universe: &Universe| -> Vec<(Ticker, Vec<f64>)> {
            let skip = universe.trading_days().iter().position(|date| *date == common[0]).unwrap();
            let closes = universe.closing_prices_of(&some(100)).into_iter();
            let of = |closes: &[f64]| {
                closes[skip..skip + common.len()].windows(2).map(|two| two[1] / two[0] - 1.0).collect()
            };
            closes.map(|(ticker, closes)| (ticker, of(&closes))).collect()
        };
        for ((ticker, one), (same, two)) in returns(&earlier).iter().zip(&returns(&later)) {
            assert_eq!(ticker, same);
            for (one, two) in one.iter().zip(two) {
                // Prices have four decimals.
                assert!((one - two).abs() < 1e-3 && one.abs() < 0.2, "{ticker}: {one} {two}");
            }
        }
    }

    #[test]
    fn signals_know_a_little_of_the_future_and_rewritten_ones_more() {
        let (universe, companies) = (Universe::new(1, day(2026, 11, 20)), some(8));
        let days = universe.trading_days();
        let closes = universe.closing_prices_of(&companies);
        let periods: Vec<Period> = ["5d", "15d", "1m"].iter().map(|text| text.parse().unwrap()).collect();
        let (mut first, mut turned) = ([0_u64; 2], [0_u64; 2]);
        for period in periods {
            let sessions = sessions_of(period);
            for index in 0..days.len() - sessions - 1 {
                let result = |closes: &[f64]| closes[index + 1 + sessions] / closes[index + 1] - 1.0;
                let mean = closes.iter().map(|(_, closes)| result(closes)).sum::<f64>() / closes.len() as f64;
                for (company, (_, closes)) in companies.iter().zip(&closes) {
                    let is_above = result(closes) > mean;
                    for regime in Regime::ALL {
                        let series = universe.series(company, Outlook { model: Model::Current, period, regime });
                        let [then, now] = [days[index], universe.today()].map(|today| series.get(days[index], today));
                        let count = |counts: &mut [u64; 2], signal| {
                            counts[0] += 1;
                            counts[1] += u64::from((signal == Signal::Buy) == is_above);
                        };
                        count(&mut first, then.signal());
                        let end = days[index + 1 + sessions];
                        let is_late = series.revision(days[index]).is_some_and(|revision| revision.on > end);
                        if is_late && then.signal() != now.signal() {
                            count(&mut turned, now.signal());
                        }
                    }
                }
            }
        }
        let share = |[all, right]: [u64; 2]| right as f64 / all as f64;
        assert!((0.505..0.53).contains(&share(first)), "{first:?}");
        assert!(turned[0] > 500 && (0.58..0.72).contains(&share(turned)), "{turned:?}");
    }
}

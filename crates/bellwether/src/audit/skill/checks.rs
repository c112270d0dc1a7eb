//! Whether prices are what they should be: adjusted closes of one market, each under the day of its session.
//!
//! What a check finds is a sentence with names and dates, since a market has days that look like errors: a name that
//! halves in a session, a holiday that the calendar does not know. What leaves no return right is refused: all dates a
//! day off, another unit from a session on, closes in no order. Every check is passed by simulated markets with
//! crashes, jumps and names that hardly trade; a file that is too small for one is not judged by it.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind, Result};
use crate::interface::Ticker;
use crate::prices::{Day, Prices, date};
use crate::sessions::Sessions;
use crate::text::human::{count_of, group_digits, round};

/// How many names or moves a sentence lists.
const NAMED: usize = 5;

/// The factors by which splits and mistaken units change a close, up or down; any above ten counts as well.
const FACTORS: [f64; 7] = [2.0, 3.0, 4.0, 5.0, 10.0, 100.0, 1000.0];

/// The fewest names that are judged together.
const MIN_NAMES: usize = 10;

/// A ticker of a file and its closes by session; not a number where there is none.
struct Name<'a> {
    ticker: &'a Ticker,
    closes: &'a [f64],
}

/// What is wrong with prices, a sentence each: by themselves, with the trading days of a calendar, and for the tickers with
/// signals and the newest date of these.
///
/// # Errors
///
/// If no return from these prices would be right.
pub(super) fn check(
    prices: &Prices,
    calendar: &Sessions,
    signals: &BTreeSet<Ticker>,
    newest: Option<Day>,
) -> Result<Vec<String>> {
    let sessions = prices.sessions();
    let name = |(ticker, number): (_, &u16)| {
        let begin = usize::from(*number) * sessions.len();
        Name { ticker, closes: &prices.closes[begin..begin + sessions.len()] }
    };
    let mut names: Vec<Name<'_>> = prices.tickers.iter().map(name).collect();
    names.sort_unstable_by_key(|name| name.ticker);
    let trades = |day: Day| calendar.nth_after(day - 1, 1) == day;
    let mut warnings = Vec::new();
    range(prices, signals, newest, &mut warnings);
    trading_days(&names, sessions, calendar, &trades, &mut warnings)?;
    factors(&names, sessions, &mut warnings)?;
    repeats(&names, sessions, &trades, &mut warnings);
    order(&names, sessions, &mut warnings)?;
    warnings.extend(logarithms(&names));
    Ok(warnings)
}

/// Tickers with signals and without prices, and prices that end before the signals do.
fn range(prices: &Prices, signals: &BTreeSet<Ticker>, newest: Option<Day>, warnings: &mut Vec<String>) {
    let unpriced: Vec<String> = signals.iter().filter(|ticker| !prices.know(ticker)).map(ToString::to_string).collect();
    if !unpriced.is_empty() {
        let (count, all) = (group_digits(unpriced.len() as u64), count_of(signals.len() as u64, "ticker", "tickers"));
        let have = if unpriced.len() == 1 { "has" } else { "have" };
        warnings.push(format!("{count} of {all} with signals {have} no price: {}", listed(&unpriced)));
    }
    if let (Some(last), Some(newest)) = (prices.sessions().last(), newest)
        && newest - last > 14
    {
        warnings.push(format!(
            "the prices end on {}, {} before the newest signal ({}): what follows is not measured, though its horizon may be over",
            date(*last),
            count_of((newest - last) as u64, "day", "days"),
            date(newest)
        ));
    }
}

/// Closes on days without trading, dates that are a day off, and trading days of the calendar without closes.
fn trading_days(
    names: &[Name<'_>],
    sessions: &[Day],
    calendar: &Sessions,
    trades: &impl Fn(Day) -> bool,
    warnings: &mut Vec<String>,
) -> Result<()> {
    // Of a session's day, the one before and the one after: whether the market trades.
    let open: Vec<[bool; 3]> = sessions.iter().map(|day| [*day, day - 1, day + 1].map(trades)).collect();
    let mut off: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut a_day_off = [Vec::new(), Vec::new()];
    for name in names {
        let days = || name.closes.iter().zip(&open).filter(|(close, _)| !close.is_nan()).map(|(_, open)| open);
        let closed = [0, 1, 2].map(|shift| days().filter(|open| !open[shift]).count());
        let is_better = |shift: usize| closed[shift] * 4 < closed[0];
        let is_off = days().count() >= 10 && closed[0] * 10 >= days().count();
        match [1, 2].map(is_better) {
            [true, _] if is_off => a_day_off[0].push(name.ticker.to_string()),
            [_, true] if is_off => a_day_off[1].push(name.ticker.to_string()),
            _ => {
                let is_closed = |session: &usize| !name.closes[*session].is_nan() && !open[*session][0];
                for session in (0..sessions.len()).filter(is_closed) {
                    off.entry(session).or_default().push(name.ticker.to_string());
                }
            }
        }
    }
    for (found, what, other) in [(&a_day_off[0], "late", "before"), (&a_day_off[1], "early", "after")] {
        if found.len() * 10 >= names.len() * 9 {
            let what =
                format!("the dates of the prices are a day {what}: they are trading days if each is the day {other}");
            return Err(Error::new(ErrorKind::Data, what)
                .with_hint("correct the dates; if the market trades on these days, name them in `[calendar]`"));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "the dates of {} are a day {what}, since they are trading days if each is the day {other}: {}",
                of_all(found.len(), names.len()),
                listed(found)
            ));
        }
    }
    if let Some((session, tickers)) = off.first_key_value() {
        let day = date(sessions[*session]);
        warnings.push(format!(
            "{} without trading, the first {} with {}: leave them out, since horizons are counted in sessions",
            count_of(off.len() as u64, "session is on a day", "sessions are on days"),
            day.format("%A %F"),
            listed(tickers)
        ));
    }
    let known = calendar.between(sessions[0], sessions[sessions.len() - 1]);
    let missing: Vec<Day> = known.iter().filter(|day| sessions.binary_search(day).is_err()).copied().collect();
    if let Some(first) = missing.first() {
        let days =
            count_of(missing.len() as u64, "trading day of the calendar has", "trading days of the calendar have");
        warnings.push(format!("{days} no closes, the first {}", date(*first)));
    }
    Ok(())
}

/// The successive closes of a name: the session of the second, and both.
fn steps<'a>(name: &Name<'a>) -> impl Iterator<Item = (usize, [f64; 2])> + use<'a> {
    let mut before = f64::NAN;
    let known = name.closes.iter().copied().enumerate().filter(|(_, close)| !close.is_nan());
    known.filter_map(move |(session, close)| {
        let pair = [std::mem::replace(&mut before, close), close];
        (!pair[0].is_nan()).then_some((session, pair))
    })
}

/// Single closes that are off by a factor, and moves by the factor of a split that last.
fn factors(names: &[Name<'_>], sessions: &[Day], warnings: &mut Vec<String>) -> Result<()> {
    let (mut single, mut lasting) = (Vec::new(), Vec::new());
    // How many names have two closes at a session, and how many of them change by the same factor.
    let mut all = vec![0_usize; sessions.len()];
    let mut same: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for name in names {
        let mut steps = steps(name).peekable();
        while let Some((session, [before, close])) = steps.next() {
            all[session] += 1;
            let Some(change) = change_by_factor(close / before) else { continue };
            let text = format!("{} {change} on {}", name.ticker, date(sessions[session]));
            let is_back = |(_, [_, next]): &(usize, [f64; 2])| (1.0 / 1.25..1.25).contains(&(next / before));
            // The way back is the same mistake: the closes on either side differ by little.
            if let Some((next, _)) = steps.next_if(is_back) {
                all[next] += 1;
                single.push(text);
            } else {
                lasting.push(text);
                *same.entry((session, change)).or_default() += 1;
            }
        }
    }
    let is_most =
        |((session, _), count): &(&(usize, String), &usize)| **count >= MIN_NAMES && **count * 2 >= all[*session];
    if let Some(((session, change), count)) = same.iter().find(is_most) {
        let what = format!("the close of {} {change} on {}", of_all(*count, all[*session]), date(sessions[*session]));
        return Err(Error::new(ErrorKind::Data, what).with_hint("write all closes in the same unit"));
    }
    let far = "far from those before and after";
    warnings.extend(several(&single, ["close is", "closes are"], far, "correct them"));
    let split = "by the factor of a split";
    let remedy = "if they were splits, adjust the prices";
    warnings.extend(several(&lasting, ["close changes", "closes change"], split, remedy));
    Ok(())
}

/// How a close changes if it does so by the factor of a split or of a mistaken unit.
fn change_by_factor(ratio: f64) -> Option<String> {
    let size = ratio.max(1.0 / ratio);
    // A session's own return comes on top.
    let near = FACTORS.into_iter().find(|factor| size / factor < 1.08 && factor / size < 1.08);
    let factor = near.or((size > 10.0).then(|| size.round()))?;
    Some(if ratio > 1.0 { format!("rises to {factor} times") } else { format!("falls to 1/{factor}") })
}

/// Names whose last close is repeated to the end, and sessions on which nearly all closes repeat the one before.
fn repeats(names: &[Name<'_>], sessions: &[Day], trades: &impl Fn(Day) -> bool, warnings: &mut Vec<String>) {
    let mut counts = vec![[0_u32; 2]; sessions.len()];
    let mut frozen = Vec::new();
    for name in names {
        let (mut steps_before, mut repeats_before, mut run, mut last_change) = (0, 0, 0, 0);
        for (session, [before, close]) in steps(name) {
            counts[session][0] += 1;
            counts[session][1] += u32::from(before == close);
            run += 1;
            if before != close {
                (steps_before, repeats_before) = (steps_before + run, repeats_before + run - 1);
                (run, last_change) = (0, session);
            }
        }
        // By chance, as often as it repeated its close before that.
        let chance = f64::from(repeats_before + 1) / f64::from(steps_before + 2);
        if run >= 20 && chance.powi(run) < 1e-6 {
            frozen.push(format!("{} since {}", name.ticker, date(sessions[last_change])));
        }
    }
    let repeat = ["ticker repeats its close", "tickers repeat their close"];
    warnings.extend(several(&frozen, repeat, "to the end", "end a name with its last trade"));
    let mut shares: Vec<(usize, f64)> = Vec::new();
    for (session, [all, same]) in counts.iter().enumerate() {
        if *all as usize >= MIN_NAMES && trades(sessions[session]) {
            shares.push((session, f64::from(*same) / f64::from(*all)));
        }
    }
    let mut sorted: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // In a file that is filled from week to week, most sessions repeat the one before.
    let Some(usual) = sorted.get(sorted.len() / 10).map(|share| share.max(0.02)) else { return };
    // Names that do not trade on their own account are never so many at once.
    let is_filled = |(session, share): &&(usize, f64)| {
        let deviation = (usual * (1.0 - usual) / f64::from(counts[*session][0])).sqrt();
        *share >= 0.95 && share - usual > 6.0 * deviation
    };
    let filled: Vec<usize> = shares.iter().filter(is_filled).map(|(session, _)| *session).collect();
    if let Some(first) = filled.first() {
        warnings.push(format!(
            "on {} nearly all closes repeat those before, the first {} with {}: leave out days that were filled",
            count_of(filled.len() as u64, "session", "sessions"),
            date(sessions[*first]),
            of_all(counts[*first][1] as usize, counts[*first][0] as usize)
        ));
    }
}

/// Closes that are as far apart in a session as in twenty, and names that do not move together.
fn order(names: &[Name<'_>], sessions: &[Day], warnings: &mut Vec<String>) -> Result<()> {
    let (mut judged, mut unordered) = (0, 0);
    let mut signs = vec![[0_u32; 2]; sessions.len()];
    for name in names {
        for (session, [before, close]) in steps(name).filter(|(_, [before, close])| before != close) {
            signs[session][usize::from(close > before)] += 1;
        }
        let closes: Vec<f64> = name.closes.iter().copied().filter(|close| !close.is_nan()).collect();
        let typical =
            |lag: usize| median(closes.iter().zip(&closes[lag..]).map(|(one, other)| (other / one).ln().abs()));
        if closes.len() >= 60 && typical(1) > 0.0 {
            judged += 1;
            unordered += usize::from(typical(20) < 1.3 * typical(1));
        }
    }
    if judged >= MIN_NAMES && unordered * 2 > judged {
        let what = format!(
            "the closes are in no order: those of {} are as far apart from one session to the next as over twenty",
            of_all(unordered, judged)
        );
        return Err(
            Error::new(ErrorKind::Data, what).with_hint("check that each close stands beside its own ticker and date")
        );
    }
    // Of two names, how often both rise or fall, less how often they do not.
    let (mut pairs, mut together) = (0.0, 0.0);
    for [falls, rises] in signs.iter().map(|counts| counts.map(f64::from)) {
        let (all, net) = (falls + rises, rises - falls);
        pairs += all * (all - 1.0);
        together += net * net - all;
    }
    // With few names or sessions, it is not strange that they do not move together.
    let is_enough = names.len() >= 30 && sessions.len() >= 250 && pairs > 0.0;
    if is_enough && together / pairs <= 0.02 {
        warnings.push(format!(
            "the {} do not move together (mean correlation of their directions {}), as names of one market do: check that \
             each close stands beside its own date",
            count_of(names.len() as u64, "ticker", "tickers"),
            round(together / pairs, 3)
        ));
    }
    Ok(())
}

/// Closes whose changes over twenty sessions do not grow with their level, as those of logarithms.
fn logarithms(names: &[Name<'_>]) -> Option<String> {
    let closes = names.iter().flat_map(|name| name.closes).filter(|close| !close.is_nan());
    let highest = closes.copied().fold(0.0, f64::max);
    // From one session to the next, a low close changes by the smallest step that there is.
    let point = |name: &Name<'_>| {
        let closes: Vec<f64> = name.closes.iter().copied().filter(|close| !close.is_nan()).collect();
        let later = closes.get(20..).unwrap_or_default();
        let changes = closes.iter().zip(later).map(|(one, other)| (other - one).abs()).filter(|change| *change > 0.0);
        let (level, change) = (median(closes.iter().copied()).ln(), median(changes).ln());
        (level.is_finite() && change.is_finite()).then_some((level, change))
    };
    let points: Vec<(f64, f64)> = names.iter().filter_map(point).collect();
    // No close in logarithms is larger.
    if highest > 12.0 || points.len() < MIN_NAMES {
        return None;
    }
    // A line through both, in logarithms: its slope is 1 if changes grow with the level, and 0 if they do not.
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (level, change) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - level, point.1 - change)).sum::<f64>();
    let spread = sum(&|level, _| level * level);
    let slope = sum(&|level, change| level * change) / spread;
    let rest = sum(&|level, change| (change - slope * level).powi(2));
    let error = (rest / (count - 2.0) / spread).sqrt();
    (slope + 2.0 * error < 0.5).then(|| {
        format!(
            "the closes look like logarithms: none is above {}, and they change as much where they are low as where they are \
             high; write the prices themselves",
            round(highest, 2)
        )
    })
}

/// The middle of some numbers; not a number without any.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    let middle = numbers.len() / 2;
    if numbers.is_empty() { f64::NAN } else { *numbers.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// How many were found, which they are, and what to do about them; none without any.
fn several(found: &[String], [one, many]: [&str; 2], what: &str, remedy: &str) -> Option<String> {
    let count = count_of(found.len() as u64, one, many);
    (!found.is_empty()).then(|| format!("{count} {what}: {}; {remedy}", listed(found)))
}

/// `3 of 500 tickers`.
fn of_all(some: usize, all: usize) -> String {
    format!("{} of {}", group_digits(some as u64), count_of(all as u64, "ticker", "tickers"))
}

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {} more", group_digits(more as u64)),
    }
}

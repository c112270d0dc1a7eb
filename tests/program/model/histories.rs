//! The signals of a vendor.

use crate::support::random::Random;
use chrono::{DateTime, Datelike};

/// The first and last initial day, counted from 1970: 2004-11-20 and 2006-11-20, so that no clock of a test is in the future.
const DAYS: (usize, usize) = (12_742, 13_472);
pub(super) const OFFSETS: [Option<i16>; 5] = [None, Some(0), Some(-300), Some(330), Some(60)];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Minutes since 1970: in UTC if an offset is written, otherwise as written.
    pub(super) date: i64,
    pub(super) offset: Option<i16>,
    pub(super) signal: &'static str,
    pub(super) confidence: f64,
}

/// The history of one ticker, period and regime.
#[derive(Debug)]
pub(super) struct History {
    /// Oldest first.
    entries: Vec<Entry>,
    gone: Vec<Entry>,
    /// Number of oldest entries that are no longer listed: a sliding window.
    hidden: usize,
    pub(super) is_listed: bool,
    is_empty: bool,
    order: Order,
    mending: Mending,
}

/// A quarter withdrawn by mistake, which returns in pieces.
#[derive(Clone, Copy, Debug)]
enum Mending {
    Nothing,
    Withdrawn,
    InPart,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    NewestFirst,
    OldestFirst,
    Any,
}

pub(super) fn day_text(day: i64) -> String {
    let date = DateTime::from_timestamp(day * 86_400, 0).expect("a day of our time");
    date.format("%Y-%m-%d").to_string()
}

/// The text of a date in minutes since 1970, with or without an offset.
pub(super) fn date_text(date: i64, offset: Option<i16>) -> String {
    let face = DateTime::from_timestamp((date + i64::from(offset.unwrap_or(0))) * 60, 0).expect("a date");
    let offset = match offset {
        None => String::new(),
        Some(0) => "Z".to_owned(),
        Some(minutes) => {
            let sign = if minutes < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
    };
    format!("{}{offset}", face.format("%Y-%m-%dT%H:%M:%S"))
}

fn quarter(entry: &Entry) -> (i32, u32) {
    let date = DateTime::from_timestamp(entry.date * 60, 0).expect("a day of our time");
    (date.year(), date.month0() / 3)
}

impl Entry {
    /// On a random day, usually near the end of a quarter, so that changes hit cells that have changed before.
    fn random(random: &mut Random) -> Self {
        const TURNS: [usize; 3] = [12_784, 13_057, 13_330];
        let day = match random.below(8) {
            0 => random.between(DAYS.0, DAYS.1),
            1..3 => random.pick(&TURNS) - random.below(2),
            _ => random.pick(&TURNS) + random.below(30) - 15,
        };
        let mut entry = Self { date: day as i64 * 1440, offset: None, signal: "buy", confidence: -1.0 };
        entry.offset = random.pick(&OFFSETS);
        // Usually midnight on the vendor's clock.
        entry.date -= if random.one_in(4) { 0 } else { i64::from(entry.offset.unwrap_or(0)) };
        entry.value(random);
        entry
    }

    fn value(&mut self, random: &mut Random) {
        let before = (self.signal, self.confidence);
        for _ in 0..8 {
            self.signal = random.pick(&["buy", "sell"]);
            self.confidence = random.pick(&[0.0, 0.75, 1.0]);
            if (self.signal, self.confidence) != before {
                return;
            }
        }
    }

    pub(super) fn body(&self) -> String {
        let Self { date, offset, signal, confidence } = self;
        let date = date_text(*date, *offset);
        format!("{{\"date\":\"{date}\",\"signal\":\"{signal}\",\"confidence\":{confidence:?}}}")
    }
}

impl History {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut history = Self { is_listed: !random.one_in(8), is_empty: random.one_in(12), ..Self::of(&[]) };
        for _ in 0..random.between(1, 20) {
            history.insert(Entry::random(random));
        }
        history
    }

    /// A history of these entries.
    pub(super) fn of(days: &[(i64, f64)]) -> Self {
        let entry =
            |&(day, confidence): &(i64, f64)| Entry { date: day * 1440, offset: None, signal: "buy", confidence };
        Self {
            entries: days.iter().map(entry).collect(),
            gone: Vec::new(),
            hidden: 0,
            is_listed: true,
            is_empty: false,
            order: Order::NewestFirst,
            mending: Mending::Nothing,
        }
    }

    fn insert(&mut self, entry: Entry) {
        if let Err(at) = self.entries.binary_search_by_key(&entry.date, |entry| entry.date) {
            self.gone.retain(|gone| gone.date != entry.date);
            self.entries.insert(at, entry);
        }
    }

    /// Without a sliding window, the oldest entry stays: removing it would look like a window.
    fn withdraw(&mut self, is_sliding: bool, is_withdrawn: impl Fn(&Entry) -> bool) {
        let oldest = self.entries.first().map(|entry| entry.date).filter(|_| !is_sliding);
        let (gone, kept) = self.entries.drain(..).partition(|entry| Some(entry.date) != oldest && is_withdrawn(entry));
        self.gone.extend::<Vec<Entry>>(gone);
        self.entries = kept;
        self.hidden = self.hidden.min(self.entries.len());
    }

    pub(super) fn list(&self, random: &mut Random) -> Vec<Entry> {
        let mut listed = if self.is_empty { Vec::new() } else { self.entries[self.hidden..].to_vec() };
        match self.order {
            Order::NewestFirst => listed.reverse(),
            Order::OldestFirst => {}
            Order::Any => random.shuffle(&mut listed),
        }
        listed
    }

    /// Restores cells withdrawn by mistake, a step per pull, and describes it.
    pub(super) fn mend(&mut self, random: &mut Random) -> Option<String> {
        match self.mending {
            Mending::Nothing => None,
            Mending::Withdrawn => Some(self.bring_back(1, random)),
            Mending::InPart => {
                let one_in = random.between(1, 3);
                Some(format!("{}, {}", self.bring_back(1, random), self.revise(one_in, random)))
            }
        }
    }

    /// Makes a change, and describes it.
    pub(super) fn change(&mut self, is_sliding: bool, random: &mut Random) -> String {
        if self.entries.is_empty() || random.one_in(3) {
            return self.grow(random);
        }
        let at = random.below(self.entries.len());
        match random.below(14) {
            0 | 1 => {
                self.entries[at].value(random);
                format!("{} revised", self.entries[at].body())
            }
            2 => {
                let before = self.entries[at].offset;
                self.entries[at].offset =
                    random.pick(&OFFSETS.map(|offset| if offset == before { Some(75) } else { offset }));
                format!("{} with another offset", self.entries[at].body())
            }
            3 => {
                let date = self.entries[at].date;
                self.withdraw(is_sliding, |entry| entry.date == date);
                "one withdrawn".to_owned()
            }
            4 | 13 => {
                let withdrawn = quarter(&self.entries[at]);
                self.withdraw(is_sliding, |entry| quarter(entry) == withdrawn);
                self.mending = Mending::Withdrawn;
                format!("quarter {withdrawn:?} withdrawn")
            }
            5 if is_sliding => {
                self.hidden = (self.hidden + random.between(1, 4)).min(self.entries.len());
                format!("the oldest {} not listed", self.hidden)
            }
            6 if is_sliding => {
                self.hidden = self.hidden.saturating_sub(random.between(1, 4));
                format!("the oldest {} not listed", self.hidden)
            }
            7 => {
                self.is_empty = !self.is_empty;
                if self.is_empty { "emptied" } else { "filled" }.to_owned()
            }
            8 => {
                self.is_listed = !self.is_listed;
                if self.is_listed { "listed" } else { "not listed" }.to_owned()
            }
            9 => {
                self.order = random.pick(&[Order::NewestFirst, Order::OldestFirst, Order::Any]);
                "listed in another order".to_owned()
            }
            10 => self.grow(random),
            _ => {
                let most = random.between(2, 4);
                self.revise(most, random)
            }
        }
    }

    fn revise(&mut self, one_in: usize, random: &mut Random) -> String {
        for entry in &mut self.entries {
            if random.one_in(one_in) {
                entry.value(random);
            }
        }
        format!("one in {one_in} revised")
    }

    /// The last removed entry, unchanged or not.
    fn bring_back(&mut self, count: usize, random: &mut Random) -> String {
        self.mending = match self.mending {
            Mending::Withdrawn => Mending::InPart,
            Mending::InPart | Mending::Nothing => Mending::Nothing,
        };
        for mut entry in self.gone.split_off(self.gone.len().saturating_sub(count)) {
            if random.one_in(3) {
                entry.value(random);
            }
            self.insert(entry);
        }
        format!("{count} brought back")
    }

    fn grow(&mut self, random: &mut Random) -> String {
        match random.below(5) {
            0..2 if !self.gone.is_empty() => {
                let back = random.between(1, self.gone.len());
                random.shuffle(&mut self.gone);
                self.bring_back(back, random)
            }
            2 => {
                self.insert(Entry::random(random));
                "one inserted late".to_owned()
            }
            _ => {
                for _ in 0..random.between(1, 3) {
                    let mut entry = Entry::random(random);
                    let last = self.entries.last().map_or(DAYS.0 as i64 * 1440, |last| last.date / 1440 * 1440);
                    entry.date = last + 1440 * random.between(1, 20) as i64;
                    self.insert(entry);
                }
                "went on".to_owned()
            }
        }
    }
}

//! What a cron expression names, field by field.
//!
//! A field is a list of `*`, numbers, ranges and steps. Names stand for numbers in months and weekdays. Days may also depend
//! on the month: its last day, the workday nearest to a day, the second or the last Friday.

use chrono::{Datelike, NaiveDate, NaiveTime, Timelike, Weekday};

/// What an expression names, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronFields {
    /// The seconds, from 0.
    pub(super) seconds: Vec<u32>,
    /// The minutes, from 0.
    pub(super) minutes: Vec<u32>,
    /// The hours, from 0.
    pub(super) hours: Vec<u32>,
    /// The months, from 1.
    pub(super) months: Vec<u32>,
    /// The days of the month.
    pub(super) days: DayField<MonthMark>,
    /// From Sunday, which is zero.
    pub(super) weekdays: DayField<WeekdayMark>,
    /// Whether a day must be named by both fields (`+MON`), rather than by either.
    pub(super) needs_both: bool,
}

/// The days of a month or of a week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayField<M> {
    /// `*`, which names no day of its own.
    pub(super) is_any: bool,
    /// The days by number.
    pub(super) numbers: Vec<u32>,
    /// The days that depend on the month.
    pub(super) marks: Vec<M>,
}

/// A day that depends on the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonthMark {
    /// The last day: `L`.
    Last,
    /// The last workday: `LW`.
    LastWorkday,
    /// The workday nearest to a day of the same month: `15W`.
    NearestWorkday(u32),
}

/// A weekday of which only one in a month counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeekdayMark {
    /// The first to the fifth: `5#2`.
    Nth(u32, u32),
    /// The last: `5L`.
    Last(u32),
}

/// A field of an expression.
pub(super) struct FieldKind {
    pub(super) name: &'static str,
    pub(super) low: u32,
    pub(super) high: u32,
    /// The words that stand for numbers, in upper case, from the lowest on.
    words: &'static [&'static str],
    /// What a hint adds.
    pub(super) more: &'static str,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Sunday is the first day and the seventh.
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

pub(super) const SECOND: FieldKind = FieldKind { name: "second", low: 0, high: 59, words: &[], more: "" };
pub(super) const MINUTE: FieldKind = FieldKind { name: "minute", low: 0, high: 59, words: &[], more: "" };
pub(super) const HOUR: FieldKind = FieldKind { name: "hour", low: 0, high: 23, words: &[], more: "" };
pub(super) const DAY: FieldKind =
    FieldKind { name: "day of month", low: 1, high: 31, words: &[], more: ", or `L` for the last" };
pub(super) const MONTH: FieldKind =
    FieldKind { name: "month", low: 1, high: 12, words: MONTHS, more: ", with names such as `JAN`" };
pub(super) const WEEKDAY: FieldKind =
    FieldKind { name: "day of week", low: 0, high: 7, words: WEEKDAYS, more: ", with names such as `MON-FRI`" };

impl FieldKind {
    /// The numbers that a field names, in order; `None` if it names none.
    pub(super) fn numbers(&self, text: &str) -> Option<Vec<u32>> {
        if text == "*" {
            return Some((self.low..=self.high).collect());
        }
        let items: Vec<Vec<u32>> = text.split(',').map(|item| self.item(item)).collect::<Option<_>>()?;
        Some(in_order(items.concat()))
    }

    /// The numbers that an item of a list names.
    fn item(&self, text: &str) -> Option<Vec<u32>> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(digits(step).filter(|&step| step > 0)?)),
            None => (text, None),
        };
        let (first, last) = match (range.split_once('-'), step) {
            (Some((first, last)), _) => (self.number(first)?, self.meanings(last).last()?),
            (None, Some(_)) if range == "*" => (self.low, self.high),
            (None, Some(_)) => return None,
            (None, None) => (self.number(range)?, self.number(range)?),
        };
        (first <= last).then(|| (first..=last).step_by(step.unwrap_or(1) as usize).collect())
    }

    /// A number or a word that stands for one.
    fn number(&self, text: &str) -> Option<u32> {
        self.meanings(text).next()
    }

    /// The numbers that a text may stand for, in order: Sunday is the first day of a week and the last.
    fn meanings(&self, text: &str) -> impl Iterator<Item = u32> {
        let words = self.words.iter().zip(self.low..).filter(|(word, _)| text.eq_ignore_ascii_case(word));
        let own = digits(text).filter(|number| (self.low..=self.high).contains(number));
        words.map(|(_, number)| number).chain(own)
    }
}

/// What an item of a field of days names.
enum Item<M> {
    Numbers(Vec<u32>),
    Marks(Vec<M>),
}

impl<M> DayField<M> {
    /// What a field names, by what each item of its list does.
    fn of(field: &FieldKind, text: &str, item: impl Fn(&str) -> Option<Item<M>>) -> Option<Self> {
        let text = text.replace('?', "*").to_ascii_uppercase();
        let (mut numbers, mut marks) = (Vec::new(), Vec::new());
        if text == "*" {
            return Some(Self { is_any: true, numbers: field.numbers(&text)?, marks });
        }
        for item in text.split(',').map(item) {
            match item? {
                Item::Numbers(more) => numbers.extend(more),
                Item::Marks(more) => marks.extend(more),
            }
        }
        Some(Self { is_any: false, numbers: in_order(numbers), marks })
    }
}

impl DayField<MonthMark> {
    /// The days of the month that a field names.
    pub(super) fn of_month(text: &str) -> Option<Self> {
        Self::of(&DAY, text, |item| match (item, item.strip_suffix('W')) {
            ("L", _) => Some(Item::Marks(vec![MonthMark::Last])),
            (_, Some("L")) => Some(Item::Marks(vec![MonthMark::LastWorkday])),
            (_, Some(day)) => Some(Item::Marks(vec![MonthMark::NearestWorkday(DAY.number(day)?)])),
            (_, None) => DAY.item(item).map(Item::Numbers),
        })
    }
}

impl DayField<WeekdayMark> {
    /// The weekdays that a field names.
    pub(super) fn of_week(text: &str) -> Option<Self> {
        let last = |weekday: &str| Some(Item::Marks(vec![WeekdayMark::Last(WEEKDAY.number(weekday)? % 7)]));
        let nth = |weekdays: &str, count: &str| {
            let count = digits(count).filter(|count| (1..=5).contains(count))?;
            let weekdays = WEEKDAY.item(weekdays)?.into_iter().map(|day| day % 7);
            Some(Item::Marks(weekdays.map(|day| WeekdayMark::Nth(day, count)).collect()))
        };
        let field = Self::of(&WEEKDAY, text, |item| match (item.split_once('#'), item.strip_suffix('L')) {
            (Some((weekday, "L")), _) | (None, Some(weekday)) => last(weekday),
            (Some((weekdays, count)), _) => nth(weekdays, count),
            (None, None) => WEEKDAY.item(item).map(Item::Numbers),
        })?;
        // Sunday is the seventh day, too.
        Some(Self { numbers: in_order(field.numbers.iter().map(|day| day % 7).collect()), ..field })
    }
}

impl MonthMark {
    /// Whether it is a day.
    fn is(self, date: NaiveDate) -> bool {
        let last = u32::from(date.num_days_in_month());
        let day = match self {
            Self::Last => last,
            Self::LastWorkday => nearest_workday(date, last, last),
            Self::NearestWorkday(day) if day <= last => nearest_workday(date, day, last),
            Self::NearestWorkday(_) => return false,
        };
        date.day() == day
    }
}

/// The workday of a month that is nearest to one of its days.
fn nearest_workday(month: NaiveDate, day: u32, last: u32) -> u32 {
    match month.with_day(day).map(|date| date.weekday()) {
        Some(Weekday::Sat) if day == 1 => 3,
        Some(Weekday::Sat) => day - 1,
        Some(Weekday::Sun) if day == last => day - 2,
        Some(Weekday::Sun) => day + 1,
        _ => day,
    }
}

impl WeekdayMark {
    /// Whether it is a day.
    fn is(self, date: NaiveDate) -> bool {
        let is_on = |weekday: u32| date.weekday().num_days_from_sunday() == weekday;
        match self {
            Self::Nth(weekday, count) => is_on(weekday) && date.day().div_ceil(7) == count,
            Self::Last(weekday) => is_on(weekday) && date.day() + 7 > u32::from(date.num_days_in_month()),
        }
    }
}

impl CronFields {
    /// Whether a day is named.
    pub(super) fn name_day(&self, date: NaiveDate) -> bool {
        let (days, weekdays) = (&self.days, &self.weekdays);
        let of_month = || days.numbers.contains(&date.day()) || days.marks.iter().any(|mark| mark.is(date));
        let of_week = || {
            let weekday = date.weekday().num_days_from_sunday();
            weekdays.numbers.contains(&weekday) || weekdays.marks.iter().any(|mark| mark.is(date))
        };
        self.months.contains(&date.month())
            && match (days.is_any, weekdays.is_any) {
                (true, _) => of_week(),
                (_, true) => of_month(),
                _ if self.needs_both => of_month() && of_week(),
                _ => of_month() || of_week(),
            }
    }

    /// The first time of a day that is named, from a time on.
    pub(super) fn first_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let mut hours = self.hours.iter().filter(|&&hour| hour >= from.hour());
        hours.find_map(|&hour| self.times_of(hour).find(|&time| time >= from))
    }

    /// The last time of a day that is named, up to a time.
    pub(super) fn last_time(&self, until: NaiveTime) -> Option<NaiveTime> {
        let mut hours = self.hours.iter().rev().filter(|&&hour| hour <= until.hour());
        hours.find_map(|&hour| self.times_of(hour).rfind(|&time| time <= until))
    }

    fn times_of(&self, hour: u32) -> impl DoubleEndedIterator<Item = NaiveTime> {
        let seconds = self.seconds.iter();
        let of_minute =
            move |&minute| seconds.clone().filter_map(move |&second| NaiveTime::from_hms_opt(hour, minute, second));
        self.minutes.iter().flat_map(of_minute)
    }
}

/// A number in decimal digits alone.
fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Values in order, once each.
fn in_order(mut values: Vec<u32>) -> Vec<u32> {
    values.sort_unstable();
    values.dedup();
    values
}

//! Expressions in the dialects of the platforms.
//!
//! What an expression names is spelled anew, by numbers alone, so that it means the same wherever five fields of numbers
//! do: names, `7`, `?`, and ranges that end with Sunday are gone, and a field of days that is listed in full is never
//! confused with `*`. What remains is what only some platforms have. It is refused with the file to change.

use std::fmt::Display;

use bellwether::definition::{CronFields, DayField, MonthMark, WeekdayMark};
use bellwether::error::{Error, Result};
use bellwether::plan::{Plan, Schedule};

/// A platform that takes expressions with a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CronDialect {
    /// `robfig/cron`: numbers alone.
    Kubernetes,
    /// `croniter`: also the last day, the nearest weekday, and numbered weekdays, if nothing else names a day.
    Airflow,
    /// Numbers, in UTC.
    GithubActions,
}

/// The days that an expression names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Days {
    Every,
    OfMonth(DayField<MonthMark>),
    OfWeek(DayField<WeekdayMark>),
    Either(DayField<MonthMark>, DayField<WeekdayMark>),
    Both(DayField<MonthMark>, DayField<WeekdayMark>),
}

impl CronDialect {
    fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes => "Kubernetes",
            Self::Airflow => "Airflow",
            Self::GithubActions => "GitHub Actions",
        }
    }

    /// The five fields of a schedule.
    pub(super) fn five_fields(self, plan: &Plan, schedule: &Schedule) -> Result<String> {
        let fields = self.fields(plan, schedule)?;
        let [day, weekday] = match Days::of(fields) {
            Days::Every => ["*".to_owned(), "*".to_owned()],
            Days::OfMonth(days) => match self.day_of_month(&days) {
                Some(day) => [day, "*".to_owned()],
                None => return Err(self.refusal(plan, &marks(&days), "name the days by number")),
            },
            Days::OfWeek(days) => match self.day_of_week(&days) {
                Some(weekday) => ["*".to_owned(), weekday],
                None => return Err(self.refusal(plan, &marks(&days), "name the weekdays alone")),
            },
            Days::Either(days, weekdays) if days.marks.is_empty() && weekdays.marks.is_empty() => {
                [numbers(&days.numbers), numbers(&weekdays.numbers)]
            }
            Days::Either(days, weekdays) => {
                let marks = if days.marks.is_empty() { marks(&weekdays) } else { marks(&days) };
                return Err(self.refusal(plan, &marks, "name the days by number"));
            }
            Days::Both(..) => {
                let what = "a day of the month and a weekday that must both apply (`+`)";
                return Err(self.refusal(plan, what, "name one of them"));
            }
        };
        Ok(spell(&fields.minutes, &fields.hours, &day, &fields.months, &weekday))
    }

    /// The fields of a schedule without seconds.
    pub(super) fn fields<'s>(self, plan: &Plan, schedule: &'s Schedule) -> Result<&'s CronFields> {
        let fields = schedule.cron.fields();
        if fields.seconds == [0] { Ok(fields) } else { Err(self.refusal(plan, "seconds", "leave the seconds out")) }
    }

    fn day_of_month(self, days: &DayField<MonthMark>) -> Option<String> {
        match (&days.marks[..], &days.numbers[..]) {
            ([], named) => Some(numbers(named)),
            // In a shorter month `31W` is no day here, and one of the last days there.
            ([mark @ (MonthMark::Last | MonthMark::NearestWorkday(..=28))], []) if self == Self::Airflow => {
                Some(mark.to_string())
            }
            _ => None,
        }
    }

    fn day_of_week(self, days: &DayField<WeekdayMark>) -> Option<String> {
        if days.marks.is_empty() {
            return Some(numbers(&days.numbers));
        }
        let spelled = |mark: &WeekdayMark| match mark {
            WeekdayMark::Last(weekday) => format!("L{weekday}"),
            WeekdayMark::Nth(..) => mark.to_string(),
        };
        let has_marks_alone = self == Self::Airflow && days.numbers.is_empty();
        has_marks_alone.then(|| days.marks.iter().map(spelled).collect::<Vec<_>>().join(","))
    }

    fn refusal(self, plan: &Plan, what: &str, remedy: &str) -> Error {
        let platform = self.as_str();
        Error::usage(
            format!("the schedule of `{}` has {what}, which {platform} does not have", plan.name),
            format!(
                "{remedy} in `cron` of `{}`, or let `bellwether schedule` run it, as with `--for systemd`",
                plan.path.display()
            ),
        )
    }
}

impl Days {
    /// The days of an expression. A field that names all of its days is as good as `*`.
    pub(super) fn of(fields: &CronFields) -> Self {
        let (days, weekdays) = (&fields.days, &fields.weekdays);
        let (all_days, all_weekdays) = (days.numbers.len() == 31, weekdays.numbers.len() == 7);
        let of_month = || if all_days { Self::Every } else { Self::OfMonth(days.clone()) };
        let of_week = || if all_weekdays { Self::Every } else { Self::OfWeek(weekdays.clone()) };
        match (days.is_any, weekdays.is_any) {
            (true, true) => Self::Every,
            (true, false) => of_week(),
            (false, true) => of_month(),
            _ if fields.needs_both && all_days => of_week(),
            _ if fields.needs_both && all_weekdays => of_month(),
            _ if fields.needs_both => Self::Both(days.clone(), weekdays.clone()),
            _ if all_days || all_weekdays => Self::Every,
            _ => Self::Either(days.clone(), weekdays.clone()),
        }
    }
}

/// The marks of a field, as text for an error.
fn marks<M: Display>(days: &DayField<M>) -> String {
    let quoted: Vec<String> = days.marks.iter().map(|mark| format!("`{mark}`")).collect();
    quoted.join(" and ")
}

/// Five fields.
pub(super) fn spell(minutes: &[u32], hours: &[u32], day: &str, months: &[u32], weekday: &str) -> String {
    format!(
        "{} {} {day} {} {weekday}",
        spell_field(minutes, 0, 59),
        spell_field(hours, 0, 23),
        spell_field(months, 1, 12)
    )
}

/// The values of a field that are all that it has, an even part of them, or a list.
fn spell_field(values: &[u32], low: u32, high: u32) -> String {
    if values.len() == (high - low) as usize + 1 {
        return "*".to_owned();
    }
    if let [first, second, _, ..] = values
        && *first == low
        && values.iter().copied().eq((low..=high).step_by((second - first) as usize))
    {
        return format!("*/{}", second - first);
    }
    numbers(values)
}

/// A list of values, with ranges for three in a row or more.
pub(super) fn numbers(values: &[u32]) -> String {
    let rows = values.chunk_by(|one, next| one + 1 == *next);
    let spelled = rows.flat_map(|row| match row {
        [first, _, .., last] => vec![format!("{first}-{last}")],
        _ => row.iter().map(u32::to_string).collect(),
    });
    spelled.collect::<Vec<_>>().join(",")
}

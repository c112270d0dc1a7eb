//! The fields of a cron expression, for those who spell it in another dialect.

/// What an expression names, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronFields {
    /// The seconds, from 0.
    pub seconds: Vec<u16>,
    /// The minutes, from 0.
    pub minutes: Vec<u16>,
    /// The hours, from 0.
    pub hours: Vec<u16>,
    /// The months, from 1.
    pub months: Vec<u16>,
    /// The days of the month.
    pub days: DayField,
    /// From Sunday, which is zero.
    pub weekdays: DayField,
    /// Whether a day must be named by both fields (`+MON`), rather than by either.
    pub needs_both: bool,
}

/// The days of a month or of a week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayField {
    /// `*`, which names no day of its own.
    pub is_any: bool,
    /// The days by number.
    pub numbers: Vec<u16>,
    /// The days that depend on the month: `L`, `15W`, `LW`, `5L`, `5#2`.
    pub marks: Vec<String>,
}

impl CronFields {
    pub(super) fn of(cron: &croner::Cron) -> Self {
        let pattern = &cron.pattern;
        let fields: Vec<&str> = cron.as_str().split(' ').collect();
        let [.., days, _, weekdays] = &fields[..] else { unreachable!("an expression has five fields at least") };
        let marks = |text: &str| {
            let parts = text.trim_start_matches('+').split(',');
            parts.filter(|part| part.contains(['L', 'W', '#'])).map(str::to_owned).collect()
        };
        Self {
            seconds: pattern.seconds.values(),
            minutes: pattern.minutes.values(),
            hours: pattern.hours.values(),
            months: pattern.months.values(),
            days: DayField { is_any: pattern.is_dom_wildcard(), numbers: pattern.days.values(), marks: marks(days) },
            weekdays: DayField {
                is_any: pattern.is_dow_wildcard(),
                numbers: pattern.days_of_week.values().into_iter().filter(|day| *day < 7).collect(),
                marks: marks(weekdays),
            },
            needs_both: pattern.matches_dom_and_dow(),
        }
    }
}

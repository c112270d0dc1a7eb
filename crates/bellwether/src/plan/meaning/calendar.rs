//! When signals are made, and the sessions of the market.

use std::path::Path;

use chrono::NaiveDate;

use super::Validator;
use crate::definition::{CalendarSection, Definition, Exchange, Placed, TimeOfDay};
use crate::plan::columns::{Column, Feature};
use crate::sessions::Sessions;
use crate::text::problem::Problem;

impl Validator {
    /// When signals without a time are made.
    pub(super) fn made_at(
        &mut self,
        definition: &Definition,
        features: &[Feature],
        columns: &[Column],
    ) -> Option<TimeOfDay> {
        let typed = definition.signals.made_at.as_ref()?;
        if features.is_empty() && !columns.contains(&Column::TradableAt) {
            let problem =
                Problem::new("`made_at` has no effect without features of the news or `tradable_at`", typed.span());
            self.object(problem.with_hint("add `\"tradable_at\"` to `add` in `[dataset]`, or remove `made_at`"));
        }
        Some(**typed)
    }

    /// The sessions of the market.
    pub(super) fn sessions(&mut self, definition: &Definition, columns: &[Column], root: &Path) -> Sessions {
        let CalendarSection { exchange, sessions, hours, holidays, trade_at } = &*definition.calendar;
        let others = [
            ("sessions", sessions.as_ref().map(Placed::span)),
            ("hours", hours.as_ref().map(Placed::span)),
            ("holidays", holidays.as_ref().map(Placed::span)),
        ];
        if let (Some(exchange), Some((key, Some(span)))) =
            (exchange, others.into_iter().find(|(_, span)| span.is_some()))
        {
            let problem = Problem::new(format!("`{key}` has no effect together with `exchange`"), span);
            self.object(problem.with_hint(format!("the sessions of `{}` are built in: keep one of them", **exchange)));
        }
        let by_rule = [("hours", hours.as_ref().map(Placed::span)), ("holidays", holidays.as_ref().map(Placed::span))];
        for (key, span) in by_rule.into_iter().filter_map(|(key, span)| Some((key, span?))) {
            if sessions.is_some() {
                let problem = Problem::new(format!("`{key}` has no effect together with `sessions`"), span);
                self.object(problem.with_hint("the file lists the days and hours: keep one of them"));
            }
        }
        let is_traded = columns.contains(&Column::TradableAt);
        let of_trades =
            [("hours", hours.as_ref().map(Placed::span)), ("trade_at", trade_at.as_ref().map(Placed::span))];
        for (key, span) in of_trades.into_iter().filter_map(|(key, span)| Some((key, span?))) {
            if !is_traded {
                let problem = Problem::new(format!("`{key}` has no effect without `tradable_at`"), span);
                let hint = format!("add `\"tradable_at\"` to `add` in `[dataset]`, or remove `{key}`");
                self.object(problem.with_hint(hint));
            }
        }
        let are_stated = hours.is_some() || holidays.is_some();
        let holidays: Vec<NaiveDate> =
            self.distinct("holiday", holidays.as_ref()).unwrap_or_default().into_iter().map(|day| day.0).collect();
        let given = match (sessions, hours) {
            (Some(file), _) => match Sessions::read(&root.join(file.as_str())) {
                Ok(sessions) => sessions,
                Err(error) => {
                    let problem = Problem::new(format!("`{}` is no calendar: {error}", file.as_str()), file.span());
                    self.object(problem.with_hint(
                        "name a CSV file with a line per session: `date`, and `open` and `close` with an offset",
                    ));
                    return Sessions::default();
                }
            },
            (None, _) if !are_stated => match exchange.as_deref().copied().unwrap_or(Exchange::Xnys) {
                Exchange::Xnys => Sessions::default(),
                Exchange::Weekdays => Sessions::of_rule(None, &[]),
            },
            (None, hours) => Sessions::of_rule(hours.as_deref().copied(), &holidays),
        };
        if is_traded && !given.have_hours() {
            let span = definition.dataset.columns.as_ref().map(Placed::span);
            let span = span.or(definition.dataset.add.as_ref().map(Placed::span)).unwrap_or_default();
            let problem = Problem::new("`tradable_at` needs the hours of the market", span);
            let hint = "set `hours = \"09:30-16:00 America/New_York\"` in `[calendar]`, or name a file of `sessions`; those of `XNYS` are built in";
            self.miss("calendar", problem.with_hint(hint));
        }
        given
    }
}

//! From what was typed to what it means: defaults filled in, combinations judged, every problem gathered.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;

use super::columns::{self, Column, Feature};
use super::{DatasetPlan, Plan, Remote, Request, Schedule, Source};
use crate::definition::{
    BaseUrl, Days, Definition, Format, Found, HistoryForm, JoinSection, NaiveRule, OutputSection, Placed, Reading,
    ScheduleSection, SentimentSection, Service, SignalsSection, SourceSection, Statistic, Zone,
};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime};
use crate::problem::{Problem, Problems, nearest};
use crate::secret::KeySource;

const DEFAULT_LAG: Days = Days::new(1);
const DEFAULT_WINDOWS: [Days; 3] = [Days::new(1), Days::new(7), Days::new(30)];

/// What a definition means.
pub(super) fn of(found: Found) -> Result<Plan> {
    let Found { name, path, text, reading } = found;
    let Reading { definition, problems, flawed } = reading;
    let mut judge = Judge { problems, flawed };
    let Definition { description, source, signals, sentiment, dates, join, output, schedule } = definition;
    let source = judge.source(&source);
    let requests = judge.requests(&signals);
    let of_each_ticker = of_each_ticker(&sentiment);
    let features = judge.features(&join, of_each_ticker.contains(&Endpoint::NewsArticles));
    let sort = judge.sort(&output);
    let formats = judge.formats(&output);
    let schedule = schedule.and_then(|schedule| judge.schedule(&schedule));
    let Some(source) = source.filter(|_| judge.problems.is_empty()) else {
        return Err(Problems::new(&path, &text, judge.problems).into());
    };
    Ok(Plan {
        name,
        description,
        path,
        text,
        source,
        requests,
        of_each_ticker,
        dates: dates.naive.as_deref().copied().unwrap_or(NaiveRule::Utc),
        dataset: DatasetPlan {
            lag: join.lag.as_deref().copied().unwrap_or(DEFAULT_LAG),
            schema: columns::long(&features),
            features,
            sort,
        },
        formats,
        schedule,
    })
}

fn of_each_ticker(section: &SentimentSection) -> Vec<Endpoint> {
    let is_asked = |typed: &Option<Placed<bool>>, otherwise| typed.as_deref().copied().unwrap_or(otherwise);
    let asked = [
        (is_asked(&section.articles, true), Endpoint::NewsArticles),
        (is_asked(&section.summary, false), Endpoint::SocialSentiment),
    ];
    asked.into_iter().filter_map(|(is_asked, endpoint)| is_asked.then_some(endpoint)).collect()
}

/// Judges the sections one by one and keeps what it finds wrong.
struct Judge {
    problems: Vec<Problem>,
    flawed: BTreeSet<String>,
}

impl Judge {
    fn object(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Objects that a section lacks something, unless what it lacks may be what was taken out of it.
    fn miss(&mut self, section: &str, problem: Problem) {
        if !self.flawed.contains(section) {
            self.object(problem);
        }
    }

    fn source(&mut self, section: &Placed<SourceSection>) -> Option<Source> {
        let SourceSection { service, base_url, sentiment_base_url, api_key_file, api_key_command } = &**section;
        let addresses = [base_url, sentiment_base_url];
        if let Some(service) = service {
            let Service::Demo = **service;
            for address in addresses.into_iter().flatten() {
                let problem = Problem::new("an address beside `service`", address.span());
                self.object(problem.with_hint("the demo service is built in: take out `service`, or the addresses"));
            }
            return Some(Source::Demo);
        }
        if let (Some(_), Some(command)) = (api_key_file, api_key_command) {
            let problem = Problem::new("two places for the key", command.span());
            self.object(problem.with_hint("keep `api_key_file` or `api_key_command`, not both"));
        }
        if let Some(command) = api_key_command.as_ref().filter(|command| command.is_empty()) {
            let problem = Problem::new("a command without a program", command.span());
            self.object(problem.with_hint("write it word by word: `[\"pass\", \"show\", \"signals\"]`"));
        }
        let key = match (api_key_file, api_key_command) {
            (Some(file), _) => KeySource::File(PathBuf::from(file.as_str())),
            (None, Some(command)) => KeySource::Command((**command).clone()),
            (None, None) => KeySource::Environment,
        };
        match addresses {
            [Some(signals), Some(sentiment)] => Some(Source::Remote(Box::new(Remote {
                base_url: BaseUrl::as_url(signals).clone(),
                sentiment_base_url: BaseUrl::as_url(sentiment).clone(),
                key,
            }))),
            _ => {
                let span = addresses.into_iter().flatten().next().map_or(section.span(), Placed::span);
                let hint = "give both `base_url` and `sentiment_base_url`, or `service = \"demo\"`";
                self.miss("source", Problem::new("no service to ask", span).with_hint(hint));
                None
            }
        }
    }

    fn requests(&mut self, section: &Placed<SignalsSection>) -> Vec<Request> {
        let SignalsSection { history, sectors, periods, regimes } = &**section;
        let HistoryForm::Sector = history.as_deref().copied().unwrap_or(HistoryForm::Sector);
        let periods = self.distinct("period", periods.as_ref()).unwrap_or_else(|| vec![Period::default()]);
        let regimes = self.distinct("regime", regimes.as_ref()).unwrap_or_else(|| vec![Regime::default()]);
        let Some(sectors) = self.distinct("sector", sectors.as_ref()) else {
            let problem = Problem::new("no sectors to ask for", section.span());
            self.miss("signals", problem.with_hint("add `sectors = [\"energy\", \"healthcare\"]` to `[signals]`"));
            return Vec::new();
        };
        let of_sector = |sector| {
            let pairs = periods.iter().flat_map(|&period| regimes.iter().map(move |&regime| (period, regime)));
            pairs.map(move |(period, regime)| Request::of_sector(Clone::clone(sector), period, regime))
        };
        sectors.iter().flat_map(of_sector).collect()
    }

    fn features(&mut self, section: &Placed<JoinSection>, has_articles: bool) -> Vec<Feature> {
        let JoinSection { lag, windows, stats } = &**section;
        if !has_articles {
            if lag.is_some() || windows.is_some() || stats.is_some() {
                let problem = Problem::new("a join without news", section.span());
                self.object(problem.with_hint("take out `[join]`, or set `articles = true` in `[sentiment]`"));
            }
            return Vec::new();
        }
        for window in windows.iter().flat_map(|windows| windows.iter()).filter(|window| window.count() == 0) {
            let problem = Problem::new("a window of no days", window.span());
            self.object(problem.with_hint("the shortest window is `1d`"));
        }
        let windows = self.distinct("window", windows.as_ref()).unwrap_or_else(|| DEFAULT_WINDOWS.to_vec());
        let statistics = self.distinct("statistic", stats.as_ref()).unwrap_or_else(|| Statistic::ALL.to_vec());
        Feature::of(&windows, &statistics)
    }

    fn sort(&mut self, section: &OutputSection) -> Vec<Column> {
        let typed = section.sort.as_ref().map_or(&[][..], |typed| typed);
        let mut sort: Vec<Column> = Vec::new();
        for name in typed {
            let names = || Column::ALL.iter().map(|column| column.name());
            let Some(&column) = Column::ALL.iter().find(|column| column.name() == name.as_str()) else {
                let problem = Problem::new(format!("no column `{}` to sort by", name.as_str()), name.span());
                let hint = match nearest(name, names()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("rows are sorted by: {}", names().collect::<Vec<_>>().join(", ")),
                };
                self.object(problem.with_hint(hint));
                continue;
            };
            if sort.contains(&column) {
                self.object(repeated("column", &column.name(), name.span()));
            } else {
                sort.push(column);
            }
        }
        // With the whole key behind what was typed no two rows are equal: the order of a dataset is its only one.
        sort.extend(Column::KEY.iter().filter(|column| !sort.contains(column)).collect::<Vec<_>>());
        sort
    }

    fn formats(&mut self, section: &OutputSection) -> Vec<Format> {
        let Some(typed) = &section.format else { return vec![Format::Parquet] };
        let mut formats = Vec::new();
        for &format in typed.as_slice() {
            if formats.contains(&format) {
                self.object(repeated("format", &format, typed.span()));
            } else {
                formats.push(format);
            }
        }
        if formats.is_empty() {
            let problem = Problem::new("no format to write", typed.span());
            self.object(problem.with_hint("name one: `format = \"parquet\"`"));
        }
        formats
    }

    fn schedule(&mut self, section: &Placed<ScheduleSection>) -> Option<Schedule> {
        let Some(cron) = &section.cron else {
            let problem = Problem::new("a schedule without `cron`", section.span());
            self.miss("schedule", problem.with_hint("add five fields: `cron = \"30 18 * * 1-5\"`"));
            return None;
        };
        let timezone = section.timezone.as_deref().copied().unwrap_or(Zone(chrono_tz::UTC));
        Some(Schedule { cron: (**cron).clone(), timezone })
    }

    /// The values of a list in which nothing may stand twice; none when it was not typed or is empty.
    fn distinct<T: Clone + Ord + Display>(
        &mut self,
        what: &str,
        typed: Option<&Placed<Vec<Placed<T>>>>,
    ) -> Option<Vec<T>> {
        let typed = typed?;
        if typed.is_empty() {
            let problem = Problem::new(format!("an empty list: at least one {what} is needed"), typed.span());
            self.object(problem.with_hint("take the key out to get its default, or name a value"));
        }
        let mut seen = BTreeSet::new();
        for value in typed.iter() {
            if !seen.insert((**value).clone()) {
                self.object(repeated(what, &**value, value.span()));
            }
        }
        Some(typed.iter().map(|value| (**value).clone()).collect())
    }
}

fn repeated(what: &str, value: &dyn Display, span: std::ops::Range<usize>) -> Problem {
    Problem::new(format!("{what} `{value}` stands twice"), span).with_hint("take one out")
}

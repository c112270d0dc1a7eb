//! From what was typed to what it means: defaults filled in, combinations judged, every problem gathered.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use super::columns::{self, Column, Feature};
use super::{Asked, DatasetPlan, Manners, Plan, Remote, Request, Schedule, Source, Tickers, Way};
use crate::definition::{
    BaseUrl, Days, Format, Found, HistoryForm, JoinSection, NaiveRule, OutputSection, Placed, Reading, RejectsSection,
    ScheduleSection, SentimentSection, Service, SignalsSection, SourceSection, Statistic, TickerList,
    Tickers as TypedTickers, Zone, is_loopback,
};
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime};
use crate::problem::{Problem, Problems, nearest};
use crate::secret::KeySource;

const DEFAULT_LAG: Days = Days::new(1);
const DEFAULT_CONNECTIONS: usize = 8;
const DEFAULT_REQUESTS_PER_SECOND: u16 = 25;
const DEFAULT_STALL: Duration = Duration::from_secs(30);
const DEFAULT_PATIENCE: Duration = Duration::from_secs(15 * 60);
const DEFAULT_MAX_REJECT_SHARE: f64 = 0.01;
const DEFAULT_WINDOWS: [Days; 3] = [Days::new(1), Days::new(7), Days::new(30)];

/// What a definition means.
pub(super) fn of(found: Found) -> Result<Plan> {
    let Found { name, path, text, reading } = found;
    let Reading { definition, problems, flawed } = reading;
    let mut judge = Judge { problems, flawed };
    let source = judge.source(&definition.source);
    let manners = judge.manners(&definition.source, source.as_ref());
    let ways = judge.ways(&definition.signals);
    let of_each_ticker = of_each_ticker(&definition.sentiment);
    let news_tickers = judge.news_tickers(&definition.sentiment);
    let max_reject_share = judge.max_reject_share(&definition.rejects);
    let features = judge.features(&definition.join, of_each_ticker.contains(&Endpoint::NewsArticles));
    let sort = judge.sort(&definition.output);
    let formats = judge.formats(&definition.output);
    let schedule = definition.schedule.as_ref().and_then(|schedule| judge.schedule(schedule));
    let Some(source) = source.filter(|_| judge.problems.is_empty()) else {
        return Err(Problems::new(&path, &text, judge.problems).into());
    };
    Ok(Plan {
        name,
        description: definition.description,
        path,
        text,
        source,
        ways,
        of_each_ticker,
        news_tickers,
        manners,
        max_reject_share,
        keep_extra: definition.rejects.keep_extra.as_deref().copied().unwrap_or(false),
        dataset: DatasetPlan {
            dates: definition.dates.naive.as_deref().copied().unwrap_or(NaiveRule::Utc),
            lag: definition.join.lag.as_deref().copied().unwrap_or(DEFAULT_LAG),
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
        (is_asked(&section.historical, false), Endpoint::HistoricalSentiment),
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
        let SourceSection { service, base_url, sentiment_base_url, api_key_file, api_key_command, .. } = &**section;
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

    fn manners(&mut self, section: &SourceSection, source: Option<&Source>) -> Manners {
        let is_near = match source {
            Some(Source::Remote(remote)) => is_loopback(&remote.base_url) && is_loopback(&remote.sentiment_base_url),
            _ => true,
        };
        if let Some(connections) = section.connections.as_ref().filter(|count| !(1..=64).contains(&***count)) {
            let problem = Problem::new(format!("{} connections at once", **connections), connections.span());
            self.object(problem.with_hint("use a number from 1 to 64"));
        }
        if let Some(rate) = section.requests_per_second.as_ref().filter(|rate| ***rate == 0) {
            let problem = Problem::new("no requests in a second is no rate", rate.span());
            self.object(problem.with_hint("use a number from 1 on"));
        }
        let typed_rate = section.requests_per_second.as_deref().copied();
        Manners {
            connections: section.connections.as_deref().map_or(DEFAULT_CONNECTIONS, |&count| usize::from(count)),
            per_second: typed_rate.or((!is_near).then_some(DEFAULT_REQUESTS_PER_SECOND)),
            stall: section.stall.as_deref().map_or(DEFAULT_STALL, |span| span.duration()),
            patience: section.patience.as_deref().map_or(DEFAULT_PATIENCE, |span| span.duration()),
        }
    }

    /// The ways to get what is asked for, the one that was asked for first, then those that give the same.
    fn ways(&mut self, section: &Placed<SignalsSection>) -> Vec<Way> {
        let SignalsSection { history, sectors, tickers, periods, regimes } = &**section;
        let history = history.as_deref().copied().unwrap_or(HistoryForm::Sector);
        let periods = self.distinct("period", periods.as_ref()).unwrap_or_else(|| vec![Period::default()]);
        let regimes = self.distinct("regime", regimes.as_ref()).unwrap_or_else(|| vec![Regime::default()]);
        let pairs: Vec<(Period, Regime)> =
            periods.iter().flat_map(|&period| regimes.iter().map(move |&regime| (period, regime))).collect();
        let sectors = self.distinct("sector", sectors.as_ref()).unwrap_or_default();
        let tickers = self.tickers(tickers.as_ref(), &[TickerList::Available]);
        self.judge_lists(history, section, sectors.is_empty() && tickers.is_none());
        let of_sectors: Vec<Request> = sectors
            .iter()
            .flat_map(|sector| pairs.iter().map(|&(period, regime)| Request::of_sector(sector.clone(), period, regime)))
            .collect();
        // To learn which tickers a sector has, one period and regime is enough.
        let naming: Vec<Request> = of_sectors.iter().step_by(pairs.len().max(1)).cloned().collect();
        let by_sector = || Way { endpoint: Endpoint::SignalsHistoryAll, asked: Asked::Listed(of_sectors.clone()) };
        let each_ticker = |endpoint, otherwise| {
            let tickers = tickers.clone().unwrap_or(otherwise);
            Way { endpoint, asked: Asked::EachTicker(tickers, pairs.clone()) }
        };
        let bare = |endpoint| Way { endpoint, asked: Asked::Listed(vec![Request::bare(endpoint)]) };
        match history {
            HistoryForm::Sector => vec![by_sector(), each_ticker(Endpoint::SignalsHistory, Tickers::Available)],
            HistoryForm::Batched => {
                let whole = [Endpoint::SignalsHistoryBatchedAll, Endpoint::SignalsHistoryBatched].map(bare);
                let parts = (!sectors.is_empty()).then(by_sector);
                let last = each_ticker(Endpoint::SignalsHistory, Tickers::Available);
                whole.into_iter().chain(parts).chain([last]).collect()
            }
            HistoryForm::Ticker => vec![each_ticker(Endpoint::SignalsHistory, Tickers::NamedBy(naming))],
            HistoryForm::Latest => vec![each_ticker(Endpoint::Signals, Tickers::NamedBy(naming))],
        }
    }

    fn judge_lists(&mut self, history: HistoryForm, section: &Placed<SignalsSection>, is_nobody_asked_for: bool) {
        let problem = match history {
            HistoryForm::Batched => return,
            HistoryForm::Sector if section.sectors.is_some() => return,
            HistoryForm::Sector => Problem::new("no sectors to ask for", section.span())
                .with_hint("add `sectors = [\"energy\", \"healthcare\"]` to `[signals]`"),
            HistoryForm::Ticker | HistoryForm::Latest if !is_nobody_asked_for => return,
            HistoryForm::Ticker | HistoryForm::Latest => Problem::new("no tickers to ask for", section.span())
                .with_hint("add `tickers = [\"AAPL\"]`, `tickers = \"available\"`, or `sectors`, to `[signals]`"),
        };
        self.miss("signals", problem);
    }

    /// A list of tickers as it was typed; none when it was not.
    fn tickers(&mut self, typed: Option<&Placed<TypedTickers>>, known: &[TickerList]) -> Option<Tickers> {
        let typed = typed?;
        match &**typed {
            TypedTickers::Known(list) if !known.contains(list) => {
                let problem = Problem::new(format!("`{list}` does not say which tickers these are"), typed.span());
                self.object(problem.with_hint("name them, or use `\"available\"`"));
                None
            }
            TypedTickers::Known(TickerList::Available) => Some(Tickers::Available),
            TypedTickers::Known(TickerList::Signals) => Some(Tickers::Signals),
            TypedTickers::Written(tickers) => {
                let mut seen = BTreeSet::new();
                if let Some(ticker) = tickers.iter().find(|ticker| !seen.insert(*ticker)) {
                    self.object(repeated("ticker", ticker, typed.span()));
                }
                if tickers.is_empty() {
                    let problem = Problem::new("an empty list: at least one ticker is needed", typed.span());
                    self.object(problem.with_hint("take the key out to get its default, or name a value"));
                }
                Some(Tickers::Written(tickers.clone()))
            }
        }
    }

    fn news_tickers(&mut self, section: &SentimentSection) -> Tickers {
        self.tickers(section.tickers.as_ref(), TickerList::ALL).unwrap_or(Tickers::Signals)
    }

    fn max_reject_share(&mut self, section: &RejectsSection) -> f64 {
        let Some(share) = &section.max_share else { return DEFAULT_MAX_REJECT_SHARE };
        if !(0.0..=1.0).contains(&**share) {
            let problem = Problem::new(format!("{} is not a share", **share), share.span());
            self.object(problem.with_hint("use a number from 0 to 1: 0.01 is one in a hundred"));
        }
        **share
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

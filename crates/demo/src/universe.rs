//! All data of the demo service, as of one day.

use bellwether_interface::{Period, Regime, Ticker};
use chrono::{Months, NaiveDate};

use crate::calendar::is_trading_day;
use crate::companies::{self, Company, SECTORS};
use crate::draw::{Draw, purpose};
use crate::news::{self, Article};
use crate::prediction::{Outlook, PredictionSeries};

const OWN: u64 = purpose("own");
const PERIOD: u64 = purpose("period");
const REGIME: u64 = purpose("regime");
const UNDATED: u64 = purpose("undated");

/// How far back histories go.
const FIVE_YEARS: Months = Months::new(60);

/// A market of five hundred companies with five years of signals and some three of news, as of one day.
///
/// It is a pure function of its seed and its day, and stores only the dates: values are computed on request. Universes
/// of one seed agree on every cell that both have, except for the rewrites between them.
#[derive(Clone, Debug)]
pub struct Universe {
    number: u64,
    seed: Draw,
    today: NaiveDate,
    trading_days: Vec<NaiveDate>,
}

impl Universe {
    /// The universe of a seed as of a day.
    pub fn new(seed: u64, today: NaiveDate) -> Self {
        let eve = today.checked_sub_months(FIVE_YEARS).unwrap_or(NaiveDate::MIN);
        let days = eve.iter_days().skip(1).take_while(|&date| date <= today);
        let trading_days = days.filter(|&date| is_trading_day(date)).collect();
        Self { number: seed, seed: Draw::from_seed(seed), today, trading_days }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.number
    }

    /// The day it is as of.
    pub fn today(&self) -> NaiveDate {
        self.today
    }

    /// The days that histories cover, oldest first: the trading days of five years that end with today.
    pub fn trading_days(&self) -> &[NaiveDate] {
        &self.trading_days
    }

    /// The names of the sectors.
    pub fn sectors(&self) -> &'static [&'static str] {
        &SECTORS
    }

    /// Every ticker, in the order of the symbols.
    pub fn tickers(&self) -> impl Iterator<Item = &'static Ticker> + use<> {
        companies::all().iter().map(|company| &company.ticker)
    }

    /// The tickers of a sector, in the order of the symbols; none if there is no such sector.
    pub fn tickers_of(&self, sector: &str) -> impl Iterator<Item = &'static Ticker> {
        companies::all().iter().filter(move |company| company.sector == sector).map(|company| &company.ticker)
    }

    /// The draw that everything is derived from.
    pub(crate) fn draw(&self) -> Draw {
        self.seed
    }

    /// The predictions of a company in an outlook.
    pub fn series(&self, company: &Company, outlook: Outlook) -> PredictionSeries {
        PredictionSeries::new(self.seed, company, outlook)
    }

    /// The newest articles about a company, newest first.
    pub fn articles(&self, company: &'static Company) -> Vec<Article> {
        news::articles(self.seed, company, self.today)
    }

    /// The period and the regime of a company in a batch that does not name them.
    pub fn own_series(&self, company: &Company) -> (Period, Regime) {
        let draw = self.seed.at(OWN).of(company.ticker.as_str());
        // Below 36.
        let index = draw.at(PERIOD).below(Period::COUNT as u32) as usize;
        (Period::all().nth(index).unwrap_or_default(), draw.at(REGIME).choose(&Regime::ALL))
    }

    /// Whether the latest signal of a company has no date, in change sets where dates are optional.
    pub fn is_undated(&self, company: &Company, period: Period) -> bool {
        self.seed.at(UNDATED).of(company.ticker.as_str()).of(period.as_str()).is_one_in(40)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bellwether_interface::{Period, Regime, Score, Signal, Ticker};
    use chrono::NaiveDate;

    use super::Universe;
    use super::companies;
    use crate::prediction::{Model, Outlook, Prediction};

    fn outlook() -> Outlook {
        Outlook { model: Model::Current, period: Period::default(), regime: Regime::Bear }
    }

    fn day(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    /// One series of every company, cell by cell.
    fn cells(universe: &Universe) -> BTreeMap<(&'static Ticker, NaiveDate), Prediction> {
        let series = companies::all().iter().map(|company| (company, universe.series(company, outlook())));
        let days = universe.trading_days();
        let cells = series.flat_map(|(company, series)| days.iter().map(move |&date| (company, series, date)));
        cells.map(|(company, series, date)| ((&company.ticker, date), series.get(date, universe.today()))).collect()
    }

    #[test]
    fn a_seed_determines_everything() {
        let today = day(2026, 11, 20);
        let (one, again, other) = (Universe::new(1, today), Universe::new(1, today), Universe::new(2, today));
        assert_eq!(cells(&one), cells(&again));
        let (one, other) = (cells(&one), cells(&other));
        let equal = one.iter().filter(|(cell, value)| other[cell] == **value).count();
        assert!(equal < one.len() / 100, "{equal} of {} cells are equal", one.len());
    }

    #[test]
    fn a_seed_gives_the_data_of_the_first_release() {
        let universe = Universe::new(1, day(2026, 11, 20));
        let apple = companies::find("AAPL").unwrap();
        let series = universe.series(apple, Outlook { regime: Regime::Neutral, ..outlook() });
        let said = |date| series.get(date, universe.today());
        let (thursday, friday) = (said(day(2026, 11, 19)), said(day(2026, 11, 20)));
        assert_eq!((thursday.signal(), thursday.confidence()), (Signal::Buy, 0.5593));
        assert_eq!((friday.signal(), friday.confidence()), (Signal::Buy, 0.5233));

        let article = universe.articles(apple)[4];
        assert_eq!(article.link(), "https://ledger.example.com/aapl/2026-11-06/1");
        assert_eq!(article.title(), "Regulators clear Apple’s €630 million acquisition");
        assert_eq!(article.written_score(universe.today()), Score::Text("0.4618".into()));
    }

    #[test]
    fn histories_cover_five_years_of_trading_days_up_to_today() {
        let universe = Universe::new(1, day(2026, 11, 20));
        let days = universe.trading_days();
        assert_eq!((days[0], days[days.len() - 1]), (day(2021, 11, 22), day(2026, 11, 20)));
        // The exchange's own counts: 251 days in 2022, 250 in 2023, 252 in 2024 and 250 in 2025, when it also closed
        // for a day of mourning that no rule covers; counted by hand, 28 days before and 224 after.
        assert_eq!(days.len(), 28 + 251 + 250 + 252 + 251 + 224);
        assert_eq!(Universe::new(1, day(2026, 11, 22)).trading_days().last(), Some(&day(2026, 11, 20)));
        assert_eq!(Universe::new(1, day(2028, 2, 29)).trading_days().first(), Some(&day(2023, 3, 1)));
    }

    #[test]
    fn a_later_universe_has_the_same_past_except_for_revised_cells() {
        let (earlier, later) =
            (cells(&Universe::new(1, day(2026, 10, 20))), cells(&Universe::new(1, day(2026, 11, 20))));
        let common: Vec<_> = earlier.iter().filter(|(cell, _)| later.contains_key(*cell)).collect();
        assert!(common.len() > earlier.len() * 97 / 100);
        let changed = common.iter().filter(|(cell, value)| later[*cell] != **value).count();
        // One month's revisions of four months of cells: about a quarter of 0.8 % of them.
        assert!((50..400).contains(&changed), "{changed} of {} cells changed", common.len());
    }

    #[test]
    fn about_one_cell_in_a_hundred_is_revised() {
        let universe = Universe::new(1, day(2026, 11, 20));
        let revised = cells(&universe);
        let first = |company, date| universe.series(company, outlook()).get(date, date);
        let is_changed = |((ticker, date), value): (&(&Ticker, NaiveDate), &Prediction)| {
            first(companies::find(ticker.as_str()).unwrap(), *date) != *value
        };
        let share =
            revised.iter().filter(|(cell, value)| is_changed((cell, value))).count() as f64 / revised.len() as f64;
        assert!((0.005..0.01).contains(&share), "{share}");
    }

    #[test]
    fn batches_mix_periods_and_regimes_and_some_latest_signals_have_no_date() {
        let universe = Universe::new(1, day(2026, 11, 20));
        let own: BTreeSet<_> = companies::all().iter().map(|company| universe.own_series(company)).collect();
        assert!(own.len() > 90, "{} of 108 pairs", own.len());
        let pairs = companies::all().iter().flat_map(|company| Period::all().map(move |period| (company, period)));
        let undated = pairs.filter(|(company, period)| universe.is_undated(company, *period)).count();
        assert!((300..600).contains(&undated), "{undated} of 18,000");
    }

    #[test]
    fn tickers_come_from_the_sectors() {
        let universe = Universe::new(1, day(2026, 11, 20));
        let mut of_sectors: Vec<_> = universe.sectors().iter().flat_map(|sector| universe.tickers_of(sector)).collect();
        of_sectors.sort();
        assert_eq!(of_sectors, universe.tickers().collect::<Vec<_>>());
        assert_eq!(universe.tickers_of("Energy").count(), 0);
    }
}

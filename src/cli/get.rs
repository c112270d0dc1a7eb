//! `bellwether get`: what a service says now, of some tickers.

use std::collections::BTreeSet;

use bellwether::definition::find;
use bellwether::interface::{Period, Regime, Ticker};
use bellwether::load::now::{Answer, Last, Question};
use bellwether::load::{Dataset, Selection};

use super::prelude::*;
use super::show::{ColumnOption, MAX_ROWS, first_rows_of};

/// Ask a service for its signals now, and keep nothing.
///
/// The service is that of the only definition, or of `BELLWETHER_BASE_URL` and `BELLWETHER_SENTIMENT_BASE_URL`. It is asked
/// ticker by ticker, with the key and the conventions that it always has. The answer is printed, or written to a file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether get XOM --demo --news
      the last thirty days of the demo, with headlines
  bellwether get XOM CVX --periods 5d --last 6m --output two.parquet
      half a year of two tickers in a file")]
pub(super) struct Get {
    /// The tickers.
    #[arg(required = true, value_name = "TICKER", value_delimiter = ',', value_parser = service_value::<Ticker>)]
    tickers: Vec<Ticker>,

    /// The horizons: 1d to 30d, 1m to 6m. Default: 15d.
    #[arg(long, alias = "period", value_name = "PERIOD", value_delimiter = ',', value_parser = service_value::<Period>, help_heading = SELECTION)]
    periods: Vec<Period>,

    /// The market regimes. Default: neutral.
    #[arg(long, alias = "regime", value_name = "REGIME", value_delimiter = ',', value_parser = one_of::<Regime>(Regime::ALL.map(Regime::as_str)), help_heading = SELECTION)]
    regimes: Vec<Regime>,

    /// Only dates of the last days, months or years: `30d`, `6m` or `2y`.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = definition_value::<Last>, help_heading = SELECTION)]
    last: Last,

    /// Only these columns of the signals, in this order.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = SELECTION)]
    columns: Vec<String>,

    /// Ask for news as well: join its features to the signals, and print the articles.
    ///
    /// With `--output x.parquet` the articles are written to `x.news.parquet`.
    #[arg(long)]
    news: bool,

    /// The definition whose service is asked. Default: the only one.
    #[arg(long, value_name = "DEFINITION")]
    definition: Option<String>,

    /// Ask the built-in demo service, which needs no key.
    #[arg(long, conflicts_with = "definition")]
    demo: bool,

    /// Keep the answers in the archive of the service, as those of a run.
    #[arg(long)]
    keep: bool,

    #[command(flatten)]
    rows: RowsTo,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Get {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let given = match &self.definition {
            Some(name) => Some(find(name, &project.definitions())?.below(project.root())),
            None => None,
        };
        if self.news && self.rows.is_stdout() {
            let hint = "name a file with `--output`, or leave out `--news`";
            return Err(usage("signals and articles are two tables, and standard output has room for one", hint));
        }
        let question = Question {
            tickers: BTreeSet::from_iter(self.tickers),
            periods: BTreeSet::from_iter(self.periods),
            regimes: BTreeSet::from_iter(self.regimes),
            last: self.last,
            news: self.news,
            demo: self.demo,
        };
        let plan = question.plan(given, project)?;
        let archive = self.keep.then(|| self.folders.of_project(project).archive);
        let quiet = observer(Form::Quiet(LogForm::Text));
        let Answer { signals, news, .. } =
            &interruptible(quiet, async |control| question.ask(plan, archive, control).await)?;
        let columns = (!self.columns.is_empty()).then_some(self.columns);
        let chosen_by = if columns.is_some() { ColumnOption::Given } else { ColumnOption::Columns };
        let signals = signals.select(Selection { columns, ..Selection::default() })?;
        let mut printed = tell(&signals, &self.rows, chosen_by)?;
        if let Some(news) = news {
            let gap = if self.rows.output.is_some() { "" } else { "\n" };
            printed = printed + gap + &tell(news, &self.rows.beside("news"), ColumnOption::Output)?;
        }
        say(&printed)
    }
}

/// Writes rows to a file if they are wanted in one, and returns what there is to say: that, or the first of them as a table.
fn tell(rows: &Dataset, to: &RowsTo, chosen_by: ColumnOption) -> error::Result<String> {
    let (mut count, mut first) = (0, Vec::new());
    to.fill(rows.schema(), |deliver| {
        for batch in rows.batches()? {
            let batch = batch.map_err(Error::of_stream)?;
            first.push(batch.slice(0, MAX_ROWS.saturating_sub(count).min(batch.num_rows())));
            count += batch.num_rows();
            deliver(&batch)?;
        }
        Ok(())
    })?;
    match to.output.as_deref() {
        Some(_) if to.is_stdout() => Ok(String::new()),
        Some(file) => Ok(format!("wrote {} to {}\n", count_of(count as u64, "row", "rows"), file.display())),
        None => first_rows_of(&rows.schema(), &first, count, chosen_by),
    }
}

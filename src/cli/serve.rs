//! `bellwether serve`: the service's interface on this machine, with demo data.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema};
use chrono::{NaiveDate, NaiveTime};

use super::outcome::Result;
use super::rows::row_format;
use super::typed::day;
use super::{interruptible, note, say};
use crate::export::{Destination, RowOutput};
use crate::file::{FileError, TargetFile, WhenExists};
use crate::human::counted;
use crate::interface::ChangeSet;
use crate::key_source::VARIABLE;
use crate::plan::FormulaGuard;
use crate::run::DEMO_SEED;
use crate::secret::ApiKey;
use crate::serve::{self, Service, Universe};
use crate::tables::date;
use crate::time::Clock;

/// Serve the service's interface on this machine, with demo data.
///
/// Prints the two base addresses in the form that a definition takes, and serves until stopped.
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// Serve the built-in demo universe.
    #[arg(long, required = true)]
    demo: bool,

    /// The port to listen on; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// The current day in the demo universe. Default: today in UTC.
    #[arg(long, value_name = "DAY", value_parser = day)]
    today: Option<NaiveDate>,

    /// The seed of the demo universe.
    #[arg(long, default_value_t = DEMO_SEED)]
    seed: u64,

    /// Write the closing prices of the demo universe to a file, Parquet or CSV, before serving: what
    /// `bellwether audit skill` measures its signals against.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,

    /// Replace the file of `--prices` if it exists.
    #[arg(long, requires = "prices")]
    force: bool,

    /// The point of the service's change record: A to G, `origin` (before G), or `all`.
    #[arg(long, default_value = "all", value_name = "SET")]
    change_set: ChangeSet,
}

impl Serve {
    pub(super) fn execute(self) -> Result<()> {
        interruptible(async |stop| {
            let today = self.today.unwrap_or_else(|| Clock::System.now().date_naive());
            let given = std::env::var(VARIABLE).ok().and_then(|text| ApiKey::new(&text));
            let key_is = if given.is_some() { format!("the one in `{VARIABLE}`") } else { "`demo`".to_owned() };
            let key = given.unwrap_or_else(ApiKey::of_the_demo);
            let universe = Universe::new(self.seed, today);
            if let Some(path) = self.prices {
                let when_exists = if self.force { WhenExists::Replace } else { WhenExists::Refuse };
                let written = write_prices(&universe, TargetFile { path: path.clone(), when_exists })?;
                note(&format!("wrote {} to `{}`", counted(written, "close", "closes"), path.display()));
            }
            let service = Service::new(universe, self.change_set, key.expose().to_owned());
            let running = serve::start(service, self.port).await?;
            note(&format!(
                "serving the demo universe of {today}, change set {}; the API key is {key_is}",
                self.change_set
            ));
            let (signals, sentiment) = (running.base_url(), running.sentiment_base_url());
            say(&format!("base_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\n"))?;
            stop.cancelled().await;
            running.stop().await;
            Ok(())
        })
    }
}

/// Writes the closing prices of a universe, ticker by ticker, and returns how many there are.
fn write_prices(universe: &Universe, file: TargetFile) -> Result<u64> {
    let path = file.path.clone();
    let format = row_format(&path)?;
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let fields = vec![text("ticker"), Field::new("date", date(), false), Field::new("close", DataType::Float64, false)];
    let schema = Arc::new(Schema::new(fields));
    let mut output = RowOutput::begin(format, Destination::File(file), Arc::clone(&schema), FormulaGuard::None)?;
    let micros = |day: &NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
    let days: Vec<i64> = universe.trading_days().iter().map(micros).collect();
    let mut written = 0;
    for (ticker, closes) in universe.closing_prices() {
        written += closes.len() as u64;
        let tickers: StringArray = std::iter::repeat_n(Some(ticker.as_str()), closes.len()).collect();
        let columns: [ArrayRef; 3] = [
            Arc::new(tickers),
            Arc::new(TimestampMicrosecondArray::from(days.clone())),
            Arc::new(Float64Array::from(closes)),
        ];
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns.to_vec());
        output.write(&rows.map_err(|error| FileError::encode(&path, error))?)?;
    }
    output.finish()?;
    Ok(written)
}

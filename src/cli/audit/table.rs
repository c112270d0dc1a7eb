//! `bellwether audit table`: whether the values of a table had been published by the time of decision.

use bellwether::audit::table::{self, Outcome, TableAudit, TableInput, TableSource};
use bellwether::definition::TimeOfDay;
use bellwether::interface::{Period, Regime};

use super::{AuditArguments, COLUMNS, check_share};
use crate::cli::prelude::*;

/// Find look-ahead in a table of your own: which of its values had not been published by the time of decision.
///
/// The table has a ticker, a date, and columns that are named as in datasets: `signal`, `confidence` and `score` (the
/// confidence, negative for a sell), or `title`, `link` and `score` of articles. Each value is compared with all that the
/// archive ever saw there: repainted and restated values are found, whatever made the table.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether audit table training.parquet demo
      each row was decided at the end of its date, in UTC
  bellwether audit table training.csv demo --decided-at trade_date --at \"16:00 America/New_York\"
      at the close of another day
  bellwether audit table training.parquet demo --features
      features of the news, too
  bellwether audit table training.parquet demo --fail-above 0%
      fail if any value had not been published by then")]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 more was not published than `--fail-above` allows."
)]
pub(super) struct Table {
    /// The table: a `.parquet`, `.csv` or `.arrow` file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A definition: its name in `pipelines/`, or a path. Default: the whole archive.
    ///
    /// Its names of columns and its clock of dates count.
    definition: Option<String>,

    /// The column with the time of decision.
    ///
    /// It has instants, times without a zone, which are taken as UTC, or days. Default: `decided_at`, or the date.
    #[arg(long, value_name = "COLUMN")]
    decided_at: Option<String>,

    /// The time at which a day of decision counts.
    ///
    /// Such as `16:00 America/New_York`. Default: the end of the day, in UTC.
    #[arg(long, value_name = "TIME", value_parser = definition_value::<TimeOfDay>)]
    at: Option<TimeOfDay>,

    /// The column with the ticker.
    #[arg(long, value_name = "COLUMN", default_value = "ticker")]
    ticker: String,

    /// The column with the vendor's date.
    #[arg(long, value_name = "COLUMN", default_value = "date")]
    date: String,

    /// The horizon of all rows without a column `period`.
    ///
    /// Default: that of the definition, if it has one.
    #[arg(long, value_name = "PERIOD", value_parser = service_value::<Period>)]
    period: Option<Period>,

    /// The market regime of all rows, likewise.
    #[arg(long, value_name = "REGIME", value_parser = one_of::<Regime>(Regime::ALL.map(Regime::as_str)))]
    regime: Option<Regime>,

    /// Examine features of the news as well.
    ///
    /// They are compared with the dataset as of the last run before each decision, the first one after it, and the newest: it
    /// is built that often for each run between whose seal and the next a row was decided.
    #[arg(long)]
    features: bool,

    /// Compare with what was observed up to this instant.
    ///
    /// That is when the table was made: `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`. Default: the newest
    /// run.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    /// Exit with code 3 if a larger share was late or never published, such as `0%`.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,

    #[command(flatten)]
    arguments: AuditArguments,
}

impl Table {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = named_plan(self.definition.as_deref(), project)?;
        let input = TableInput {
            source: TableSource::File(self.file),
            ticker: self.ticker,
            date: self.date,
            decided_at: self.decided_at,
            decided_time: self.at,
            period: self.period,
            regime: self.regime,
            with_features: self.features,
        };
        let found =
            self.arguments.run(plan.as_ref(), self.as_of, project, table::schema(), move |options, deliver| {
                run::audit_table(options, &input, deliver)
            })?;
        self.arguments.print(plan.as_ref(), &found, || describe(&found))?;
        let share = (found.total.late + found.total.never) as f64 / found.total.values.max(1) as f64;
        check_share(share, self.fail_above, "values were late or never published", "list them with `--output FILE`")
    }
}

fn describe(found: &TableAudit) -> String {
    let mut text = format!("decided {}\nup to   {}\n\n", escape(&found.decided), to_record(found.as_of));
    found.verdict.iter().for_each(|said| text += &(wrap(said, 0, Some(COLUMNS)) + "\n"));
    let heads = ["column", "values", "known", "replaced", "late", "unclear", "never", "unknown"];
    let mut counts = Aligned::new(1, heads);
    let heads = ["", "row", "ticker", "series", "date", "decided", "value", "was", "first known", "known then"];
    let (mut examples, mut has_examples) = (Aligned::new(10, heads), false);
    for column in &found.columns {
        let of = column.counts;
        let numbers = [of.values, of.known, of.replaced, of.late, of.unclear, of.never, of.unknown];
        counts.row([column.name.clone()].into_iter().chain(numbers.map(group_digits)));
        // What cannot be judged is no example of anything.
        for example in column.examples.iter().filter(|example| example.outcome != Outcome::Unclear) {
            has_examples = true;
            examples.row([
                column.name.clone(),
                group_digits(example.row),
                example.ticker.clone(),
                or_dash(example.period.zip(example.regime), |(period, regime)| format!("{period} {regime}")),
                example.date.clone(),
                to_seconds(&example.decided_at),
                example.value.clone(),
                example.outcome.as_str().to_owned(),
                or_dash(example.first_known.as_deref(), to_seconds),
                or_dash(example.known_then.clone(), |known| known),
            ]);
        }
    }
    text += &format!("\n{counts}");
    if has_examples {
        text += &format!("\n{examples}");
    }
    if !found.not_examined.is_empty() {
        let names: Vec<&str> = found.not_examined.iter().map(String::as_str).collect();
        let line = format!("not examined: {}", escape(&names.join(", ")));
        text += &format!("\n{}\n", wrap(&line, 2, Some(COLUMNS)));
    }
    text
}

/// An instant of a record, without its fraction of a second.
fn to_seconds(instant: &str) -> String {
    instant.split('.').next().unwrap_or_default().replace('T', " ")
}

//! `bellwether serve`: the service's interface on this machine, with demo data or from the archive.

use bellwether::archive;
use bellwether::disk::file::{TargetFile, WhenExists};
use bellwether::export::{Destination, RowEncoding, RowOutput};
use bellwether::interface::ChangeSet;
use bellwether::key::ApiKey;
use bellwether::key::source::VARIABLE;
use bellwether::run::{Control, DEMO_SEED};
use bellwether::serve::{self, Service, Universe, price_schema};

use super::prelude::*;

/// Serve demo data, or an archive, as the service does.
///
/// Prints the two base addresses in the form that a definition takes, and serves until stopped. From the archive, the
/// instant is that of `--as-of`, of the path (`/at/2026-03-31T20:00:00Z/archive/…`), or now.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether serve --demo --today 2026-03-31
      the demo service in March, on a free port
  bellwether serve --archive --as-of 2026-03-31
      what the archive knew at the end of March")]
#[command(group = clap::ArgGroup::new("source").required(true).args(["demo", "archive"]))]
pub(super) struct Serve {
    /// Serve the built-in demo universe.
    #[arg(long)]
    demo: bool,

    /// Serve what the archive knew.
    #[arg(long)]
    archive: bool,

    /// The services of the archive to serve, or definitions that ask them. Default: all of them.
    #[arg(value_name = "NAME", conflicts_with = "demo")]
    names: Vec<String>,

    /// Answer as of this instant alone: a day, which means its end in UTC, or an instant with an offset.
    #[arg(long, value_name = "INSTANT", value_parser = instant, conflicts_with = "demo")]
    as_of: Option<DateTime<Utc>>,

    /// The port to listen on; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// The current day in the demo universe. Default: today in UTC.
    #[arg(long, value_name = "DAY", value_parser = day, conflicts_with = "archive")]
    today: Option<NaiveDate>,

    /// The seed of the demo universe.
    #[arg(long, default_value_t = DEMO_SEED, conflicts_with = "archive")]
    seed: u64,

    /// Write the closing prices of the demo universe to a file, Parquet or CSV, before serving: what
    /// `bellwether audit skill` measures its signals against.
    #[arg(long, value_name = "FILE", conflicts_with = "archive")]
    prices: Option<PathBuf>,

    /// Replace the file of `--prices` if it exists.
    #[arg(long, requires = "prices")]
    force: bool,

    /// The point of the service's change record: A to G, `origin` (before G), or `all`.
    #[arg(long, default_value = "all", value_name = "SET")]
    change_set: ChangeSet,

    #[command(flatten)]
    data: DataFolder,
}

impl Serve {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let named = std::env::var_os("BELLWETHER_ARCHIVE").filter(|folder| !folder.is_empty());
        let archive = named.map_or_else(|| self.data.data(project).join("archive"), PathBuf::from);
        let mut names = Vec::new();
        for name in &self.names {
            // A service, or a definition of it.
            let is_service = archive::folders(&archive)?.contains(name);
            names.push(if is_service { name.clone() } else { plan_of(Some(name), project)?.service.name });
        }
        interruptible(None, async |Control { stop, .. }| {
            let given = std::env::var(VARIABLE).ok().and_then(|text| ApiKey::new(&text));
            let key_is = if given.is_some() { format!("the one in `{VARIABLE}`") } else { "`demo`".to_owned() };
            let key = given.unwrap_or_else(ApiKey::of_the_demo).expose().to_owned();
            let (service, what) = if self.archive {
                let services = run::past(&archive, names, self.as_of, &stop)?;
                let instant = self.as_of.map_or_else(|| "now, or any instant".to_owned(), to_record);
                (Service::of_archive(services, self.change_set, key), format!("the archive as of {instant}"))
            } else {
                let today = self.today.unwrap_or_else(|| Clock::System.now().date_naive());
                let universe = Universe::new(self.seed, today);
                if let Some(path) = &self.prices {
                    let when_exists = if self.force { WhenExists::Replace } else { WhenExists::Refuse };
                    let written = write_prices(&universe, TargetFile { path: path.clone(), when_exists })?;
                    note(&format!("wrote {} to `{}`", count_of(written, "close", "closes"), path.display()));
                }
                (Service::new(universe, self.change_set, key), format!("the demo universe of {today}"))
            };
            let running = serve::start(service, self.port).await?;
            note(&format!("serving {what}, change set {}; the API key is {key_is}", self.change_set));
            let one = running.addresses().len() == 1;
            for served in running.addresses() {
                let name = if one { String::new() } else { format!("# {}\n", served.service) };
                let (signals, sentiment) = (&served.base_url, &served.sentiment_base_url);
                say(&format!("{name}base_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\n"))?;
            }
            stop.cancelled().await;
            running.stop().await;
            Ok(())
        })
    }
}

/// Writes the closing prices of a universe, ticker by ticker, and returns how many there are.
fn write_prices(universe: &Universe, file: TargetFile) -> error::Result<u64> {
    let hint = "use a name that ends in `.parquet`, `.csv` or `.jsonl`";
    let (_, format) = row_format(&file.path).ok_or_else(|| unknown_format(&file.path, hint))?;
    let mut output = RowOutput::begin(format, Destination::File(file), price_schema(), &RowEncoding::default())?;
    let mut written = 0;
    for rows in universe.price_rows() {
        written += rows.num_rows() as u64;
        output.write(&rows)?;
    }
    output.finish()?;
    Ok(written)
}

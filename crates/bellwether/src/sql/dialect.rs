//! Differences between the dialects.

use std::fmt;
use std::str::FromStr;

use super::quote;

/// The engine that a statement is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// DuckDB.
    #[default]
    DuckDb,
    /// Spark SQL 4, in a session whose time zone is UTC.
    Spark,
}

/// Prefixes of the columns' own names; no SQL keyword starts with one, so they need no quotes.
const OWN: [&str; 12] = [
    "news_",
    "summary_",
    "historical_",
    "first_observed_at",
    "observed_at",
    "revisions",
    "backfilled",
    "source",
    "sector",
    "watched_until",
    "claimed",
    "confidence",
];

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 2] = [Self::DuckDb, Self::Spark];

    /// What stands for this dialect, of what stands for each.
    pub(super) fn pick<T>(self, duckdb: T, spark: T) -> T {
        match self {
            Self::DuckDb => duckdb,
            Self::Spark => spark,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.pick("duckdb", "spark")
    }

    /// The engine and its settings, for the comment at the top of a statement. Compressed files are so small that Spark would
    /// broadcast tables that do not fit in memory.
    pub(super) fn engine(self) -> &'static str {
        self.pick(
            "DuckDB.",
            "Spark SQL 4.\n-- Set `spark.sql.session.timeZone` to UTC, `spark.sql.autoBroadcastJoinThreshold` to -1, and \
             `spark.sql.parquet.mergeSchema` to true.",
        )
    }

    /// A folder or URL as part of a pattern that matches only itself.
    pub(super) fn literal(self, folder: &str) -> String {
        let letter = |letter: char| match self {
            Self::DuckDb if "*?[".contains(letter) => format!("[{letter}]"),
            Self::Spark if "*?[]{}\\".contains(letter) => format!("\\{letter}"),
            _ => letter.to_string(),
        };
        folder.chars().map(letter).collect()
    }

    /// The rows of some Parquet files, without columns made of folder names. A column that some of them lack is null there.
    pub(super) fn parquet(self, files: &[String]) -> String {
        match self {
            Self::DuckDb => format!(
                "read_parquet({}, hive_partitioning = false, union_by_name = true, filename = true)",
                patterns(files)
            ),
            Self::Spark => format!("parquet.{}", self.quoted(&files.concat())),
        }
    }

    /// The folder of the file that a row comes from.
    pub(super) fn folder(self) -> &'static str {
        self.pick("parse_dirpath(filename)", "regexp_extract(_metadata.file_path, '^(.*)/')")
    }

    /// A row per file with its name and size. The content is not read.
    pub(super) fn files(self, files: &[String]) -> (String, &'static str) {
        match self {
            Self::DuckDb => (format!("read_blob({})", patterns(files)), "size"),
            Self::Spark => (format!("binaryFile.{}", self.quoted(&files.concat())), "length"),
        }
    }

    /// The name of a column, quoted unless it cannot be a keyword.
    pub(super) fn identifier(self, name: &str) -> String {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_plain && OWN.iter().any(|own| name.starts_with(own)) { name.to_owned() } else { self.quoted(name) }
    }

    fn quoted(self, name: &str) -> String {
        let mark = self.pick("\"", "`");
        format!("{mark}{}{mark}", name.replace(mark, &mark.repeat(2)))
    }

    /// A timestamp without a time zone.
    pub(super) fn naive(self) -> &'static str {
        self.pick("timestamp", "timestamp_ntz")
    }

    /// An instant as the time in UTC.
    pub(super) fn in_utc(self, instant: &str) -> String {
        self.pick(format!("{instant} at time zone 'UTC'"), format!("cast({instant} as timestamp_ntz)"))
    }

    /// The number of days from one day to a later one.
    pub(super) fn days_between(self, earlier: &str, later: &str) -> String {
        self.pick(format!("cast({later} - {earlier} as int)"), format!("datediff({later}, {earlier})"))
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.as_str() == text);
        found.ok_or_else(|| format!("unknown dialect `{text}`\nchoose one of: duckdb, spark"))
    }
}

/// Patterns as one value, or as a list of them.
fn patterns(files: &[String]) -> String {
    match files {
        [only] => quote(only),
        several => format!("[{}]", several.iter().map(|files| quote(files)).collect::<Vec<_>>().join(", ")),
    }
}

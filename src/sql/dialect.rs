//! What the dialects spell differently.

use std::fmt;
use std::str::FromStr;

use super::text::quoted;

/// The engine that a statement is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// DuckDB.
    #[default]
    DuckDb,
    /// Spark SQL 4, in a session whose time zone is UTC.
    Spark,
}

/// How the names of columns that are not renamed begin; no word of SQL begins like that.
const OWN: [&str; 10] = [
    "news_",
    "summary_",
    "historical_",
    "first_observed_at",
    "observed_at",
    "revisions",
    "backfilled",
    "source",
    "sector",
    "confidence",
];

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::DuckDb, Self::Spark];

    /// Its spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    /// The engine and its settings, for the comment that a statement begins with. The files are so small for their rows that
    /// Spark would broadcast tables that do not fit into memory.
    pub(super) fn engine(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB.",
            Self::Spark => {
                "Spark SQL 4.\n-- Set `spark.sql.session.timeZone` to UTC and `spark.sql.autoBroadcastJoinThreshold` to -1."
            }
        }
    }

    /// The rows of some Parquet files. The names of their folders are no columns.
    pub(super) fn parquet(self, files: &str) -> String {
        match self {
            Self::DuckDb => format!("read_parquet({}, hive_partitioning = false, filename = true)", quoted(files)),
            Self::Spark => format!("parquet.`{}`", files.replace('`', "``")),
        }
    }

    /// The folder of the file that a row comes from.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::DuckDb => "parse_dirpath(filename)",
            Self::Spark => "regexp_extract(_metadata.file_path, '^(.*)/')",
        }
    }

    /// The rows of the relation `sealed`, each a folder. Spark must be told that they are few, or it sorts what is compared
    /// with them.
    pub(super) fn sealed(self) -> &'static str {
        match self {
            Self::DuckDb => "(select folder from sealed)",
            Self::Spark => "(select /*+ broadcast(sealed) */ folder from sealed)",
        }
    }

    /// A row for each of some files: its name, and how many bytes it has. Their content is not read.
    pub(super) fn files(self, files: &str) -> (String, &'static str) {
        match self {
            Self::DuckDb => (format!("read_blob({})", quoted(files)), "size"),
            Self::Spark => (format!("binaryFile.`{}`", files.replace('`', "``")), "length"),
        }
    }

    /// The name of a column: as it is if it can be nothing else, or else quoted.
    pub(super) fn identifier(self, name: &str) -> String {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        match self {
            _ if is_plain && OWN.iter().any(|own| name.starts_with(own)) => name.to_owned(),
            Self::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// A timestamp without a time zone.
    pub(super) fn naive(self) -> &'static str {
        match self {
            Self::DuckDb => "timestamp",
            Self::Spark => "timestamp_ntz",
        }
    }

    /// An instant as the time in UTC.
    pub(super) fn in_utc(self, instant: &str) -> String {
        match self {
            Self::DuckDb => format!("{instant} at time zone 'UTC'"),
            Self::Spark => format!("cast({instant} as timestamp_ntz)"),
        }
    }

    /// The number of days from one day to a later one.
    pub(super) fn days_between(self, earlier: &str, later: &str) -> String {
        match self {
            Self::DuckDb => format!("cast({later} - {earlier} as int)"),
            Self::Spark => format!("datediff({later}, {earlier})"),
        }
    }

    /// Columns as one value, which can be compared.
    pub(super) fn row(self, columns: &str) -> String {
        match self {
            Self::DuckDb => format!("row({columns})"),
            Self::Spark => format!("struct({columns})"),
        }
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

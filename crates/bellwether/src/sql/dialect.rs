//! Differences between the dialects.

use std::fmt;
use std::str::FromStr;

use super::text::quote;

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

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    /// The engine and its settings, for the comment at the top of a statement. Compressed files are so small that Spark would
    /// broadcast tables that do not fit in memory.
    pub(super) fn engine(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB.",
            Self::Spark => {
                "Spark SQL 4.\n-- Set `spark.sql.session.timeZone` to UTC, `spark.sql.autoBroadcastJoinThreshold` to -1, and \
                 `spark.sql.parquet.mergeSchema` to true."
            }
        }
    }

    /// A folder or URL as part of a pattern that matches only itself; none if the engine has no way to spell it.
    pub(super) fn literal(self, folder: &str) -> Option<String> {
        match self {
            // It takes a backslash for a separator wherever it matches patterns.
            Self::DuckDb if folder.contains('\\') => None,
            Self::DuckDb => Some(each(folder, "*?[", |letter| format!("[{letter}]"))),
            Self::Spark => Some(each(folder, "*?[]{}\\", |letter| format!("\\{letter}"))),
        }
    }

    /// The rows of some Parquet files, without columns made of folder names. A column that some of them lack is null there.
    pub(super) fn parquet(self, files: &[String]) -> String {
        match self {
            Self::DuckDb => {
                format!(
                    "read_parquet({}, hive_partitioning = false, union_by_name = true, filename = true)",
                    patterns(files)
                )
            }
            Self::Spark => format!("parquet.`{}`", files.concat().replace('`', "``")),
        }
    }

    /// The folder of the file that a row comes from.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::DuckDb => "parse_dirpath(filename)",
            Self::Spark => "regexp_extract(_metadata.file_path, '^(.*)/')",
        }
    }

    /// The folders in the relation `sealed`. Spark needs a hint that they are few, or it sorts the other side of the join.
    pub(super) fn sealed_relation(self) -> &'static str {
        match self {
            Self::DuckDb => "(select folder from sealed)",
            Self::Spark => "(select /*+ broadcast(sealed) */ folder from sealed)",
        }
    }

    /// A row per file with its name and size. The content is not read.
    pub(super) fn files(self, files: &[String]) -> (String, &'static str) {
        match self {
            Self::DuckDb => (format!("read_blob({})", patterns(files)), "size"),
            Self::Spark => (format!("binaryFile.`{}`", files.concat().replace('`', "``")), "length"),
        }
    }

    /// The name of a column, quoted unless it cannot be a keyword.
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

    /// The last value of a window that is not null.
    pub(super) fn last_value(self, column: &str) -> String {
        match self {
            Self::DuckDb => format!("last_value({column} ignore nulls)"),
            Self::Spark => format!("last_value({column}, true)"),
        }
    }

    /// The values of a column that are not null, from the least to the greatest.
    pub(super) fn sort_values(self, column: &str) -> String {
        match self {
            Self::DuckDb => format!("list({column} order by {column}) filter (where {column} is not null)"),
            Self::Spark => format!("array_sort(collect_list({column}))"),
        }
    }

    /// An element of a list, counted from one.
    pub(super) fn element(self, list: &str, number: &str) -> String {
        match self {
            Self::DuckDb => format!("list_extract({list}, cast({number} as int))"),
            Self::Spark => format!("element_at({list}, cast({number} as int))"),
        }
    }

    /// Several columns as one comparable value.
    pub(super) fn row(self, columns: &str) -> String {
        match self {
            Self::DuckDb => format!("row({columns})"),
            Self::Spark => format!("struct({columns})"),
        }
    }
}

/// A text with some of its letters spelled in another way.
fn each(text: &str, letters: &str, spelled: impl Fn(char) -> String) -> String {
    text.chars().map(|letter| if letters.contains(letter) { spelled(letter) } else { letter.to_string() }).collect()
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

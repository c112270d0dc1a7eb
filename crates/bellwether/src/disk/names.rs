//! Patterns of the names of files and folders that this program creates.
//!
//! A name from a record or a folder listing is trusted only if it matches one of these, so it is always a single plain
//! component: never a path, never `..`, never hidden unless the pattern is.
//!
//! In a pattern, `#` is a digit, `@` a lower-case hexadecimal digit, `%` one or more digits, `*` one or more characters
//! other than `/`, `~` the sign `#`, and `$` the name of the dataset.

/// The pattern of [`unique_name`](crate::time::unique_name), as a literal.
macro_rules! unique {
    () => {
        "########T######Z-@@@@"
    };
}
pub(crate) use unique;

/// The end of the hidden name of a file that is not complete.
pub(crate) const RANDOM: &str = "@@@@@@@@@@@@@@@@";

/// The folder of definitions in a project.
pub(crate) const DEFINITIONS: &str = "pipelines";

/// The files of a sealed run, pack or merge.
pub(crate) const RUN_FILES: [&str; 9] = [
    "run.json",
    "signals.parquet",
    "articles.parquet",
    "summaries.parquet",
    "sentiment_history.parquet",
    "listings.parquet",
    "answers.parquet",
    "requests.parquet",
    "rejects.parquet",
];

/// Every record of a folder (`run.json`, `dataset.json`) has at least as many bytes. A smaller file with its name is a note in
/// an object store that the folder is being cleared.
pub(crate) const SMALLEST_RECORD: u64 = 256;

/// The folder of a sealed run.
pub(crate) const RUN_FOLDER: &str = concat!("run=", unique!());

/// The folder of a sealed pack.
pub(crate) const PACK_FOLDER: &str = concat!("pack=", unique!());

/// The folder of a merge.
pub(crate) const MERGE_FOLDER: &str = concat!("merge=", unique!());

/// The folder of a note that a run is forgotten.
pub(crate) const FORGOTTEN_FOLDER: &str = concat!("forgotten=", unique!());

/// The folder of a pack that is being written.
pub(crate) const PACKING: &str = concat!(".packing-", unique!(), "-@@@@@@@@");

/// The folder of a run, a pack or a merge that is being removed.
pub(crate) const REMOVING: &str = concat!(".removing-*=", unique!());

/// The files with the answers of an unfinished run.
pub(crate) const ANSWERS: &str = "%.answers";

/// The folder of journals in the data.
pub const JOURNAL: &str = "journal";

/// The folder of what schedulers remember, in the data.
pub const SCHEDULE: &str = "schedule";

/// A full file of a journal, after the name of the definition and a dot.
pub const JOURNAL_SEGMENT: &str = "########.jsonl";

/// The rows of a dataset, in a file named after it.
pub(crate) const ROWS_OF_DATASET: [&str; 5] = ["$.parquet", "$.csv", "$.csv.gz", "$.csv.zst", "$.arrow"];

/// The rows of a dataset that Spark wrote.
pub(crate) const ROWS_OF_SPARK: &str = "part-#####-*.parquet";

/// The matrices of a wide dataset, in a folder named after a period and a regime.
pub(crate) const MATRICES: &[&str] = &["*.parquet", "*.csv", "*.csv.gz", "*.csv.zst", "*.arrow"];

/// Folders of matrices, and that of a file for each ticker.
pub(crate) const MATRIX_FOLDERS: &[&str] =
    &["%d-neutral", "%d-bear", "%d-bull", "%m-neutral", "%m-bear", "%m-bull", TICKERS];

/// The folder of a file for each ticker.
pub(crate) const TICKERS: &str = "tickers";

/// The folder for one value of a column.
pub(crate) const PARTITION: &str = "*=*";

/// Whether a name has the form of a run or version: `20261120T213000Z-7f3a`.
pub fn is_unique(name: &str) -> bool {
    fits(name, unique!())
}

/// Whether a name may be a dataset's or a definition's: it is short, and has no character with a meaning in patterns or
/// paths.
pub fn is_dataset(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether a path may be that of a data file in a version: `NAME.csv`, `date=2026-11-20/NAME.parquet`,
/// `15d-neutral/confidence.arrow` or `part-00000-….parquet`.
pub(crate) fn is_file_of_version(path: &str, dataset: &str) -> bool {
    if !is_dataset(dataset) {
        return false;
    }
    let parts: Vec<&str> = path.split('/').collect();
    let Some((file, folders)) = parts.split_last() else { return false };
    match folders {
        [] if fits(file, ROWS_OF_SPARK) => is_plain(file),
        [folder] if MATRIX_FOLDERS.iter().any(|pattern| fits(folder, pattern)) => {
            is_plain(file) && MATRICES.iter().any(|pattern| fits(file, pattern))
        }
        _ => {
            folders.iter().all(|folder| is_plain(folder) && fits(folder, PARTITION))
                && ROWS_OF_DATASET.iter().any(|pattern| fits(file, &pattern.replace('$', dataset)))
        }
    }
}

/// Whether a name can only be a visible entry of one folder.
fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Whether a name matches a pattern.
pub fn fits(name: &str, pattern: &str) -> bool {
    fits_bytes(name.as_bytes(), pattern.as_bytes())
}

fn fits_bytes(name: &[u8], pattern: &[u8]) -> bool {
    let Some((&token, rest)) = pattern.split_first() else { return name.is_empty() };
    let Some((&byte, after)) = name.split_first() else { return false };
    match token {
        b'#' => byte.is_ascii_digit() && fits_bytes(after, rest),
        b'@' => matches!(byte, b'0'..=b'9' | b'a'..=b'f') && fits_bytes(after, rest),
        b'%' => byte.is_ascii_digit() && (fits_bytes(after, rest) || fits_bytes(after, pattern)),
        b'~' => byte == b'#' && fits_bytes(after, rest),
        b'*' => byte != b'/' && (fits_bytes(after, rest) || fits_bytes(after, pattern)),
        literal => byte == literal && fits_bytes(after, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::{fits, is_file_of_version, is_unique};

    #[test]
    fn only_names_of_a_known_form_are_ours() {
        assert!(is_unique("20261120T213000Z-7f3a"));
        for odd in ["20261120T213000Z-7F3A", "20261120T213000Z-7f3", "20261120T213000Z-7f3a/..", "../x", "", "old"] {
            assert!(!is_unique(odd), "{odd}");
        }
        assert!(fits("0.answers", "%.answers") && fits("120.answers", "%.answers"));
        assert!(
            !fits(".answers", "%.answers") && !fits("x.answers", "%.answers") && !fits("1.answers.bak", "%.answers")
        );
    }

    #[test]
    fn files_of_a_version_are_named_after_the_dataset_or_their_partition() {
        let is_ours = |path: &str| is_file_of_version(path, "demo");
        for ours in [
            "demo.csv",
            "demo.csv.gz",
            "15d-bull/x.csv.zst",
            "tickers/BRK.B.parquet",
            "ticker=XOM/demo.parquet",
            "date=2026-11-20/ticker=BRK.B/demo.arrow",
            "15d-bull/x.csv",
            "part-00011-1b3f0a52-5d0e-4a3c-9f4e-0c7a8a0f2e11-c000.zstd.parquet",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        assert!(!is_file_of_version("mine.csv", "*"));
        for other in [
            "",
            "/demo.csv",
            "../demo.csv",
            "a/../demo.csv",
            "mine.csv",
            "demo.txt",
            "part-0-x.parquet",
            "x/part-00000-x.parquet",
            "ticker=X/..",
            "15d-bull/../x.csv",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}

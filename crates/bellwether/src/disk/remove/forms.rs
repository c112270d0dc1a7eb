//! The names and places of everything that is ever removed, and what folders of ours may contain.

use rustix::fs::FileType;

use crate::disk::names::{
    ANSWERS, FORGOTTEN_FOLDER, MATRICES, MATRIX_FOLDERS, MERGE_FOLDER, PACK_FOLDER, PACKING, PARTITION, REMOVING,
    ROWS_OF_DATASET, ROWS_OF_SPARK, RUN_FILES, RUN_FOLDER, fits, is_dataset, unique,
};

/// The permitted contents of a folder of ours.
pub(super) struct Contents {
    pub(super) files: &'static [&'static str],
    pub(super) folders: &'static [(&'static [&'static str], &'static Contents)],
}

static RUN: Contents = Contents { files: &RUN_FILES, folders: &[] };

static NOTE: Contents = Contents { files: &["run.json"], folders: &[] };

static UNFINISHED: Contents =
    Contents { files: &["unfinished.json", "answers.jsonl", ANSWERS], folders: &[(&["sealed"], &RUN)] };

static VERSION: Contents = Contents {
    files: {
        // With each format that there is.
        const FILES: [&str; 9] = {
            let [parquet, csv, gzip, zstd, arrow] = ROWS_OF_DATASET;
            ["dataset.json", "facts.json", "report.html", parquet, csv, gzip, zstd, arrow, ROWS_OF_SPARK]
        };
        &FILES
    },
    folders: &[(&[PARTITION], &PARTITIONED), (MATRIX_FOLDERS, &MATRIX)],
};

static PARTITIONED: Contents = Contents { files: &ROWS_OF_DATASET, folders: &[(&[PARTITION], &PARTITIONED)] };

static MATRIX: Contents = Contents { files: MATRICES, folders: &[] };

static SORTED: Contents = Contents { files: &["%.arrow"], folders: &[] };

static COPY_OF_ARCHIVE: Contents = Contents {
    files: &[],
    folders: &[
        (&[RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER], &RUN),
        (&[FORGOTTEN_FOLDER], &NOTE),
        (&[".partial"], &UNFINISHED_RUNS),
        (&[".locks"], &SEALING),
    ],
};

static SEALING: Contents = Contents { files: &[".seal"], folders: &[] };

static UNFINISHED_RUNS: Contents = Contents { files: &[], folders: &[(&[unique!()], &UNFINISHED), (&[PACKING], &RUN)] };

static SCRATCH: Contents =
    Contents { files: &["%.arrow"], folders: &[(&["sort"], &SORTED), (&["archive", "control"], &COPY_OF_ARCHIVE)] };

static NOTHING: Contents = Contents { files: &[], folders: &[] };

/// Where a folder of ours is, relative to a folder that a user named, and its permitted contents.
pub(super) struct Form {
    pub(super) path: &'static [&'static str],
    pub(super) contents: &'static Contents,
}

/// Every folder that is ever removed.
pub(super) static FOLDERS: [Form; 16] = [
    // In an archive.
    Form { path: &[".partial", unique!()], contents: &UNFINISHED },
    Form { path: &[".partial", unique!(), "sealed"], contents: &RUN },
    Form { path: &[".partial", PACKING], contents: &RUN },
    Form { path: &[".partial", REMOVING[0]], contents: &RUN },
    Form { path: &[".partial", REMOVING[1]], contents: &RUN },
    Form { path: &[".partial", REMOVING[2]], contents: &RUN },
    // In a folder of datasets.
    Form { path: &["$", concat!(".partial-", unique!())], contents: &VERSION },
    Form { path: &["$", concat!(".removed-", unique!())], contents: &VERSION },
    Form { path: &["$", "builds", concat!(".partial-", unique!())], contents: &VERSION },
    Form { path: &["$", "builds", concat!(".removed-", unique!())], contents: &VERSION },
    // In an output folder.
    Form { path: &[concat!(".scratch-", unique!())], contents: &SCRATCH },
    Form { path: &[concat!(".scratch-", unique!()), "sort"], contents: &SORTED },
    Form { path: &[concat!(".scratch-", unique!()), "archive"], contents: &COPY_OF_ARCHIVE },
    Form { path: &[concat!(".scratch-", unique!()), "control"], contents: &COPY_OF_ARCHIVE },
    Form { path: &["evidence"], contents: &NOTHING },
    // In the system's folder for temporary files.
    Form { path: &[concat!(".bellwether-", unique!())], contents: &SORTED },
];

/// Every folder that is renamed to one of [`FOLDERS`] and then removed.
pub(super) static RETIRED: [Form; 5] = [
    Form { path: &[RUN_FOLDER], contents: &RUN },
    Form { path: &[PACK_FOLDER], contents: &RUN },
    Form { path: &[MERGE_FOLDER], contents: &RUN },
    Form { path: &["$", unique!()], contents: &VERSION },
    Form { path: &["$", "builds", concat!(unique!(), "-*")], contents: &VERSION },
];

/// Where a file or a link of ours is, and what else proves that it is ours.
pub(super) struct FileForm {
    pub(super) path: &'static [&'static str],
    pub(super) kind: FileType,
    /// What its first bytes must contain if its name could be anyone's; `$` is the name of the dataset.
    pub(super) mark: Option<&'static str>,
}

impl FileForm {
    const fn link(path: &'static [&'static str]) -> Self {
        Self { path, kind: FileType::Symlink, mark: None }
    }

    const fn file(path: &'static [&'static str]) -> Self {
        Self { path, kind: FileType::RegularFile, mark: None }
    }
}

/// Every file or link that is ever removed by itself.
pub(super) static FILES: [FileForm; 16] = [
    FileForm::file(&["$", concat!(".partial-", unique!()), ROWS_OF_SPARK]),
    FileForm::link(&["$", concat!(".latest-", unique!())]),
    // A file that is not complete.
    FileForm::file(&[".*-@@@@@@@@@@@@@@@@"]),
    FileForm::file(&["evidence", concat!(unique!(), ".body")]),
    FileForm::file(&["evidence", concat!(unique!(), ".rejects.parquet")]),
    // An object that is not complete, in a store that is a folder.
    FileForm::file(&[RUN_FOLDER, "*.*~%"]),
    FileForm::file(&[PACK_FOLDER, "*.*~%"]),
    FileForm::file(&[MERGE_FOLDER, "*.*~%"]),
    FileForm::file(&["$", unique!(), "*.*~%"]),
    FileForm::file(&[PARTITION, "*.*~%"]),
    FileForm::file(&[unique!(), "%*-*", "*.*~%"]),
    FileForm::file(&["$", "latest.json~%"]),
    FileForm::file(&["$", "pruned.json~%"]),
    FileForm::file(&["datasets", ".probe-@@@@@@@@@@@@@@@@~%"]),
    // The oldest part of a journal.
    FileForm { mark: Some("\"definition\":\"$\""), ..FileForm::file(&["journal", "*.########.jsonl"]) },
    FileForm { mark: Some("<title>$ · Bellwether</title>"), ..FileForm::file(&["reports", "$.html"]) },
];

/// Whether a path ends in a form, in which `$` at the start of a component is the name of any dataset.
pub(super) fn has_form(names: &[&str], form: &[&str]) -> bool {
    let Some(first) = names.len().checked_sub(form.len()) else { return false };
    names[first..].iter().zip(form).all(|(name, pattern)| match pattern.strip_prefix('$') {
        Some(rest) => name.strip_suffix(rest).is_some_and(is_dataset),
        None => fits(name, pattern),
    })
}

//! A dataset computed by a Spark cluster: it gets the statement that `sql` prints, and the files that Spark writes are
//! checked, described and sealed as a version in an object store.

use std::collections::HashSet;
use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int32Type};
use percent_encoding::percent_decode_str;

use super::blocking;
use super::build::{BuildOptions, from_archive};
use super::builder::Builder;
use super::observer::{Control, Stage, Timing};
use super::store::{Latest, RemoteStore, Sealed, Store, StoreAccess};
use super::summary::Summary;
use crate::archive::of_service;
use crate::columns::Rows;
use crate::dataset::{self, Counts};
use crate::disk::file::{self, FileError, FileRecord, Staging};
use crate::disk::names::{ROWS_OF_SPARK, fits};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{Dataset, ExternalFiles, FACTS, Provenance, RECORD, VersionRecord};
use crate::facts::{Facts, Tally};
use crate::interface::Ticker;
use crate::key;
use crate::plan::{Claims, Codec, Duplicates, Feature, Format, Plan, StoreKind, StoreUrl, Vintage};
use crate::spark::{Address, Cluster, RowDigest, SUCCESS, SparkError, TOKEN, Write};
use crate::sql::{self, Dialect};
use crate::tables::{ArticleCounts, Table};
use crate::text::human::group_digits;
use crate::time::unique_name;

/// The options of a build on a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The cluster.
    pub engine: Address,
    /// The store that gets the version.
    pub output: StoreUrl,
    /// The local folder of the datasets and the archive.
    pub data: PathBuf,
    /// The options that a build on this machine has, too.
    pub build: BuildOptions,
}

/// Has a cluster compute the dataset of a plan and write it to a store, and publishes it there. The cluster reads the archive
/// from the plan's store, or from the local folder, which every worker must then have.
///
/// # Errors
///
/// If a cluster cannot build the dataset, before anything is sent; any error of the cluster or the store; if
/// the files do not hold the rows that the cluster computed; when it was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`BuildOptions::control`].
pub async fn build_on_cluster(plan: Plan, options: ClusterOptions) -> Result<Summary> {
    let begun = Instant::now();
    let ClusterOptions { engine, output, data, build } = options;
    check_supported(&plan, &build)?;
    if plan.claims == Claims::Included {
        return Err(Error::usage("a cluster cannot read claims", "build it without `--engine`, or leave claims out"));
    }
    let control = build.control.clone();
    let target = RemoteStore::open(&output, StoreAccess::Write, &build.archive, &data, &control)?;
    // A version comes after its runs: what is read of it first names none that are not fetched.
    target.store().probe().await?;
    let in_store = target.latest_record(&plan.name).await?;
    let own = RemoteStore::of(&plan, build.store.as_ref(), StoreAccess::Write, &build.archive, &data, &control)?;
    let archive = match &own {
        Some(own) => {
            // The cluster reads the archive in the store.
            own.pull_archive(None).await?;
            own.push_archive().await?;
            for_spark(own.url(), &format!("archive/{}", plan.service.name))
        }
        None => sql::path_text(&of_service(&build.archive, &plan.service.name)?)?,
    };
    let (work, mut notes, statement, provenance) = blocking(move || {
        let (work, notes) = from_archive(plan, &build, None, in_store.as_ref())?;
        let statement = work.statement(&[archive], Dialect::Spark)?;
        let provenance = work.provenance(build.ad_hoc, "spark", build.clock.now())?;
        // This program writes other files.
        Ok((work, notes, statement, Provenance { rebuilt_as_of: None, ..provenance }))
    })
    .await?;
    let plan = Arc::clone(&work.plan);
    let (built_at, store) = (provenance.built_at, target.store());
    let version = unique_name(built_at);
    let at = format!("datasets/{}/{version}", plan.name);
    let (expected, on_cluster) = compute(&plan, &engine, &statement, &for_spark(&output, &at), &control).await?;
    let staging = Staging::create(&data.join("datasets").join(&plan.name), &version)?;
    let (read, tally, fetched) = fetch_rows(&plan, (store, &at), &staging, expected, &control).await?;
    let (name, folder) = (version.clone(), staging.file(""));
    let (work, described, facts, of_rows) = blocking(move || {
        let mut facts = work.facts(tally, Counts::default())?;
        facts.articles = articles(&work, &facts)?;
        let slabs = work.view.slabs(&work.scope, work.plan.dataset.vintage)?;
        facts.seen_live = dataset::count_live(slabs, &work.plan.dataset)?;
        let before = work.before.as_ref().map(|before| before.recorded.as_of);
        let rewritten = before.map(|since| work.rewritten(since)).transpose()?.flatten();
        let mut notes = work.check_rows(&facts, rewritten.as_ref(), built_at)?;
        notes.extend(work.notes(&facts)?);
        work.control.note(&notes);
        let text = facts.to_json();
        let described = read.describe(name, provenance, &text);
        file::write_bytes(&folder.join(FACTS), &text)?;
        file::write_json(&folder.join(RECORD), &described)?;
        Ok((work, described, facts, notes))
    })
    .await?;
    notes.extend(of_rows);
    let files = vec![FileRecord::of(&staging.file(FACTS), FACTS, 0, &control.stop)?];
    // A store has the runs of its versions.
    target.push_archive().await?;
    store.send(&Sealed { at: at.clone(), files }, &staging.file(""), |_| ()).await?;
    let path = output.folder().map_or_else(|| PathBuf::from(store.address(&at)), |folder| folder.join(&at));
    notes.extend(target.name_latest(&Latest::from(&described)).await?);
    let VersionRecord { files, rows, content, .. } = described;
    let dataset = Dataset { path, latest: None, overtaken_by: None, left: None, rows, files, content };
    let mut summary = Summary::new(&work, &facts, dataset, notes, vec![on_cluster, fetched]);
    summary.elapsed = begun.elapsed();
    Ok(summary)
}

/// Has the cluster write the rows of a statement to a folder. Returns their digest, and how long it took.
async fn compute(
    plan: &Plan,
    engine: &Address,
    statement: &str,
    folder: &str,
    control: &Control,
) -> Result<(RowDigest, Timing)> {
    // It is masked wherever text is shown.
    key::mask(env::var(TOKEN));
    let stop = &control.stop;
    let cluster = stop.run_until_cancelled(Cluster::connect(engine)).await.ok_or_else(Error::interruption)??;
    let stage = Stage::of_files(control, "spark", 0);
    let columns: Vec<&str> = plan.dataset.schema.fields().iter().map(|field| field.name().as_str()).collect();
    // As options of Spark's writer.
    let options = match plan.files.codec {
        Codec::Zstd(level) => {
            vec![("compression", "zstd".to_owned()), ("parquet.compression.codec.zstd.level", level.to_string())]
        }
        Codec::Snappy => vec![("compression", "snappy".to_owned())],
        Codec::None => vec![("compression", "none".to_owned())],
    };
    let write = Write { statement, columns: &columns, folder, options };
    let digest = cluster.write(write, stop, |tasks| stage.tasks(tasks.done, tasks.planned)).await?;
    let digest = digest.ok_or_else(Error::interruption)?;
    let computed = stage.finish();
    stop.run_until_cancelled(cluster.close()).await;
    Ok((digest, computed))
}

/// Refuses datasets that a cluster cannot build.
fn check_supported(plan: &Plan, build: &BuildOptions) -> Result<()> {
    let other = plan.files.formats.iter().find(|format| **format != Format::Parquet);
    let what = match (other, plan.files.partition_by.first()) {
        _ if !build.ad_hoc.is_none() => "an ad hoc build".to_owned(),
        (Some(format), _) => format!("a dataset with `format = \"{format}\"`"),
        (None, Some(column)) => format!("a dataset with `partition_by = [\"{}\"]`", column.name()),
        // Its files are checked against all columns.
        (None, None) if plan.dataset.written.schema() != &plan.dataset.schema => {
            "a dataset that leaves out or renames columns".to_owned()
        }
        (None, None) => return sql::check(&plan.dataset),
    };
    let hint = "change the definition, or leave out `--engine` to build it on this machine";
    Err(Error::usage(format!("Spark cannot write {what}"), hint))
}

/// The address of a folder in a store, in Spark's spelling: nothing in it is escaped.
fn for_spark(url: &StoreUrl, at: &str) -> String {
    let text = format!("{url}/{at}");
    let text = percent_decode_str(&text).decode_utf8_lossy();
    match (url.kind(), text.split_once("://")) {
        (StoreKind::S3, Some((_, rest))) => format!("s3a://{rest}"),
        _ => text.into_owned(),
    }
}

/// Fetches the files that a cluster wrote to a folder of a store one by one, and reads their rows in order, which must have a
/// digest.
async fn fetch_rows(
    plan: &Plan,
    (store, at): (&Store, &str),
    staging: &Staging,
    expected: RowDigest,
    control: &Control,
) -> Result<(ExternalFiles, Tally, Timing)> {
    let listed = store.list(at).await?;
    let name = |key: &str| key.strip_prefix(at).map(|name| name.trim_start_matches('/').to_owned());
    let mut names: Vec<String> = listed.keys().filter_map(name).collect();
    names.sort();
    if !names.iter().any(|name| name == SUCCESS) {
        return Err(store.damage(at, format!("Spark reported success, but `{SUCCESS}` is missing")));
    }
    // The others are hidden files, such as checksums.
    names.retain(|name| fits(name, ROWS_OF_SPARK));
    let stage = Stage::of_files(control, "pull", names.len());
    let mut read = ExternalFiles::new(plan.clone(), control.stop.clone());
    let (mut digest, mut tally) = (RowDigest::default(), Tally::new(&plan.dataset));
    for name in names {
        let path = staging.file(&name);
        store.download(&format!("{at}/{name}"), &path).await?;
        let before = digest.rows;
        (read, digest, tally) = blocking(move || {
            read.add(&name, &path, |rows| {
                tally.count(&Rows::from(rows.clone()));
                digest.add(rows)
            })?;
            remove::file(&path).map_err(FileError::write(&path))?;
            Ok((read, digest, tally))
        })
        .await?;
        stage.count(digest.rows - before, 0);
    }
    if digest != expected {
        let (at, found, expected) = (store.address(at), group_digits(digest.rows), group_digits(expected.rows));
        let what =
            format!("`{at}` does not hold the rows that the statement computes: {found} rows, expected {expected}");
        return Err(Error::new(ErrorKind::Checks, what).with_hint("nothing was published; run the same command again"));
    }
    Ok((read, tally, stage.finish()))
}

/// The articles that features were computed from, by their latest values.
fn articles(work: &Builder, facts: &Facts) -> Result<ArticleCounts> {
    let (plan, mut counts) = (&work.plan.dataset, ArticleCounts::default());
    let is_of_articles = |feature: &Feature| {
        !matches!(feature, Feature::Summary(_) | Feature::SummaryDaysSince | Feature::Historical(_))
    };
    if !plan.features.iter().any(is_of_articles) {
        return Ok(counts);
    }
    let asked = work.view.news_tickers(&work.scope)?;
    let asked: HashSet<&str> = asked.iter().map(Ticker::as_str).collect();
    for batch in work.view.cells(Table::Articles, Vintage::Latest)? {
        let batch: RecordBatch = batch?;
        let column = |name: &str| batch.column_by_name(name).expect("articles have the columns of their table");
        let tickers = column("ticker").as_dictionary::<Int32Type>();
        let names = tickers.values().as_string::<i32>();
        let scores = column("score").as_primitive::<Float64Type>();
        let repeats = arrow::compute::cast(column("repeats"), &DataType::Int32).expect("it is a number");
        let repeats = repeats.as_primitive::<Int32Type>();
        for row in 0..batch.num_rows() {
            let name = names.value(tickers.keys().value(row) as usize);
            let is_of_dataset = facts.tickers.binary_search_by(|ticker| ticker.as_str().cmp(name)).is_ok();
            if !is_of_dataset || !asked.contains(name) {
                continue;
            }
            let is_repeated = plan.duplicates == Duplicates::Once && repeats.value(row) > 0;
            counts.count((!is_repeated).then(|| scores.is_valid(row).then(|| scores.value(row))));
        }
    }
    Ok(counts)
}

impl From<SparkError> for Error {
    fn from(error: SparkError) -> Self {
        let (kind, hint) = match error {
            SparkError::Unreachable { .. } => (
                ErrorKind::Temporary,
                "check that a Spark Connect server listens there (`sbin/start-connect-server.sh`), and run the same command again",
            ),
            SparkError::Denied { .. } => (
                ErrorKind::Service,
                "set `SPARK_CONNECT_AUTHENTICATE_TOKEN`, which is sent with `/;use_ssl=true` at the end of the address, or to \
                 this machine",
            ),
            SparkError::Refused { .. } => (
                ErrorKind::Service,
                "every worker must be able to read the archive: keep it in a store, or on a file system that all of them have",
            ),
            SparkError::Failed { .. } => (
                ErrorKind::Service,
                "the log of the driver says more; every worker must be able to read the archive and write the output",
            ),
            SparkError::Answer { .. } => (ErrorKind::Service, "use Spark 4"),
        };
        let failure = Self::new(kind, error.to_string()).with_hint(hint);
        match std::error::Error::source(&error) {
            Some(reason) => failure.with_source(reason.to_string()),
            None => failure,
        }
    }
}

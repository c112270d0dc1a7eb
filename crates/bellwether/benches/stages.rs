//! Speed of the stages after decoding: the archive, the join, the encoders and the digest, on five years of fifty tickers.
//!
//! Run with `cargo bench -p bellwether --bench stages`. Each line gives rows per second. Archive files are synced, as in a run;
//! encoded bytes are discarded.

mod answers;

use std::convert::Infallible;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use arrow::ipc::writer::StreamWriter;
use arrow::row::{RowConverter, SortField};
use bellwether::archive::{Archive, Interrupted, SealedRun};
use bellwether::archive::{NewRun, Scope, Unfinished, View};
use bellwether::columns::Rows;
use bellwether::dataset::{self, DatasetInput, SeriesNames};
use bellwether::decode::{Answer, AnswerPart, Rules};
use bellwether::definition::DefinitionFile;
use bellwether::export::{Destination, RowEncoding, RowOutput};
use bellwether::harness;
use bellwether::interface::Endpoint;
use bellwether::plan::{Column, Format, Plan, Request, ServiceIdentity};
use bellwether::run::CancellationToken;
use bellwether::tables::{RequestRecord, Series};
use chrono::{DateTime, TimeDelta, Utc};
use divan::Bencher;
use divan::counter::ItemsCount;
use rayon::ThreadPoolBuilder;
use tempfile::TempDir;

fn main() {
    divan::main();
}

const TICKERS: usize = 50;
const DAYS: u64 = 1260;
const ROWS: usize = TICKERS * DAYS as usize;

/// A request and the series of its answer.
struct Answered {
    request: Request,
    series: Vec<Series>,
}

static ANSWERED: LazyLock<Vec<Answered>> = LazyLock::new(|| {
    let histories = Request {
        endpoint: Endpoint::SignalsHistoryBatchedAll,
        ticker: None,
        sector: None,
        period: None,
        regime: None,
    };
    let mut told = vec![decode(histories, &answers::histories(TICKERS, DAYS))];
    for ticker in 0..TICKERS {
        let ticker = format!("T{ticker}").parse().expect("a ticker");
        told.push(decode(Request::of_ticker(Endpoint::NewsArticles, ticker), &answers::articles(400)));
    }
    told
});

fn decode(request: Request, body: &str) -> Answered {
    let mut series = Vec::new();
    let answer = Answer { request: &request, rules: &Rules::default() };
    let read = answer.decode(body.as_bytes(), |decoded| {
        series.extend(decoded.parts.into_iter().filter_map(|part| match part {
            AnswerPart::Series(series) => Some(series),
            AnswerPart::Tickers(_) => None,
        }));
        Ok::<(), Infallible>(())
    });
    assert!(read.is_ok(), "{read:?}");
    Answered { request, series }
}

fn plan() -> Plan {
    let text = "source.service = \"demo\"\nsignals.history = \"batched\"\nsignals.periods = [\"15d\"]\n\
                signals.regimes = [\"neutral\"]\njoin.windows = [\"7d\"]\n";
    Plan::of(DefinitionFile::new("stages.toml".into(), text.into()).expect("a definition")).expect("a plan")
}

/// Seals a run with some answers.
fn seal_run(archive: &Path, now: DateTime<Utc>) -> SealedRun {
    let beginning = NewRun {
        definition: "stages",
        text: "",
        service: &ServiceIdentity::demo(),
        conventions: &bellwether::tables::Conventions::default(),
        now,
        interrupted: Interrupted::Leave,
        stop: &CancellationToken::new(),
    };
    let run = Unfinished::begin(archive, beginning).expect("a run");
    for Answered { request, series } in &*ANSWERED {
        let mut draft = run.draft();
        series.iter().for_each(|series| draft.add_series(series.clone()).expect("room on the disk"));
        let (rows, rejects) = draft.counts();
        let (endpoint, request) = (request.endpoint, request.to_string());
        let (status, attempts, bytes, digest, observed_at) = (200, 1, 0, String::new(), now);
        let record = RequestRecord {
            endpoint,
            request,
            status,
            attempts,
            bytes,
            digest,
            rows,
            rejects,
            validator: None,
            unknown_fields: Vec::new(),
            observed_at,
        };
        run.commit(draft, record).expect("room on the disk");
    }
    run.seal(&[], || Ok(now), |_| Ok(true)).expect("a sealed run").run
}

fn instant(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day)
}

#[divan::bench(sample_count = 10)]
fn archive_the_first_run(bencher: Bencher<'_, '_>) {
    let place = || TempDir::new().expect("a folder");
    bencher.counter(ItemsCount::new(ROWS)).with_inputs(place).bench_values(|place| {
        seal_run(place.path(), instant(0));
        place
    });
}

/// Nothing has changed: the answers are merged with the known state.
#[divan::bench(sample_count = 10)]
fn archive_the_same_again(bencher: Bencher<'_, '_>) {
    let place = TempDir::new().expect("a folder");
    let first = seal_run(place.path(), instant(0));
    assert_eq!(first.seal().changes.added as usize, ROWS + TICKERS * 400);
    let mut day = 0;
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        day += 1;
        seal_run(place.path(), instant(day))
    });
}

/// The rows of the dataset from an archive.
fn deliver_dataset(archive: &Path, plan: &Plan, mut deliver: impl FnMut(Rows)) {
    let view = View::of(Archive::open(archive).expect("an archive"), instant(1));
    let operation = plan
        .alternatives
        .iter()
        .find(|operation| operation.endpoint == Endpoint::SignalsHistoryBatchedAll)
        .expect("the way");
    let requests = operation.requests(&[]).iter().map(Request::to_string).collect();
    let scope = Scope::of(plan, operation.endpoint, requests);
    let vintage = plan.dataset.vintage;
    let deliver = |rows| {
        deliver(rows);
        Ok(())
    };
    let stop = &CancellationToken::new();
    let names = SeriesNames::default();
    let slabs = || view.slabs(&scope, vintage);
    let sources = DatasetInput { slabs, names, past: None, prices: None, stop };
    let built = dataset::build(sources, &plan.dataset, archive.join("scratch"), deliver);
    built.expect("a dataset");
}

#[divan::bench]
fn join(bencher: Bencher<'_, '_>) {
    let (place, plan) = (TempDir::new().expect("a folder"), plan());
    seal_run(place.path(), instant(0));
    bencher
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| deliver_dataset(place.path(), &plan, |rows| drop(black_box(rows))));
}

/// By date first, with all rows in memory, or in files of a megabyte.
#[divan::bench(args = [usize::MAX, 1 << 20])]
fn sort_by_date(bencher: Bencher<'_, '_>, memory: usize) {
    let (place, mut plan) = (TempDir::new().expect("a folder"), plan());
    plan.dataset.sort = vec![Column::Date, Column::Ticker, Column::Period, Column::Regime];
    plan.dataset.sort_memory = memory;
    seal_run(place.path(), instant(0));
    bencher
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| deliver_dataset(place.path(), &plan, |rows| drop(black_box(rows))));
}

#[divan::bench(args = [Format::Parquet, Format::Csv, Format::Arrow])]
fn encode(bencher: Bencher<'_, '_>, format: Format) {
    let (place, plan) = (TempDir::new().expect("a folder"), plan());
    seal_run(place.path(), instant(0));
    let mut batches = Vec::new();
    deliver_dataset(place.path(), &plan, |rows| batches.push(rows));
    assert_eq!(batches.iter().map(|rows| rows.num_rows()).sum::<usize>(), ROWS);
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        let schema = plan.dataset.schema.clone();
        let sink = Destination::Stream(Box::new(io::sink()));
        let mut stream = RowOutput::begin(format.into(), sink, schema, &RowEncoding::of(&plan)).expect("a stream");
        batches.iter().for_each(|rows| stream.write_rows(rows).expect("a sink accepts everything"));
        stream.finish().expect("a sink accepts everything");
    });
}

/// A digest of all rows.
fn digest(bencher: Bencher<'_, '_>, digest: impl Fn(&[Rows]) -> blake3::Hash + Sync) {
    let (place, plan) = (TempDir::new().expect("a folder"), plan());
    seal_run(place.path(), instant(0));
    let mut pieces = Vec::new();
    deliver_dataset(place.path(), &plan, |rows| pieces.push(rows));
    // Of columns on several cores, as bytes on one: here all have one.
    let alone = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| alone.install(|| digest(&pieces)));
}

/// The digest of `dataset.json`: of runs of values, by column.
#[divan::bench]
fn digest_by_column(bencher: Bencher<'_, '_>) {
    digest(bencher, harness::digest);
}

/// The same rows in Arrow's format of rows.
#[divan::bench]
fn digest_by_row(bencher: Bencher<'_, '_>) {
    digest(bencher, |pieces| {
        let fields = pieces[0].schema().fields().iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields).expect("types that have an order");
        let mut hasher = blake3::Hasher::new();
        for piece in pieces {
            let flat = piece.flat().expect("columns of one length");
            let rows = converter.convert_columns(flat.columns()).expect("columns of these types");
            for row in &rows {
                hasher.update(row.as_ref());
            }
        }
        hasher.finalize()
    });
}

/// The same rows as a stream of Arrow.
#[divan::bench]
fn digest_of_stream(bencher: Bencher<'_, '_>) {
    digest(bencher, |pieces| {
        let mut stream = StreamWriter::try_new(blake3::Hasher::new(), pieces[0].schema()).expect("a stream");
        for piece in pieces {
            stream.write(&piece.flat().expect("columns of one length")).expect("a hasher accepts everything");
        }
        stream.into_inner().expect("a hasher accepts everything").finalize()
    });
}

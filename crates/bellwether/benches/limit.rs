//! A lower bound on the time of a whole run on this machine.
//!
//! ```text
//! cargo bench -p bellwether --bench limit -- --pairs 12 --seen 8.1 13.4
//! ```
//!
//! For 500 tickers, 1,260 days, some pairs of period and regime and 400 articles per ticker, it does only what is
//! unavoidable, one step after the other: reads the bytes of the answers from loopback, scans them once, encodes the
//! rows of the result as Parquet, and writes as many bytes as its CSV file has. Nothing is decoded, stored, joined or
//! formatted, and nothing waits for the disk. With `--seen`, a run's wall and processor seconds are compared with the
//! sum.

#![expect(clippy::print_stdout, reason = "it prints its measurements")]

mod answers;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, PrimitiveArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{ArrowDictionaryKeyType, Int8Type, Int32Type};
use clap::Parser;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;

const SECTORS: usize = 11;
const TICKERS: usize = 500;
const DAYS: usize = 1260;
const ARTICLES: usize = 400;
const ROW_GROUP_ROWS: usize = 1 << 18;
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// A CSV line of average length.
const LINE: &[u8] =
    b"T000,2021-11-23T00:00:00,1d,neutral,sell,0.9458,1,-0.138,-0.138,-0.138,-0.138,2021-11-22T00:00:00\n";

/// The lower bound of a run on this machine.
#[derive(Parser)]
struct Options {
    /// Number of pairs of period and regime
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,

    /// Wall and processor seconds of a whole run
    #[arg(long, num_args = 2, value_names = ["WALL", "CPU"])]
    seen: Option<Vec<f64>>,

    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let job = Job::new(options.pairs.into());
    let (encoded, encoding) = encode(&job)?;
    let steps = [
        ("read from loopback", job.answer_count(), read(&job)?),
        ("scan each byte", job.answer_count(), scan(&job)?),
        ("encode Parquet", encoded, encoding),
        ("write CSV", job.rows() * LINE.len(), write(&job)?),
    ];
    println!("{} rows, {} threads", job.rows(), rayon::current_num_threads());
    println!("{:<20} {:>9} {:>9} {:>9}", "", "MB", "wall s", "CPU s");
    let mut sum = Took::default();
    for (name, bytes, took) in steps {
        println!("{name:<20} {:>9.0} {:>9.2} {:>9.2}", bytes as f64 / 1e6, took.wall, took.cpu);
        sum = Took { wall: sum.wall + took.wall, cpu: sum.cpu + took.cpu };
    }
    println!("{:<20} {:>9} {:>9.2} {:>9.2}", "sum", "", sum.wall, sum.cpu);
    if let Some([wall, cpu]) = options.seen.as_deref() {
        println!("{:<20} {:>9} {wall:>9.2} {cpu:>9.2}", "seen", "");
        println!("{:<20} {:>9} {:>9.2} {:>9.2}", "times the sum", "", wall / sum.wall, cpu / sum.cpu);
    }
    Ok(())
}

/// The bodies of one pair, which all pairs share, and the number of pairs.
struct Job {
    histories: Vec<String>,
    articles: String,
    pairs: usize,
}

impl Job {
    fn new(pairs: usize) -> Self {
        let tickers = |sector| (sector..TICKERS).step_by(SECTORS).len();
        let histories = |sector| answers::histories(tickers(sector), DAYS as u64);
        Self { histories: (0..SECTORS).map(histories).collect(), articles: answers::articles(ARTICLES), pairs }
    }

    fn rows(&self) -> usize {
        TICKERS * DAYS * self.pairs
    }

    fn bodies(&self) -> Vec<&[u8]> {
        let histories = (0..self.pairs).flat_map(|_| &self.histories);
        let articles = (0..TICKERS).map(|_| &self.articles);
        histories.chain(articles).map(|body| body.as_bytes()).collect()
    }

    fn answer_count(&self) -> usize {
        self.bodies().iter().map(|body| body.len()).sum()
    }
}

/// Wall and processor seconds.
#[derive(Clone, Copy, Default)]
struct Took {
    wall: f64,
    cpu: f64,
}

impl Took {
    fn by(work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (begin, before) = (Instant::now(), processor_seconds("/proc/self/stat")?);
        work()?;
        let wall = begin.elapsed().as_secs_f64();
        Ok(Self { wall, cpu: processor_seconds("/proc/self/stat")? - before })
    }
}

/// User and system seconds, which Linux counts in hundredths.
fn processor_seconds(stat: &str) -> io::Result<f64> {
    let text = fs::read_to_string(stat)?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / 100.0)
}

/// Reads the bytes from a service on other threads, whose processor time is not counted.
fn read(job: &Job) -> io::Result<Took> {
    let bodies = job.bodies();
    let connections = (rayon::current_num_threads() / 2).max(1);
    let share = bodies.len().div_ceil(connections);
    let mut served = 0.0;
    let mut took = Took::by(|| {
        thread::scope(|scope| {
            let mut services = Vec::new();
            let mut clients = Vec::new();
            for share in bodies.chunks(share) {
                let listener = TcpListener::bind(("127.0.0.1", 0))?;
                let address = listener.local_addr()?;
                services.push(scope.spawn(move || {
                    let (mut connection, _) = listener.accept()?;
                    share.iter().try_for_each(|body| connection.write_all(body))?;
                    processor_seconds("/proc/thread-self/stat")
                }));
                clients.push(scope.spawn(move || {
                    let mut connection = TcpStream::connect(address)?;
                    let mut buffer = vec![0; 1 << 18];
                    while connection.read(&mut buffer)? > 0 {}
                    io::Result::Ok(())
                }));
            }
            for client in clients {
                client.join().expect("a client does not panic")?;
            }
            for service in services {
                served += service.join().expect("a service does not panic")?;
            }
            io::Result::Ok(())
        })
    })?;
    took.cpu -= served;
    Ok(took)
}

/// Counts the quotes, many bytes at a time.
fn scan(job: &Job) -> io::Result<Took> {
    let bodies = job.bodies();
    Took::by(|| {
        black_box(bodies.par_iter().map(|body| memchr::memchr_iter(b'"', body).count()).sum::<usize>());
        Ok(())
    })
}

/// Encodes as many row groups as the result has, each thread into its own file; returns their size.
fn encode(job: &Job) -> io::Result<(usize, Took)> {
    let rows = row_group(job.pairs);
    let groups: Vec<usize> = (0..job.rows()).step_by(ROW_GROUP_ROWS).collect();
    let share = groups.len().div_ceil(rayon::current_num_threads());
    let file_of = |groups: &[usize]| {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).expect("zstd has a third level")))
            .set_max_row_group_row_count(None)
            .build();
        let mut writer = ArrowWriter::try_new(tempfile::tempfile()?, rows.schema(), Some(properties))?;
        for first in groups {
            writer.write(&rows.slice(0, ROW_GROUP_ROWS.min(job.rows() - first)))?;
            writer.flush()?;
        }
        let written = writer.close()?;
        io::Result::Ok(written.row_groups().iter().map(|group| group.compressed_size() as usize).sum::<usize>())
    };
    let mut bytes = 0;
    let took = Took::by(|| {
        bytes = groups.par_chunks(share).map(file_of).collect::<io::Result<Vec<usize>>>()?.iter().sum();
        Ok(())
    })?;
    Ok((bytes, took))
}

/// Writes the bytes of the CSV file from memory.
fn write(job: &Job) -> io::Result<Took> {
    let lines = LINE.repeat(1 << 13);
    let mut file: File = tempfile::tempfile()?;
    Took::by(|| {
        let mut left = job.rows() * LINE.len();
        while left > 0 {
            let now = left.min(lines.len());
            file.write_all(&lines[..now])?;
            left -= now;
        }
        Ok(())
    })
}

/// Rows like those of a result: ticker by ticker, and for each date all pairs.
fn row_group(pairs: usize) -> RecordBatch {
    let day = |row: usize| row / pairs;
    let date = |row: usize| Some((18_953 + (day(row) % DAYS) as i64) * MICROSECONDS_A_DAY);
    let confidence = |row: usize| Some((5_000 + random(row) % 5_000) as f64 / 10_000.0);
    let scores = |feature: usize| {
        column::<Float64Array, _>(|row| {
            let score = random(day(row) * 8 + feature);
            (!score.is_multiple_of(4)).then_some((score % 20_000) as f64 / 10_000.0 - 1.0)
        })
    };
    let rows = RecordBatch::try_from_iter([
        ("ticker", dictionary::<Int32Type>(TICKERS, |row| (day(row) / DAYS) as i32)),
        ("date", column::<TimestampMicrosecondArray, _>(date)),
        ("period", dictionary::<Int8Type>(12, |row| (row % pairs / 3 % 12) as i8)),
        ("regime", dictionary::<Int8Type>(3, |row| (row % pairs % 3) as i8)),
        ("signal", dictionary::<Int8Type>(2, |row| (random(row) >> 7) as i8 & 1)),
        ("confidence", column::<Float64Array, _>(confidence)),
        ("news_count_7d", column::<Int32Array, _>(|row| Some((random(day(row)) % 6) as i32))),
        ("news_mean_7d", scores(1)),
        ("news_min_7d", scores(2)),
        ("news_max_7d", scores(3)),
        ("news_last_score", scores(4)),
        ("news_last_date", column::<TimestampMicrosecondArray, _>(date)),
    ]);
    rows.expect("the columns have the same length")
}

fn column<A, T>(value: impl Fn(usize) -> Option<T>) -> ArrayRef
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    Arc::new((0..ROW_GROUP_ROWS).map(value).collect::<A>())
}

/// A dictionary column.
fn dictionary<K: ArrowDictionaryKeyType>(spellings: usize, code: impl Fn(usize) -> K::Native) -> ArrayRef {
    let codes = PrimitiveArray::<K>::from_iter_values((0..ROW_GROUP_ROWS).map(code));
    let spellings = StringArray::from_iter_values((0..spellings).map(|spelling| format!("T{spelling:03}")));
    Arc::new(DictionaryArray::try_new(codes, Arc::new(spellings)).expect("every code is the index of a spelling"))
}

/// A pseudo-random number, the same for the same seed.
fn random(seed: usize) -> u64 {
    (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

//! Imports what somebody saved before the first run as claims: runs at instants that nobody witnessed, in the archive of
//! claims of a service.
//!
//! A file is taken as the whole answer to one request at one instant, and goes the way of every answer: decoded, settled
//! against the claims before it, sealed. Everything is read and checked before anything is written. Claims are in order, before
//! the first run of the service, and before now; what is imported already is skipped, so that the same command resumes.
//!
//! A CSV or Parquet file is read in the columns of datasets. Whatever their types, values are read as text and written as the service would, so
//! that one decoder says what is valid.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::{CastOptions, cast_with_options, max};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use url::form_urlencoded;

use super::{Archive, Claim, ClaimedFile, Counts, Interrupted, NewRun, SealedAs, Unfinished, claims_of, of_service};
use crate::decode::{Answer, AnswerPart, DecodeFault, Decoded, Rules};
use crate::disk::file::{self, FileError};
use crate::disk::{digest, table_file};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Endpoint, Period, Regime, Unknown};
use crate::plan::{Plan, Request};
use crate::process::cancel::{self, CancellationToken};
use crate::tables::RequestRecord;
use crate::text::escape::escape;
use crate::text::human::{count_of, group_digits, percent};
use crate::text::problem::choices;
use crate::time::{Clock, as_record, to_record};

/// How long before its instant a claim is sealed at most: claims of one instant are sealed one after another, and all count as
/// of it.
const BEFORE: TimeDelta = TimeDelta::microseconds(999);

/// How far ahead of UTC a naive date may be that somebody wrote: in the easternmost time zone the day begins then.
const AHEAD: TimeDelta = TimeDelta::hours(14);

/// What to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The archive.
    pub archive: PathBuf,
    /// The files: JSON, CSV or Parquet.
    pub files: Vec<PathBuf>,
    /// The path and query of the request that they answer; `{ticker}` stands for the name of a file without its extension.
    pub request: String,
    /// When they were saved.
    pub observed_at: DateTime<Utc>,
    /// Whether to check them without importing them.
    pub is_dry_run: bool,
}

/// What was imported, or would be: the claim of an instant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// The service that the claim is about.
    pub service: String,
    /// Whether it was only checked.
    pub dry_run: bool,
    /// The instant.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub observed_at: DateTime<Utc>,
    /// The name of its run; none if it was not imported.
    pub run: Option<String>,
    /// Its files, in the order of their requests.
    pub files: Vec<ClaimedFile>,
    /// The number of valid records.
    pub records: u64,
    /// The number of rejected records.
    pub rejected: u64,
    /// What it changed; none if it was not imported now.
    pub changes: Option<Counts>,
}

/// A file as the answer to a request.
struct SavedAnswer {
    path: PathBuf,
    request: Request,
    /// The body; none if it is the file.
    body: Option<Vec<u8>>,
    file: ClaimedFile,
}

/// Imports files as a claim about the service of a plan.
///
/// # Errors
///
/// When a file cannot be read or is not what it is claimed to be, when claims contradict one another, are not in order, or are
/// of instants after now or after the first run of the service; when the archive cannot be written; when it was cancelled.
/// Everything but the last two is found before anything is written.
pub fn import(plan: &Plan, options: &ImportOptions, stop: &CancellationToken) -> Result<Imported> {
    let at = options.observed_at;
    let folder = of_service(&options.archive, &plan.service.name)?;
    let open = |path: &PathBuf| SavedAnswer::open(path, &options.request, stop);
    let mut answers = options.files.iter().map(open).collect::<Result<Vec<SavedAnswer>>>()?;
    answers.sort_by(|one, next| one.request.cmp(&next.request));
    if let Some([other, one]) = answers.windows(2).find(|pair| pair[0].request == pair[1].request) {
        return Err(contradiction(&one.path, &other.path, &one.file.request, at));
    }
    let (run, _) = position(&folder, at, &answers)?;
    let (mut records, mut rejected) = (0, 0);
    for answer in &answers {
        cancel::check(stop)?;
        let counts = answer.check(plan, at)?;
        (records, rejected) = (records + counts.0, rejected + counts.1);
    }
    let files = answers.iter().map(|answer| answer.file.clone()).collect();
    let (service, dry_run) = (plan.service.name.clone(), options.is_dry_run);
    let mut imported = Imported { service, dry_run, observed_at: at, run, files, records, rejected, changes: None };
    if imported.run.is_some() || dry_run {
        return Ok(imported);
    }
    let claims = claims_of(&folder);
    file::create_folders(&claims)?;
    let Plan { name: definition, text, service, conventions, .. } = plan;
    let beginning = NewRun { definition, text, service, conventions, now: at, interrupted: Interrupted::Leave, stop };
    let unfinished = Unfinished::begin(&claims, beginning)?;
    for answer in &answers {
        cancel::check(stop)?;
        let (mut draft, endpoint) = (unfinished.draft(), answer.request.endpoint);
        answer.decode(plan, |decoded| draft.add(endpoint, decoded))?;
        let record = answer.record(draft.counts(), at);
        unfinished.commit(draft, record)?;
    }
    let claim = Claim { imported_at: Clock::System.now(), files: imported.files.clone() };
    // Another import may have sealed claims since the check.
    let sealed_as = SealedAs { claimed: Some(&claim), ..SealedAs::default() };
    let sealing = || match position(&folder, at, &answers)? {
        (None, sealing) => Ok(sealing),
        (Some(run), _) => Err(Error::new(ErrorKind::Data, format!("there is a claim of {}: `{run}`", to_record(at)))),
    };
    let settled = unfinished.seal_as(sealed_as, sealing, |_| Ok(true));
    if settled.is_err() {
        unfinished.discard();
    }
    let run = settled?.run;
    (imported.run, imported.changes) = (Some(run.name().to_owned()), Some(run.seal().changes));
    Ok(imported)
}

impl SavedAnswer {
    fn open(path: &Path, request: &str, stop: &CancellationToken) -> Result<Self> {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let request = parse(&request.replace("{ticker}", &text(path.file_stem())))
            .map_err(|what| Error::usage(format!("`{}`: {what}", path.display()), "change `--request`"))?;
        let body = match &*text(path.extension()) {
            "json" => None,
            "csv" | "parquet" => Some(body(path, &request, stop)?),
            _ => {
                let what = format!("`{}` is neither `.json`, `.csv` nor `.parquet`", path.display());
                return Err(Error::usage(what, "name it by its kind; JSON is the body of an answer of the service"));
            }
        };
        let file = file::open(path)?;
        let digest = digest::of_reader(&file, || stop.is_cancelled()).map_err(FileError::read(path))?;
        let (digest, bytes) = digest.ok_or_else(Error::interruption)?;
        let (name, blake3) = (escape(&text(path.file_name())).into_owned(), digest::hex(&digest));
        let file = ClaimedFile { name, request: request.to_string(), bytes, blake3 };
        Ok(Self { path: path.to_owned(), request, body, file })
    }

    fn decode(&self, plan: &Plan, deliver: impl FnMut(Decoded) -> Result<()>) -> Result<()> {
        let body: Box<dyn BufRead + '_> = match &self.body {
            Some(body) => Box::new(Cursor::new(body)),
            None => Box::new(BufReader::new(file::open(&self.path)?)),
        };
        let answer = Answer { request: &self.request, rules: &Rules::from_plan(plan) };
        answer.decode(body, deliver).map_err(|fault| match fault {
            DecodeFault::Read(error) => FileError::read(&self.path)(error),
            DecodeFault::Malformed { offset, reason } => {
                let (path, request, byte) = (self.path.display(), self.request.target(), group_digits(offset));
                Error::new(ErrorKind::Data, format!("`{path}` is no answer to `{request}`: byte {byte}: {reason}"))
            }
            DecodeFault::Deliver(error) => error,
        })
    }

    fn record(&self, (rows, rejects): (u64, u64), observed_at: DateTime<Utc>) -> RequestRecord {
        RequestRecord {
            endpoint: self.request.endpoint,
            request: self.file.request.clone(),
            status: 200,
            attempts: 1,
            bytes: self.file.bytes,
            digest: self.file.blake3.clone(),
            rows,
            rejects,
            validator: None,
            unknown_fields: Vec::new(),
            observed_at,
        }
    }

    /// Checks the records, and counts those that are valid and those that are rejected.
    fn check(&self, plan: &Plan, at: DateTime<Utc>) -> Result<(u64, u64)> {
        let (mut valid, mut rejected, mut first, mut newest) = (0, 0, None, None);
        self.decode(plan, |decoded| {
            rejected += decoded.rejected;
            first = first.take().or(decoded.rejects.into_iter().next());
            for part in decoded.parts {
                match part {
                    AnswerPart::Tickers(tickers) => valid += tickers.len() as u64,
                    AnswerPart::Series(series) => {
                        valid += series.rows.num_rows() as u64;
                        let dates = series.rows.column_by_name("date");
                        let dates = dates.and_then(|dates| dates.as_primitive_opt::<TimestampMicrosecondType>());
                        newest = newest.take().max(dates.and_then(max).map(|date| (date, series.key.ticker)));
                    }
                }
            }
            Ok(())
        })?;
        let path = self.path.display();
        if rejected as f64 > (valid + rejected) as f64 * plan.max_reject_share {
            let (records, limit) = (count_of(valid + rejected, "record", "records"), percent(plan.max_reject_share));
            let what = format!("rejected {} of {records}, above the limit of {limit}", group_digits(rejected));
            let first = first.map(|reject| format!("{}: {}", reject.pointer, reject.reason)).unwrap_or_default();
            let hint = format!("the first one: {}; to allow more, raise `max_share` in `[rejects]`", escape(&first));
            return Err(Error::new(ErrorKind::Data, format!("`{path}`: {what}")).with_hint(hint));
        }
        if let Some((date, ticker)) = newest.filter(|(date, _)| *date > (at + AHEAD).timestamp_micros()) {
            let date = DateTime::from_timestamp_micros(date).unwrap_or_default().naive_utc();
            let claim = format!("it is claimed to have been observed at {}", to_record(at));
            let what = format!("`{ticker}` has a record dated {date}, and {claim}");
            let hint = "claim the instant when the file was really saved, or later";
            return Err(Error::new(ErrorKind::Data, format!("`{path}`: {what}")).with_hint(hint));
        }
        Ok((valid, rejected))
    }
}

/// Two files that claim to be the answer to one request at one instant.
fn contradiction(path: &Path, other: &Path, request: &str, at: DateTime<Utc>) -> Error {
    let (path, other, at) = (path.display(), other.display(), to_record(at));
    let what = format!("`{path}` and `{other}` both claim to be the answer to `{request}` at {at}");
    Error::new(ErrorKind::Data, what).with_hint("keep one of them")
}

/// Where answers of an instant stand among the runs and claims: the claim that has them already, if one does, and when theirs
/// is sealed, a little before the instant.
fn position(folder: &Path, at: DateTime<Utc>, answers: &[SavedAnswer]) -> Result<(Option<String>, DateTime<Utc>)> {
    let path = answers.first().map(|answer| answer.path.display().to_string()).unwrap_or_default();
    let refuse = |and: String| {
        let claim = format!("`{path}` is claimed to have been observed at {}", to_record(at));
        Error::new(ErrorKind::Data, format!("{claim}, {and}"))
    };
    let open = |path: &Path| match Archive::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        archive => archive.map(Some),
    };
    if at > Clock::System.now() {
        return Err(refuse("which is in the future".to_owned()));
    }
    let since = open(folder)?.and_then(|archive| archive.runs().iter().map(|run| run.seal().started_at).min());
    if let Some(since) = since.filter(|since| at >= *since) {
        return Err(refuse(format!("and the service is watched since {}", to_record(since)))
            .with_hint("what was witnessed needs no claim: import only what was saved before the first run"));
    }
    let Some(claims) = open(&claims_of(folder))? else { return Ok((None, at - BEFORE)) };
    let mut known = BTreeMap::new();
    for run in claims.runs().iter().filter(|run| run.seal().started_at == at) {
        for other in run.seal().claimed.iter().flat_map(|claim| &claim.files) {
            let Some(answer) = answers.iter().find(|answer| answer.file.request == other.request) else { continue };
            if other.blake3 != answer.file.blake3 {
                return Err(contradiction(&answer.path, Path::new(&other.name), &other.request, at));
            }
            known.insert(&other.request, run);
        }
    }
    let is_known = known.len() == answers.len();
    let newer = claims.runs().iter().find(|run| run.seal().started_at > at);
    if let Some(run) = known.into_values().next().or(newer) {
        let (name, newest) = (run.name().to_owned(), to_record(run.seal().started_at));
        if is_known {
            return Ok((Some(name), at));
        }
        return Err(refuse(format!("and there is a claim of {newest}: `{name}`")).with_hint(
            "claims are imported oldest first: take the newer ones back with `bellwether forget RUN --reason TEXT`, \
             the newest first, and import them again after this one",
        ));
    }
    let newest = claims.runs().iter().map(|run| run.seal().sealed_at + TimeDelta::microseconds(1)).max();
    let mut sealing = newest.map_or(at - BEFORE, |newest| newest.max(at - BEFORE));
    while claims.forgotten_runs().any(|run| run.sealed_at == Some(sealing)) {
        sealing += TimeDelta::microseconds(1);
    }
    if sealing >= at {
        let hint = "forget them, and import its files in one command, with `{ticker}` in `--request`";
        return Err(refuse("and that instant has as many claims as it can have".to_owned()).with_hint(hint));
    }
    Ok((None, sealing))
}

/// The request of a path and a query, with the service's own defaults.
fn parse(target: &str) -> Result<Request, String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.trim_start_matches('/');
    let archived = || Endpoint::ALL.into_iter().filter(|endpoint| !endpoint.as_str().starts_with("signals-legacy"));
    let found = archived().find_map(|endpoint| match endpoint.is_of_one_ticker() {
        // A misspelled placeholder is no ticker.
        true => Request::ticker_of(endpoint, path)
            .filter(|ticker| !ticker.as_str().contains(['{', '}']))
            .map(|ticker| Request::of_ticker(endpoint, ticker)),
        false => (endpoint.path() == path).then(|| Request::bare(endpoint)),
    });
    let mut request = found.ok_or_else(|| {
        format!("`{path}` is no operation that is archived; they are {}", choices(archived().map(Endpoint::path)))
    })?;
    let endpoint = request.endpoint;
    let is_of_sector = endpoint == Endpoint::SignalsHistoryAll;
    if is_of_sector || matches!(endpoint, Endpoint::SignalsHistory | Endpoint::Signals) {
        (request.period, request.regime) = (Some(Period::default()), Some(Regime::default()));
    }
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let unknown = |unknown: Unknown| format!("{unknown}; {}", unknown.hint);
        match &*key {
            "sector" if is_of_sector => request.sector = Some(value.parse().map_err(unknown)?),
            "period" if request.period.is_some() => request.period = Some(value.parse().map_err(unknown)?),
            "regime" if request.regime.is_some() => request.regime = Some(value.parse().map_err(unknown)?),
            _ => return Err(format!("`{endpoint}` takes no parameter `{key}` here")),
        }
    }
    if is_of_sector && request.sector.is_none() {
        return Err(format!("`{endpoint}` needs a `sector`"));
    }
    Ok(request)
}

/// The body of the answer that a table stands for.
fn body(path: &Path, request: &Request, stop: &CancellationToken) -> Result<Vec<u8>> {
    let shown = path.display();
    let own: &[&str] = match request.endpoint {
        Endpoint::NewsArticles => &["date", "title", "link", "score"],
        Endpoint::SignalsHistoryAll | Endpoint::SignalsHistory => &["date", "signal", "confidence"],
        endpoint => {
            let what = format!("`{shown}`: rows of a table cannot stand for an answer of `{endpoint}`");
            let hint =
                "import its answers as JSON; tables can stand for articles, and for histories of a sector or ticker";
            return Err(Error::usage(what, hint));
        }
    };
    // A table may have columns for what the request names. Each row has the same there.
    let ticker = request.ticker.as_ref().map(ToString::to_string);
    let (period, regime) = (request.period.map(|period| period.to_string()), request.regime.map(|it| it.to_string()));
    let named = [("ticker", &ticker), ("period", &period), ("regime", &regime)];
    let refuse = |what: &str| Error::new(ErrorKind::Data, format!("`{shown}`{what}"));
    let no_rows = || refuse(" has no rows").with_hint("leave it out: a table without rows claims nothing");
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let reader = table_file::open(path)?;
    let schema = reader.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if names.is_empty() {
        return Err(no_rows());
    }
    let needed = own.iter().chain(ticker.is_none().then_some(&"ticker"));
    if let Some(missing) = needed.into_iter().find(|name| !names.contains(name)) {
        let has = choices(names.into_iter().take(20));
        return Err(refuse(&format!(" has no column `{missing}`, it has {has}"))
            .with_hint("give the columns the names that they have in datasets"));
    }
    let (mut count, mut by_ticker) = (0, BTreeMap::<String, Vec<Value>>::new());
    for batch in reader {
        cancel::check(stop)?;
        let batch = batch.map_err(|error| table_file::unreadable(path, error))?;
        let mut columns = BTreeMap::new();
        for name in own.iter().copied().chain(["ticker", "period", "regime"]) {
            let Some(column) = batch.column_by_name(name) else { continue };
            let strictly = CastOptions { safe: false, ..CastOptions::default() };
            let texts = cast_with_options(column, &DataType::Utf8, &strictly);
            columns.insert(
                name,
                texts.map_err(|error| table_file::unreadable(path, format!("column `{name}`: {error}")))?,
            );
        }
        for row in 0..batch.num_rows() {
            count += 1;
            let cell = |name: &str| {
                let column = columns.get(name)?.as_string::<i32>();
                column.is_valid(row).then(|| column.value(row).to_owned())
            };
            for (name, asked) in named {
                let other = cell(name).filter(|other| !other.is_empty() && Some(other) != asked.as_ref());
                if let (Some(asked), Some(other)) = (asked, other) {
                    let (row, other) = (group_digits(count), escape(&other));
                    let what = format!(", row {row}: its {name} is `{other}`, and the request asks for `{asked}`");
                    return Err(refuse(&what));
                }
            }
            let record = own.iter().map(|name| ((*name).to_owned(), value(name, cell(name), is_csv)));
            let ticker = ticker.clone().or_else(|| cell("ticker")).unwrap_or_default();
            by_ticker.entry(ticker).or_default().push(Value::Object(record.collect()));
        }
    }
    let mut answer = Map::new();
    for (ticker, mut records) in by_ticker {
        records.sort_by(|one, next| next["date"].as_str().cmp(&one["date"].as_str()));
        let history = json!({"ticker": ticker, "period": period, "regime": regime, "predictions": records});
        let is_news = request.endpoint == Endpoint::NewsArticles;
        answer.insert(ticker, if is_news { Value::Array(records) } else { history });
    }
    let body = match request.endpoint.is_of_one_ticker() {
        true => answer.into_iter().next().map(|(_, record)| record),
        false => (!answer.is_empty()).then_some(Value::Object(answer)),
    };
    Ok(body.ok_or_else(no_rows)?.to_string().into_bytes())
}

/// A value as the service writes it.
fn value(name: &str, text: Option<String>, is_csv: bool) -> Value {
    match name {
        // A file of CSV has no other way to write an empty text.
        "title" | "link" => text.or_else(|| is_csv.then(String::new)).into(),
        "confidence" | "score" => text.filter(|text| !text.is_empty()).map_or(Value::Null, |text| {
            // Numbers that the decoder is to reject stay as they are.
            text.parse().ok().and_then(Number::from_f64).map_or(Value::String(text), Value::Number)
        }),
        _ => text.filter(|text| !text.is_empty()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_request_has_the_defaults_of_the_service_and_what_is_none_is_refused() {
        for (target, words) in [
            ("news_articles/BRK-B", "news_articles/BRK-B"),
            ("/signals/XOM?regime=bear", "signals/XOM period=15d regime=bear"),
            (
                "signals-history-all?sector=real+estate&period=5d",
                "signals-history-all sector=real estate period=5d regime=neutral",
            ),
        ] {
            assert_eq!(parse(target).unwrap().to_string(), words);
        }
        for odd in [
            "signals-history-all",
            "signals-history-all?sector=energy&perod=5d",
            "signals-legacy/XOM",
            "prices/XOM",
            "news_articles/XOM?period=5d",
            "news_articles/{tickr}",
        ] {
            assert!(parse(odd).is_err(), "{odd}");
        }
    }
}

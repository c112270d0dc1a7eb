//! Imports earlier downloads as claims: runs at instants that nobody witnessed, in the archive of claims of a service.
//!
//! A file is taken as the whole answer to one request at one instant, and goes the way of every answer: decoded, settled
//! against the claims before it, sealed. Everything is read and checked before anything is written. Claims are in order, before
//! the first run of the service, and before now; what is imported already is passed over, so that the same command resumes.

mod error;
mod known_runs;
mod naming;
mod survey;
mod table;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

pub use naming::{NamePattern, RequestTemplate};
pub use table::{ColumnMapping, ColumnName};

use super::answer;
use super::observer::Control;
use super::stage::Stage;
use crate::archive::{Claim, ClaimedFile, Counts, Interrupted, NewRun, SealedRun, Unfinished, claims_of, of_service};
use crate::decode::{Answer, DecodeFault, Decoded, Rules};
use crate::disk::digest;
use crate::disk::file::{self, FileError};
use crate::error::{Error, Result};
use crate::plan::{Plan, Request, RequestList};
use crate::process::cancel;
use crate::tables::RequestRecord;
use crate::text::escape::escape;
use crate::time::{Clock, as_record};

use error::ImportError;
use known_runs::KnownRuns;
use naming::NameFields;
use survey::Survey;
use table::Table;

/// What to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The archive.
    pub archive: PathBuf,
    /// The files: JSON, CSV or Parquet.
    pub files: Vec<PathBuf>,
    /// The requests that they are the answers to, each with what the names of its files look like, if they tell something. A
    /// file belongs to the first one that its name fits.
    pub requests: Vec<(RequestTemplate, Option<NamePattern>)>,
    /// When they were observed.
    pub observed: ObservedAt,
    /// What the columns of tables are called.
    pub columns: ColumnMapping,
    /// Whether to import them.
    pub mode: ImportMode,
    /// Follows and cancels it.
    pub control: Control,
}

/// When files were observed.
#[derive(Clone, Debug)]
pub enum ObservedAt {
    /// All at this instant.
    Instant(DateTime<Utc>),
    /// Each row of a table at the instant in this column.
    Column(String),
    /// Each file at the instant in its name.
    Name,
}

/// Whether to import files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMode {
    /// Check them alone.
    Check,
    /// Import them.
    Import,
}

/// What was imported, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// The service whose claims they are.
    pub service: String,
    /// Whether they were only checked.
    pub dry_run: bool,
    /// The claims, in the order of their instants.
    pub claims: Vec<ImportedClaim>,
    /// Notes, one line each.
    pub notes: Vec<String>,
}

/// A claim that was imported, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedClaim {
    /// The instant of which it is a claim.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub observed_at: DateTime<Utc>,
    /// The name of its run; none if it was not imported.
    pub run: Option<String>,
    /// Whether it was imported before.
    pub is_known: bool,
    /// Its files.
    pub files: Vec<ImportedFile>,
    /// The number of valid records.
    pub records: u64,
    /// The number of rejected records.
    pub rejected: u64,
    /// New cells; none if it was not imported now.
    pub added: Option<u64>,
    /// Cells whose values changed; none if it was not imported now.
    pub revised: Option<u64>,
    /// Cells that are no longer listed; none if it was not imported now.
    pub withdrawn: Option<u64>,
}

/// A file of a claim.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedFile {
    /// Its path.
    pub path: String,
    /// The request whose answer it is taken for.
    pub request: String,
}

/// A file, or some rows of one, as the answer to a request at an instant.
struct ClaimedAnswer {
    path: PathBuf,
    request: Request,
    at: DateTime<Utc>,
    /// The body; none if it is the file.
    body: Option<Vec<u8>>,
    /// The digest and the size of the file.
    file: (String, u64),
}

/// Imports files as claims of the service of a plan.
///
/// # Errors
///
/// When a file cannot be read or is not what it is claimed to be, when claims contradict one another, are not in order, or are
/// of instants after now or after the first run of the service; when the archive cannot be written; when it was cancelled.
/// Everything but the last two is found before anything is written.
pub fn import(plan: &Plan, options: &ImportOptions) -> Result<Imported> {
    let control = &options.control;
    let folder = of_service(&options.archive, &plan.service.name)?;
    let rules = Rules { keep_extra: plan.keep_extra };
    let stage = Stage::of_files(control, "read", options.files.len());
    let mut answers = Vec::new();
    for path in &options.files {
        let read = answers_in(path, options)?;
        stage.count(0, read.first().map_or(0, |answer| answer.file.1));
        answers.extend(read);
    }
    stage.finish();
    let notes = notes(plan, &answers);
    let mut groups: BTreeMap<DateTime<Utc>, Vec<ClaimedAnswer>> = BTreeMap::new();
    answers.into_iter().for_each(|answer| groups.entry(answer.at).or_default().push(answer));
    for answers in groups.values_mut() {
        answers.sort_by(|one, next| one.request.cmp(&next.request));
        check_once(answers)?;
    }
    let claims = claims_of(&folder);
    let known = KnownRuns::of(&folder, &claims)?;
    let mut imported = Vec::new();
    for (at, answers) in &groups {
        let known_run = known.check(*at, answers)?;
        let (mut records, mut rejected) = (0, 0);
        for answer in answers {
            cancel::check(&control.stop)?;
            let found = Survey::of(answer, rules)?;
            found.check(answer, plan.max_reject_share)?;
            (records, rejected) = (records + found.records - found.rejected, rejected + found.rejected);
        }
        let file = |answer: &ClaimedAnswer| ImportedFile {
            path: answer.path.display().to_string(),
            request: answer.request.target(),
        };
        imported.push(ImportedClaim {
            observed_at: *at,
            is_known: known_run.is_some(),
            run: known_run,
            files: answers.iter().map(file).collect(),
            records,
            rejected,
            added: None,
            revised: None,
            withdrawn: None,
        });
    }
    if options.mode == ImportMode::Import {
        let stage = Stage::begin(control, "archive");
        for (claim, answers) in imported.iter_mut().zip(groups.values()).filter(|(claim, _)| !claim.is_known) {
            let sealed = seal(plan, (&folder, &claims), answers, control)?;
            let Counts { added, revised, withdrawn, .. } = sealed.seal().changes;
            claim.run = Some(sealed.name().to_owned());
            (claim.added, claim.revised, claim.withdrawn) = (Some(added), Some(revised), Some(withdrawn));
        }
        stage.finish();
    }
    let dry_run = options.mode == ImportMode::Check;
    Ok(Imported { service: plan.service.name.clone(), dry_run, claims: imported, notes })
}

/// The answers in a file.
fn answers_in(path: &Path, options: &ImportOptions) -> Result<Vec<ClaimedAnswer>> {
    let unclear = |hint: &str| {
        let hint = hint.to_owned();
        move |what| ImportError::Unclear { path: path.to_owned(), what, hint }
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let read =
        |names: &Option<NamePattern>| names.as_ref().map_or(Ok(NameFields::default()), |names| names.read(&name));
    let mut known = options.requests.iter().map(|(request, names)| read(names).map(|named| (request, named)));
    let first = known.next().ok_or_else(|| unclear("name it with `--request`")("no request is named".to_owned()))?;
    let fit = first.or_else(|wrong| known.find_map(Result::ok).ok_or(wrong));
    let (request, named) = fit.map_err(unclear("leave it out, or change `--names`"))?;
    let request = request.of(&named).map_err(unclear("say what the names look like with `--names`"))?;
    let file = File::open(path).map_err(FileError::read(path))?;
    let stop = &options.control.stop;
    let digest = digest::of_reader(&file, || stop.is_cancelled()).map_err(FileError::read(path))?;
    let (digest, bytes) = digest.ok_or_else(Error::interruption)?;
    let file = (digest::hex(&digest), bytes);
    let at = match &options.observed {
        ObservedAt::Instant(at) => Some(*at),
        ObservedAt::Name => named.observed_at(),
        ObservedAt::Column(_) => None,
    };
    let undated = || unclear("put `{observed_at}` into `--names`")("it is not said when it was observed".to_owned());
    let of = |at, body| ClaimedAnswer { path: path.to_owned(), request: request.clone(), at, body, file: file.clone() };
    match (path.extension().and_then(|extension| extension.to_str()), &options.observed) {
        (Some("json"), ObservedAt::Column(_)) => {
            let what = "an answer in JSON has no columns".to_owned();
            Err(unclear("say when it was observed with `--observed-at`, or `{observed_at}` in `--names`")(what).into())
        }
        (Some("json"), _) => Ok(vec![of(at.ok_or_else(undated)?, None)]),
        (Some("csv" | "parquet"), observed) => {
            let observed = match observed {
                ObservedAt::Column(column) => Some(column.as_str()),
                _ => None,
            };
            let table = Table { path, request: &request, columns: &options.columns, observed, stop };
            let answers = table.answers()?.into_iter();
            answers.map(|(own, body)| Ok(of(own.or(at).ok_or_else(undated)?, Some(body)))).collect()
        }
        _ => Err(ImportError::Kind { path: path.to_owned() }.into()),
    }
}

/// Refuses two answers to one request; they are sorted by request.
fn check_once(answers: &[ClaimedAnswer]) -> Result<(), ImportError> {
    match answers.windows(2).find(|pair| pair[0].request == pair[1].request) {
        Some([other, one]) => Err(ImportError::Contradiction {
            path: one.path.clone(),
            other: other.path.clone(),
            request: one.request.target(),
            at: one.at,
        }),
        _ => Ok(()),
    }
}

/// Notes on requests that the definition does not make, so that its datasets do not use the answers.
fn notes(plan: &Plan, answers: &[ClaimedAnswer]) -> Vec<String> {
    let is_made = |request: &Request| {
        let is_of_operation = plan.alternatives.iter().any(|operation| match &operation.list {
            RequestList::Listed(requests) => requests.contains(request),
            RequestList::EachTicker(_, pairs) => {
                let is_of_pair = |pair: &(_, _)| (request.period, request.regime) == (Some(pair.0), Some(pair.1));
                operation.endpoint == request.endpoint && (pairs.is_empty() || pairs.iter().any(is_of_pair))
            }
        });
        is_of_operation || plan.of_each_ticker.contains(&request.endpoint)
    };
    let mut others: Vec<String> =
        answers.iter().filter(|answer| !is_made(&answer.request)).map(|answer| answer.request.target()).collect();
    others.sort_unstable();
    others.dedup();
    let note = |target| format!("`{}` does not ask for `{target}`: its dataset does not use the answer", plan.name);
    others.into_iter().map(note).collect()
}

fn claimed_files(answers: &[ClaimedAnswer]) -> Vec<ClaimedFile> {
    let file = |answer: &ClaimedAnswer| {
        let (blake3, bytes) = answer.file.clone();
        let name = answer.path.file_name().unwrap_or_default().to_string_lossy();
        ClaimedFile { name: escape(&name).into_owned(), request: answer.request.to_string(), bytes, blake3 }
    };
    answers.iter().map(file).collect()
}

impl ClaimedAnswer {
    fn body(&self) -> Result<Box<dyn BufRead + '_>> {
        Ok(match &self.body {
            Some(body) => Box::new(Cursor::new(body)),
            None => Box::new(BufReader::new(File::open(&self.path).map_err(FileError::read(&self.path))?)),
        })
    }

    fn decode(&self, rules: Rules, deliver: impl FnMut(Decoded) -> Result<()>) -> Result<()> {
        let answer = Answer { request: &self.request, rules };
        answer.decode(self.body()?, deliver).map_err(|fault| match fault {
            DecodeFault::Read(error) => FileError::read(&self.path)(error),
            DecodeFault::Malformed { offset, reason } => {
                let (path, request) = (self.path.clone(), self.request.target());
                ImportError::Malformed { path, request, offset, reason }.into()
            }
            DecodeFault::Deliver(error) => error,
        })
    }
}

/// Seals the answers of an instant as a claim.
fn seal(
    plan: &Plan,
    (folder, claims): (&Path, &Path),
    answers: &[ClaimedAnswer],
    control: &Control,
) -> Result<SealedRun> {
    let at = answers[0].at;
    let beginning = NewRun {
        definition: &plan.name,
        text: &plan.text,
        service: &plan.service,
        whole: &plan.whole,
        now: at,
        interrupted: Interrupted::Leave,
        stop: &control.stop,
    };
    file::create_folders(claims)?;
    let unfinished = Unfinished::begin(claims, beginning)?;
    for answer in answers {
        cancel::check(&control.stop)?;
        let mut draft = unfinished.draft();
        let endpoint = answer.request.endpoint;
        answer.decode(Rules { keep_extra: plan.keep_extra }, |decoded| answer::write(&mut draft, endpoint, decoded))?;
        let (rows, rejects) = draft.counts();
        let (digest, bytes) = answer.file.clone();
        let record = RequestRecord {
            endpoint,
            request: answer.request.to_string(),
            status: 200,
            attempts: 1,
            bytes,
            digest,
            rows,
            rejects,
            unknown_fields: Vec::new(),
            observed_at: at,
        };
        unfinished.commit(draft, record)?;
    }
    let claim = Claim { imported_at: Clock::System.now(), files: claimed_files(answers) };
    // Another import may have sealed claims since the check.
    let sealing = || {
        let known = KnownRuns::of(folder, claims)?;
        match known.check(at, answers)? {
            Some(run) => Err(ImportError::Order { path: answers[0].path.clone(), at, run, newest: at }.into()),
            None => Ok(known.sealing(at)),
        }
    };
    match unfinished.seal_claim(&claim, sealing) {
        Ok(settled) => Ok(settled.run),
        Err(error) => {
            unfinished.discard();
            Err(error)
        }
    }
}

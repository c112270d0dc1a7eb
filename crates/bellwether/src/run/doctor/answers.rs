//! What the service answers, as a run reads and checks it: the same requests, but few, into an archive that is thrown away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::{CLOCK, Diagnosis, DoctorOptions};
use crate::archive::{AnswerRecord, Archive, Interrupted, NewRun, Unfinished, View, of_service};
use crate::disk::remove;
use crate::error::{ErrorKind, Result};
use crate::fetch::Client;
use crate::interface::{Endpoint, Sector};
use crate::plan::{OnFinding, OperationRequests, Plan, Request, RequestList, TickerSource};
use crate::run::builder::scratch;
use crate::run::gather::{Gathered, Gathering};
use crate::run::missing::Missing;
use crate::run::observer::Control;
use crate::run::options::Options;
use crate::run::rejects;
use crate::text::human::count_of;

const CHECK: &str = "answers";

/// What the operations answer that a run uses, each asked once, or once for each sector.
pub(super) async fn diagnoses(plan: &Plan, client: &Client, options: &DoctorOptions) -> Vec<Diagnosis> {
    match answered(plan, client, options).await {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Clock => vec![Diagnosis::of_error(CLOCK, &error)],
        Err(error) => vec![Diagnosis::of_error(CHECK, &error)],
    }
}

async fn answered(plan: &Plan, client: &Client, options: &DoctorOptions) -> Result<Vec<Diagnosis>> {
    let folder = Scratch(scratch(options.clock));
    let plan = sample(plan);
    let (definition, text, service, conventions) = (&plan.name, &plan.text, &plan.service, &plan.conventions);
    let (now, stop) = (options.clock.now(), &options.control.stop);
    let interrupted = Interrupted::Leave;
    let beginning = NewRun { definition, text, service, conventions, now, interrupted, stop };
    let unfinished = Arc::new(Unfinished::begin(&folder.0, beginning)?);
    let quiet = Control { stop: stop.clone(), ..Control::default() };
    let archive = of_service(&options.archive, &plan.service.name)?;
    let of_run = Options { archive, clock: options.clock, control: quiet, ..Options::new(&options.data) };
    let gathering = Gathering::new(&plan, client, &of_run, Arc::clone(&unfinished)).asking_for(1);
    let gathered = gathering.gather().await?;
    let records = unfinished.records();
    let settled = unfinished.seal(&[], || Ok(options.clock.now()), |_| Ok(true))?;
    rejects::check(plan.max_reject_share, &records, &settled.run, "`[source]` can say how the vendor differs")?;
    let Gathered { signals, demanded, refusals, lacking, .. } = gathered;
    let answers: BTreeMap<&str, &AnswerRecord> =
        records.iter().map(|record| (record.request.request.as_str(), &**record)).collect();
    let view = View::of(Archive::open(&folder.0)?, options.clock.now());
    let missing = Missing::of_answers(&demanded, &refusals, &answers).messages(&view)?;
    let mut found = vec![Diagnosis::ok(CHECK, in_words(&records))];
    if !signals.instead_of.is_empty() {
        let gone = signals.instead_of.join(", ");
        let what = format!("the service does not offer {gone}; {} is used instead", signals.operation);
        found.push(Diagnosis::warning("operations", what, "choose it with `history` in `[signals]`"));
    }
    found.extend(missing.into_iter().chain(lacking).map(|message| match plan.checks.missing {
        OnFinding::Fail => {
            let remedy = "correct `[signals]`, or set `missing = \"warn\"` in `[checks]` to publish without it";
            Diagnosis::failure("missing", message, remedy)
        }
        OnFinding::Warn => Diagnosis::warning("missing", message, "a run publishes without it"),
    }));
    Ok(found)
}

/// A folder that is removed with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is hidden, and the system clears its folder.
        let _ = remove::folder(&self.0);
    }
}

/// The plan with one request for each operation, or one for each sector.
fn sample(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for operation in &mut plan.alternatives {
        let OperationRequests { list, .. } = operation;
        match list {
            RequestList::Listed(requests) | RequestList::EachTicker(TickerSource::NamedBy(requests), _) => {
                let mut seen: BTreeSet<Option<Sector>> = BTreeSet::new();
                requests.retain(|request: &Request| seen.insert(request.sector.clone()));
            }
            RequestList::EachTicker(TickerSource::Listed(tickers), _) => tickers.truncate(1),
            RequestList::EachTicker(TickerSource::Available | TickerSource::Signals, _) => {}
        }
        if let RequestList::EachTicker(_, pairs) = list {
            pairs.truncate(1);
        }
    }
    plan.further.truncate(1);
    plan
}

/// What the answers had: `signals-history-all: 22 histories with 27,610 records; news_articles: 120 records`.
fn in_words(records: &[Arc<AnswerRecord>]) -> String {
    let mut of_operations: BTreeMap<Endpoint, (u64, u64)> = BTreeMap::new();
    for record in records {
        let (histories, rows) = of_operations.entry(record.request.endpoint).or_default();
        *histories += record.histories;
        *rows += record.request.rows;
    }
    let of_operation = |(endpoint, (histories, rows)): (Endpoint, (u64, u64))| {
        let rows = count_of(rows, "record", "records");
        match histories {
            0 => format!("{endpoint}: {rows}"),
            histories => format!("{endpoint}: {} with {rows}", count_of(histories, "history", "histories")),
        }
    };
    of_operations.into_iter().map(of_operation).collect::<Vec<_>>().join("; ")
}

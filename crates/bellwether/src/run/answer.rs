//! One request, from the service to the archive: its answer is fetched, decoded and written while it arrives.

use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};

use crate::archive::{AnswerRecord, Draft, Unfinished};
use crate::decode::{Answer, DecodeFault, Decoded, Rules};
use crate::disk::digest;
use crate::error::Result;
use crate::fetch::{Answered, Body, BodySummary, Client, ReadFault};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::process::trace::work;
use crate::tables::{Conventions, RequestRecord, Validator};

/// The record of a request's answer: from an interrupted run that is resumed, or from the service.
pub(super) async fn answer(
    client: &Client,
    run: &Arc<Unfinished>,
    request: Request,
    (rules, reading): (&Arc<Rules>, &str),
) -> Result<Answered<Arc<AnswerRecord>>> {
    if let Some(record) = run.answer_to(&request.to_string()) {
        return Ok(Answered::Taken(record));
    }
    let request = Arc::new(request);
    let reading = digest::of(format!("{reading} {}", client.url_without_key(&request)).as_bytes());
    let known = run.known_answer(&request.to_string(), &reading).cloned();
    let condition = known.as_ref().and_then(|known| condition(known.validator()));
    let read = {
        let (run, request, rules) = (Arc::clone(run), Arc::clone(&request), Arc::clone(rules));
        move |body: &mut Body| {
            let summary = body.summary();
            if let Some(known) = known.as_ref().filter(|_| summary.is_as_before()) {
                let record = request_record(&request, summary, (0, 0), None);
                return run.commit_as_before(known, record).map_err(ReadFault::Stop);
            }
            let draft = decode(&run, &request, &rules, body)?;
            let _work = work!("complete answer");
            let summary = body.summary();
            let validator = validator(&summary, &reading, &draft);
            let record = request_record(&request, summary, draft.counts(), validator);
            run.commit(draft, record).map_err(ReadFault::Stop)
        }
    };
    client.get(&request, condition.as_ref(), read).await
}

/// The digest of how answers are read: a validator counts where they still are.
pub(super) fn reading(rules: &Rules, conventions: &Conventions) -> String {
    digest::of(format!("{} {rules:?} {conventions:?}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// The header that asks whether an answer is still the same.
fn condition(validator: &Validator) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(&validator.header).ok()?;
    Some((name, HeaderValue::try_from(&validator.value).ok()?))
}

fn validator(seen: &BodySummary, reading: &str, draft: &Draft) -> Option<Validator> {
    let (header, value) = seen.condition.as_ref()?;
    let (header, value) = (header.to_string(), value.to_str().ok()?.to_owned());
    let (histories, unusual, lenient) = draft.findings();
    Some(Validator { header, value, reading: reading.to_owned(), histories, unusual, lenient })
}

/// Decodes a body into a draft while it arrives.
fn decode(run: &Unfinished, request: &Request, rules: &Rules, body: &mut Body) -> Result<Draft, ReadFault> {
    let _work = work!("receive and decode");
    let mut draft = run.draft();
    decode_pages(&Answer { request, rules }, body, |decoded| draft.add(request.endpoint, decoded))?;
    Ok(draft)
}

/// Decodes all pages of a body, which have as many entries as the service says.
pub(super) fn decode_pages(
    answer: &Answer<'_>,
    body: &mut Body,
    mut deliver: impl FnMut(Decoded) -> Result<()>,
) -> Result<(), ReadFault> {
    let mut entries = 0;
    loop {
        let before = entries;
        let decoded = answer.decode(&mut *body, |decoded| {
            entries += decoded.records;
            deliver(decoded.after(before))
        });
        match decoded {
            Ok(()) => {}
            Err(DecodeFault::Read(error)) => return Err(ReadFault::Broken(error)),
            Err(DecodeFault::Malformed { offset, reason }) => return Err(ReadFault::Malformed { offset, reason }),
            Err(DecodeFault::Deliver(error)) => return Err(ReadFault::Stop(error)),
        }
        if !body.next_page().map_err(ReadFault::Broken)? {
            break;
        }
    }
    let BodySummary { total, bytes, .. } = body.summary();
    let is_list = matches!(answer.request.endpoint, Endpoint::NewsArticles | Endpoint::TickersAvailable);
    match total.filter(|total| is_list && entries < *total) {
        Some(total) => {
            let reason = format!("the list has {entries} of the {total} entries that `X-Total-Count` tells");
            Err(ReadFault::Malformed { offset: bytes, reason })
        }
        None => Ok(()),
    }
}

fn request_record(
    request: &Request,
    seen: BodySummary,
    (rows, rejects): (u64, u64),
    validator: Option<Validator>,
) -> RequestRecord {
    RequestRecord {
        endpoint: request.endpoint,
        request: request.to_string(),
        status: seen.status,
        attempts: seen.attempts,
        bytes: seen.bytes,
        digest: seen.digest,
        rows,
        rejects,
        validator,
        unknown_fields: Vec::new(),
        observed_at: seen.observed_at,
    }
}

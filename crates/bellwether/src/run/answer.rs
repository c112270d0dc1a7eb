//! One request, from the service to the archive: its answer is fetched, decoded and written while it arrives.

use std::sync::Arc;

use crate::archive::{AnswerRecord, Draft, Unfinished};
use crate::decode::{Answer, DecodeFault, Decoded, Rules};
use crate::error::Result;
use crate::fetch::{Answered, Body, BodySummary, Client, ReadFault};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::process::trace::work;
use crate::tables::RequestRecord;

/// The record of a request's answer: from an interrupted run that is resumed, or from the service.
pub(super) async fn answer(
    client: &Client,
    run: &Arc<Unfinished>,
    request: Request,
    rules: &Arc<Rules>,
) -> Result<Answered<Arc<AnswerRecord>>> {
    if let Some(record) = run.answer_to(&request.to_string()) {
        return Ok(Answered::Taken(record));
    }
    let request = Arc::new(request);
    let read = {
        let (run, request, rules) = (Arc::clone(run), Arc::clone(&request), Arc::clone(rules));
        move |body: &mut Body| {
            let draft = decode(&run, &request, &rules, body)?;
            let _work = work!("complete answer");
            let record = request_record(&request, body.summary(), &draft);
            run.commit(draft, record).map_err(ReadFault::Stop)
        }
    };
    client.get(&request, read).await
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

fn request_record(request: &Request, seen: BodySummary, draft: &Draft) -> RequestRecord {
    let BodySummary { status, attempts, bytes, digest, observed_at, total: _ } = seen;
    let (rows, rejects) = draft.counts();
    let (endpoint, request) = (request.endpoint, request.to_string());
    let unknown_fields = Vec::new();
    RequestRecord { endpoint, request, status, attempts, bytes, digest, rows, rejects, unknown_fields, observed_at }
}

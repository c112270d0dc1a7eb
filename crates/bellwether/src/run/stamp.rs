//! Stamps what an archive knows: has a time-stamping authority say when it was known.
//!
//! The authority learns a SHA-256 alone. Nothing waits to be stamped: a token stands for everything that is sealed by then,
//! so one that could not be had is made up for by the next. A run never fails for want of one.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use super::blocking::blocking;
use super::observer::Control;
use crate::archive::{Note, Proof, Stamped, no_runs, of_service, proof_folders, statement};
use crate::error::{Diagnostic, Error, ErrorKind, Result};
use crate::net::address::host_of;
use crate::net::call;
use crate::plan::Plan;
use crate::time::{Clock, as_record, random, unique_name};
use crate::timestamp::{StampRequest, Token, TokenFault, token_of};

/// How long an authority may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest reply: a token with its certificates has a few thousand bytes.
const MOST_BYTES: usize = 1 << 20;

/// What is known of an archive, with a token.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Stamp {
    /// The name of the proof.
    pub proof: String,
    /// The service.
    pub service: String,
    /// The host of the authority.
    pub authority: String,
    /// When the authority saw it.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub at: DateTime<Utc>,
    /// Whether it was not stamped before.
    pub is_new: bool,
}

/// A token that was not had.
#[derive(Debug, thiserror::Error)]
enum StampError {
    /// An authority that does not answer, or not now.
    #[error("no time-stamp from {host}: it {why}")]
    Later { host: String, why: String, definition: String },

    /// An answer that is no token for what was asked.
    #[error("no time-stamp from {host}: {fault}")]
    Reply { host: String, fault: TokenFault },
}

impl Diagnostic for StampError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Later { .. } => ErrorKind::Temporary,
            Self::Reply { .. } => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Later { definition, .. } => {
                format!("`bellwether stamp {definition}` asks again: a token stands for all that is sealed by then")
            }
            Self::Reply { .. } => "check the address `tsa` in `[proof]`".to_owned(),
        })
    }
}

/// Gets a token for what the archive of a plan's service knows, from the authority that the plan names, unless it has one
/// for just that.
///
/// # Errors
///
/// If the plan names no authority or is not trusted to, if there are no runs, if the authority cannot be reached or refuses,
/// or if the token cannot be kept.
///
/// # Cancel safety
///
/// Cancel safe: a proof appears whole.
pub async fn stamp(plan: &Plan, archive: &Path, clock: Clock, control: &Control) -> Result<Stamp> {
    let Some(proof) = &plan.proof else {
        let hint = "name one: `[proof]` with `tsa = \"https://…\"`";
        return Err(Error::usage(format!("`{}` names no time-stamping authority", plan.name), hint));
    };
    plan.require_trust()?;
    let (folder, service) = (of_service(archive, &plan.service.name)?, plan.service.name.clone());
    let found = blocking({
        let (folder, service) = (folder.clone(), service.clone());
        move || to_stamp(&folder, &service)
    });
    let statement = match found.await? {
        ToStamp::Stamped(stamp) => return Ok(stamp),
        ToStamp::Statement(statement) => statement,
    };
    let url = proof.authority.as_url();
    let host = host_of(url);
    let request = StampRequest::of(&statement, random());
    let asked = tokio::select! {
        asked = ask(url, request.der()) => asked,
        () = control.stop.cancelled() => return Err(Error::interruption()),
    };
    let later = |why| StampError::Later { host: host.clone(), why, definition: plan.name.clone() };
    let reply = asked.map_err(later)?;
    let token = token_in(&reply, &request).map_err(|fault| StampError::Reply { host: host.clone(), fault })?;
    let (token, at) = token;
    let stamped = Stamped { statement, nonce: request.nonce(), authority: host, token };
    let proof = Proof::of(unique_name(clock.now()), &stamped);
    let stamp = Stamp { proof: proof.proof.clone(), service, authority: proof.authority.clone(), at, is_new: true };
    blocking(move || proof.add_to(&folder)).await?;
    Ok(stamp)
}

/// What there is to stamp.
enum ToStamp {
    Statement(String),
    /// Nothing: it has a token.
    Stamped(Stamp),
}

fn to_stamp(folder: &Path, service: &str) -> Result<ToStamp> {
    let none = || no_runs(folder);
    if crate::disk::file::is_gone(folder) {
        return Err(none());
    }
    let statement = statement(folder, service)?.ok_or_else(none)?;
    for path in proof_folders(folder)? {
        let proof = Proof::read(&path)?;
        if proof.statement == statement
            && let Ok(at) = Token::read(&proof.token()).map(|token| token.at)
        {
            let (service, authority) = (service.to_owned(), proof.authority);
            return Ok(ToStamp::Stamped(Stamp { proof: proof.proof, service, authority, at, is_new: false }));
        }
    }
    Ok(ToStamp::Statement(statement))
}

/// The token in a reply, and its time. It has to answer the request, and to be signed as it says.
fn token_in(reply: &[u8], request: &StampRequest) -> Result<(Vec<u8>, DateTime<Utc>), TokenFault> {
    let bytes = token_of(reply)?;
    let token = Token::read(bytes)?;
    token.check_answers(request)?;
    match token.check_signed(None) {
        // Others may be able to.
        Err(TokenFault::Unsupported(_)) | Ok(()) => Ok((bytes.to_vec(), token.at)),
        Err(fault) => Err(fault),
    }
}

/// Sends a request, and returns the reply.
async fn ask(url: &Url, request: Vec<u8>) -> Result<Vec<u8>, String> {
    let failed = |error| call::failure(error, TIMEOUT);
    let request = call::client(url, TIMEOUT)?.post(url.clone()).body(request);
    let request = request.header(CONTENT_TYPE, "application/timestamp-query");
    let mut answer = request.header(ACCEPT, "application/timestamp-reply").send().await.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(format!("answered with status {}", answer.status().as_u16()));
    }
    let mut reply = Vec::new();
    while let Some(bytes) = answer.chunk().await.map_err(failed)? {
        reply.extend_from_slice(&bytes);
        if reply.len() > MOST_BYTES {
            return Err("answered with more than a token".to_owned());
        }
    }
    Ok(reply)
}

/// The note on a run that was to be stamped, with what came of it.
pub(super) async fn note_after_run(plan: &Plan, archive: &Path, clock: Clock, control: &Control) -> Option<String> {
    plan.proof.as_ref().filter(|proof| proof.after_run)?;
    let note = match stamp(plan, archive, clock, control).await {
        Ok(Stamp { authority, at, .. }) => format!("stamped by {authority} at {}", crate::time::to_record(at)),
        Err(error) => {
            let why: Vec<String> = error.causes().map(ToString::to_string).collect();
            let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(": ")) };
            format!("not stamped: {error}{why}; {}", error.hint().unwrap_or_default())
        }
    };
    Some(note)
}

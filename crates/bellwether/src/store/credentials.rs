//! Credentials for S3 that are not in the environment: printed by a command of the profile, or given by a service.
//!
//! `credential_process` is a command in the user's own `~/.aws/config`, and runs as that user; a definition cannot name
//! one, and its store is only opened if the definition is trusted. It gets no input, half a minute, and an environment
//! without the key of the vendor. What it prints, and what a service gives, is checked before it is part of a header: the
//! client would panic on it.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential, AwsCredentialProvider};
use object_store::{CredentialProvider, Error as Fault};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::fault::{Explained, FaultVerdict, is_temporary, reason};
use crate::key;
use crate::process::cancel::CancellationToken;
use crate::process::child::{OutputLimits, output};
use crate::time::Clock;

/// The limits of a command for credentials.
const LIMITS: OutputLimits = OutputLimits { bytes: 64 << 10, time: Duration::from_secs(30) };

/// Credentials are renewed this long before they expire.
const EARLY: TimeDelta = TimeDelta::minutes(5);

/// The same builder, whose credentials are checked when a service or a command gives them. Those of the environment and
/// of files already were.
pub(super) fn check(builder: AmazonS3Builder) -> Result<AmazonS3Builder, Fault> {
    if builder.get_config_value(&Key::AccessKeyId).is_some() {
        return Ok(builder);
    }
    let given = Arc::clone(builder.clone().build()?.credentials());
    Ok(builder.with_credentials(Arc::new(Checked { given, last: Mutex::default() })))
}

/// Credentials of a service, checked and masked.
#[derive(Debug)]
struct Checked {
    given: AwsCredentialProvider,
    last: Mutex<Option<Arc<AwsCredential>>>,
}

#[async_trait]
impl CredentialProvider for Checked {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>, Fault> {
        let given = self.given.get_credential().await.map_err(unavailable)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &given)) {
            if !given.token.iter().chain([&given.key_id]).all(|text| is_header(text)) {
                return Err(refusal("the credentials that a service gave cannot be part of a header".to_owned()));
            }
            key::mask([given.secret_key.clone()].into_iter().chain(given.token.clone()));
            *last = Some(Arc::clone(&given));
        }
        Ok(given)
    }
}

fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Why a service gives no credentials, unless it may later.
fn unavailable(fault: Fault) -> Fault {
    if is_temporary(&fault) || Explained::find(&fault).is_some() {
        return fault;
    }
    refusal(format!("there are no credentials: the service that gives them said: {}", reason(&fault)))
}

fn refusal(reason: String) -> Fault {
    Explained::new(FaultVerdict::Credentials, reason).into_store_error()
}

/// What a command prints, as the provider documents it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<DateTime<Utc>>,
}

/// Credentials that a command prints, until they expire.
#[derive(Debug)]
pub(super) struct OfCommand {
    words: Vec<String>,
    stop: CancellationToken,
    known: tokio::sync::Mutex<Option<CommandCredential>>,
}

#[derive(Debug)]
struct CommandCredential {
    credential: Arc<AwsCredential>,
    expiration: Option<DateTime<Utc>>,
}

impl OfCommand {
    /// Those of the command in a profile. It is not run yet, nor passed to a shell.
    pub(super) fn of(command: &str, stop: &CancellationToken) -> Result<Self, String> {
        let words = words(command).filter(|words| !words.is_empty());
        let words = words.ok_or("`credential_process` in the profile is not a command")?;
        Ok(Self { words, stop: stop.clone(), known: tokio::sync::Mutex::default() })
    }

    async fn run(&self) -> Result<CommandCredential, Fault> {
        let (words, stop) = (self.words.clone(), self.stop.clone());
        let program = words.first().cloned().unwrap_or_default();
        let failed = |reason: &str| refusal(format!("cannot get credentials from the command `{program}`: {reason}"));
        let printed = spawn_blocking(move || {
            let (program, arguments) = words.split_first().expect("it has a program");
            let mut command = Command::new(program);
            command.args(arguments).env_remove(key::source::VARIABLE);
            output(&mut command, LIMITS, &|| stop.is_cancelled())
        });
        let printed = printed.await.map_err(|_| failed("a worker thread panicked"))?;
        let printed = printed.map_err(|fault| failed(&fault.to_string()))?.unwrap_or_default();
        // The error of the parser may quote what was printed.
        let printed: Printed = serde_json::from_slice(&printed)
            .map_err(|_| failed("it does not print JSON with `Version`, `AccessKeyId` and `SecretAccessKey`"))?;
        if printed.version != 1 {
            return Err(failed("its output has an unknown `Version`, expected 1"));
        }
        let all = [Some(&printed.access_key_id), Some(&printed.secret_access_key), printed.session_token.as_ref()];
        if !all.into_iter().flatten().all(|text| is_header(text)) {
            return Err(failed("it prints a key that cannot be part of a header"));
        }
        if printed.expiration.is_some_and(|expiration| expiration <= Clock::System.now()) {
            return Err(failed("what it prints has expired"));
        }
        let Printed { access_key_id: key_id, secret_access_key: secret_key, session_token: token, expiration, .. } =
            printed;
        Ok(CommandCredential { credential: Arc::new(AwsCredential { key_id, secret_key, token }), expiration })
    }
}

#[async_trait]
impl CredentialProvider for OfCommand {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>, Fault> {
        let mut known = self.known.lock().await;
        let is_fresh = |known: &CommandCredential| {
            known.expiration.is_none_or(|expiration| expiration - EARLY > Clock::System.now())
        };
        if let Some(known) = known.as_ref().filter(|known| is_fresh(known)) {
            return Ok(Arc::clone(&known.credential));
        }
        let new = self.run().await?;
        let credential = Arc::clone(&new.credential);
        *known = Some(new);
        Ok(credential)
    }
}

/// The words of a command, as the provider's own tools split it: quotes and backslashes keep spaces together.
/// `None` if a quote or a backslash has no end.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if letter == open => quote = None,
            (None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some('"'), '\\') => match letters.next()? {
                escaped @ ('"' | '\\') => word.get_or_insert_default().push(escaped),
                other => word.get_or_insert_default().extend(['\\', other]),
            },
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_command_is_split_at_spaces_that_are_not_quoted() {
        for (command, expected) in [
            ("/opt/sign-in --account 7", Some(&["/opt/sign-in", "--account", "7"][..])),
            ("\"/opt/my tools/sign-in\" '' a\\ b", Some(&["/opt/my tools/sign-in", "", "a b"])),
            (r#"x "a \"b\" \n\$" 'c\d' e"f"'g'"#, Some(&["x", r#"a "b" \n\$"#, r"c\d", "efg"])),
            ("x $HOME `y` | z > w", Some(&["x", "$HOME", "`y`", "|", "z", ">", "w"])),
            ("  ", Some(&[])),
            ("x \"open", None),
            ("x \\", None),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|words| words.iter().map(|word| word.to_string()).collect());
            assert_eq!(words(command), expected, "{command}");
        }
    }
}

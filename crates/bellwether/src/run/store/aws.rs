//! Credentials for S3: of the AWS command line's profile in `~/.aws/credentials` and `~/.aws/config`, printed by a command of
//! the profile, or given by a service.
//!
//! The `object_store` crate reads the environment, web identities, containers and instances, but no profiles. A profile
//! is read only if the environment has no keys, as the provider's own tools do. It may have keys, a web identity, or a
//! command that prints keys. One that signs in (single sign-on, or a role by the keys of another profile) is refused with
//! what to do instead.
//!
//! `credential_process` is a command in the user's own `~/.aws/config`, and runs as that user; a definition cannot name
//! one, and its store is only opened if the definition is trusted. It gets no input, half a minute, and an environment
//! without the key of the vendor. What it prints, and what a service gives, is checked before it is part of a header: the
//! client would panic on it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential, AwsCredentialProvider};
use object_store::{CredentialProvider, Error as Fault};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::cloud::{Form, check_setting};
use super::fault::{Failure, Verdict};
use crate::disk::file;
use crate::key;
use crate::process::cancel::CancellationToken;
use crate::process::child::{OutputLimits, output};
use crate::time::Clock;

/// Settings by name.
type Settings = BTreeMap<String, String>;

/// The variable that forbids to ask the service of the instance.
const NO_INSTANCE: &str = "AWS_EC2_METADATA_DISABLED";

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// A builder with the settings of the profile that the environment does not have.
pub(super) fn apply_profile(mut builder: AmazonS3Builder, stop: &CancellationToken) -> Result<AmazonS3Builder, String> {
    let is_set = |builder: &AmazonS3Builder, key: Key| builder.get_config_value(&key).is_some();
    let has_keys = is_set(&builder, Key::AccessKeyId)
        || is_set(&builder, Key::WebIdentityTokenFile)
        || is_set(&builder, Key::ContainerCredentialsRelativeUri)
        || is_set(&builder, Key::ContainerCredentialsFullUri);
    let named = env::var("AWS_PROFILE").or_else(|_| env::var("AWS_DEFAULT_PROFILE")).ok();
    let named = named.filter(|name| !name.is_empty());
    let name = named.as_deref().unwrap_or("default");
    let settings = match profile(name)? {
        None if named.is_some() && !has_keys => return Err(format!("no profile `{name}` in `~/.aws`")),
        settings => settings.unwrap_or_default(),
    };
    let mut taken = Vec::new();
    if !is_set(&builder, Key::Region) && !is_set(&builder, Key::DefaultRegion) {
        taken.push(("region", Key::Region, Form::Name));
    }
    if !is_set(&builder, Key::Endpoint) && !is_set(&builder, Key::S3Endpoint) {
        taken.push(("endpoint_url", Key::Endpoint, Form::Address));
    }
    if !has_keys {
        taken.extend_from_slice(keys_of(name, &settings)?);
    }
    for (setting, key, form) in taken {
        if let Some(value) = settings.get(setting) {
            check_setting(&format!("{setting}` of the profile `{name}"), form, value)?;
            builder = builder.with_config(key, value);
        }
    }
    let has_key_id = is_set(&builder, Key::AccessKeyId);
    if is_set(&builder, Key::WebIdentityTokenFile) && !has_key_id {
        check_web_identity(&builder)?;
    } else if let Some(command) = settings.get("credential_process").filter(|_| !has_keys && !has_key_id) {
        let words = words(command).filter(|words| !words.is_empty());
        let words = words.ok_or("`credential_process` in the profile is not a command")?;
        let printed = PrintedCredentials { words, stop: stop.clone(), known: tokio::sync::Mutex::default() };
        builder = builder.with_credentials(Arc::new(printed));
    } else if !has_keys
        && !has_key_id
        && builder.get_config_value(&Key::SkipSignature).as_deref() != Some("true")
        && env::var(NO_INSTANCE).is_ok_and(|value| value.eq_ignore_ascii_case("true"))
    {
        let unasked = format!("`{NO_INSTANCE}` forbids to ask the instance for some");
        return Err(format!("there are no credentials in the environment or in `~/.aws`, and {unasked}"));
    }
    key::mask([Key::SecretAccessKey, Key::Token].iter().filter_map(|key| builder.get_config_value(key)));
    Ok(builder)
}

/// The ways in which a profile has keys, by the first of their settings.
const WAYS: [&[(&str, Key, Form)]; 2] = [
    &[
        ("aws_access_key_id", Key::AccessKeyId, Form::Text),
        ("aws_secret_access_key", Key::SecretAccessKey, Form::Text),
        ("aws_session_token", Key::Token, Form::Text),
    ],
    &[
        ("web_identity_token_file", Key::WebIdentityTokenFile, Form::Any),
        ("role_arn", Key::RoleArn, Form::Text),
        ("role_session_name", Key::RoleSessionName, Form::Text),
    ],
];

/// The settings with the keys of a profile. A command that prints them is none of these.
fn keys_of(name: &str, settings: &Settings) -> Result<&'static [(&'static str, Key, Form)], String> {
    if let Some(way) = WAYS.into_iter().find(|way| settings.contains_key(way[0].0)) {
        return Ok(way);
    }
    let prints_them = settings.contains_key("credential_process") && !settings.contains_key("role_arn");
    match ["sso_session", "sso_start_url", "role_arn"].iter().find(|way| settings.contains_key(**way)) {
        Some(way) if !prints_them => Err(format!(
            "the profile `{name}` gets its keys by `{way}`: export them with `aws configure export-credentials --format \
             env`, or have the profile run that by `credential_process`"
        )),
        _ => Ok(&[]),
    }
}

/// Checks a web identity: a token in a file, and the role that it is for. The client would ask the instance instead, or
/// wait for the other end of a pipe.
fn check_web_identity(builder: &AmazonS3Builder) -> Result<(), String> {
    if builder.get_config_value(&Key::RoleArn).is_none() {
        return Err("there is a web identity, but no role: set `AWS_ROLE_ARN`".to_owned());
    }
    let path = PathBuf::from(builder.get_config_value(&Key::WebIdentityTokenFile).unwrap_or_default());
    match fs::metadata(&path) {
        Ok(file) if file.is_file() && file.len() <= MAX_BYTES => Ok(()),
        Ok(_) => Err(format!("`{}` is not a file with a token", path.display())),
        Err(error) => Err(format!("cannot read the token in `{}`: {error}", path.display())),
    }
}

/// The settings of a profile in both files; `None` if neither has it.
fn profile(name: &str) -> Result<Option<Settings>, String> {
    let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
    let mut found: Option<Settings> = None;
    for (variable, file, section) in
        [("AWS_CONFIG_FILE", "config", &*in_config), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name)]
    {
        let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".aws").join(file));
        let Some(path) = env::var_os(variable).map(PathBuf::from).or_else(home) else { continue };
        if fs::metadata(&path).is_ok_and(|file| file.len() > MAX_BYTES) {
            return Err(format!("`{}` is larger than 1 MiB", path.display()));
        }
        match file::open_regular(&path).and_then(io::read_to_string) {
            Ok(text) => {
                if let Some(settings) = section_of(&text, section) {
                    found.get_or_insert_default().extend(settings);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        }
    }
    Ok(found)
}

/// The settings of a section; `None` if there is no such section.
fn section_of(text: &str, wanted: &str) -> Option<Settings> {
    let mut found: Option<Settings> = None;
    let mut is_wanted = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', ';'])) {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            is_wanted = name.split_whitespace().eq(wanted.split_whitespace());
            if is_wanted {
                found.get_or_insert_default();
            }
        } else if is_wanted
            // Indented lines are settings of a service.
            && !line.starts_with([' ', '\t'])
            && let Some((name, value)) = line.split_once('=')
        {
            found.get_or_insert_default().insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

/// The same builder, whose credentials are checked when a service or a command gives them. Those of the environment and
/// of files already were.
pub(super) fn check_given(builder: AmazonS3Builder) -> Result<AmazonS3Builder, Fault> {
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
        let given = self.given.get_credential().await.map_err(|fault| {
            let Failure { verdict, reason } = fault.into();
            match verdict {
                Verdict::Missing | Verdict::Denied | Verdict::Full | Verdict::Untagged => {
                    refusal(format!("there are no credentials: the service that gives them said: {reason}"))
                }
                verdict => Failure::new(verdict, reason),
            }
        })?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &given)) {
            if !given.token.iter().chain([&given.key_id]).all(|text| is_header(text)) {
                return Err(refusal("the credentials that a service gave cannot be part of a header".to_owned()).into());
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

fn refusal(reason: String) -> Failure {
    Failure::new(Verdict::Credentials, reason)
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

/// Credentials that a command of the profile prints, until they expire.
#[derive(Debug)]
struct PrintedCredentials {
    /// The program and its arguments. No shell reads them.
    words: Vec<String>,
    stop: CancellationToken,
    known: tokio::sync::Mutex<Option<Expiring>>,
}

/// Credentials, and when they expire.
type Expiring = (Arc<AwsCredential>, Option<DateTime<Utc>>);

#[async_trait]
impl CredentialProvider for PrintedCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>, Fault> {
        let mut known = self.known.lock().await;
        // They are renewed some minutes before they expire.
        let renewed_from = Clock::System.now() + TimeDelta::minutes(5);
        if let Some((credential, expiration)) = &*known
            && expiration.is_none_or(|expiration| expiration > renewed_from)
        {
            return Ok(Arc::clone(credential));
        }
        let (words, stop) = (self.words.clone(), self.stop.clone());
        let program = words.first().cloned().unwrap_or_default();
        let failed = |reason: &str| refusal(format!("cannot get credentials from the command `{program}`: {reason}"));
        let limits = OutputLimits { bytes: 64 << 10, time: Duration::from_secs(30) };
        let printed = spawn_blocking(move || {
            let (program, arguments) = words.split_first().expect("it has a program");
            let mut command = Command::new(program);
            command.args(arguments).env_remove(key::source::VARIABLE);
            output(&mut command, limits, &|| stop.is_cancelled())
        });
        let printed = printed.await.map_err(|_| failed("a worker thread panicked"))?;
        let printed = printed.map_err(|fault| failed(&fault.to_string()))?.unwrap_or_default();
        // The error of the parser may quote what was printed.
        let printed: Printed = serde_json::from_slice(&printed)
            .map_err(|_| failed("it does not print JSON with `Version`, `AccessKeyId` and `SecretAccessKey`"))?;
        let Printed { version, access_key_id: key_id, secret_access_key: secret_key, session_token: token, expiration } =
            printed;
        if version != 1 {
            return Err(failed("its output has an unknown `Version`, expected 1").into());
        }
        if ![&key_id, &secret_key].into_iter().chain(&token).all(|text| is_header(text)) {
            return Err(failed("it prints a key that cannot be part of a header").into());
        }
        if expiration.is_some_and(|expiration| expiration <= Clock::System.now()) {
            return Err(failed("what it prints has expired").into());
        }
        let credential = Arc::new(AwsCredential { key_id, secret_key, token });
        *known = Some((Arc::clone(&credential), expiration));
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
    use super::{Settings, keys_of, section_of, words};

    #[test]
    fn a_profile_is_a_section_without_comments_and_nested_settings() {
        let text = "# keys\n[default]\naws_access_key_id = A\n\n[profile  nightly]\nregion=eu-central-1\ns3 =\n  \
                    region = other\n; old\naws_secret_access_key = b=c\n[other]\nregion = x\n";
        let nightly = section_of(text, "profile nightly").unwrap();
        assert_eq!(nightly.get("region").map(String::as_str), Some("eu-central-1"));
        assert_eq!(nightly.get("aws_secret_access_key").map(String::as_str), Some("b=c"));
        assert_eq!(nightly.len(), 3);
        assert_eq!(section_of(text, "default").unwrap().len(), 1);
        assert!(section_of(text, "nightly").is_none());
    }

    #[test]
    fn a_profile_gets_its_keys_in_one_way() {
        for (settings, taken) in [
            (&["region"][..], Ok(&[][..])),
            (&["credential_process"], Ok(&[])),
            (
                &["aws_access_key_id", "role_arn", "credential_process"],
                Ok(&["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]),
            ),
            (
                &["web_identity_token_file", "role_arn"],
                Ok(&["web_identity_token_file", "role_arn", "role_session_name"]),
            ),
            (&["credential_process", "role_arn"], Err("role_arn")),
            (&["role_arn", "source_profile"], Err("role_arn")),
            (&["sso_session", "role_arn"], Err("sso_session")),
            (&["sso_start_url"], Err("sso_start_url")),
        ] {
            let given: Settings = settings.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
            let found = keys_of("p", &given).map(|keys| keys.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
            match taken {
                Ok(names) => assert_eq!(found.unwrap(), names, "{settings:?}"),
                Err(way) => assert!(found.unwrap_err().contains(&format!("gets its keys by `{way}`")), "{settings:?}"),
            }
        }
    }

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

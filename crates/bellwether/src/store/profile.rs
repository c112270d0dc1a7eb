//! Credentials of the AWS command line: the profile in `~/.aws/credentials` and `~/.aws/config`.
//!
//! The `object_store` crate reads the environment, web identities, containers and instances, but no profiles. A profile
//! is read only if the environment has no keys, as the provider's own tools do. It may have keys, a web identity, or a
//! command that prints keys. One that signs in (single sign-on, or a role by the keys of another profile) is refused with
//! what to do instead.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

use super::credentials::OfCommand;
use super::settings::{Form, check};
use crate::disk::file;
use crate::key;
use crate::process::cancel::CancellationToken;

/// Settings by name.
type Settings = BTreeMap<String, String>;

/// The setting with a command that prints keys.
const COMMAND: &str = "credential_process";

/// The variable that forbids to ask the service of the instance.
const NO_INSTANCE: &str = "AWS_EC2_METADATA_DISABLED";

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// A builder with the settings of the profile that the environment does not have.
pub(super) fn apply(mut builder: AmazonS3Builder, stop: &CancellationToken) -> Result<AmazonS3Builder, String> {
    let is_set = |builder: &AmazonS3Builder, key: Key| builder.get_config_value(&key).is_some();
    let has_keys = is_set(&builder, Key::AccessKeyId)
        || is_set(&builder, Key::WebIdentityTokenFile)
        || is_set(&builder, Key::ContainerCredentialsRelativeUri)
        || is_set(&builder, Key::ContainerCredentialsFullUri);
    let (name, is_named) = match env::var("AWS_PROFILE").or_else(|_| env::var("AWS_DEFAULT_PROFILE")) {
        Ok(name) if !name.is_empty() => (name, true),
        _ => ("default".to_owned(), false),
    };
    let settings = profile(&name)?;
    if settings.is_none() && is_named && !has_keys {
        return Err(format!("no profile `{name}` in `~/.aws`"));
    }
    let settings = settings.unwrap_or_default();
    let take = |builder: AmazonS3Builder, setting: &str, key: Key, form: Form| match settings.get(setting) {
        Some(value) => {
            check(&format!("{setting}` of the profile `{name}"), form, value)?;
            Ok::<_, String>(builder.with_config(key, value))
        }
        None => Ok(builder),
    };
    if !is_set(&builder, Key::Region) && !is_set(&builder, Key::DefaultRegion) {
        builder = take(builder, "region", Key::Region, Form::Name)?;
    }
    if !is_set(&builder, Key::Endpoint) && !is_set(&builder, Key::S3Endpoint) {
        builder = take(builder, "endpoint_url", Key::Endpoint, Form::Address)?;
    }
    if !has_keys {
        for (setting, key, form) in way(&name, &settings)? {
            builder = take(builder, setting, *key, *form)?;
        }
        if !is_set(&builder, Key::AccessKeyId)
            && !is_set(&builder, Key::WebIdentityTokenFile)
            && let Some(command) = settings.get(COMMAND)
        {
            builder = builder.with_credentials(Arc::new(OfCommand::of(command, stop)?));
        } else if !is_set(&builder, Key::AccessKeyId)
            && !is_set(&builder, Key::WebIdentityTokenFile)
            && builder.get_config_value(&Key::SkipSignature).as_deref() != Some("true")
            && env::var(NO_INSTANCE).is_ok_and(|value| value.eq_ignore_ascii_case("true"))
        {
            let unasked = format!("`{NO_INSTANCE}` forbids to ask the instance for some");
            return Err(format!("there are no credentials in the environment or in `~/.aws`, and {unasked}"));
        }
    }
    if is_set(&builder, Key::WebIdentityTokenFile) && !is_set(&builder, Key::AccessKeyId) {
        check_web_identity(&builder)?;
    }
    key::mask([Key::SecretAccessKey, Key::Token].iter().filter_map(|key| builder.get_config_value(key)));
    Ok(builder)
}

/// How a profile gets its keys: the settings to take over. A command is none of them.
fn way(name: &str, settings: &Settings) -> Result<&'static [(&'static str, Key, Form)], String> {
    if settings.contains_key("aws_access_key_id") {
        return Ok(&[
            ("aws_access_key_id", Key::AccessKeyId, Form::Text),
            ("aws_secret_access_key", Key::SecretAccessKey, Form::Text),
            ("aws_session_token", Key::Token, Form::Text),
        ]);
    }
    if settings.contains_key("web_identity_token_file") {
        return Ok(&[
            ("web_identity_token_file", Key::WebIdentityTokenFile, Form::Any),
            ("role_arn", Key::RoleArn, Form::Text),
            ("role_session_name", Key::RoleSessionName, Form::Text),
        ]);
    }
    if settings.contains_key(COMMAND) && !settings.contains_key("role_arn") {
        return Ok(&[]);
    }
    match ["sso_session", "sso_start_url", "role_arn"].into_iter().find(|way| settings.contains_key(*way)) {
        None => Ok(&[]),
        Some(way) => Err(format!(
            "the profile `{name}` gets its keys by `{way}`: export them with `aws configure export-credentials --format \
             env`, or have the profile run that by `credential_process`"
        )),
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
    let place = |variable: &str, file: &str| {
        let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".aws").join(file));
        env::var_os(variable).map(PathBuf::from).or_else(home)
    };
    let credentials = place("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config = place("AWS_CONFIG_FILE", "config");
    let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
    let mut found: Option<Settings> = None;
    for (path, section) in [(config, in_config), (credentials, name.to_owned())] {
        let Some(path) = path else { continue };
        let text = match fs::metadata(&path) {
            Ok(file) if file.len() > MAX_BYTES => return Err(format!("`{}` is larger than 1 MiB", path.display())),
            _ => file::open_regular(&path).and_then(io::read_to_string),
        };
        match text {
            Ok(text) => {
                if let Some(settings) = section_of(&text, &section) {
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
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            is_wanted = name.split_whitespace().eq(wanted.split_whitespace());
            if is_wanted {
                found.get_or_insert_default();
            }
        } else if is_wanted
            && !is_indented
            && let (Some(settings), Some((name, value))) = (&mut found, line.split_once('='))
        {
            // Indented lines are settings of a service.
            settings.insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Settings, section_of, way};

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
            let found = way("p", &given).map(|way| way.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
            match taken {
                Ok(names) => assert_eq!(found.unwrap(), names, "{settings:?}"),
                Err(way) => assert!(found.unwrap_err().contains(&format!("gets its keys by `{way}`")), "{settings:?}"),
            }
        }
    }
}

//! What to install so that a platform runs the definitions: one file, with absolute paths.
//!
//! systemd keeps `bellwether schedule` alive, which does the rest; cron calls `bellwether schedule --once`, which runs what
//! is due and knows the time zones. Nothing that is set when a file is printed is dropped in silence: an option is among
//! the words of the command, or a comment names it with the reason. Variables that are no options, such as a proxy's, are
//! named without their values, which may be secret. The key comes from a file that `BELLWETHER_API_KEY_FILE` names; it is
//! never part of what is printed.

use std::collections::BTreeSet;
use std::env;
use std::num::NonZeroUsize;

use bellwether::definition;
use bellwether::disk::file::FileError;
use bellwether::key::source::{FILE_VARIABLE, VARIABLE};
use bellwether::plan::{Plan, StoreUrl};
use bellwether::text::escape::shell;
use bellwether::trust;
use clap::ValueEnum;

use super::Schedule;
use crate::cli::prelude::*;
use crate::schedule::{files, nothing_scheduled};

/// A platform that runs programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Platform {
    /// A systemd service.
    Systemd,
    /// A line for a crontab.
    Crontab,
}

impl Schedule {
    /// The file for a platform.
    ///
    /// # Errors
    ///
    /// If a definition is invalid, none has a schedule, or a path cannot be made absolute, or cannot stand in a file.
    pub(super) fn print(&self, platform: Platform, root: &Path, folders: &Folders) -> Result<String> {
        let root = absolute(root)?;
        let (data, archive) = (absolute(&folders.data)?, absolute(&folders.archive)?);
        let metrics = self.metrics.as_deref().map(absolute).transpose()?;
        let key_file = env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty()).unwrap_or_else(|| "api-key".into());
        let key_file = absolute(&root.join(key_file))?;

        let (store, mut variables) = (self.store.url(None)?, other_variables());
        let (mut about, mut stores) = (String::new(), Vec::from_iter(store.as_ref().and_then(StoreUrl::folder)));
        for path in files(&folders.definitions)?.into_values() {
            let plan = Plan::of(definition::find(&path.to_string_lossy(), &folders.definitions)?)?;
            if let Some(schedule) = &plan.schedule {
                about += &format!("#   {}: {} in {}\n", plan.name, schedule.cron, schedule.timezone);
                stores.extend(plan.store.as_ref().and_then(StoreUrl::folder));
                variables.extend(plan.address_variables.iter().cloned());
            }
        }
        if about.is_empty() {
            return Err(nothing_scheduled(&folders.definitions).into());
        }
        about += "# Exit codes: 0 published; 75 a temporary failure, the next start resumes; 4 a check of the data failed and nothing was\n\
                  # published; 2 an invalid definition; 130 interrupted, the next start resumes; 1 any other failure.\n";

        // The words of the command, with all that is not as by default; and as comments, what the platform has no use for.
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec![text(&absolute(&env::current_exe().map_err(Error::start)?)?), "schedule".to_owned()];
        words.extend((platform == Platform::Crontab).then(|| "--once".to_owned()));
        let mut options = vec![
            ("--directory", Some(text(&root))),
            ("--data", Some(text(&data))),
            ("--archive", (archive != data.join("archive")).then(|| text(&archive))),
            ("--jobs", (self.jobs != NonZeroUsize::MIN).then(|| self.jobs.to_string())),
            ("--metrics", metrics.as_deref().map(text)),
            ("--store", store.as_ref().map(ToString::to_string)),
            ("--log", name_unless(self.log.form, LogForm::Text)),
            ("--log-level", name_unless(self.log.level, LogLevel::Off)),
            ("--listen", self.listen.map(|address| address.to_string())),
        ];
        options.extend(self.listen_host.iter().map(|host| ("--listen-host", Some(host.to_string()))));
        for (option, value) in options {
            let Some(value) = value else { continue };
            if platform == Platform::Crontab && option.starts_with("--listen") {
                about += &format!("# Left out: `{option} {value}`. Nothing listens between the runs.\n");
            } else {
                words.extend([option.to_owned(), value]);
            }
        }
        if !variables.is_empty() {
            let names: Vec<String> = variables.iter().map(|name| format!("`{}`", escape(name))).collect();
            about += &format!("# Left out: {}. Set them there if the program needs them.\n", names.join(", "));
        }
        if platform == Platform::Crontab {
            return Ok(crontab(&about, &key_file, &words));
        }
        let metrics = metrics.as_deref().and_then(Path::parent).map(Path::to_owned);
        let folders: Vec<PathBuf> = [data, archive].into_iter().chain(metrics).chain(stores).collect();
        Ok(systemd(&about, &root, &folders, &words))
    }
}

/// The name of a value that is not the default.
fn name_unless<T: ValueEnum + PartialEq>(value: T, default: T) -> Option<String> {
    (value != default).then(|| value.to_possible_value()).flatten().map(|value| value.get_name().to_owned())
}

/// The names of the variables that are set and read, and that no option stands for. Their values may be secret.
fn other_variables() -> BTreeSet<String> {
    const NAMES: [&str; 6] = [VARIABLE, trust::VARIABLE, "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"];
    const OF_STORES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
    let is_read = |name: &String| {
        NAMES.contains(&name.to_ascii_uppercase().as_str()) || OF_STORES.iter().any(|start| name.starts_with(start))
    };
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok()).filter(is_read).collect()
}

/// A path that can stand in a line of a file, on every platform.
fn absolute(path: &Path) -> error::Result<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let found = path.canonicalize().or_else(|_| std::path::absolute(path)).map_err(FileError::read(path))?;
    if found.to_str().is_some_and(|text| !text.chars().any(char::is_control) && !text.ends_with('\\')) {
        return Ok(found);
    }
    Err(Error::usage(
        format!("`{}` cannot stand in the file of a platform", escape(&found.to_string_lossy())),
        "use a path that is UTF-8, without line breaks, and that does not end with a backslash",
    ))
}

fn crontab(about: &str, key_file: &Path, words: &[String]) -> String {
    let command: Vec<String> = words.iter().map(|word| shell(word)).collect();
    // A percent sign is a line break to cron.
    let (command, key) = (command.join(" ").replace('%', "\\%"), key_file.display());
    format!(
        "\
# Install with `crontab -e`. Every five minutes, what is due is run; nothing is printed if nothing is due, and cron mails
# the rest. The time zones are those of the definitions, whatever the time zone of cron:
{about}\
# Put the API key into a file that only you can read, and name it here.
BELLWETHER_API_KEY_FILE={key}
*/5 * * * * {command}
"
    )
}

fn systemd(about: &str, root: &Path, folders: &[PathBuf], words: &[String]) -> String {
    // Variables stand in arguments, but not in the path of the program.
    let words = words.iter().enumerate();
    let command: Vec<String> =
        words.map(|(index, word)| quote(&if index == 0 { word.clone() } else { word.replace('$', "$$") })).collect();
    // systemd refuses to start a service whose writable paths are missing: the nearest folder above counts.
    let existing = |folder: &PathBuf| folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder).to_owned();
    let existing: BTreeSet<PathBuf> = folders.iter().map(existing).collect();
    let is_outer = |folder: &&PathBuf| !existing.iter().any(|above| *folder != above && folder.starts_with(above));
    let writable: Vec<String> =
        existing.iter().filter(is_outer).map(|folder| quote(&folder.to_string_lossy())).collect();
    // In a private /tmp the service would find nothing of what is there.
    let is_temporary = |folder: &Path| folder.starts_with("/tmp") || folder.starts_with("/var/tmp");
    let is_private = !is_temporary(root) && !folders.iter().any(|folder| is_temporary(folder));
    let path = |path: &Path| path.to_string_lossy().replace('%', "%%");
    format!(
        include_str!("bellwether.service"),
        about = about,
        root = path(root),
        data = path(&folders[0]),
        command = command.join(" "),
        private = if is_private { "PrivateTmp=yes\n" } else { "" },
        writable = writable.join(" "),
    )
}

/// A word in a list of words of systemd.
fn quote(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    if word.contains(|letter: char| letter.is_whitespace() || matches!(letter, '\'' | '"' | ';')) {
        return format!("\"{word}\"");
    }
    word
}

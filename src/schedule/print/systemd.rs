//! A systemd service that runs the scheduler.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::settings::Action;
use super::{EXIT_CODES, Setup};

pub(super) fn unit(setup: &Setup) -> String {
    // Variables stand in arguments, but not in the path of the program.
    let words = setup.words(Action::Keep).into_iter().enumerate();
    let escaped = words.map(|(index, word)| if index == 0 { word } else { word.replace('$', "$$") });
    let command: Vec<String> = escaped.map(|word| quote(&word)).collect();
    let folders = setup.writable();
    let existing: BTreeSet<&Path> = folders.iter().map(|folder| existing(folder)).collect();
    let writable: Vec<String> = existing.iter().map(|folder| quote(&folder.to_string_lossy())).collect();
    // In a private /tmp the service would find nothing of what is there.
    let is_temporary = |folder: &&PathBuf| folder.starts_with("/tmp") || folder.starts_with("/var/tmp");
    let is_private = !folders.iter().chain([&setup.root]).any(|folder| is_temporary(&folder));
    let private = if is_private { "PrivateTmp=yes\n" } else { "" };
    format!(
        "\
# Install as /etc/systemd/system/bellwether.service, put the API key into /etc/bellwether/api-key (mode 600), then:
#   systemctl daemon-reload && systemctl enable --now bellwether
# `systemctl reload bellwether` reads changed definitions at once; they are picked up within seconds anyway.
# Without an API key, as for the demo service, remove the two lines with `api-key`.
# Definitions, each in its own time zone:
{listed}{EXIT_CODES}{left_out}
[Unit]
Description=Bellwether: scheduled datasets of {root}
Wants=network-online.target
After=time-sync.target network-online.target

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={root}
LoadCredential=api-key:/etc/bellwether/api-key
Environment=BELLWETHER_API_KEY_FILE=%d/api-key
# On SIGTERM runs are interrupted; the next start resumes them.
KillMode=mixed
TimeoutStopSec=120
SuccessExitStatus=130
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2
# The files belong to the user of the service: name one who may write {data}.
# User=bellwether
NoNewPrivileges=yes
{private}ProtectSystem=strict
ReadWritePaths={writable}

[Install]
WantedBy=multi-user.target
",
        listed = setup.schedule_comments(),
        left_out = setup.left_out(Action::Keep),
        root = path(&setup.root),
        data = path(&setup.data),
        command = command.join(" "),
        writable = writable.join(" "),
    )
}

/// A folder, or the nearest one above it that exists: systemd refuses to start a service whose writable paths are missing.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder)
}

/// A word in a list of words.
fn quote(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    if word.contains(|letter: char| letter.is_whitespace() || matches!(letter, '\'' | '"' | ';')) {
        return format!("\"{word}\"");
    }
    word
}

/// A path as a value of its own.
fn path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%%")
}

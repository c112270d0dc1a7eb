//! The program's help: commands in groups, examples, environment variables and exit codes.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Command, CommandFactory as _};

use super::Cli;
use super::outcome::EXIT_CODES;

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The layout of the program's own help. That of its commands is the usual one.
pub(super) const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The commands in groups, first steps first. Commands outside all groups go to the last one.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["init", "doctor", "run"]),
    ("Datasets", &["show", "open", "summary", "report", "datasets", "diff", "cite", "build", "sql"]),
    ("Archive", &["runs", "verify", "stamp", "audit", "archive", "import"]),
    ("Definitions", &["check", "plan", "schema"]),
    ("Operations", &["schedule", "status", "prune", "store"]),
    ("More", &["serve", "completions", "man"]),
];

const ENVIRONMENT: [(&str, &str); 16] = [
    ("BELLWETHER_API_KEY", "the API key of the service"),
    ("BELLWETHER_API_KEY_FILE", "a file with the API key, relative to the project's root"),
    ("BELLWETHER_BASE_URL", "the address of the signals, for definitions without one"),
    ("BELLWETHER_SENTIMENT_BASE_URL", "the address of news and sentiment, likewise"),
    ("BELLWETHER_ROOT", "the root of the project, as `--directory`"),
    ("BELLWETHER_DATA, BELLWETHER_ARCHIVE", "folders, as `--data` and `--archive`"),
    ("BELLWETHER_STORE", "the object store, as `--store`"),
    ("BELLWETHER_JOBS", "how many runs `schedule` has at once, as `--jobs`"),
    ("BELLWETHER_LISTEN", "the address of the status page, as `--listen`"),
    ("BELLWETHER_METRICS", "a file for metrics, as `--metrics`"),
    ("BELLWETHER_PRUNE_OLDER_THAN", "an age, as `--older-than` of `prune`"),
    ("BELLWETHER_TRUST", "projects whose definitions are trusted, whoever can write them"),
    ("BELLWETHER_LOG, BELLWETHER_LOG_LEVEL", "the log, as `--log` and `--log-level`"),
    ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "the proxy to use, and hosts to reach without it"),
    ("SSL_CERT_FILE", "certificates to trust instead of the system's"),
    ("NO_COLOR", "no colors, with any value that is not empty"),
];

/// Examples of each command, each with a description.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "init",
        &[
            ("init", "answer two questions"),
            ("init mine --base-url https://a.example/v1 --sentiment-base-url https://b.example/v1", "ask nothing"),
        ],
    ),
    ("doctor", &[("doctor mine", "check everything that a run of `mine` needs")]),
    ("run", &[("run", "list the definitions"), ("run demo", "fetch, archive, join and publish")]),
    (
        "build",
        &[
            ("build demo --as-of 2026-03-31", "what was known at the end of March"),
            ("build demo --ticker XOM,CVX --output two.csv", "two tickers in one file"),
        ],
    ),
    ("show", &[("show demo", "the first rows"), ("show demo --ticker XOM --tail 5", "the last five of one ticker")]),
    ("open", &[("open demo", "the report in your browser")]),
    ("report", &[("report demo", "write reports/demo.html"), ("report demo --output page.html", "to another file")]),
    ("summary", &[("summary demo", "the report, in the terminal")]),
    ("sql", &[("sql demo --as-of 2026-03-31 | duckdb", "the dataset as of March, computed by DuckDB")]),
    ("datasets", &[("datasets", "every version of every dataset"), ("datasets remove demo/VERSION", "remove one")]),
    ("datasets remove", &[("datasets remove demo/VERSION", "remove one version")]),
    (
        "diff",
        &[
            ("diff demo", "what changed in the latest version"),
            ("diff demo/VERSION demo", "what changed since a version"),
        ],
    ),
    (
        "cite",
        &[
            ("cite demo", "an entry for BibTeX of the latest version"),
            ("cite demo/20261120T213000Z-7f3a --format croissant", "one version, for Croissant"),
        ],
    ),
    ("runs", &[("runs", "every run in the archive"), ("runs show 20261120T2130", "one run, by prefix")]),
    ("runs show", &[("runs show 20261120T2130", "the run with this prefix")]),
    (
        "verify",
        &[
            ("verify", "recompute every checksum"),
            ("verify --proofs authority.pem", "and say since when each version is proven"),
        ],
    ),
    ("stamp", &[("stamp demo", "have an authority certify that what is known is known now")]),
    (
        "audit",
        &[
            ("audit revisions demo", "what the vendor rewrote"),
            ("audit leak demo", "whether the future reaches the past"),
        ],
    ),
    ("audit leak", &[("audit leak demo", "whether the future reaches the past")]),
    (
        "audit revisions",
        &[
            ("audit revisions demo --output changes.parquet", "a row for each changed value"),
            ("audit revisions demo --from 2026-03-31 --fail-above 0.5%", "fail if more was rewritten since"),
        ],
    ),
    ("audit quality", &[("audit quality demo", "gaps, stale series, duplicates, unusual values")]),
    (
        "audit skill",
        &[
            ("audit skill demo", "the demo, against its own prices"),
            ("audit skill nightly --prices closes.parquet", "as published, and as it stands today"),
        ],
    ),
    ("audit sources", &[("audit sources", "whether the operations agree")]),
    (
        "archive",
        &[
            ("archive compact", "pack all runs into one folder"),
            ("archive prune --dry-run", "list packed runs to remove"),
            ("archive forget 20261120T213000Z-7f3a --reason \"wrong clock\"", "take a bad run back"),
            ("archive repair --dry-run", "list what is damaged"),
            ("archive migrate", "keep an archive of an older version"),
        ],
    ),
    ("archive compact", &[("archive compact --keep 30", "leave the newest 30 runs as they are")]),
    ("archive prune", &[("archive prune --dry-run", "list what would be removed")]),
    (
        "archive forget",
        &[("archive forget 20261120T213000Z-7f3a --reason \"wrong clock\"", "leave this run out from now on")],
    ),
    (
        "archive repair",
        &[
            ("archive repair --dry-run", "list what is damaged, and what would be done"),
            ("archive repair", "move it out of the way"),
        ],
    ),
    (
        "archive migrate",
        &[
            ("archive migrate --dry-run", "list the old runs, and their services"),
            ("archive migrate", "migrate them, and keep the old folders"),
            ("archive migrate --remove-old", "remove the old folders"),
        ],
    ),
    (
        "import",
        &[
            (
                "import demo energy.json --request \"signals-history-all?sector=energy\" --observed-at 2025-03-31T21:30:00Z",
                "one answer that was saved in March",
            ),
            (
                "import demo XOM-2025-03-31.json --request \"news_articles/{ticker}\" --names \"{ticker}-{observed_at}.json\"",
                "ticker and day from the names of the files",
            ),
        ],
    ),
    ("prune", &[("prune --dry-run", "list what would be removed, with sizes")]),
    ("check", &[("check demo", "every problem of a definition, with its place")]),
    ("plan", &[("plan demo", "the requests and the columns, before anything is fetched")]),
    ("schema", &[("schema", "for an editor that checks TOML")]),
    (
        "schedule",
        &[
            ("schedule --listen 127.0.0.1:9464", "run definitions at their times, and answer /metrics"),
            ("schedule --once", "run due definitions and exit"),
        ],
    ),
    ("schedule print", &[("schedule print --for systemd", "a service to install")]),
    ("status", &[("status", "how each definition is doing"), ("status demo --json", "one of them, for a program")]),
    (
        "store",
        &[("store status", "compare this machine with the store"), ("store push", "send what only this machine has")],
    ),
    ("store status", &[("store status", "compare this machine with the store")]),
    ("store push", &[("store push", "send what only this machine has")]),
    (
        "store pull",
        &[
            ("store pull", "the runs, and the latest version of every dataset"),
            ("store pull demo", "the same for one dataset"),
            ("store pull demo/20261120T213000Z-7f3a", "one older version"),
        ],
    ),
    (
        "store verify",
        &[
            ("store verify", "read everything in the store"),
            ("store verify --sizes", "compare sizes alone"),
            ("store verify --since 20261120T213000Z-7f3a", "read what is new"),
        ],
    ),
    (
        "store prune",
        &[
            ("store prune --dry-run", "list what newer versions and packs have replaced"),
            ("store prune", "remove it; no row of the archive is lost"),
        ],
    ),
    (
        "store repair",
        &[
            ("store repair --dry-run", "list what is damaged, and what would be done"),
            ("store repair", "mend the store and this machine from one another"),
        ],
    ),
    ("store migrate", &[("store migrate --dry-run", "list the old runs in the store, and their services")]),
    (
        "serve",
        &[
            ("serve --demo", "the demo service on a free port"),
            ("serve --demo --today 2026-03-31", "in March"),
            ("serve --archive --as-of 2026-03-31", "what the archive knew at the end of March"),
        ],
    ),
    ("completions", &[("completions bash", "completions for bash")]),
    ("man", &[("man", "bellwether(1)"), ("man run", "bellwether-run(1)")]),
];

/// The command line, with its help.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let (names, summaries) = (names(&command), summaries(&command));
    let program = "bellwether";
    let more =
        format!("`{program} COMMAND --help` explains a command, `{program} --help` has exit codes and variables.");
    let command = command.before_help(names).before_long_help(summaries).after_help(more).after_long_help(details());
    let command = EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let words: Vec<&str> = path.split(' ').collect();
        with_examples(command, &words, examples)
    });
    without_empty_variables(command)
}

/// Without the variables that are empty, which count as not set.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |variable: &OsStr| env::var_os(variable).is_some_and(|value| value.is_empty());
    let unset = |argument: Arg| match argument.get_env().is_some_and(is_empty) {
        true => argument.env(None::<&'static str>),
        false => argument,
    };
    command.mut_args(unset).mut_subcommands(without_empty_variables)
}

fn with_examples(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
        let mut text = format!("{header}Examples:{header:#}\n");
        for (typed, what) in examples {
            let _ = writeln!(text, "  {literal}bellwether {typed}{literal:#}\n      {what}");
        }
        if let Some(own) = command.get_after_help() {
            let _ = write!(text, "\n{}", own.ansi());
        }
        return command.after_help(text);
    };
    // A command that this build does not have.
    if command.find_subcommand(first).is_none() {
        return command;
    }
    command.mut_subcommand(first, |command| with_examples(command, rest, examples))
}

/// The groups, and the commands of each that there are.
fn groups(command: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let mut groups: Vec<(&str, Vec<&Command>)> = GROUPS.iter().map(|(title, _)| (*title, Vec::new())).collect();
    let last = groups.len() - 1;
    for (group, (_, names)) in GROUPS.iter().enumerate() {
        groups[group].1.extend(names.iter().filter_map(|name| command.find_subcommand(name)));
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    groups[last].1.extend(command.get_subcommands().filter(|command| !is_grouped(command.get_name())));
    groups.retain(|(_, commands)| !commands.is_empty());
    groups
}

/// The names of the commands, a line for each group.
fn names(command: &Command) -> String {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = format!("{header}Commands:{header:#}\n");
    for (title, commands) in groups(command) {
        let names: Vec<String> =
            commands.iter().map(|command| format!("{literal}{}{literal:#}", command.get_name())).collect();
        let _ = writeln!(text, "  {title:12}  {}", names.join(", "));
    }
    text
}

/// The commands with what they do.
fn summaries(command: &Command) -> String {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = String::new();
    for (title, commands) in groups(command) {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{:12}{literal:#}  {about}", command.get_name());
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// Environment variables and exit codes.
fn details() -> String {
    let header = STYLES.get_header();
    let mut text = format!("{header}Environment:{header:#}\n");
    for (name, meaning) in ENVIRONMENT {
        let _ = writeln!(text, "  {name:32}  {meaning}");
    }
    let _ = writeln!(text, "\n{header}Exit codes:{header:#}");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::super::Cli;
    use super::{EXAMPLES, GROUPS, command};

    /// The lines that a text takes in a terminal.
    fn lines(text: &str, columns: usize) -> usize {
        text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum()
    }

    fn each(command: &Command, path: &str, check: &mut impl FnMut(&Command, &str)) {
        for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
            let path = format!("{path} {}", command.get_name()).trim().to_owned();
            check(command, &path);
            each(command, &path, check);
        }
    }

    #[test]
    fn every_command_has_a_group_and_examples_that_parse() {
        each(&Cli::command(), "", &mut |_, path| {
            let is_grouped = path.contains(' ') || GROUPS.iter().any(|(_, names)| names.contains(&path));
            assert!(is_grouped, "`{path}` is in no group");
            assert!(EXAMPLES.iter().any(|(name, _)| *name == path), "`{path}` has no example");
        });
        for (path, examples) in EXAMPLES {
            for (typed, _) in *examples {
                assert!(typed.starts_with(path), "{typed}");
                let is_there = Cli::command().find_subcommand(path.split(' ').next().unwrap()).is_some();
                let typed = typed.split(" | ").next().unwrap();
                // What is quoted is one word.
                let parts = typed.split('"').enumerate();
                let words = parts.flat_map(|(number, part)| match number % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
                let words = ["bellwether"].into_iter().chain(words);
                assert!(!is_there || command().try_get_matches_from(words).is_ok(), "{typed}");
            }
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let help = command().render_help().to_string();
        assert!(lines(&help, 80) <= 24, "{help}");
        let mut built = command();
        built.build();
        each(&built, "", &mut |command, path| {
            let help = command.clone().render_help().to_string();
            assert!(lines(&help, 100) <= 50, "{path}: {help}");
        });
    }
}

//! The documentation: its commands, run in order, and its tables of keys.
//!
//! A block that starts with `# pipelines/NAME.toml` is a definition for the commands after it. The getting started page
//! is run like the others, but in an empty folder and in a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether::audit::{AuditColumn, AuditRows, audit_rows};
use serde_json::Value;

use crate::support::choices;
use crate::support::program::Place;
use crate::support::terminal::Window;
use crate::support::tools::{PYTHON, needs};

/// The getting started page.
const FIRST_HOUR: &str = "docs/getting-started.md";

/// The other pages, in reading order.
const PAGES: [&str; 13] = [
    "README.md",
    "docs/nightly.md",
    "docs/backtest.md",
    "docs/notebooks.md",
    "docs/changes.md",
    "docs/skill.md",
    "docs/operations.md",
    "docs/stores.md",
    "docs/interface.md",
    "docs/definitions.md",
    "docs/more-definitions.md",
    "docs/columns.md",
    "docs/how-it-works.md",
];

/// The sections of a definition that most definitions have, in the order of their use; `MORE_KEYS` has the others.
const KEYS: (&str, [&str; 7]) =
    ("docs/definitions.md", ["source", "signals", "sentiment", "dataset", "join", "filter", "output"]);
const MORE_KEYS: &str = "docs/more-definitions.md";

/// If set, the printed output is written to the pages.
const BLESS: &str = "BELLWETHER_BLESS";

const BEGIN_OF_KEYS: &str = "<!-- keys -->\n";
const END_OF_KEYS: &str = "<!-- end of keys -->\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares a page with its expected text, or writes it.
#[track_caller]
fn is_current(name: &str, made: &str, equal: impl Fn(&str) -> String) {
    let path = page(name);
    let shown = fs::read_to_string(&path).expect("a page");
    if std::env::var_os(BLESS).is_some() {
        fs::write(path, made).expect("a page");
        return;
    }
    let (shown, made) = (equal(&shown), equal(made));
    let differing = shown.lines().zip(made.lines()).find(|(shown, made)| shown != made);
    assert!(shown == made, "{name} is not what is printed now, from {differing:#?} on; write it with `{BLESS}=1`");
}

#[test]
fn the_commands_in_the_docs_print_the_documented_output() {
    let place = Place::new();
    fs::create_dir(place.file("pipelines")).expect("a folder of definitions");
    for entry in fs::read_dir(page("pipelines")).expect("definitions") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, place.file("pipelines").join(path.file_name().expect("a name"))).expect("a definition");
    }
    for name in PAGES {
        let shown = fs::read_to_string(page(name)).expect("a page");
        is_current(name, &with_outputs(&place, &shown, pipe), mask);
    }
}

#[test]
fn getting_started_matches_a_terminal_session() {
    needs!(PYTHON);
    let place = Place::new();
    let shown = fs::read_to_string(page(FIRST_HOUR)).expect("a page");
    is_current(FIRST_HOUR, &with_outputs(&place, &shown, screen), mask);
}

/// A page with the current output of its `console` blocks. Its definitions are written to their paths.
fn with_outputs(place: &Place, page: &str, printed: impl Fn(&Place, &str) -> String) -> String {
    let mut made = String::new();
    let mut is_console = false;
    for (block, line) in page.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((&page[*end..], line))
    }) {
        match line.trim_end() {
            "```console" => is_console = true,
            "```toml" => write(place, block),
            "```" => is_console = false,
            command if is_console => {
                if let Some(command) = command.strip_prefix("$ ") {
                    made += line;
                    made += &printed(place, command);
                }
                continue;
            }
            _ => {}
        }
        made += line;
    }
    made
}

/// Writes a block that starts with the path of a definition.
fn write(place: &Place, block: &str) {
    let (text, _) = block.split_once("```").expect("the end of the block");
    let Some(path) = text.lines().next().and_then(|line| line.strip_prefix("# pipelines/")) else { return };
    fs::create_dir_all(place.file("pipelines")).expect("a folder of definitions");
    fs::write(place.file("pipelines").join(path), text).expect("a definition");
}

/// The output of a command, both streams.
fn pipe(place: &Place, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_bellwether"));
    let folder = program.parent().expect("a folder of programs").display();
    let command = command.replace("cargo run --release -- ", "bellwether ");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} 2>&1")]).current_dir(place.path()).env_clear();
    let output = shell.env("PATH", format!("{folder}:{path}")).output().expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{command}: {text}");
    text.replace(&format!("{}/", place.path().display()), "")
}

/// The final screen of a command in a terminal. Questions are answered with Enter.
fn screen(place: &Place, command: &str) -> String {
    let seen = Window { widths: "80", answers: &["", ""] }.shell(place, command).expect_success();
    let folder = format!("{}/", place.path().display());
    seen.lines.iter().map(|line| line.replace(&folder, "") + "\n").collect()
}

/// A page without the parts that differ between days and machines: numbers and words that contain one, signals,
/// plots, spaces, progress of a stage, ages of data, and names of extremes. Failed commands print the same everywhere.
fn mask(page: &str) -> String {
    let mut masked = String::new();
    for output in page.split_inclusive("\n$ ") {
        let (output, rest) = output.split_once("\n```").unwrap_or((output, ""));
        let is_failure = output.lines().any(|line| line.starts_with("error: "));
        masked += &if is_failure { output.to_owned() } else { masked_output(output) };
        masked += &masked_output(rest);
    }
    masked
}

fn masked_output(page: &str) -> String {
    let is_unit = |word: &str| ["B", "kB", "MB", "GB", "ms", "s"].contains(&word.trim_end_matches([',', '.']));
    let is_signal = |word: &str| ["buy", "sell"].contains(&word);
    let varies = |word: &str| is_unit(word) || is_signal(word) || word.contains(|c: char| c.is_ascii_digit());
    let word = |word: &str| if varies(word) { "#".to_owned() } else { word.to_owned() };
    let is_drawn = |word: &&str| word.chars().all(|c| ('\u{2500}'..='\u{259f}').contains(&c));
    let line = |line: &str| -> String {
        if line.starts_with("  newest ") {
            return "the newest date".to_owned();
        }
        // The sector or pair with the highest share may change from day to day.
        let is_of_shares = line.starts_with("  ") && line.contains(" %");
        if line.starts_with("Buys are ") || line.starts_with("Lowest: ") || is_of_shares {
            return "shares".to_owned();
        }
        line.split_whitespace().filter(|word| !is_drawn(word)).map(word).collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = page.lines().map(line).filter(|line| !line.is_empty()).collect();
    let stage = |line: &String| line.split_once(": ").map(|(stage, _)| stage.to_owned()).filter(|it| !it.contains(' '));
    lines.dedup_by(|line, before| {
        let is_further = stage(line).is_some() && stage(line) == stage(before);
        if is_further {
            before.clone_from(line);
        }
        is_further
    });
    lines.join("\n")
}

#[test]
fn the_docs_list_every_key_as_the_schema_describes_it() {
    let schema = fs::read_to_string(page("pipelines/definition.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let sections = schema["properties"].as_object().expect("sections");
    let (first_page, first) = KEYS;
    let rest: Vec<&str> =
        sections.iter().filter(|(_, value)| value["$ref"].is_string()).map(|(name, _)| &**name).collect();
    assert!(first.iter().all(|name| rest.contains(name)), "{rest:?}");
    let rest: Vec<&str> = rest.into_iter().filter(|name| !first.contains(name)).collect();
    for (name, sections) in [(first_page, &first[..]), (MORE_KEYS, &rest)] {
        let shown = fs::read_to_string(page(name)).expect("a page");
        let (before, after) = shown.split_once(BEGIN_OF_KEYS).expect("the beginning of the keys");
        let (_, after) = after.split_once(END_OF_KEYS).expect("the end of the keys");
        let keys: String = sections.iter().map(|section| keys(&schema, section)).collect();
        is_current(name, &format!("{before}{BEGIN_OF_KEYS}{keys}\n{END_OF_KEYS}{after}"), str::to_owned);
    }
}

#[test]
fn the_docs_list_every_column_as_a_plan_describes_it() {
    let name = "docs/columns.md";
    let shown = fs::read_to_string(page(name)).expect("a page");
    let (before, rest) = shown.split_once("<!-- columns -->\n").expect("the beginning of the columns");
    let (_, after) = rest.split_once("<!-- end of columns -->\n").expect("the end of the columns");
    let made = format!("{before}<!-- columns -->\n{}<!-- end of columns -->\n{after}", columns());
    is_current(name, &made, str::to_owned);
}

/// A table of the columns of each kind of dataset, and a list of those of the rows of each audit.
fn columns() -> String {
    let (added, statistics) = (choices("Added"), choices("Statistic"));
    let signals = format!(
        "archive.claimed = true\nidentity.file = \"identity.csv\"\nlabels.horizons = \"5d\"\n[sentiment]\nsummary = true\nhistorical = true\n[dataset]\nadd = {added:?}\n[join]\nwindows = [\"7d\"]\n\
        half_lives = [\"3d\"]\n\
        stats = {statistics:?}\n\
        sources = [\"articles\", \"summary\", \"historical\"]\nhistorical = [\"score\"]\n"
    );
    let kinds =
        [("A row for each signal", signals), ("A row for each article", "dataset.kind = \"news\"\n".to_owned())];
    let place = Place::new();
    fs::write(place.file("identity.csv"), "ticker,from,to,id\nXOM,,,1\n").expect("a file");
    let mut tables = String::new();
    let mut described = BTreeSet::new();
    for (heading, rest) in kinds {
        place.define("it", &format!("source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n{rest}"));
        let plan: Value =
            serde_json::from_str(&place.run(["check", "it", "--json"]).expect_success().stdout).expect("JSON");
        let _ = write!(tables, "\n## {heading}\n\n");
        let columns = plan["definitions"][0]["plan"]["columns"].as_array().expect("columns");
        let is_new = |column: &&Value| !described.contains(column["name"].as_str().expect("a name"));
        let as_above: Vec<String> = columns
            .iter()
            .filter(|column| !is_new(column))
            .map(|column| format!("`{}`", column["name"].as_str().expect("a name")))
            .collect();
        if !as_above.is_empty() {
            let _ = write!(tables, "It has {} as above, and:\n\n", as_above.join(", "));
        }
        let _ = write!(tables, "| column | holds | null if |\n|---|---|---|\n");
        for column in columns.iter().filter(is_new) {
            let cells = ["name", "meaning", "null"].map(|cell| column[cell].as_str().unwrap_or_default());
            // The page says once what these are.
            let [name, holds, null] = cells.map(|cell| {
                cell.replace(" in the 7 days that end `lag` before the date", " in the window")
                    .replace("`lag` before the date or earlier", "by then")
                    .replace(
                        "`news_count` is null, or no article in the window has",
                        "unknown, or no article in the window has",
                    )
                    .replace('|', "\\|")
            });
            let _ = writeln!(tables, "| `{name}` | {holds} | {null} |");
        }
        described.extend(columns.iter().map(|column| column["name"].as_str().expect("a name").to_owned()));
    }
    for AuditRows { audit, each, columns } in audit_rows() {
        let _ = write!(tables, "\n## The rows of `audit {audit}`\n\n{each}\n\n");
        // The others mean what they mean in a dataset, and those of the other operation what those of the one mean.
        for AuditColumn { field, what } in columns.iter().filter(|column| !column.what.is_empty()) {
            let _ = writeln!(tables, "- `{}`: {what}", field.name());
        }
    }
    tables + "\n"
}

/// The keys of a section, a line each.
fn keys(schema: &Value, section: &str) -> String {
    let value = &schema["properties"][section];
    let kind = value["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a section");
    let described = |value: &Value| value["description"].as_str().unwrap_or_default().replace('\n', " ");
    let mut list = format!("\n### `[{section}]`\n\n{}\n\n", described(value));
    for (key, value) in schema["$defs"][kind]["properties"].as_object().expect("keys") {
        let described = described(value);
        let values = values(&schema["$defs"], value, &described);
        let _ = writeln!(list, "- **`{key}`**: {described}{values}");
    }
    list
}

/// What each value of a key means, if it is one of a few and the key's own words leave some out.
fn values(definitions: &Value, key: &Value, described: &str) -> String {
    // A value, or a list of them.
    let is_list = key["anyOf"].as_array().is_some_and(|of| of.len() == 2);
    let one = if is_list { &key["anyOf"][0] } else { key };
    let values = one["$ref"].as_str().and_then(|path| definitions[path.rsplit('/').next()?]["oneOf"].as_array());
    let Some(values) = values.filter(|values| values.len() <= 12) else { return String::new() };
    let is_told = |value: &Value| described.contains(&format!("`{}`", value["const"].as_str().unwrap_or_default()));
    if values.iter().all(is_told) {
        return String::new();
    }
    let value = |value: &Value| {
        let (name, meaning) =
            (value["const"].as_str().expect("a value"), value["description"].as_str().expect("a meaning"));
        format!(" `{name}`: {meaning}")
    };
    values.iter().map(value).collect()
}

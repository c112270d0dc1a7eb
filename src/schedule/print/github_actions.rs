//! A GitHub Actions workflow, which runs what is due.
//!
//! GitHub's schedules are in UTC, so the workflow starts at the times that those of the definitions may be there, and
//! `schedule --once` finds out which one is due. The data is kept in a cache, which GitHub removes when it is not used
//! for a week: so it is used twice a week, and where nothing says which times are done, a definition is run at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bellwether::error::Result;
use bellwether::text::escape::{escape, shell};

use super::settings::Action;
use super::{EXIT_CODES, Settings, Setup, in_utc, quote};

/// Twice a week.
const KEEP_CACHE: &str = "17 3 * * 1,4";

pub(super) fn workflow(setup: &Setup) -> Result<String> {
    let mut lines = BTreeSet::new();
    for (plan, schedule) in &setup.plans {
        lines.extend(in_utc::expressions(plan, schedule, setup.now)?);
    }
    if !lines.iter().any(|line| is_more_than_weekly(line)) {
        lines.insert(KEEP_CACHE.to_owned());
    }
    let crons: String = lines.iter().map(|line| format!("    - cron: {}\n", quote(line))).collect();
    let here = Here::of(setup);
    Ok(format!(
        "\
# Commit as .github/workflows/bellwether.yml, and add the API key as the secret BELLWETHER_API_KEY.
# The schedule is in UTC and covers winter and summer; what is due is decided in the time zones of the definitions:
{listed}# GitHub starts workflows late at times: a `catch_up` of less than an hour may skip runs.
{EXIT_CODES}{left_out}\
# The cache is removed when it is not used for a week or grows beyond 10 GB, and the archive in it is the only copy of what
# was known when: keep that in a `[store]`, with its credentials as secrets.
name: bellwether

on:
  schedule:
{crons}  workflow_dispatch:

concurrency:
  group: bellwether
  cancel-in-progress: false

{folder}jobs:
  schedule:
    runs-on: ubuntu-latest
    timeout-minutes: 330
    env:
      BELLWETHER_API_KEY: ${{{{ secrets.BELLWETHER_API_KEY }}}}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/cache/restore@v4
        with:
          path: {path}
          key: bellwether-${{{{ github.run_id }}}}
          restore-keys: bellwether-
{install}      # A definition of which nothing is kept, at first or without the cache, is run at once; if that fails, again at the
      # next start.
      - run: |
          code=0
          new=()
          for name in {names}; do
            [ -e {memory}/\"$name\".json ] || new+=(\"$name\")
          done
          {once} || code=$?
          for name in \"${{new[@]}}\"; do
            {run} || {{ code=$?; rm -f {memory}/\"$name\".json; }}
          done
          exit \"$code\"
      - uses: actions/cache/save@v4
        if: always()
        with:
          path: {path}
          key: bellwether-${{{{ github.run_id }}}}
",
        listed = setup.schedule_comments(),
        left_out = here.left_out(setup),
        folder = here.working_directory(),
        path = here.cache_folders(),
        install = here.install(setup),
        names = setup.plans.iter().map(|(plan, _)| shell(&plan.name)).collect::<Vec<_>>().join(" "),
        memory = shell(&format!("{}/schedule", here.data)),
        once = here.command(Action::Once),
        run = here.command(Action::Run("$name")),
    ))
}

/// Whether an expression names two days of each week or more.
fn is_more_than_weekly(line: &str) -> bool {
    let fields: Vec<&str> = line.split(' ').collect();
    fields[2..4] == ["*", "*"] && (fields[4] == "*" || fields[4].contains([',', '-']))
}

/// What there is in a checkout, with paths that are relative to the project.
struct Here {
    /// The project in its repository; empty for all of it.
    project: String,
    data: String,
    /// None for the one in the folder of data.
    archive: Option<String>,
    settings: Settings,
    /// What is elsewhere on this machine, and what the workflow uses instead.
    notes: Vec<String>,
}

impl Here {
    fn of(setup: &Setup) -> Self {
        let top = setup.root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&setup.root);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let inside = |path: &Path| path.strip_prefix(&setup.root).ok().map(text).filter(|path| !path.is_empty());
        let mut notes = Vec::new();
        let mut kept = |option: &str, path: &Path| {
            let found = inside(path);
            if found.is_none() {
                notes.push(format!("Left out: `{option} {}`, which is outside the project.", path.display()));
            }
            found
        };
        let data = kept("--data", &setup.data).unwrap_or_else(|| "output".to_owned());
        let archive = Some(&setup.archive).filter(|archive| **archive != setup.data.join("archive"));
        let archive = archive.and_then(|archive| kept("--archive", archive));
        let metrics = setup.settings.metrics.as_deref().and_then(|path| kept("--metrics", path)).map(PathBuf::from);
        let store = setup.settings.store.clone().filter(|store| {
            let is_elsewhere = store.folder().is_some();
            if is_elsewhere {
                notes.push(format!("Left out: `--store {store}`, which is a folder of this machine."));
            }
            !is_elsewhere
        });
        let log = setup.settings.log.clone().or_else(|| Some("json".to_owned()));
        let settings = Settings { metrics, store, log, ..setup.settings.clone() };
        Self { project: setup.root.strip_prefix(top).map(text).unwrap_or_default(), data, archive, settings, notes }
    }

    /// A command, for a shell in the project. The name of a definition may be a variable.
    fn command(&self, action: Action<'_>) -> String {
        let mut words = vec!["bellwether".to_owned()];
        words
            .extend(action.words().into_iter().map(|word| if word == "$name" { "\"$name\"".to_owned() } else { word }));
        let mut options = Vec::new();
        if self.data != "output" {
            options.extend(["--data".to_owned(), self.data.clone()]);
        }
        if let Some(archive) = &self.archive {
            options.extend(["--archive".to_owned(), archive.clone()]);
        }
        // The metrics are those of the scheduler.
        let settings = match action {
            Action::Run(_) => Settings { metrics: None, ..self.settings.clone() },
            _ => self.settings.clone(),
        };
        options.extend(settings.options(action));
        words.extend(options.iter().map(|word| shell(word)));
        words.join(" ")
    }

    /// The folders to keep, from the top of the repository.
    fn cache_folders(&self) -> String {
        let below = |path: &String| match &self.project[..] {
            "" => path.clone(),
            project => format!("{project}/{path}"),
        };
        match &self.archive {
            None => quote(&below(&self.data)),
            Some(archive) => quote(&format!("{}\n{}", below(&self.data), below(archive))),
        }
    }

    fn working_directory(&self) -> String {
        if self.project.is_empty() {
            return String::new();
        }
        format!("defaults:\n  run:\n    working-directory: {}\n\n", quote(&self.project))
    }

    /// The step that installs the program: from the project, if it is that of the program.
    fn install(&self, setup: &Setup) -> String {
        let manifest = fs::read_to_string(setup.root.join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|line| line.trim() == "name = \"bellwether\"") {
            return "      - run: cargo install --locked --path .\n".to_owned();
        }
        "      # Set the variable BELLWETHER_SOURCE of the repository to the address of the Git repository of Bellwether.
      - run: cargo install --locked --git \"$SOURCE\" bellwether
        env:
          SOURCE: ${{ vars.BELLWETHER_SOURCE }}
"
        .to_owned()
    }

    fn left_out(&self, setup: &Setup) -> String {
        let notes = self.notes.iter().map(|note| format!("# {}\n", escape(note)));
        notes.chain([setup.left_out(Action::Once)]).collect()
    }
}

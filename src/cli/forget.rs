//! `bellwether forget`: takes bad runs back.

use bellwether::archive::ForgetReason;
use bellwether::disk::links;
use bellwether::run::{Forgot, ForgotRun};

use super::prelude::*;

/// Take bad runs back: no command counts them any more.
///
/// A run stays, beside a note that says why. The note is sent to the store and fetched from it like a run, so that every
/// machine leaves the run out, also as of instants before the note; whatever leaves it out says so.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether forget 20261120T213000Z-7f3a --reason \"wrong clock\"
      leave this run out from now on")]
pub(super) struct Forget {
    /// The names of the runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    /// Why, in a line: it is shown wherever the runs are left out.
    #[arg(long, value_name = "TEXT")]
    reason: ForgetReason,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Forget {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let Folders { data, archive, .. } = self.folders.of_project(project);
        links::refuse_below(&data, &archive)?;
        let name = |run: &String| run.strip_prefix("run=").unwrap_or(run).to_owned();
        let runs: Vec<String> = self.runs.iter().map(name).collect();
        let forgot = cancellable(move |control| run::forget(&archive, &runs, &self.reason, control))?;
        self.json.say(|| &forgot, || describe(&forgot))
    }
}

fn describe(Forgot { runs }: &Forgot) -> String {
    let mut text = String::new();
    for ForgotRun { run, reason, is_new, .. } in runs {
        let already = if *is_new { "" } else { " already" };
        text += &format!("run `{run}` is forgotten{already}: {}\n", escape(reason));
    }
    if runs.iter().any(|run| run.is_new) {
        let (these, notes) = if runs.len() == 1 { ("it", "the note") } else { ("them", "the notes") };
        text += &format!(
            "the next run leaves {these} out, and sends {notes} to the store; so does `bellwether store push`\n"
        );
    }
    text
}

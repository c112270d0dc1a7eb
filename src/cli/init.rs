//! `bellwether init`: a definition to begin with.

use std::env;
use std::error::Error as _;
use std::path::Path;

use bellwether::definition::{BaseUrl, DefinitionFile, unusable_name};
use bellwether::disk::{file, links};
use bellwether::error::{Error, ErrorKind};
use bellwether::key;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{OfferOptions, offered_sectors};
use bellwether::time::Clock;
use bellwether::trust::{self, Author};

use super::interruptible;
use super::options::{definition_value, usage};
use super::talk::{Result, ask, is_interactive, note, say};

/// Create a starter definition.
///
/// Asks for the two addresses of the service on a terminal, and the service for its sectors if there is a key in
/// `BELLWETHER_API_KEY` or `BELLWETHER_API_KEY_FILE`. Nothing is overwritten.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether init
      answer two questions
  bellwether init mine --base-url https://a.example/v1 --sentiment-base-url https://b.example/v1
      ask nothing")]
pub(super) struct Init {
    /// The name of the definition, and of its dataset.
    #[arg(default_value = "signals")]
    name: String,

    /// The base address of the signals.
    #[arg(long, value_name = "URL", value_parser = definition_value::<BaseUrl>, requires = "sentiment_base_url")]
    base_url: Option<BaseUrl>,

    /// The base address of news and sentiment.
    #[arg(long, value_name = "URL", value_parser = definition_value::<BaseUrl>, requires = "base_url")]
    sentiment_base_url: Option<BaseUrl>,

    /// Use the built-in demo service, which needs no key.
    #[arg(long, conflicts_with_all = ["base_url", "sentiment_base_url"])]
    demo: bool,
}

impl Init {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let path = project.definitions().join(format!("{}.toml", self.name));
        // The name is checked before any question.
        if self.name.contains('/') {
            return Err(unusable_name(Path::new(&self.name)).into());
        }
        DefinitionFile::new(path.clone(), String::new())?;
        if path.symlink_metadata().is_ok() {
            return Err(Error::new(ErrorKind::Storage, format!("`{}` already exists", path.display()))
                .with_hint("choose another name, or edit the file")
                .into());
        }
        let source = match (self.base_url, self.sentiment_base_url) {
            (Some(signals), Some(sentiment)) => Some((signals, sentiment)),
            _ if self.demo => None,
            _ if is_interactive() => addresses()?,
            _ => {
                let hint = "add `--base-url` and `--sentiment-base-url`, or `--demo`";
                return Err(usage("the addresses of the service are missing", hint));
            }
        };
        let guessed = definition(&self.name, source.as_ref(), &GUESSES);
        let text = match &source {
            Some(source) if has_key() => match sectors_of(&self.name, source, project)? {
                sectors if sectors.is_empty() => guessed,
                sectors => definition(&self.name, Some(source), &sectors),
            },
            Some(_) => {
                note(
                    "note: the sectors are examples; with a key in `BELLWETHER_API_KEY`, `init` asks the service for its own",
                );
                guessed
            }
            None => guessed,
        };
        // The written definition passes `check`.
        Plan::of(DefinitionFile::new(path.clone(), text.clone())?)?;
        write(&path, &text)?;
        if let Err(error) = trust::require(Author::File, &path) {
            let reason = error.source().map_or_else(|| error.to_string(), |reason| reason.to_string());
            note(&format!("warning: {reason}, so the definition may not run commands, nor use keys and stores"));
            note(&format!("hint: {}", error.hint().unwrap_or_default()));
        }
        let (shown, name) = (path.display(), &self.name);
        let next = if source.is_some() { "doctor" } else { "run" };
        say(&format!("wrote {shown}\nnext: `bellwether {next} {name}`\n"))
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        links::refuse(folder)?;
        let is_new = !folder.exists();
        file::create_folders(folder)?;
        // Whatever the process's mask, nobody else may write what the user will run.
        if is_new {
            trust::restrict(folder)?;
        }
    }
    file::replace(path, text.as_bytes())?;
    Ok(trust::restrict(path)?)
}

/// The two addresses, as answered on the terminal; none for the demo service.
fn addresses() -> Result<Option<(BaseUrl, BaseUrl)>> {
    note("Without an address, the built-in demo service is used.");
    let Some(signals) = address("Base address of the signals: ")? else { return Ok(None) };
    loop {
        if let Some(sentiment) = address("Base address of news and sentiment: ")? {
            return Ok(Some((signals, sentiment)));
        }
        note("Both addresses are needed; they may be the same.");
    }
}

/// Prompts for an address until it is valid; none if the answer is empty.
fn address(question: &str) -> Result<Option<BaseUrl>> {
    loop {
        let answer = ask(question)?;
        if answer.is_empty() {
            return Ok(None);
        }
        match answer.parse::<BaseUrl>() {
            Ok(address) => return Ok(Some(address)),
            Err(refusal) => note(&format!("error: {}", refusal.replace('\n', "\nhint: "))),
        }
    }
}

/// Sectors of a service that was not asked.
const GUESSES: [&str; 3] = ["energy", "healthcare", "financials"];

/// Whether there is a key that the definition need not name.
fn has_key() -> bool {
    [key::source::VARIABLE, key::source::FILE_VARIABLE]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The sectors that the service has; none if it has none of the usual ones, or cannot be asked, which is said.
fn sectors_of(name: &str, addresses: &(BaseUrl, BaseUrl), project: &Project) -> Result<Vec<String>> {
    note("asking the service for its sectors");
    let text = definition(name, Some(addresses), &GUESSES);
    let plan = Plan { author: Author::Caller, ..Plan::of(DefinitionFile::new(format!("{name}.toml").into(), text)?)? };
    let asked: bellwether::error::Result<_> = interruptible(None, async |control| {
        let options = OfferOptions { data: project.data(), clock: Clock::System, control };
        offered_sectors(&plan, &options).await
    });
    match asked.map(|offered| offered.sectors) {
        Ok(sectors) if sectors.is_empty() => {
            note("note: it has none of the usual names: the sectors are examples");
            Ok(Vec::new())
        }
        Ok(sectors) => Ok(sectors.iter().map(ToString::to_string).collect()),
        Err(error) if error.kind() != ErrorKind::Interrupted => {
            let causes = error.causes().map(|cause| format!(": {cause}")).collect::<String>();
            note(&format!("note: the sectors are examples: {error}{causes}"));
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// A definition with comments.
fn definition<S: AsRef<str>>(name: &str, addresses: Option<&(BaseUrl, BaseUrl)>, sectors: &[S]) -> String {
    let sectors: Vec<&str> = sectors.iter().map(AsRef::as_ref).collect();
    let source = match addresses {
        None => "# The built-in demo service; replace it with the addresses of yours.\n\
                 service = \"demo\"\n\
                 # base_url = \"https://signals.example.com/v1\"\n\
                 # sentiment_base_url = \"https://sentiment.example.com/v1\"\n"
            .to_owned(),
        Some((signals, sentiment)) => {
            format!("base_url = \"{}\"\nsentiment_base_url = \"{}\"\n", signals.0, sentiment.0)
        }
    };
    let starter = include_str!("starter.toml").replace("{name}", name);
    starter.replace("{sectors}", &format!("{sectors:?}")).replace("{source}\n", &source)
}

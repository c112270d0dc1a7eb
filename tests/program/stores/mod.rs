//! Archive and datasets in an object store: several machines share a bucket and lose nothing.

mod answers;
mod credentials;
mod faults;
mod kills;
mod machines;
mod providers;
mod prunes;
mod readers;
mod refusals;
mod repairs;
mod requests;
mod scopes;
mod verifies;
mod writers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::bucket::Bucket;
use crate::support::program::{Outcome, Place};
use crate::support::rows::sealed_folders;
use crate::support::stub_store::StubStore;

/// A machine: its own folder, a definition, and a shared store.
struct Machine {
    place: Place,
    store: String,
    environment: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(definition: &str, store: &str, environment: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let place = Place::new();
        place.define("it", definition);
        Self { place, store: store.to_owned(), environment: environment.into_iter().collect() }
    }

    fn with_bucket(definition: &str, bucket: &Bucket) -> Self {
        Self::new(definition, &bucket.url("team/a"), bucket.environment())
    }

    fn with_stub(definition: &str, stub: &StubStore) -> Self {
        Self::new(definition, &stub.url("team/a"), stub.environment())
    }

    /// The program with the address and keys of the store.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env("BELLWETHER_STORE", &self.store).env("BELLWETHER_API_KEY", "demo");
        command.envs(self.environment.clone());
        command
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    fn csv(&self) -> Vec<u8> {
        fs::read(self.place.file("output/datasets/it/latest/it.csv")).expect("a dataset")
    }

    /// The names of the sealed folders of its archive, oldest first.
    fn folders(&self) -> Vec<String> {
        sealed_folders(&self.place.file("output/archive/vendor"))
    }

    /// What `verify --store` says of a store.
    fn status(&self) -> Value {
        let told = self.run(&["verify", "--store", "--sizes", "--json"]).expect_success().stdout;
        serde_json::from_str(&told).expect("JSON")
    }

    /// How it and the store differ.
    fn difference(&self) -> Value {
        self.status()["difference"].clone()
    }

    /// The version that `latest` points to.
    fn latest(&self) -> String {
        let link = fs::read_link(self.place.file("output/datasets/it/latest")).expect("a link");
        link.display().to_string()
    }
}

/// A definition against a service that a test started.
fn definition(source: &str) -> String {
    format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n[output]\nformat = \"csv\"\n")
}

/// A folder for a store, and its address.
fn folder_store() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", folder.path().join("store").display());
    (folder, url)
}

/// Every file below a folder, as a path from it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).expect("a folder that can be read") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).expect("it is below").to_owned()),
            }
        }
    }
    found.sort();
    found
}

//! The program in a temporary folder.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use bellwether::run::CancellationToken;
use tempfile::TempDir;

/// A temporary folder to start the program in.
pub(crate) struct Place {
    folder: TempDir,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for a test") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a definition to `pipelines/`.
    pub(crate) fn define(&self, name: &str, text: &str) {
        let folder = self.file("pipelines");
        fs::create_dir_all(&folder).expect("a folder of definitions");
        let file = folder.join(name).with_extension("toml");
        fs::write(&file, text).expect("a definition");
        // Trusted, whatever the mask of the tests.
        for (path, mode) in [(&folder, 0o755), (&file, 0o644)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
        }
    }

    /// A command for the program with an empty environment except `PATH`.
    pub(crate) fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
        command.args(arguments).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn run<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    /// Packs the runs in the archive, few as they may be.
    #[track_caller]
    pub(crate) fn pack(&self) {
        let packed = bellwether::harness::pack(&self.file("output/archive"), 0, &CancellationToken::new());
        packed.expect("an archive that can be packed");
    }

    /// Prunes the archive as if everything had been packed two days ago.
    #[track_caller]
    pub(crate) fn prune_packed(&self) {
        self.age_packs();
        self.run(["prune"]).expect_success();
    }

    /// Makes packs and merges old enough for what they replace to be pruned.
    pub(crate) fn age_packs(&self) {
        let then = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
        for seal in self.files().iter().filter(|path| path.ends_with("run.json")) {
            let kind = seal.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
            if seal.starts_with("output/archive") && (kind.starts_with("pack=") || kind.starts_with("merge=")) {
                File::open(self.file(".").join(seal)).and_then(|it| it.set_modified(then)).expect("a seal");
            }
        }
    }

    /// Every file below the folder, as a relative path.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder that can be read") {
                let path = entry.expect("an entry").path();
                match path.is_dir() && !path.is_symlink() {
                    true => folders.push(path),
                    false => found.push(path.strip_prefix(self.path()).expect("it is below").to_owned()),
                }
            }
        }
        found.sort();
        found
    }
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn expect_success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn failed_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }
}

/// The ad hoc builds of a dataset, oldest first.
pub(crate) fn builds(place: &Place, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.file(&format!("output/datasets/{name}/builds"))).into_iter().flatten();
    let mut builds: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    builds.sort();
    builds
}

/// The only ad hoc build of a dataset.
#[track_caller]
pub(crate) fn only_build(place: &Place, name: &str) -> PathBuf {
    let builds = builds(place, name);
    let [only] = &builds[..] else { panic!("one ad hoc build: {builds:?}") };
    only.clone()
}

/// `bellwether serve` as a process, with its printed addresses.
pub(crate) struct DemoService {
    process: Child,
    /// The lines of a definition's `[source]`.
    pub(crate) source: String,
}

impl DemoService {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::serve(place, &[&["--demo"], arguments].concat())
    }

    /// The demo or an archive.
    pub(crate) fn serve(place: &Place, arguments: &[&str]) -> Self {
        Self::of(place.command(["serve"]).args(arguments))
    }

    /// A command that serves.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the service starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output is piped"));
        // Tests stop a service and start another one in its place.
        let mut source = "name = \"vendor\"\n".to_owned();
        for _ in 0..2 {
            lines.read_line(&mut source).expect("it prints its addresses");
        }
        Self { process, source }
    }

    /// Its process.
    pub(crate) fn process(&self) -> &Child {
        &self.process
    }

    /// Either address.
    pub(crate) fn address(&self, name: &str) -> &str {
        let line = self.source.lines().find(|line| line.starts_with(name)).expect("the address is printed");
        line.split('"').nth(1).expect("it is quoted")
    }
}

impl Drop for DemoService {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the output of a child to its end.
pub(crate) fn drain(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    if let Some(mut stream) = stream {
        stream.read_to_string(&mut text).expect("it prints text");
    }
    text
}

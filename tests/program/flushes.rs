//! After a command that writes, a power cut loses nothing: every file and every entry of a folder that it leaves was
//! flushed. The calls of the program are recorded with strace, and every path that exists in the end is looked up in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::{Outcome, Place};
use crate::support::tools::{Tool, needs};

const CALLS: &str =
    "mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,fsync,fdatasync,openat,open,write";

/// What is durable, as far as a record of calls says.
#[derive(Debug, Default)]
struct Disk {
    /// Files whose content was flushed after they were written to last.
    contents: BTreeSet<PathBuf>,
    /// Entries that are new in their folder, and were not flushed yet.
    new: BTreeSet<PathBuf>,
    /// Every entry that was created.
    created: BTreeSet<PathBuf>,
}

impl Disk {
    fn create(&mut self, path: PathBuf) {
        self.created.insert(path.clone());
        self.new.insert(path);
    }

    fn flush(&mut self, path: &Path) {
        self.contents.insert(path.to_owned());
        self.new.retain(|entry| entry.parent() != Some(path));
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        for paths in [&mut self.contents, &mut self.new, &mut self.created] {
            let moved: Vec<PathBuf> = paths.iter().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                paths.remove(&path);
                let below = path.strip_prefix(from).expect("it starts with it");
                paths.insert(if below == Path::new("") { to.to_owned() } else { to.join(below) });
            }
        }
        self.create(to.to_owned());
    }

    /// Follows a line of a record, such as `12 mkdir("output", 0777) = 0`.
    fn follow(&mut self, line: &str, root: &Path) {
        let Some((call, rest)) = line.split_once(' ').and_then(|(_, call)| call.trim_start().split_once('(')) else {
            return;
        };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { return };
        if result.starts_with('-') {
            return;
        }
        // Quoted names, below the folder of a descriptor `AT_FDCWD</place>` or the current one.
        let descriptors: Vec<&str> = arguments.split('<').skip(1).filter_map(|text| text.split('>').next()).collect();
        let names: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
        let path = |place: usize| {
            let folder = descriptors.get(place).or(descriptors.first()).map_or(root, Path::new);
            folder.join(names[place]).components().collect::<PathBuf>()
        };
        match call {
            "mkdir" | "mkdirat" => self.create(path(0)),
            "openat" | "open" if arguments.contains("O_CREAT") && arguments.contains("O_EXCL") => self.create(path(0)),
            "rename" | "renameat" | "renameat2" => self.rename(&path(0), &path(1)),
            "link" | "linkat" => {
                if self.contents.contains(&path(0)) || !self.created.contains(&path(0)) {
                    self.contents.insert(path(1));
                }
                self.create(path(1));
            }
            "symlink" => self.create(root.join(names[1])),
            "symlinkat" => self.create(descriptors.first().map_or(root, Path::new).join(names[1])),
            "write" => {
                descriptors.first().map(|file| self.contents.remove(Path::new(file)));
            }
            "fsync" | "fdatasync" => self.flush(Path::new(descriptors[0])),
            _ => {}
        }
    }

    /// What exists and would be lost.
    fn at_risk(&self) -> Vec<String> {
        let hidden =
            |path: &&PathBuf| !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(".locks"));
        let created = || self.created.iter().filter(|path| path.symlink_metadata().is_ok()).filter(hidden);
        let entries =
            created().filter(|path| self.new.contains(*path)).map(|path| format!("the entry {}", path.display()));
        let is_file = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_file());
        let contents = created().filter(is_file).filter(|path| !self.contents.contains(*path));
        entries.chain(contents.map(|path| format!("the content of {}", path.display()))).collect()
    }
}

fn record(place: &Place, root: &Path, arguments: &[&str]) -> Disk {
    let log = place.file("calls.txt");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "4096", "-e", &format!("trace={CALLS}"), "-e", "signal=none", "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_bellwether")).args(arguments).current_dir(root).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Outcome::of(&mut command).expect_success();
    let log = fs::read_to_string(log).expect("strace wrote what was called; `tests/run` installs it");
    let mut disk = Disk::default();
    // A call that another thread interrupted is recorded in two lines, by the number of its thread.
    let mut begun: Vec<(String, String)> = Vec::new();
    for line in log.lines() {
        let thread = line.split(' ').next().unwrap_or_default().to_owned();
        if let Some(start) = line.strip_suffix(" <unfinished ...>") {
            begun.push((thread, start.to_owned()));
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let at = begun.iter().position(|(other, _)| *other == thread).expect("it began");
            disk.follow(&(begun.remove(at).1 + end), root);
        } else {
            disk.follow(line, root);
        }
    }
    assert!(disk.created.len() > 1, "{arguments:?}: {disk:?}");
    disk
}

#[test]
fn everything_that_a_command_leaves_is_flushed_with_the_folders_above() {
    needs!(Tool::Command("strace"));
    let place = Place::new();
    let root = place.path().canonicalize().unwrap();
    let text = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\noutput.partition_by = [\"period\"]\n";
    place.define("it", text);
    let commands: [&[&str]; 6] = [
        &["run", "it", "-q", "--data", "disk/of/mine", "--store", "file:///ROOT/store"],
        &["run", "it", "-q", "--data", "disk/of/mine"],
        &["run", "it", "-q", "--data", "disk/of/mine"],
        &["build", "it", "-q", "--data", "disk/of/mine", "--ticker", "XOM"],
        &["store", "pull", "--data", "another/one", "--store", "file:///ROOT/store"],
        &["init", "mine", "-C", "deep", "--demo"],
    ];
    fs::create_dir_all(root.join("deep")).unwrap();
    fs::create_dir_all(root.join("store")).unwrap();
    for (number, command) in commands.into_iter().enumerate() {
        if number == 2 {
            // The next run packs them.
            (0..14).for_each(|_| drop(place.run(commands[1]).expect_success()));
        }
        let url = format!("file://{}/store", root.display());
        let arguments: Vec<&str> =
            command.iter().map(|&word| if word == "file:///ROOT/store" { &url } else { word }).collect();
        let at_risk = record(&place, &root, &arguments).at_risk();
        assert!(at_risk.is_empty(), "{command:?}: a power cut may lose\n{}", at_risk.join("\n"));
    }
    let is_pack = |path: &PathBuf| path.to_string_lossy().contains("/pack=");
    assert!(place.files().iter().any(is_pack), "no run packed");
}

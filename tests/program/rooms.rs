//! The rooms of the library and of the program: what each imports stands below it, so that none imports itself by way of
//! another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// The names that follow `crate::` in code that is not of tests.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let name =
        |rest: &str| rest.split(|letter: char| letter != '_' && !letter.is_lowercase()).next().map(str::to_owned);
    lines.flat_map(|line| line.split("crate::").skip(1).filter_map(name).collect::<Vec<_>>()).collect()
}

/// The rooms of a crate with those that they import.
fn rooms(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources(&root) {
        let path = file.strip_prefix(&root).expect("it is below");
        let room = path.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
        let is_of_tests = path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
        if !is_of_tests && !["lib", "main", "harness"].contains(&&*room) {
            let imported = imports(&fs::read_to_string(&file).expect("a text"));
            rooms.entry(room).or_default().extend(imported);
        }
    }
    for (room, imported) in &mut rooms {
        imported.remove(room);
    }
    rooms
}

#[test]
fn no_room_imports_one_that_stands_on_it() {
    for source in [
        "crates/bellwether/src",
        "crates/columns/src",
        "crates/demo/src",
        "crates/spark/src",
        "crates/statistics/src",
        "src",
    ] {
        let mut rooms = rooms(source);
        assert!(rooms.len() > 1, "{source}");
        // Those that import no other stand lowest; without them, those that only imported them do, and so on.
        loop {
            let is_lowest = |imported: &BTreeSet<String>| imported.iter().all(|name| !rooms.contains_key(name));
            let lowest: Vec<String> =
                rooms.iter().filter(|(_, imported)| is_lowest(imported)).map(|(room, _)| room.clone()).collect();
            if lowest.is_empty() {
                break;
            }
            rooms.retain(|room, _| !lowest.contains(room));
        }
        assert!(rooms.is_empty(), "these rooms of {source} import one another, or what does: {rooms:#?}");
    }
}

//! The rooms of the library and of the program: what each imports stands below it, so that none imports itself by way of
//! another, and few of its own files do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// A text without its tests, which stand last.
fn code(text: &str) -> &str {
    let is_of_tests =
        |rest: &&str| rest.lines().next().is_some_and(|line| line.contains("mod ") && line.ends_with('{'));
    let tests = text.split("#[cfg(test)]\n").skip(1).find(is_of_tests);
    &text[..tests.map_or(text.len(), |tests| tests.as_ptr().addr() - text.as_ptr().addr())]
}

/// The names that follow `crate::` in code that is not of tests.
fn imports(text: &str) -> BTreeSet<String> {
    let lines = code(text).lines().filter(|line| !line.trim_start().starts_with("//"));
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

/// A module by the names that lead to it from the root of its crate.
type Module = Vec<String>;

/// The modules of a crate, each with the text of its file without tests.
fn modules(source: &str) -> BTreeMap<Module, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut modules = BTreeMap::new();
    for file in sources(&root) {
        let path = file.strip_prefix(&root).expect("it is below").with_extension("");
        let mut names: Module = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        names.pop_if(|name| ["lib", "main", "mod"].contains(&&**name));
        if !names.iter().any(|name| ["harness", "tests"].contains(&&**name)) {
            let text = fs::read_to_string(&file).expect("a text");
            modules.insert(names, code(&text).to_owned());
        }
    }
    modules
}

/// The paths of a `use`, of which one may have several in braces.
fn paths(tree: &str) -> Vec<String> {
    let Some((head, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in rest.rsplit_once('}').expect("a closing brace").0.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().expect("the first").push(letter),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths(&format!("{}{}", head.trim(), part.trim()))).collect()
}

/// What the paths of each module's `use` lines lead to; by name those that it hands on.
fn used(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, (Vec<Module>, BTreeMap<String, Module>)> {
    let mut used = BTreeMap::new();
    for (module, text) in modules {
        let (mut own, mut handed_on) = (Vec::new(), BTreeMap::new());
        for statement in text.split("use ").skip(1).zip(text.split("use ")) {
            let (tree, before) = (statement.0.split(';').next().unwrap_or_default(), statement.1);
            let line = before.rsplit('\n').next().unwrap_or_default();
            if !(line.is_empty() || line.starts_with("pub")) {
                continue;
            }
            for path in paths(&tree.split_whitespace().collect::<Vec<_>>().join(" ")) {
                let mut names = path.split("::").map(|name| name.trim().to_owned()).peekable();
                let mut full = module.clone();
                match names.peek().map_or("", String::as_str) {
                    "crate" => full.clear(),
                    "self" | "super" => {}
                    name if modules.contains_key(&[&full[..], &[name.to_owned()]].concat()) => {}
                    _ => continue,
                }
                names.next_if(|name| ["crate", "self"].contains(&&**name));
                while names.next_if(|name| name == "super").is_some() {
                    full.pop();
                }
                full.extend(names);
                if line.starts_with("pub") {
                    handed_on.insert(full.last().cloned().unwrap_or_default(), full.clone());
                } else {
                    own.push(full);
                }
            }
        }
        used.insert(module, (own, handed_on));
    }
    used
}

/// The circles of modules that import one another, each by their paths.
fn circles(source: &str) -> Vec<String> {
    let modules = modules(source);
    let used = used(&modules);
    // The module that an item is in, where others hand it on.
    let home = |mut full: Module| {
        for _ in 0..8 {
            let cut = (0..=full.len()).rev().find(|cut| modules.contains_key(&full[..*cut])).unwrap_or_default();
            let on = full.get(cut).and_then(|name| used.get(&full[..cut].to_vec())?.1.get(name));
            match on {
                Some(on) if *on != full => full = on.iter().chain(&full[cut + 1..]).cloned().collect(),
                _ => return full[..cut].to_vec(),
            }
        }
        full
    };
    let mut reached: BTreeMap<&Module, BTreeSet<Module>> = used
        .iter()
        .map(|(module, (own, _))| (*module, own.iter().map(|full| home(full.clone())).collect::<BTreeSet<_>>()))
        .collect();
    // What is reached by way of others, until nothing is added.
    loop {
        let before: usize = reached.values().map(BTreeSet::len).sum();
        for module in modules.keys() {
            let more: BTreeSet<Module> =
                reached[module].iter().filter_map(|next| reached.get(next)).flatten().cloned().collect();
            reached.get_mut(module).expect("a module").extend(more);
        }
        if reached.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    let meet = |one: &Module, other: &Module| reached[one].contains(other) && reached[other].contains(one);
    let mut found = BTreeSet::new();
    for module in modules.keys() {
        let circle: Vec<String> =
            modules.keys().filter(|other| meet(module, other)).map(|other| other.join("::")).collect();
        if circle.len() > 1 {
            found.insert(format!("{source}: {}", circle.join(", ")));
        }
    }
    found.into_iter().collect()
}

/// The folders of sources.
const CRATES: [&str; 7] = [
    "crates/bellwether/src",
    "crates/columns/src",
    "crates/demo/src",
    "crates/spark/src",
    "crates/statistics/src",
    "python/src",
    "src",
];

#[test]
fn no_room_imports_one_that_stands_on_it() {
    for source in CRATES {
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

#[test]
fn few_files_of_a_room_import_one_another() {
    let circles: Vec<String> = CRATES.iter().flat_map(|source| circles(source)).collect();
    assert!(circles.len() <= 6, "{} circles:\n{}", circles.len(), circles.join("\n"));
}

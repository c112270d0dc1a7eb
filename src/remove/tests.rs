use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use super::forms::{Contents, FOLDERS, Form};
use super::{file, folder};

/// A name that matches a pattern.
fn named(pattern: &str) -> String {
    let one = |token: char| match token {
        '#' | '%' => "7".to_owned(),
        '@' => "a".to_owned(),
        '*' => "x".to_owned(),
        '$' => "demo".to_owned(),
        literal => literal.to_string(),
    };
    pattern.chars().map(one).collect()
}

fn path_of(root: &Path, form: &Form) -> PathBuf {
    form.path.iter().fold(root.to_owned(), |path, pattern| path.join(named(pattern)))
}

/// Creates everything that a folder may contain, some levels deep, and returns its folders.
fn fill(folder: &Path, contents: &Contents, depth: usize) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    contents.files.iter().for_each(|pattern| fs::write(folder.join(named(pattern)), "ours").unwrap());
    let mut folders = vec![folder.to_owned()];
    if depth > 0 {
        for (patterns, contents) in contents.folders {
            let inside = patterns.iter().map(|pattern| folder.join(named(pattern)));
            folders.extend(inside.flat_map(|inside| fill(&inside, contents, depth - 1)));
        }
    }
    folders
}

/// Something that is not ours and must not change.
struct Decoy(tempfile::TempDir);

impl Decoy {
    /// Contains every name that is ours somewhere.
    fn new() -> Self {
        let decoy = tempdir().unwrap();
        for form in &FOLDERS {
            fill(&path_of(decoy.path(), form), form.contents, 3);
            fill(decoy.path(), form.contents, 3);
        }
        Self(decoy)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path.clone());
                }
                files.push(path);
            }
        }
        files.sort();
        files
    }
}

#[test]
fn a_folder_of_ours_is_removed_with_its_files() {
    for form in &FOLDERS {
        let root = tempdir().unwrap();
        let path = path_of(root.path(), form);
        fill(&path, form.contents, 3);
        folder(&path).unwrap();
        assert!(!path.exists() && root.path().exists(), "{:?}", form.path);
        folder(&path).unwrap();
    }
}

#[test]
fn foreign_files_are_never_removed_and_links_never_followed() {
    let decoy = Decoy::new();
    let before = decoy.files();
    for form in &FOLDERS {
        let root = tempdir().unwrap();
        let path = path_of(root.path(), form);
        let mut strangers = Vec::new();
        for (number, inside) in fill(&path, form.contents, 2).into_iter().enumerate() {
            let texts = ["notes.txt", ".hidden", "run.json.bak"].map(|name| inside.join(name));
            texts.iter().for_each(|path| fs::write(path, "mine").unwrap());
            strangers.extend(texts);
            let links = [inside.join("sealed"), inside.join("x=y"), inside.join(format!("{number}.arrow"))];
            for link in links.into_iter().filter(|link| !link.exists()) {
                symlink(decoy.0.path(), &link).unwrap();
                strangers.push(link);
            }
        }
        let refused = folder(&path).unwrap_err().to_string();
        assert!(refused.contains("was not made by bellwether"), "{refused}");
        let gone: Vec<_> = strangers.iter().filter(|path| path.symlink_metadata().is_err()).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
    assert_eq!(decoy.files(), before);
}

#[test]
fn a_folder_behind_a_link_in_the_data_folder_is_left_alone() {
    let decoy = Decoy::new();
    let before = decoy.files();
    for form in &FOLDERS {
        for depth in 0..form.path.len() {
            let root = tempdir().unwrap();
            let names: Vec<String> = form.path.iter().map(|pattern| named(pattern)).collect();
            let above = names[..depth].iter().fold(root.path().to_owned(), |path, name| path.join(name));
            fs::create_dir_all(&above).unwrap();
            let target = names[..=depth].iter().fold(decoy.0.path().to_owned(), |path, name| path.join(name));
            symlink(&target, above.join(&names[depth])).unwrap();
            folder(&path_of(root.path(), form)).unwrap_err();
        }
    }
    assert_eq!(decoy.files(), before);
}

#[test]
fn the_data_folder_itself_may_be_a_link() {
    let (disk, place) = (tempdir().unwrap(), tempdir().unwrap());
    symlink(disk.path(), place.path().join("output")).unwrap();
    let path = place.path().join("output/.scratch-20261120T213000Z-7f3a");
    fs::create_dir(&path).unwrap();
    folder(&path).unwrap();
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
}

#[test]
fn unknown_names_are_refused() {
    let place = tempdir().unwrap();
    for name in ["old", ".partial", ".partial/old", "demo/20261120T213000Z-7f3a", ".scratch-mine", "demo/.removed-old"]
    {
        let path = place.path().join(name);
        fs::create_dir_all(&path).unwrap();
        folder(&path).unwrap_err();
        assert!(path.exists(), "{name}");
    }
    for name in ["mine", ".mine", ".mine-20261120", "evidence/mine.body"] {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        file(&path).unwrap_err();
        assert!(path.exists(), "{name}");
    }
    let link = place.path().join("demo/.latest-20261120T213000Z-7f3a");
    fs::write(&link, "a file, where a link of ours would be").unwrap();
    file(&link).unwrap_err();
}

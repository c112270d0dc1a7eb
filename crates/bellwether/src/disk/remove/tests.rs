use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::tempdir;

use super::{FILES, FOLDERS, Form, Known, MATRIX, MATRIX_FOLDERS, RETIRED, Single};
use super::{check, file, folder, is_file_of_ours};

/// A name that matches a pattern.
fn name_matching(pattern: &str) -> String {
    let one = |token: char| match token {
        '#' | '%' => "7".to_owned(),
        '@' => "a".to_owned(),
        '~' => "#".to_owned(),
        '*' => "x".to_owned(),
        '$' => "demo".to_owned(),
        literal => literal.to_string(),
    };
    pattern.chars().map(one).collect()
}

fn path_of(root: &Path, form: &str) -> PathBuf {
    root.join(name_matching(form))
}

/// The paths of the folders that a form names, from the outermost.
fn levels(form: &str) -> Vec<&str> {
    let ends = form.match_indices('/').map(|(at, _)| at).chain([form.len()]);
    ends.map(|end| &form[..end]).collect()
}

/// Creates everything that a folder may contain, some levels deep, and returns its folders.
fn fill(folder: &Path, known: &Known, depth: usize) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    for pattern in known.files.iter().copied().flatten() {
        fs::write(folder.join(name_matching(pattern)), "ours").unwrap();
    }
    let mut folders = vec![folder.to_owned()];
    for pattern in known.folders.iter().copied().flatten().filter(|_| depth > 0) {
        let known = if MATRIX_FOLDERS.contains(pattern) { &MATRIX } else { known };
        folders.extend(fill(&folder.join(name_matching(pattern)), known, depth - 1));
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
            fill(&path_of(decoy.path(), form.0), form.1, 2);
            fill(decoy.path(), form.1, 1);
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
        let path = path_of(root.path(), form.0);
        fill(&path, form.1, 2);
        folder(&path).unwrap();
        assert!(!path.exists() && root.path().exists(), "{:?}", form.0);
        folder(&path).unwrap();
    }
}

#[test]
fn foreign_files_are_never_removed_and_links_never_followed() {
    let decoy = Decoy::new();
    let before = decoy.files();
    for form in &FOLDERS {
        let root = tempdir().unwrap();
        let path = path_of(root.path(), form.0);
        let mut strangers = Vec::new();
        for (number, inside) in fill(&path, form.1, 1).into_iter().enumerate() {
            let texts = ["notes.txt", ".hidden", "run.json.bak"].map(|name| inside.join(name));
            texts.iter().for_each(|path| fs::write(path, "mine").unwrap());
            strangers.extend(texts);
            let links = [inside.join("15d-bull"), inside.join("x=y"), inside.join(format!("{number}.arrow"))];
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
        for level in levels(form.0) {
            let root = tempdir().unwrap();
            let link = path_of(root.path(), level);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(path_of(decoy.0.path(), level), link).unwrap();
            folder(&path_of(root.path(), form.0)).unwrap_err();
        }
    }
    assert_eq!(decoy.files(), before);
}

#[test]
fn the_data_folder_itself_may_be_a_link() {
    let (disk, root) = (tempdir().unwrap(), tempdir().unwrap());
    symlink(disk.path(), root.path().join("output")).unwrap();
    let path = root.path().join("output/.scratch-20261120T213000Z-7f3a");
    fs::create_dir(&path).unwrap();
    folder(&path).unwrap();
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
}

#[test]
fn unknown_names_are_refused() {
    let disk = tempdir().unwrap();
    for name in ["old", ".partial", ".partial/old", "demo/20261120T213000Z-7f3a", ".scratch-mine", "demo/.removed-old"]
    {
        let path = disk.path().join(name);
        fs::create_dir_all(&path).unwrap();
        folder(&path).unwrap_err();
        assert!(path.exists(), "{name}");
    }
    for name in ["mine", ".mine", ".mine-20261120", "evidence/mine.body"] {
        let path = disk.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        file(&path).unwrap_err();
        assert!(path.exists(), "{name}");
    }
    let link = disk.path().join("demo/.latest-20261120T213000Z-7f3a");
    fs::write(&link, "a file, where a link of ours would be").unwrap();
    file(&link).unwrap_err();
}

/// The beginning of a file that proves that it is ours, of a dataset.
fn mark_of(form: &Form<Single>, dataset: &str) -> String {
    let mark = if let Single::Marked(mark) = form.1 { mark } else { "" };
    format!("{{\"at\":1,{}}}", mark.replace('$', dataset))
}

/// Creates a file or link of ours, and a file of someone else beside it; returns both.
fn place(root: &Path, form: &Form<Single>) -> (PathBuf, PathBuf) {
    let path = path_of(root, form.0);
    let beside = path.with_file_name("mine");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&beside, "mine").unwrap();
    match form.1 {
        Single::Link => symlink(&beside, &path).unwrap(),
        _ => {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::write(&path, mark_of(form, name.split('.').next().unwrap())).unwrap();
        }
    }
    (path, beside)
}

#[test]
fn each_file_or_link_of_ours_is_removed_and_nothing_beside_it() {
    for form in &FILES {
        let root = tempdir().unwrap();
        let (path, beside) = place(root.path(), form);
        assert!(is_file_of_ours(&path).unwrap() && !is_file_of_ours(&beside).unwrap(), "{:?}", form.0);
        file(&path).unwrap();
        assert!(path.symlink_metadata().is_err(), "{:?}", form.0);
        assert_eq!(fs::read(&beside).unwrap(), b"mine", "{:?}", form.0);
        assert!(!is_file_of_ours(&path).unwrap(), "it is gone");
        file(&path).unwrap();
    }
}

#[test]
fn what_has_the_name_of_a_file_of_ours_but_is_something_else_stays() {
    for form in &FILES {
        let root = tempdir().unwrap();
        let (path, beside) = place(root.path(), form);
        let ours = fs::read(&path).unwrap();
        let stays = |what: &str| {
            assert!(!is_file_of_ours(&path).unwrap(), "{what} at {:?}", form.0);
            let refused = file(&path).unwrap_err().to_string();
            assert!(refused.contains("is not a file or folder of bellwether"), "{refused}");
            assert!(path.symlink_metadata().is_ok() && beside.exists(), "{what} at {:?}", form.0);
            if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
        };
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        stays("a folder");
        if matches!(form.1, Single::Link) {
            fs::write(&path, "mine").unwrap();
            stays("a file");
            continue;
        }
        fs::write(&beside, &ours).unwrap();
        symlink(&beside, &path).unwrap();
        stays("a link to such a file");
        if matches!(form.1, Single::Marked(_)) {
            fs::write(&path, "mine").unwrap();
            stays("a file without the mark");
            fs::write(&path, mark_of(form, "another")).unwrap();
            stays("a file of another dataset");
            fs::write(&path, [vec![b' '; 4096], ours].concat()).unwrap();
            stays("a file with the mark far behind its beginning");
        }
    }
}

#[test]
fn a_run_pack_or_version_is_checked_before_it_is_retired_and_loses_nothing() {
    for form in &RETIRED {
        let root = tempdir().unwrap();
        let path = path_of(root.path(), form.0);
        check(&path).unwrap();
        let folders = fill(&path, form.1, 2);
        let files = |folder: &PathBuf| fs::read_dir(folder).unwrap().count();
        let before: Vec<usize> = folders.iter().map(files).collect();
        check(&path).unwrap();
        assert_eq!(folders.iter().map(files).collect::<Vec<_>>(), before, "{:?}", form.0);
        for inside in &folders {
            let note = inside.join("notes.txt");
            fs::write(&note, "mine").unwrap();
            let refused = check(&path).unwrap_err().to_string();
            let name = note.strip_prefix(&path).unwrap().display();
            assert_eq!(refused, format!("`{name}` in it was not made by bellwether"));
            fs::remove_file(&note).unwrap();
        }
        assert_eq!(folders.iter().map(files).collect::<Vec<_>>(), before, "{:?}", form.0);
    }
    let root = tempdir().unwrap();
    let other = root.path().join("evidence");
    fs::create_dir(&other).unwrap();
    check(&other).unwrap_err();
}

#[test]
fn a_file_or_pipe_in_place_of_a_folder_of_ours_is_refused() {
    for form in &FOLDERS {
        for level in levels(form.0) {
            let root = tempdir().unwrap();
            let at = path_of(root.path(), level);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let stays = || {
                let refused = folder(&path_of(root.path(), form.0)).unwrap_err().to_string();
                assert!(refused.contains("is not a file or folder of bellwether"), "{refused}");
                fs::remove_file(&at).unwrap();
            };
            fs::write(&at, "mine").unwrap();
            stays();
            // Whoever opened it for reading would wait for a writer.
            mknodat(CWD, &at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            stays();
        }
    }
}

//! The links of the documentation: each leads to a file and a heading, and the index to every page.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The pages outside `docs`.
const OF_THE_ROOT: [&str; 5] = ["README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "CHANGELOG.md"];

/// The index, from which the site is built.
const INDEX: &str = "docs/SUMMARY.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page without its blocks of code, by its path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let in_docs = fs::read_dir(root().join("docs")).expect("a folder of pages").map(|entry| {
        let name = entry.expect("an entry").file_name();
        Path::new("docs").join(name)
    });
    let paths = in_docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let paths = paths.chain(OF_THE_ROOT.map(PathBuf::from));
    paths.map(|path| (path.clone(), without_blocks(&fs::read_to_string(root().join(path)).expect("a page")))).collect()
}

fn without_blocks(page: &str) -> String {
    let mut is_block = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Where the links of a page lead, as they are written.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// The file and the heading of a link, unless it leads to another site.
fn target(page: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    let mut file = match path {
        "" => return Some((page.to_owned(), anchor)),
        _ => page.parent().expect("a folder").to_owned(),
    };
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => assert!(file.pop(), "{link} in {} leads out of the project", page.display()),
            _ => file.push(component),
        }
    }
    Some((file, anchor))
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| -> String {
        let letters = heading.chars().filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
        letters.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    let numbered = headings.map(anchor).map(|it| {
        let before = times.entry(it.clone()).or_default();
        *before += 1;
        if *before == 1 { it } else { format!("{it}-{}", *before - 1) }
    });
    numbered.collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, page)| (path, anchors(page))).collect();
    let mut broken = Vec::new();
    let mut whole = 0;
    for (path, page) in &pages {
        for link in links(page) {
            let Some((file, anchor)) = target(path, link) else { continue };
            let has_anchor = anchor.is_none_or(|it| anchors.get(&file).is_some_and(|of_page| of_page.contains(&it)));
            if has_anchor && root().join(&file).exists() {
                whole += 1;
            } else {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(whole > 50, "only {whole} links were found");
}

#[test]
fn the_index_lists_every_page_once() {
    let pages = pages();
    let index = Path::new(INDEX);
    let mut listed: Vec<PathBuf> =
        links(&pages[index]).filter_map(|link| target(index, link)).map(|(file, _)| file).collect();
    listed.sort();
    let expected: Vec<&PathBuf> = pages.keys().filter(|path| *path != index).collect();
    assert_eq!(listed.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_written_as_a_path_in_the_guide_for_contributors_is_there() {
    let guide = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("a page");
    let mut found = 0;
    for path in guide.split('`').skip(1).step_by(2).filter(|code| !code.contains([' ', '*', '…'])) {
        if ["crates/", "src/", "tests/", "docs/", "python/", "pipelines/", "release/"]
            .iter()
            .any(|it| path.starts_with(it))
        {
            assert!(root().join(path).exists(), "CONTRIBUTING.md names `{path}`, which is gone");
            found += 1;
        }
    }
    assert!(found > 80, "only {found} paths were found");
}

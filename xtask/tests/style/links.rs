//! Links between documents of the repository point to existing files.

use std::collections::BTreeSet;

use crate::source::{SourceFile, Violation};

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let texts = documents.filter_map(SourceFile::text);
    texts
        .flat_map(|(path, text)| {
            let mut violations = check_document(path, text, &paths);
            if path == MAP {
                violations.extend(check_map(text, &paths));
            }
            violations
        })
        .collect()
}

/// The map of the crates, whose diagrams name files.
const MAP: &str = "docs/crates.md";

/// Checks that each file named in a diagram exists in a crate that its section's heading links to.
/// A name with a folder may be another crate's.
fn check_map(text: &str, paths: &BTreeSet<&str>) -> Vec<Violation> {
    let (mut violations, mut crates) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            let roots = targets(line).map(|target| resolve(MAP, target));
            crates = roots.map(|root| root.replace("lib.rs", "")).collect();
            continue;
        }
        let is_part_of_name = |c: char| c.is_alphanumeric() || "/_.".contains(c);
        let names = line.split(|c: char| !is_part_of_name(c));
        for name in names.filter(|name| name.ends_with(".rs") && !name.contains("..")) {
            let end = format!("/{name}");
            let ends = |path: &&&str| path.ends_with(&end);
            let is_here = |path: &&str| crates.iter().any(|root| path.starts_with(root.as_str()));
            let mut found = paths.iter().filter(|path| ends(path));
            if !found.any(|path| name.contains('/') || is_here(path)) {
                let what = format!("{name} is in none of the section's crates");
                violations.push(Violation::new(MAP, index + 1, what));
            }
        }
    }
    violations
}

fn check_document(path: &str, text: &str, paths: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for target in targets(line) {
            let file = resolve(path, target);
            let is_folder = |known: &&str| known.starts_with(&format!("{file}/"));
            if !paths.contains(file.as_str()) && !paths.iter().any(is_folder) {
                let what = format!("a link to {target}, which does not exist");
                violations.push(Violation::new(path, index + 1, what));
            }
        }
    }
    violations
}

/// Returns the targets of links into the repository in a line, without fragments.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    let targets = ends.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(|target| target.split('#').next().unwrap_or(""))
        .filter(|target| !target.is_empty())
}

/// Returns the path of a link's target relative to the repository root.
fn resolve(document: &str, target: &str) -> String {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_map_are_files_of_their_section() {
        let paths = BTreeSet::from(["crates/a/src/x.rs", "crates/b/src/y/z.rs"]);
        let text = "## [`a`](../crates/a/src/lib.rs): a\n x.rs ─▶ y/z.rs\n z.rs, w.rs\n";
        let found = check_map(text, &paths);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let paths = BTreeSet::from(["README.md", "docs/a.md", "src/lib.rs"]);
        let complaints = |path: &str, text: &str| check_document(path, text, &paths).len();
        for (path, text, count) in [
            ("README.md", "[a](docs/a.md), [b](docs/b.md)", 1),
            ("docs/a.md", "[r](../README.md#top) [s](../src/)", 0),
            ("docs/a.md", "[r](README.md)", 1),
            ("README.md", "[x](https://example.org) [t](#top)", 0),
        ] {
            assert_eq!(complaints(path, text), count, "{path} {text}");
        }
    }
}

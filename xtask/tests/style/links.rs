//! Links between documents of the repository point to existing files.

use std::collections::BTreeSet;

use crate::source::{SourceFile, Violation};

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    documents
        .filter_map(SourceFile::text)
        .flat_map(|(path, text)| check_document(path, text, &paths))
        .collect()
}

fn check_document(path: &str, text: &str, paths: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for target in targets(line) {
            let file = resolve(path, target);
            let is_folder = |known: &&str| known.starts_with(&format!("{file}/"));
            if !paths.contains(file.as_str()) && !paths.iter().any(is_folder) {
                let what = format!("a link to {target}, which is not there");
                violations.push(Violation::new(path, index + 1, what));
            }
        }
    }
    violations
}

/// Returns the targets of links into the repository in a line, without fragments.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    let targets = ends
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target);
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
    fn links_that_lead_nowhere_are_found() {
        let paths = BTreeSet::from(["README.md", "docs/a.md", "src/lib.rs"]);
        let complaints = |path: &str, text: &str| check_document(path, text, &paths).len();
        assert_eq!(complaints("README.md", "[a](docs/a.md), [b](docs/b.md)"), 1);
        assert_eq!(
            complaints("docs/a.md", "[r](../README.md#top) [s](../src/)"),
            0
        );
        assert_eq!(complaints("docs/a.md", "[r](README.md)"), 1);
        assert_eq!(
            complaints("README.md", "[x](https://example.org) [t](#top)"),
            0
        );
    }
}

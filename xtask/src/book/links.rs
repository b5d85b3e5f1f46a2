//! Links between the pages of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Base URL of files outside the book.
const REPOSITORY: &str = "https://github.com/longwire/longwire/blob/main";

/// Pages copied from the repository root.
const FROM_ROOT: [&str; 4] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SPECIFICATION.md",
];

/// Pages by their path in the book, and the paths of all remaining files.
pub struct Pages {
    pages: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Pages {
    /// Reads every file of the book's sources.
    pub fn read(folder: &Path) -> Result<Pages, String> {
        let mut read = Pages {
            pages: BTreeMap::new(),
            files: BTreeSet::new(),
        };
        read.add(folder, "")
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(read)
    }

    fn add(&mut self, folder: &Path, before: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{before}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &format!("{name}/"))?;
            } else if name.ends_with(".md") {
                self.pages.insert(name, fs::read_to_string(entry.path())?);
            } else {
                self.files.insert(name);
            }
        }
        Ok(())
    }

    /// Redirects links to targets outside docs/, either to the book's copy or to the repository.
    pub fn move_links(&self, folder: &Path) -> Result<(), String> {
        for (page, text) in &self.pages {
            let moved = rewrite(text, |target| new_target(page, target));
            if moved != *text {
                fs::write(folder.join(page), moved).map_err(|error| format!("{page}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Returns the links to pages, files or headings that do not exist.
    pub fn broken(&self) -> Vec<String> {
        let summary = self.pages.get("SUMMARY.md").map_or("", String::as_str);
        let listed: BTreeSet<&str> = targets(summary).collect();
        let mut broken = Vec::new();
        for page in self.pages.keys() {
            if page != "SUMMARY.md" && !listed.contains(page.as_str()) {
                broken.push(format!("{page}: not in SUMMARY.md"));
            }
        }
        for (page, text) in &self.pages {
            for target in targets(text).filter(|target| !is_outside(target)) {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let file = match file {
                    "" => page.clone(),
                    file => resolve(page, file),
                };
                let problem = match self.pages.get(&file) {
                    Some(text) if !anchor.is_empty() && !anchors(text).contains(anchor) => {
                        "no such heading"
                    }
                    None if !self.files.contains(&file) => "no such page",
                    _ => continue,
                };
                broken.push(format!("{page}: {target}: {problem}"));
            }
        }
        broken
    }
}

fn is_outside(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Returns the new target of a link; `None` if unchanged.
fn new_target(page: &str, target: &str) -> Option<String> {
    if is_outside(target) || target.starts_with('#') || page == "SUMMARY.md" {
        return None;
    }
    let (file, anchor) = match target.find('#') {
        Some(at) => target.split_at(at),
        None => (target, ""),
    };
    let up = "../".repeat(page.matches('/').count());
    let source = if FROM_ROOT.contains(&page) {
        page.to_owned()
    } else {
        format!("docs/{page}")
    };
    let file = resolve(&source, file);
    if let Some(inside) = file.strip_prefix("docs/") {
        let inside = inside.replace("README.md", "index.md");
        return Some(format!("{up}{inside}{anchor}"));
    }
    if FROM_ROOT.contains(&file.as_str()) {
        Some(format!("{up}{file}{anchor}"))
    } else {
        Some(format!("{REPOSITORY}/{file}{anchor}"))
    }
}

/// Resolves a link relative to its page.
fn resolve(page: &str, target: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
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

/// Returns the link targets of a page, outside code.
pub fn targets(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| spans(line).map(|(start, end)| &line[start..end]))
}

/// Returns the lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns the ranges of link targets in a line.
fn spans(line: &str) -> impl Iterator<Item = (usize, usize)> {
    line.match_indices("](").filter_map(move |(at, mark)| {
        let start = at + mark.len();
        let inside = line[..at].matches('`').count() % 2 == 1;
        let length = line[start..].find(')')?;
        (!inside).then_some((start, start + length))
    })
}

/// Replaces the link targets of a page.
fn rewrite(text: &str, new: impl Fn(&str) -> Option<String>) -> String {
    let mut code = false;
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        let mut done = 0;
        if !code && !fence {
            for (start, end) in spans(line) {
                all += &line[done..start];
                let target = &line[start..end];
                all += &new(target).unwrap_or_else(|| target.to_owned());
                done = end;
            }
        }
        all += &line[done..];
    }
    all
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    for heading in headings.filter_map(|line| line.trim_start_matches('#').strip_prefix(' ')) {
        let letters = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        let name: String = letters.collect();
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(repeated);
        all.extend(free.into_iter().find(|name| !all.contains(name)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_moved() {
        let outside = format!("{REPOSITORY}/include/x.h");
        for (page, target, moved) in [
            ("a.md", "../SPECIFICATION.md#x", "SPECIFICATION.md#x"),
            ("how/b.md", "../../SPECIFICATION.md", "../SPECIFICATION.md"),
            ("SPECIFICATION.md", "docs/how/b.md", "how/b.md"),
            ("how/b.md", "../x/README.md#y", "../x/index.md#y"),
            ("how/b.md", "../../include/x.h", &outside),
        ] {
            let found = new_target(page, target);
            assert_eq!(found.as_deref(), Some(moved), "{page} {target}");
        }
        assert_eq!(new_target("a.md", "https://example.org"), None);
    }

    #[test]
    fn broken_links_are_found() {
        let page = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let pages = Pages {
            pages: BTreeMap::from([
                page("SUMMARY.md", "[a](a.md) [b](how/b.md)"),
                page(
                    "a.md",
                    "# A\n## Two words: `x`\n[b](how/b.md#b) `[c](c.md)`\n",
                ),
                page(
                    "how/b.md",
                    "# B\n[a](../a.md#two-words-x) [p](p.svg) [q](q.md)\n",
                ),
                page("c.md", "```\n[z](z.md)\n```\n[a](a.md#z)"),
            ]),
            files: BTreeSet::from(["how/p.svg".to_owned()]),
        };
        let found = pages.broken();
        let wanted = [
            "c.md: not in SUMMARY.md",
            "c.md: a.md#z: no such heading",
            "how/b.md: q.md: no such page",
        ];
        assert_eq!(found, wanted);
    }
}

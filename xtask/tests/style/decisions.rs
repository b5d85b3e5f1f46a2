//! The index of decisions lists every decision.

use crate::source::{SourceFile, Violation, text_of};

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let Some(index) = text_of(files, INDEX) else {
        let what = "the index of decisions is missing";
        return vec![Violation::new(INDEX, 0, what)];
    };
    let paths = files.iter().map(|file| &file.path);
    let names = paths.filter_map(|path| path.strip_prefix(FOLDER));
    let decisions: Vec<&str> = names.filter(|name| *name != "README.md").collect();
    let mut violations = Vec::new();
    for (position, name) in decisions.iter().enumerate() {
        let path = format!("{FOLDER}{name}");
        let links = index.matches(&format!("({name})")).count();
        if links != 1 {
            let what = format!("linked {links} times from {INDEX}, not once");
            violations.push(Violation::new(&path, 0, what));
        }
        let Some(number) = number(name) else {
            let what = "decisions are named NNNN-what-was-decided.md";
            violations.push(Violation::new(&path, 0, what));
            continue;
        };
        let mut earlier = decisions[..position].iter();
        if earlier.any(|earlier| self::number(earlier) == Some(number)) {
            violations.push(Violation::new(&path, 0, "another decision has this number"));
        }
    }
    violations
}

fn number(name: &str) -> Option<&str> {
    let (number, _) = name.strip_suffix(".md")?.split_once('-')?;
    (number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(index: &str, names: &[&str]) -> usize {
        let file = |name: &str, text: &str| SourceFile {
            path: format!("{FOLDER}{name}"),
            bytes: text.into(),
        };
        let mut files = vec![file("README.md", index)];
        files.extend(names.iter().map(|name| file(name, "")));
        check(&files).len()
    }

    #[test]
    fn decisions_are_linked_numbered_and_numbered_once() {
        let index = "[a](0001-a.md) [b](0002-b.md) [c](0002-c.md) [d](four.md)";
        assert_eq!(complaints(index, &["0001-a.md", "0002-b.md"]), 0);
        assert_eq!(complaints(index, &["0002-b.md", "0002-c.md"]), 1);
        assert_eq!(complaints(index, &["four.md"]), 1);
        assert_eq!(complaints(index, &["0003-unlinked.md"]), 1);
        assert_eq!(check(&[]).len(), 1);
    }
}

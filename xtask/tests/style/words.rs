//! No unfinished work, and no paths that exist on only one machine.

use crate::source::Violation;

/// Markers of unfinished work, which are refused in Rust sources. They are split here, so that this
/// file does not match.
const OPEN: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[ig", "nore"),
];

/// Paths that exist on only one machine.
const MACHINE: [&str; 4] = [
    concat!("/work", "/"),
    concat!("/tmp/t", "gt"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let open: &[&str] = if path.ends_with(".rs") { &OPEN } else { &[] };
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in open.iter().filter(|word| line.contains(**word)) {
            let what = format!("unfinished work: {word}");
            violations.push(Violation::new(path, index + 1, what));
        }
        for place in MACHINE.iter().filter(|place| points_at(line, place)) {
            let what = format!("a path that exists on only one machine: {place}");
            violations.push(Violation::new(path, index + 1, what));
        }
    }
    violations
}

/// Returns whether the absolute path `place` occurs in `line`. Occurrences within a longer path or
/// a URL do not count.
fn points_at(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_work_is_found_in_source_only() {
        for word in OPEN {
            let text = format!("fn f() {{}}\n// {word}");
            let found = check("a.rs", &text);
            assert_eq!(found.len(), 1, "{word}");
            assert_eq!(found[0].line, 2);
            assert!(check("a.md", &text).is_empty());
        }
    }

    #[test]
    fn machine_paths_are_found_in_any_text() {
        for place in MACHINE {
            let found = check("a.md", &format!("see `{place}x`"));
            assert_eq!(found.len(), 1, "{place}");
            assert!(check("a.md", &format!("https://example.org{place}x")).is_empty());
        }
    }
}

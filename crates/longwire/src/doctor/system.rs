//! Reads kernel files under /proc and /sys; any of them may be missing.

use std::fs;

/// Returns a file's text without surrounding white space; `None` if it is empty or unreadable.
pub(super) fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the integer in a file.
pub(super) fn number(path: &str) -> Option<i64> {
    read(path)?.parse().ok()
}

/// Returns the value of `key` in a file with `key : value` lines.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(name, _)| name.trim() == key);
    found.next().map(|(_, value)| value.trim())
}

/// Returns the bracketed word of a file such as `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// Returns the names in a directory, sorted.
pub(super) fn names(path: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_choices_are_found() {
        let text = "flags\t\t: fpu tsc\nmodel name\t: Some CPU @ 3 GHz: fast\n";
        assert_eq!(field(text, "flags"), Some("fpu tsc"));
        assert_eq!(field(text, "model name"), Some("Some CPU @ 3 GHz: fast"));
        assert_eq!(field(text, "bugs"), None);
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always madvise never"), None);
    }

    #[test]
    fn missing_files_are_none() {
        assert_eq!(read("/nonexistent/file"), None);
        assert_eq!(number("/nonexistent/file"), None);
        assert!(names("/nonexistent").is_empty());
    }
}

//! The files of the repository, and violations of its rules.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use syn::visit::Visit;

/// Maximum size of a tracked file; captures and similar data belong elsewhere.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub path: String,
    /// Line number, counted from 1; 0 for the whole file.
    pub line: usize,
    pub what: String,
}

impl Violation {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Violation {
        Violation {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line.max(1), self.what)
    }
}

/// A file of the repository.
#[derive(Debug)]
pub struct SourceFile {
    /// Path relative to the repository root.
    pub path: String,
    pub bytes: Vec<u8>,
}

impl SourceFile {
    /// Returns path and contents if the file is text.
    pub fn text(&self) -> Option<(&str, &str)> {
        Some((&self.path, std::str::from_utf8(&self.bytes).ok()?))
    }
}

/// Returns the text of a file; `None` if it is missing.
pub fn text_of<'a>(files: &'a [SourceFile], path: &str) -> Option<&'a str> {
    let file = files.iter().find(|file| file.path == path)?;
    file.text().map(|(_, text)| text)
}

/// Visits Rust code; ignores invalid code, which the compiler reports.
pub fn visited<V: Default + for<'ast> Visit<'ast>>(text: &str) -> V {
    let mut visitor = V::default();
    if let Some(file) = parse(text) {
        visitor.visit_file(&file);
    }
    visitor
}

/// Returns all tracked and untracked files, except those that git ignores.
pub fn files() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the root");
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root)
        .output()
        .expect("the style test asks git for the files");
    assert!(
        list.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&list.stderr)
    );
    let list = String::from_utf8(list.stdout).expect("paths are UTF-8");
    // A file whose removal has not been committed is listed, but does not exist.
    let files = list.split_terminator('\0').filter_map(|path| {
        let bytes = fs::read(root.join(path)).ok()?;
        let path = path.to_owned();
        Some(SourceFile { path, bytes })
    });
    files.collect()
}

/// Checks a file's size.
pub fn check_bytes(file: &SourceFile) -> Vec<Violation> {
    if file.bytes.len() <= FILE_BYTES_MAX {
        return Vec::new();
    }
    let what = format!(
        "{} bytes; a file has at most {FILE_BYTES_MAX}",
        file.bytes.len()
    );
    vec![Violation::new(&file.path, 0, what)]
}

/// Parses Rust; returns `None` for invalid code, which the compiler reports.
pub fn parse(text: &str) -> Option<syn::File> {
    syn::parse_file(text).ok()
}

#[test]
fn large_files_are_found() {
    let of_size = |size| SourceFile {
        path: "a.pcap".to_owned(),
        bytes: vec![0; size],
    };
    assert!(check_bytes(&of_size(FILE_BYTES_MAX)).is_empty());
    assert_eq!(check_bytes(&of_size(FILE_BYTES_MAX + 1)).len(), 1);
}

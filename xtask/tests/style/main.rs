//! Tests of the repository rules that a program can check.
//!
//! Each rule is a function from the text of a file to its violations, so that snippets can test the
//! rule. [`repository_keeps_its_rules`] applies all rules to all files, and reports all violations
//! together.

mod crates;
mod decisions;
mod engine;
mod language;
mod links;
mod safety;
mod size;
mod source;
mod structure;
mod words;

use source::Violation;

#[test]
fn repository_keeps_its_rules() {
    let files = source::files();
    assert!(
        files.len() > 20,
        "the repository was not found: {} files",
        files.len()
    );
    let mut violations: Vec<Violation> = files.iter().flat_map(source::check_bytes).collect();
    for (path, text) in files.iter().filter_map(source::SourceFile::text) {
        violations.extend(words::check(path, text));
        if path.ends_with(".rs") {
            violations.extend(size::check(path, text));
            violations.extend(safety::check(path, text));
        }
        if engine::is_pure(path) {
            violations.extend(engine::check(path, text));
        }
    }
    violations.extend(engine::check_root(&files));
    violations.extend(crates::check(&files));
    violations.extend(decisions::check(&files));
    violations.extend(language::check(&files));
    violations.extend(links::check(&files));
    violations.extend(structure::check(&files));
    violations.sort();
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(
        list.is_empty(),
        "{} violations:\n{}",
        list.len(),
        list.join("\n")
    );
}

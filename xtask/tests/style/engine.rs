//! The units, packet and engine crates are pure: no clock, I/O, threads, logging, random order or
//! unsafe code.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::crates::PURE;
use crate::source::{SourceFile, Violation, parse, text_of};

/// Attributes required at the root of each pure crate.
const ROOT_SAYS: [&str; 2] = ["#![no_std]", "#![forbid(unsafe_code)]"];

/// Words that occur only in impure code, with the reason for refusing them.
const WORDS: [(&str, &str); 13] = [
    (
        "std",
        "no operating system in a pure crate: use core and alloc",
    ),
    ("unsafe", "no unsafe code in a pure crate"),
    ("Instant", "no clock in a pure crate: time is an argument"),
    (
        "SystemTime",
        "no clock in a pure crate: time is an argument",
    ),
    (
        "HashMap",
        "iterates in a random order: use a BTreeMap or a Vec",
    ),
    (
        "HashSet",
        "iterates in a random order: use a BTreeSet or a Vec",
    ),
    ("print", "a pure crate prints nothing"),
    ("println", "a pure crate prints nothing"),
    ("eprint", "a pure crate prints nothing"),
    ("eprintln", "a pure crate prints nothing"),
    ("dbg", "a pure crate prints nothing"),
    ("log", "a pure crate logs nothing"),
    ("tracing", "a pure crate logs nothing"),
];

/// Returns whether a file belongs to a pure crate and is not a test.
pub fn is_pure(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    let in_pure = |name: &str| {
        path.strip_prefix("crates/")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with("/src/"))
    };
    PURE.iter().any(|(name, _)| in_pure(name)) && path.ends_with(".rs") && !is_test
}

pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let (Some(file), Ok(tokens)) = (parse(text), text.parse::<TokenStream>()) else {
        return Vec::new();
    };
    let mut tests = TestItems::default();
    tests.visit_file(&file);
    let mut found = Vec::new();
    identifiers(tokens, &mut found);
    let mut violations = Vec::new();
    for (line, name, next) in found {
        let refused = WORDS.iter().find(|(word, _)| *word == name);
        // `libm::log` is an ordinary function, so refuse `log` and `tracing` only as the start of a
        // path.
        let called = !matches!(name.as_str(), "log" | "tracing") || next == Some(':');
        if let Some((word, why)) = refused
            && called
            && !tests.ranges.iter().any(|range| range.contains(&line))
        {
            violations.push(Violation::new(path, line, format!("{word}: {why}")));
        }
    }
    violations
}

/// Checks that the root of each pure crate forbids everything that the compiler can forbid.
pub fn check_root(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, _) in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let text = text_of(files, &path).unwrap_or_default();
        for says in ROOT_SAYS {
            if !text.lines().any(|line| line == says) {
                violations.push(Violation::new(&path, 0, format!("lacks {says}")));
            }
        }
    }
    violations
}

/// Finds all identifiers: line, name, and the punctuation that follows, if any.
fn identifiers(tokens: TokenStream, found: &mut Vec<(usize, String, Option<char>)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) => {
                let next = match tokens.peek() {
                    Some(TokenTree::Punct(mark)) => Some(mark.as_char()),
                    _ => None,
                };
                found.push((name.span().start().line, name.to_string(), next));
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Lines of items compiled only for tests.
#[derive(Default)]
struct TestItems {
    ranges: Vec<RangeInclusive<usize>>,
}

impl<'ast> Visit<'ast> for TestItems {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::ExternCrate(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if attributes.iter().any(is_cfg_test) {
            self.ranges
                .push(item.span().start().line..=item.span().end().line);
        }
        visit::visit_item(self, item);
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let condition = attribute.meta.require_list();
    attribute.path().is_ident("cfg")
        && condition.is_ok_and(|condition| condition.tokens.to_string() == "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impure_code_is_found() {
        for text in [
            "use std::time::Duration;",
            "fn f() { let now = Instant::now(); }",
            "extern crate std;",
            "fn f() { println!(\"x\"); }",
            "fn f() { g(dbg!(1)); }",
            "fn f() { log::info!(\"x\"); }",
            "type A = hashbrown::HashMap<u8, u8>;",
            "fn f() { unsafe { g() } }",
            "macro_rules! m { () => { std::thread::yield_now() } }",
            "#[cfg(not(test))]\nmod m { use std::io; }",
        ] {
            let found = check("a.rs", text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
        }
    }

    #[test]
    fn pure_code_is_not() {
        for text in [
            "use core::time::Duration;",
            "/// An Instant of std, println!\nfn f() {}",
            "fn f() -> f64 { libm::log(2.0) }",
            "#[cfg(test)]\nmod tests {\n    extern crate std;\n    use std::vec;\n}",
            "#[cfg(test)]\nextern crate std;",
        ] {
            let found = check("a.rs", text);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }

    #[test]
    fn every_root_must_forbid() {
        assert_eq!(check_root(&[]).len(), PURE.len() * ROOT_SAYS.len());
        let roots = PURE.map(|(name, _)| SourceFile {
            path: format!("crates/{name}/src/lib.rs"),
            bytes: ROOT_SAYS.join("\n").into_bytes(),
        });
        assert!(check_root(&roots).is_empty());
    }

    #[test]
    fn pure_crates_without_their_tests_are_pure() {
        for (path, pure) in [
            ("longwire-units/src/lib.rs", true),
            ("longwire-packet/src/alter/mod.rs", true),
            ("longwire-packet/src/alter/anonymize_tests.rs", false),
            ("longwire/src/units.rs", false),
            ("longwire-engine/src/models/rate.rs", true),
            ("longwire-engine/src/link/tests.rs", false),
            ("longwire-engine/tests/link.rs", false),
            ("longwire-io/src/lib.rs", false),
        ] {
            assert_eq!(is_pure(&format!("crates/{path}")), pure, "{path}");
        }
    }
}

//! The engine is pure: no clock, no I/O, no threads, no log, no random
//! order, no unsafe code.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{SourceFile, Violation, parse};

const SOURCE: &str = "crates/longwire-engine/src/";
const ROOT: &str = "crates/longwire-engine/src/lib.rs";

/// What the crate's root must say.
const ROOT_SAYS: [&str; 2] = ["#![no_std]", "#![forbid(unsafe_code)]"];

/// Words that only impure code has, and why they are refused.
const WORDS: [(&str, &str); 13] = [
    ("std", "the engine knows no system: use core and alloc"),
    ("unsafe", "no unsafe code in the engine"),
    ("Instant", "no clock in the engine: time is an argument"),
    ("SystemTime", "no clock in the engine: time is an argument"),
    (
        "HashMap",
        "iterates in a random order: use a BTreeMap or a Vec",
    ),
    (
        "HashSet",
        "iterates in a random order: use a BTreeSet or a Vec",
    ),
    ("print", "the engine prints nothing"),
    ("println", "the engine prints nothing"),
    ("eprint", "the engine prints nothing"),
    ("eprintln", "the engine prints nothing"),
    ("dbg", "the engine prints nothing"),
    ("log", "the engine logs nothing"),
    ("tracing", "the engine logs nothing"),
];

/// Whether this file is part of the engine itself, not of its tests.
pub fn is_pure(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    path.starts_with(SOURCE) && path.ends_with(".rs") && !is_test
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
        // `libm::log` is a function of its own; a crate is followed by a
        // path, a macro by its mark.
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

/// The crate's root forbids what the compiler can forbid.
pub fn check_root(files: &[SourceFile]) -> Vec<Violation> {
    let root = files
        .iter()
        .find(|file| file.path == ROOT)
        .and_then(SourceFile::text);
    let text = root.map_or("", |(_, text)| text);
    let lacking = ROOT_SAYS
        .iter()
        .filter(|says| !text.lines().any(|line| line == **says));
    lacking
        .map(|says| Violation::new(ROOT, 0, format!("lacks {says}")))
        .collect()
}

/// Every identifier: its line, itself, and the mark that follows, if one does.
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

/// The lines of items that are compiled for tests only.
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
    let condition = attribute
        .meta
        .require_list()
        .map(|list| list.tokens.to_string());
    attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
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
    fn the_root_must_forbid() {
        assert_eq!(check_root(&[]).len(), ROOT_SAYS.len());
        let root = SourceFile {
            path: ROOT.to_owned(),
            bytes: ROOT_SAYS.join("\n").into_bytes(),
        };
        assert!(check_root(&[root]).is_empty());
    }

    #[test]
    fn the_engine_without_its_tests_is_pure() {
        assert!(is_pure("crates/longwire-engine/src/models/rate.rs"));
        assert!(!is_pure("crates/longwire-engine/src/link/tests.rs"));
        assert!(!is_pure("crates/longwire-engine/tests/link.rs"));
        assert!(!is_pure("crates/longwire-io/src/lib.rs"));
    }
}

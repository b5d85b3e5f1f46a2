//! Comments use the field's English, type names are unique, and booleans are tested with `if`.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::source::{SourceFile, Violation, visited};

/// Phrases to avoid in comments, in lower case, with replacements and reasons where helpful. A
/// space also matches a line break.
const PHRASES: [(&str, &str); 29] = [
    ("whoever", "name the caller, the user or the thread"),
    ("nobody", "name what is missing: \"no thread\", \"unused\""),
    ("anew", "\"again\", or name the action: \"is recomputed\""),
    ("beside", "\"next to\", \"in addition to\""),
    ("in vain", "\"without result\", or name the result"),
    ("told", "\"receives\", \"is notified\", \"is reported\""),
    ("tell", "\"report\", \"return\", \"determine\""),
    ("tells", "\"reports\", \"returns\", \"determines\""),
    ("telling", "\"reporting\", \"distinguishing\""),
    ("is said", "name who reports it"),
    ("are said", "name who reports it"),
    ("was said", "name who reported it"),
    ("be said", "name who reports it"),
    ("comes to", "\"reaches\", \"arrives at\", \"amounts to\""),
    ("came to", "\"reached\", \"arrived at\""),
    ("of its own", "\"separate\", \"own\", \"automatically\""),
    ("of their own", "\"separate\", \"own\""),
    ("behind it", "\"after it\", \"underlying\""),
    (
        "so many",
        "name the number: \"`count` frames\", \"this many\"",
    ),
    ("spoilt", "\"corrupted\", the term of RFCs"),
    ("spoils", "\"corrupts\", the term of RFCs"),
    ("forth", "name the direction"),
    ("mend", "\"repair\", \"fix\""),
    ("mends", "\"repairs\", \"fixes\""),
    ("mended", "\"repaired\", \"fixed\""),
    ("thick", "\"frequent\", \"at a high rate\""),
    ("whatever", "\"any\", \"regardless of\""),
    ("does not care", "\"ignores\", \"is independent of\""),
    ("do not care", "\"ignore\", \"are independent of\""),
];

/// The rules of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// No comment contains one of [`PHRASES`].
    Phrases,
    /// No doc begins with "What": its first line says what the item is or does.
    DocsBeginWithWhat,
    /// A type's name is unique in its crate.
    TypeNames,
    /// No `match` on a boolean.
    BooleanMatches,
}

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files.iter().filter_map(SourceFile::text) {
        if let Some(name) = crate_of(path)
            && path.ends_with(".rs")
        {
            crates.entry(name).or_default().push((path, text));
        }
    }
    let mut violations = Vec::new();
    for files in crates.into_values() {
        violations.extend(check_crate(&files));
    }
    violations
}

/// Returns the name of a crate in `crates` or `tools`, or of another top-level folder.
fn crate_of(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match parts.next()? {
        "crates" | "tools" => parts.next(),
        other => Some(other),
    }
}

fn check_crate(files: &[(&str, &str)]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in files {
        found.extend(check_comments(path, text));
        found.extend(check_matches(path, text));
    }
    found.extend(check_types(files));
    found.into_iter().map(|(_, violation)| violation).collect()
}

fn check_comments(path: &str, text: &str) -> Vec<(Rule, Violation)> {
    let mut found = Vec::new();
    for comment in comments(text) {
        if comment.is_doc && comment.text().trim_start().starts_with("What ") {
            let what = "a doc begins with \"What\"; say what the item is or does";
            let violation = Violation::new(path, comment.lines[0].0, what);
            found.push((Rule::DocsBeginWithWhat, violation));
        }
        let words = without_code(&comment.text()).to_lowercase();
        for (phrase, instead) in PHRASES {
            for at in occurrences(&words, phrase) {
                let what = format!("\"{phrase}\"; instead: {instead}");
                let violation = Violation::new(path, comment.line_of(at), what);
                found.push((Rule::Phrases, violation));
            }
        }
    }
    found
}

/// Returns the positions of a phrase at word boundaries.
fn occurrences(words: &str, phrase: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let at = words.match_indices(phrase).map(|(at, _)| at);
    at.filter(|at| {
        let before = words[..*at].chars().next_back();
        let after = words[at + phrase.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
    .collect()
}

/// Replaces code in backquotes by the same number of spaces.
fn without_code(text: &str) -> String {
    let mut inside = false;
    text.chars()
        .map(|c| {
            inside ^= c == '`';
            if inside && c.is_ascii() { ' ' } else { c }
        })
        .collect()
}

/// A comment: adjacent lines of one kind.
#[derive(Debug)]
struct Comment {
    is_doc: bool,
    /// Line numbers, counted from 1, and each line's text without its marker.
    lines: Vec<(usize, String)>,
}

impl Comment {
    /// Returns the lines, joined by single spaces.
    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        lines.join(" ")
    }

    /// Returns the line at a position in [`Comment::text`].
    fn line_of(&self, at: usize) -> usize {
        let mut end = 0;
        let line = self.lines.iter().find(|(_, line)| {
            end += line.len() + 1;
            at < end
        });
        line.map_or(0, |(number, _)| *number)
    }
}

/// Returns the comments of a Rust file, in order.
fn comments(text: &str) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut last_mark = "";
    let (mut number, mut counted) = (1, 0);
    for range in comment_ranges(text) {
        number += text[counted..range.start].matches('\n').count();
        counted = range.start;
        let (mark, body) = split_mark(&text[range]);
        let mut lines = body.lines().enumerate();
        if mark == last_mark
            && mark != "/*"
            && let Some(last) = comments.last_mut()
            && let Some((line, _)) = last.lines.last()
            && line + 1 == number
        {
            last.lines.push((number, body.trim().to_owned()));
            continue;
        }
        last_mark = mark;
        let first = lines.next().map_or("", |(_, line)| line);
        let first = (number, first.trim().to_owned());
        let others = lines.map(|(index, line)| {
            let line = line.trim().trim_start_matches('*').trim();
            (number + index, line.to_owned())
        });
        comments.push(Comment {
            is_doc: mark == "///" || mark == "//!",
            lines: std::iter::once(first).chain(others).collect(),
        });
    }
    comments
}

fn split_mark(comment: &str) -> (&'static str, &str) {
    let marks = ["///", "//!", "//", "/*"];
    let mark = marks.into_iter().find(|mark| comment.starts_with(mark));
    let mark = mark.unwrap_or("//");
    (mark, comment[mark.len()..].trim_end_matches("*/"))
}

/// Finds comments, outside literals, which may contain `//`.
fn comment_ranges(text: &str) -> Vec<Range<usize>> {
    let mut code = text.as_bytes().to_vec();
    blank_literals(text.parse().unwrap_or_default(), &mut code);
    let find = |at: usize, mark: &[u8]| {
        let found = code[at..].windows(2).position(|bytes| bytes == mark);
        found.map(|found| at + found)
    };
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(start) = [b"//", b"/*"]
        .iter()
        .filter_map(|mark| find(at, *mark))
        .min()
    {
        let rest = &text[start..];
        let len = if rest.starts_with("//") {
            rest.find('\n')
        } else {
            rest.find("*/").map(|end| end + 2)
        };
        at = start + len.unwrap_or(rest.len());
        ranges.push(start..at);
    }
    ranges
}

/// Replaces the literals in the code by spaces. Docs, which are literals too, are kept.
fn blank_literals(tokens: TokenStream, code: &mut [u8]) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => blank_literals(group.stream(), code),
            TokenTree::Literal(literal) => {
                let bytes = &mut code[literal.span().byte_range()];
                if !bytes.starts_with(b"/") {
                    bytes.fill(b' ');
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Checks that each type's name is unique in its crate. Excludes tests, and items under `cfg`,
/// which are alternatives of one type.
fn check_types(files: &[(&str, &str)]) -> Vec<(Rule, Violation)> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    let is_source = |path: &str| {
        path.contains("/src/") && !path.contains("tests/") && !path.ends_with("tests.rs")
    };
    for (path, text) in files.iter().filter(|(path, _)| is_source(path)) {
        for (name, line) in visited::<Types>(text).names {
            places.entry(name).or_default().push((path, line));
        }
    }
    let mut found = Vec::new();
    for (name, places) in places {
        for (path, line) in places.iter().skip(1) {
            let (first, first_line) = places[0];
            let what = format!("{name} is also defined in {first}:{first_line}");
            found.push((Rule::TypeNames, Violation::new(path, *line, what)));
        }
    }
    found
}

/// Type names with their lines.
#[derive(Default)]
struct Types {
    names: Vec<(String, usize)>,
}

impl Types {
    fn add(&mut self, name: &syn::Ident, attributes: &[syn::Attribute]) {
        if !has_cfg(attributes) {
            self.names
                .push((name.to_string(), name.span().start().line));
        }
    }
}

fn has_cfg(attributes: &[syn::Attribute]) -> bool {
    let mut paths = attributes.iter().map(syn::Attribute::path);
    paths.any(|path| path.is_ident("cfg"))
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !has_cfg(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.ident, &item.attrs);
    }
}

fn check_matches(path: &str, text: &str) -> Vec<(Rule, Violation)> {
    let matches: Matches = visited(text);
    let violation = |line| {
        let violation = Violation::new(path, line, "a match on a boolean; use if");
        (Rule::BooleanMatches, violation)
    };
    matches.lines.into_iter().map(violation).collect()
}

/// Lines of matches on booleans.
#[derive(Default)]
struct Matches {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Matches {
    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        if item.arms.iter().any(|arm| is_boolean(&arm.pat)) {
            self.lines.push(item.match_token.span.start().line);
        }
        visit::visit_expr_match(self, item);
    }
}

fn is_boolean(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Lit(literal) => matches!(literal.lit, syn::Lit::Bool(_)),
        syn::Pat::Or(or) => or.cases.iter().any(is_boolean),
        syn::Pat::Guard(guard) => is_boolean(&guard.pat),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<(Rule, usize)> {
        let found = check_comments("a.rs", text).into_iter();
        let found = found.chain(check_matches("a.rs", text));
        found.map(|(rule, found)| (rule, found.line)).collect()
    }

    #[test]
    fn phrases_are_found_in_comments_only() {
        for (text, _) in PHRASES {
            for comment in [
                format!("fn f() {{}}\n// {text} ends"),
                format!("//! A doc.\n//! It has {text}."),
                format!("fn f() {{}} /// x\n /* {text} */"),
                format!("fn f() -> char {{ '\"' }}\nconst X: &str = \"a\"; // {text}"),
            ] {
                assert_eq!(rules(&comment), [(Rule::Phrases, 2)], "{comment}");
            }
            for other in [
                format!("const X: &str = \"// {text}\";"),
                format!("const X: &str = r#\"\"// {text}\"#;"),
                format!("// `{text}` in code, re{text} and {text}s-x"),
            ] {
                assert_eq!(rules(&other), [], "{other}");
            }
        }
    }

    #[test]
    fn phrases_are_found_across_lines() {
        let split = rules("/// A doc so\n/// many\nfn f() {}");
        assert_eq!(split, [(Rule::Phrases, 1)]);
        assert_eq!(rules("/// A doc so\n// many\nfn f() {}"), []);
    }

    #[test]
    fn docs_begin_with_the_item() {
        let what = [(Rule::DocsBeginWithWhat, 2)];
        assert_eq!(rules("fn f() {}\n/// What a link is.\nfn g() {}"), what);
        assert_eq!(rules("fn f() {}\n//! What a link is."), what);
        let inside = "// What a link is.\n/// Link.\n/// What it is.\nfn f() {}";
        assert_eq!(rules(inside), []);
    }

    #[test]
    fn matches_on_booleans_are_found() {
        let of = |arms: &str| rules(&format!("fn f() {{ match x {{ {arms} }} }}"));
        for arms in ["true => 1, false => 2", "true if y => 1, _ => 2"] {
            assert_eq!(of(arms), [(Rule::BooleanMatches, 1)], "{arms}");
        }
        assert_eq!(of("Some(true) => 1, (true, false) => 2, _ => 3"), []);
    }

    #[test]
    fn type_names_are_unique_in_a_crate() {
        let a = "struct A;\nenum B {}\ntrait C { type A; }";
        for (path, text, count) in [
            ("src/b.rs", "type A = u8; fn f() { struct B; }", 2),
            ("src/b.rs", "#[cfg(test)]\nmod tests { struct A; }", 0),
            ("tests/it/b.rs", "struct A;", 0),
            ("src/a/tests.rs", "struct A;", 0),
        ] {
            let path = format!("crates/x/{path}");
            let found = check_types(&[("crates/x/src/a.rs", a), (&path, text)]);
            assert_eq!(found.len(), count, "{path} {text}");
        }
    }
}

//! Unsafe code is limited to certain files, and every unsafe block and implementation has a comment
//! that explains its soundness.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{Violation, visited};

/// Start of the comment before unsafe code.
const REASON: &str = "SAFETY:";

/// Files that may contain unsafe code, because they call the kernel or plugins, or share memory.
/// Files outside the I/O crate are exceptions.
const PLACES: [&str; 7] = [
    "crates/longwire-io/",
    // Reads memory described by Python libraries.
    "crates/longwire-python/src/input.rs",
    "crates/longwire-runtime/src/host.rs",
    "crates/longwire-runtime/src/plugin/",
    "crates/longwire-traffic/src/receive/witness.rs",
    "crates/longwire-testbed/src/guard.rs",
    "crates/longwire-testbed/src/spawn.rs",
];

pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let found = visited::<Unsafe>(text).found;
    let lines: Vec<&str> = text.lines().collect();
    let mut violations = Vec::new();
    for (line, start) in &found {
        if !has_reason(&lines, *line) && !has_reason(&lines, *start) {
            let what = format!("unsafe without `// {REASON}` before it");
            violations.push(Violation::new(path, *line, what));
        }
    }
    if !PLACES.iter().any(|place| path.starts_with(place))
        && let Some((line, _)) = found.first()
    {
        let what = "unsafe code in a file that is not in PLACES of the style test";
        violations.push(Violation::new(path, *line, what));
    }
    violations
}

/// Returns whether the comment directly above a line gives the reason. Attributes may be in
/// between.
fn has_reason(lines: &[&str], line: usize) -> bool {
    let above = lines[..line - 1].iter().rev().map(|line| line.trim_start());
    above
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .any(|line| line.starts_with("//") && line.contains(REASON))
}

/// Unsafe code: its line, and its statement's line.
#[derive(Default)]
struct Unsafe {
    found: Vec<(usize, usize)>,
    /// First lines of the statements, match arms and fields being visited.
    statements: Vec<usize>,
}

impl Unsafe {
    fn add(&mut self, line: usize) {
        let start = self.statements.last().copied().unwrap_or(line);
        self.found.push((line, start));
    }

    fn within(&mut self, line: usize, visit: impl FnOnce(&mut Unsafe)) {
        self.statements.push(line);
        visit(self);
        self.statements.pop();
    }

    /// Finds `unsafe` before a block or an implementation in a macro, because macros are not
    /// parsed.
    fn search(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match (token, tokens.peek()) {
                (TokenTree::Ident(word), Some(next)) if word == "unsafe" && opens(next) => {
                    self.add(word.span().start().line);
                }
                (TokenTree::Group(group), _) => self.search(group.stream()),
                _ => {}
            }
        }
    }
}

fn opens(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    }
}

impl<'ast> Visit<'ast> for Unsafe {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.add(block.unsafe_token.span.start().line);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some(word) = &item.unsafety {
            let line = word.span.start().line;
            self.found.push((line, item.span().start().line));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.search(call.tokens.clone());
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.within(item.span().start().line, |search| {
            visit::visit_item(search, item)
        });
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let line = statement.span().start().line;
        self.within(line, |search| visit::visit_stmt(search, statement));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.within(arm.span().start().line, |search| {
            visit::visit_arm(search, arm)
        });
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        self.within(field.span().start().line, |search| {
            visit::visit_field_value(search, field)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_IO: &str = "crates/longwire-io/src/a.rs";

    #[test]
    fn unsafe_code_has_its_places() {
        let sound = "fn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}";
        assert!(check(IN_IO, sound).is_empty());
        assert_eq!(check("crates/longwire/src/a.rs", sound).len(), 1);
        assert!(check("crates/longwire/src/a.rs", "fn f() {}").is_empty());
    }

    #[test]
    fn unsafe_code_without_a_reason_is_found() {
        for text in [
            "fn f() { unsafe { g() } }",
            "fn f() {\n    // It is fine.\n    let a = unsafe { g() };\n}",
            "fn f() {\n    // SAFETY: of another.\n    h();\n    unsafe { g() };\n}",
            "// SAFETY: of the whole function.\nfn f() {\n    h();\n    unsafe { g() };\n}",
            "unsafe impl Send for A {}",
            "macro_rules! m { () => { unsafe { g() } } }",
            "fn f() {\n    // SAFETY: one.\n    h(unsafe { g() }, || {\n        unsafe { g() }\n    });\n}",
        ] {
            assert_eq!(check(IN_IO, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn unsafe_code_with_a_reason_is_not() {
        for text in [
            "fn f() {\n    // SAFETY: g is\n    // harmless.\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: it is.\n    let a = h(\n        1,\n        unsafe { g() },\n    );\n}",
            "fn f() {\n    h(\n        // SAFETY: it is.\n        unsafe { g() },\n    );\n}",
            "// SAFETY: A is a number.\n#[cfg(a)]\nunsafe impl Send for A {}",
            "fn f() {\n    match a {\n        // SAFETY: it is.\n        1 => unsafe { g() },\n        _ => {}\n    }\n}",
            "/// # Safety\n/// Never.\nunsafe fn f() {}",
            "extern \"C\" {\n    fn g();\n}",
        ] {
            assert!(check(IN_IO, text).is_empty(), "{text}");
        }
    }
}

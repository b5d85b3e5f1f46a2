//! Files and functions are limited in length.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{Violation, visited};

const FILE_LINES_MAX: usize = 800;

/// Maximum lines per function, from signature to closing brace.
const FUNCTION_LINES_MAX: usize = 70;

pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("{lines} lines; a file has at most {FILE_LINES_MAX}");
        violations.push(Violation::new(path, 0, what));
    }
    for (name, first, lines) in visited::<Functions>(text).long {
        let what = format!("fn {name}: {lines} lines; a function has at most {FUNCTION_LINES_MAX}");
        violations.push(Violation::new(path, first, what));
    }
    violations
}

/// Functions that are too long: name, first line, lines.
#[derive(Default)]
struct Functions {
    long: Vec<(String, usize, usize)>,
}

impl Functions {
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let first = signature.span().start().line;
        let lines = end.end().line - first + 1;
        if lines > FUNCTION_LINES_MAX {
            self.long.push((signature.ident.to_string(), first, lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function with this many lines.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn long_files_are_found() {
        assert!(check("a.rs", &"\n".repeat(FILE_LINES_MAX)).is_empty());
        assert_eq!(check("a.rs", &"\n".repeat(FILE_LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn long_functions_are_found_wherever_they_stand() {
        assert!(check("a.rs", &function(FUNCTION_LINES_MAX)).is_empty());
        let long = function(FUNCTION_LINES_MAX + 1);
        for (before, after) in [
            ("", ""),
            ("impl A {\n", "}\n"),
            ("trait A {\n", "}\n"),
            ("mod m {\n", "}\n"),
            ("/// Doc.\n#[inline]\n", ""),
        ] {
            let found = check("a.rs", &format!("{before}{long}{after}"));
            assert_eq!(found.len(), 1, "{before}");
            assert_eq!(found[0].line, before.lines().count() + 1);
        }
    }

    #[test]
    fn documentation_and_attributes_do_not_count() {
        let text = "/// Doc.\n".repeat(50) + &function(FUNCTION_LINES_MAX);
        assert!(check("a.rs", &text).is_empty());
    }
}

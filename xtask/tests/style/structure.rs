//! Crates are small enough for one person to understand, and their files do not import each other
//! in long cycles.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::source::{SourceFile, Violation, parse};

/// Maximum lines in a crate's `src`, including tests.
const CRATE_LINES_MAX: usize = 25_000;

/// Maximum number of files in an import cycle.
const CYCLE_FILES_MAX: usize = 3;

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files.iter().filter_map(SourceFile::text) {
        let mut parts = path.splitn(4, '/');
        if let (Some("crates"), Some(name), Some("src")) =
            (parts.next(), parts.next(), parts.next())
            && path.ends_with(".rs")
        {
            crates.entry(name).or_default().push((path, text));
        }
    }
    let mut violations = Vec::new();
    for (name, files) in crates {
        violations.extend(check_lines(name, &files));
        violations.extend(check_cycles(name, &files));
    }
    violations
}

fn check_lines(name: &str, files: &[(&str, &str)]) -> Option<Violation> {
    let lines: usize = files.iter().map(|(_, text)| text.lines().count()).sum();
    let what = format!("{lines} lines; a crate has at most {CRATE_LINES_MAX}");
    (lines > CRATE_LINES_MAX).then(|| Violation::new(&format!("crates/{name}"), 0, what))
}

fn check_cycles(name: &str, files: &[(&str, &str)]) -> Vec<Violation> {
    let crate_ = Crate::read(name, files);
    let mut violations = Vec::new();
    for cycle in cycles(&crate_.imports()) {
        let paths: Vec<&str> = cycle.iter().map(|file| crate_.files[*file].path).collect();
        if paths.len() > CYCLE_FILES_MAX {
            let what = format!(
                "import cycle of {} files; at most {CYCLE_FILES_MAX} are allowed: {}",
                paths.len(),
                paths.join(", ")
            );
            violations.push(Violation::new(paths[0], 0, what));
        }
    }
    violations
}

/// Path segments, absolute within the crate: `crate::a::B` is `["a", "B"]`.
type Segments = Vec<String>;

#[derive(Debug)]
struct File<'a> {
    path: &'a str,
    module: Segments,
    /// Paths in the file, except those in re-exports.
    named: Vec<Segments>,
    /// Re-exported names and their paths.
    exported: BTreeMap<String, Segments>,
}

#[derive(Debug)]
struct Crate<'a> {
    files: Vec<File<'a>>,
    by_module: BTreeMap<Segments, usize>,
}

impl<'a> Crate<'a> {
    fn read(name: &str, texts: &[(&'a str, &str)]) -> Crate<'a> {
        let root = format!("crates/{name}/src/");
        let is_test = |path: &str| path.contains("tests/") || path.ends_with("tests.rs");
        let mut files = Vec::new();
        for (path, text) in texts.iter().filter(|(path, _)| !is_test(path)) {
            let inside = path.strip_prefix(&root).unwrap_or(path);
            let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
            let module: Segments = match inside {
                "lib" | "main" | "mod" => Vec::new(),
                _ => inside.split('/').map(str::to_owned).collect(),
            };
            let mut paths = Paths {
                module: module.clone(),
                named: Vec::new(),
                exported: BTreeMap::new(),
            };
            if let Some(file) = parse(text) {
                paths.visit_file(&file);
            }
            files.push(File {
                path,
                module,
                named: paths.named,
                exported: paths.exported,
            });
        }
        // If there is a library, `crate` refers to it: `lib.rs` precedes `main.rs`.
        let mut by_module = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            by_module.entry(file.module.clone()).or_insert(index);
        }
        Crate { files, by_module }
    }

    /// Returns the file that defines the item at a path, following re-exports.
    fn defines(&self, path: &[String], depth: u32) -> Option<usize> {
        let (len, file) = (0..=path.len())
            .rev()
            .find_map(|len| Some((len, *self.by_module.get(&path[..len])?)))?;
        let exported = path
            .get(len)
            .and_then(|name| self.files[file].exported.get(name));
        match exported {
            Some(target) if depth > 0 => self.defines(target, depth - 1).or(Some(file)),
            _ => Some(file),
        }
    }

    /// Returns the imported files of each file.
    fn imports(&self) -> Vec<Vec<usize>> {
        const REEXPORTS_MAX: u32 = 5;
        let of = |(index, file): (usize, &File)| {
            let named = file.named.iter();
            let targets = named.filter_map(|path| self.defines(path, REEXPORTS_MAX));
            targets.filter(|target| *target != index).collect()
        };
        self.files.iter().enumerate().map(of).collect()
    }
}

/// The paths of one file.
struct Paths {
    module: Segments,
    named: Vec<Segments>,
    exported: BTreeMap<String, Segments>,
}

impl Paths {
    /// Returns the path relative to the crate; `None` for a path into another crate.
    fn absolute(&self, path: &[String]) -> Option<Segments> {
        let mut base = self.module.clone();
        match path.first()?.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => drop(base.pop()),
            _ => return None,
        }
        for segment in &path[1..] {
            if segment == "super" {
                base.pop();
            } else {
                base.push(segment.clone());
            }
        }
        Some(base)
    }

    fn use_tree(&mut self, tree: &syn::UseTree, before: &[String], exports: bool) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.use_tree(&inner.tree, &path, exports);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, &path, exports);
                }
            }
            syn::UseTree::Name(name) => self.used(path, &name.ident, &name.ident, exports),
            syn::UseTree::Rename(name) => self.used(path, &name.ident, &name.rename, exports),
            syn::UseTree::Glob(_) => self.named.extend(self.absolute(&path)),
        }
    }

    fn used(&mut self, mut path: Segments, name: &syn::Ident, as_: &syn::Ident, exports: bool) {
        if name != "self" {
            path.push(name.to_string());
        }
        if !exports {
            self.named.extend(self.absolute(&path));
            return;
        }
        // A re-export may omit `self`: `pub use child::Name`.
        let mut own = self.module.clone();
        own.extend(path.iter().cloned());
        let target = self.absolute(&path).unwrap_or(own);
        self.exported.insert(as_.to_string(), target);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && item.ident == "tests" {
            return;
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let exports = !matches!(item.vis, syn::Visibility::Inherited);
        self.use_tree(&item.tree, &[], exports);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Segments = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.named
            .extend(self.absolute(&segments).filter(|_| segments.len() > 1));
        visit::visit_path(self, path);
    }
}

/// Returns the groups of more than one file that import each other, directly or indirectly.
fn cycles(imports: &[Vec<usize>]) -> BTreeSet<Vec<usize>> {
    let files = 0..imports.len();
    let reached = files.clone().map(|file| reached_from(file, imports));
    let reached: Vec<BTreeSet<usize>> = reached.collect();
    let cycles = files.map(|file| -> Vec<usize> {
        let others = reached[file].iter().copied();
        let cycle = others.filter(|other| reached[*other].contains(&file));
        cycle.collect()
    });
    cycles.filter(|cycle| cycle.len() > 1).collect()
}

/// Returns all files that a file imports, directly or indirectly.
fn reached_from(file: usize, imports: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for &other in &imports[file] {
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_through_re_exports() {
        let files = [
            (
                "crates/x/src/lib.rs",
                "mod a; mod b; mod c; mod d; pub use b::B;",
            ),
            ("crates/x/src/a.rs", "use crate::B; pub struct A(B);"),
            ("crates/x/src/b/mod.rs", "use self::e::E; pub struct B;"),
            (
                "crates/x/src/b/e.rs",
                "pub fn e() -> crate::c::C { todo() }",
            ),
            ("crates/x/src/c.rs", "use super::a::A;"),
            (
                "crates/x/src/d.rs",
                "use super::{a, b};\n#[cfg(test)]\nmod tests { use super::*; }",
            ),
        ];
        let found = check_cycles("x", &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("4 files") && !found[0].what.contains("src/d.rs"));
        let three = [
            files[0],
            files[1],
            ("crates/x/src/b/mod.rs", "use crate::c::C;"),
            files[4],
        ];
        assert!(check_cycles("x", &three).is_empty());
    }

    #[test]
    fn large_crates_are_found() {
        let text = "\n".repeat(CRATE_LINES_MAX + 1);
        assert!(check_lines("x", &[("crates/x/src/lib.rs", &text)]).is_some());
        assert!(check_lines("x", &[("crates/x/src/lib.rs", &text[1..])]).is_none());
    }
}

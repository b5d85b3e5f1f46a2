//! Dependencies between crates have one direction.

use crate::source::{SourceFile, Violation, text_of};

/// Order of the crates, from pure to practical: each crate may depend only on earlier ones.
const ORDER: [&str; 19] = [
    "longwire-client",
    "longwire-units",
    "longwire-packet",
    "longwire-engine",
    "longwire-capture",
    "longwire-plot",
    "longwire-io",
    "longwire-attach",
    "longwire-runtime",
    "longwire-hosts",
    "longwire-traffic",
    "longwire-testbed",
    "longwire-topology",
    "longwire-network",
    "longwire-control",
    "longwire-cni",
    "longwire-node",
    "longwire",
    "longwire-python",
];

/// Crates with a separate workspace and lock file. Of the crates in [`ORDER`], they may depend only
/// on [`SHARED`]; no crate may depend on them.
const SEPARATE: [&str; 1] = ["longwire-kube"];

/// The crate on which separate crates may depend.
const SHARED: &str = "longwire-client";

/// The crate with the test set-up, on which earlier crates may have a dev-dependency.
const TEST_SETUP: &str = "longwire-testbed";

/// The pure crates, with all their permitted dependencies: arithmetic, a random generator and
/// errors; the cipher of Crypto-PAn; parsers of JSON and TOML traces; clones of boxed models.
pub const PURE: [(&str, &[&str]); 3] = [
    ("longwire-units", &["libm", "rand_xoshiro", "thiserror"]),
    ("longwire-packet", &["aes", "longwire-units", "thiserror"]),
    (
        "longwire-engine",
        &[
            "dyn-clone",
            "libm",
            "longwire-packet",
            "longwire-units",
            "serde_json",
            "thiserror",
            "toml",
        ],
    ),
];

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for name in ORDER {
        let path = format!("crates/{name}/Cargo.toml");
        match text_of(files, &path) {
            Some(text) => violations.extend(check_manifest(name, &path, text)),
            None => violations.push(Violation::new(&path, 0, "missing")),
        }
    }
    let in_crates =
        |file: &&SourceFile| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
    for file in files.iter().filter(in_crates) {
        let name = file.path.split('/').nth(1).unwrap_or_default();
        if SEPARATE.contains(&name) {
            violations.extend(check_separate(file));
        } else if !ORDER.contains(&name) {
            let what = "a crate that is missing from ORDER in the style test";
            violations.push(Violation::new(&file.path, 0, what));
        }
    }
    violations
}

fn check_separate(file: &SourceFile) -> Vec<Violation> {
    let Some((path, text)) = file.text() else {
        return Vec::new();
    };
    let mut violations = Vec::new();
    if !text.contains("\n[workspace]\n") {
        violations.push(Violation::new(path, 0, "lacks a separate workspace"));
    }
    for (line, _, dependency) in dependencies(text) {
        if ORDER.contains(&dependency) && dependency != SHARED {
            let what = format!("must not depend on {dependency}");
            violations.push(Violation::new(path, line, what));
        }
    }
    violations
}

fn check_manifest(name: &str, path: &str, text: &str) -> Vec<Violation> {
    let rank = |name: &str| ORDER.iter().position(|other| *other == name);
    let pure = PURE.iter().find(|(pure, _)| *pure == name);
    let mut violations = Vec::new();
    for (line, kind, dependency) in dependencies(text) {
        let is_setup = kind == "dev-dependencies" && dependency == TEST_SETUP;
        if rank(dependency) >= rank(name) && rank(dependency).is_some() && !is_setup {
            let what = format!("{name} must not depend on {dependency}");
            violations.push(Violation::new(path, line, what));
        }
        if let Some((_, may)) = pure
            && kind == "dependencies"
            && !may.contains(&dependency)
        {
            let what = format!("{name} may depend only on {}", may.join(", "));
            violations.push(Violation::new(path, line, what));
        }
    }
    if !text.contains("[lints]\nworkspace = true") {
        violations.push(Violation::new(path, 0, "lacks the lints of the workspace"));
    }
    violations
}

/// Returns every dependency in a manifest: line, kind of section, name.
fn dependencies(text: &str) -> Vec<(usize, &str, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let header = line.trim().strip_prefix('[');
        if let Some(header) = header.and_then(|header| header.strip_suffix(']')) {
            let (before, last) = header.rsplit_once('.').unwrap_or(("", header));
            // The header `[dependencies.NAME]` names a single dependency.
            if let Some(kind) = before.rsplit('.').next().filter(|kind| is_kind(kind)) {
                found.push((index + 1, kind, last));
            }
            section = if is_kind(last) { last } else { "" };
        } else if is_kind(section)
            && let Some((key, _)) = line.split_once('=')
        {
            let name = key.trim().split('.').next().unwrap_or("").trim_matches('"');
            found.push((index + 1, section, name));
        }
    }
    found
}

fn is_kind(section: &str) -> bool {
    ["dependencies", "dev-dependencies", "build-dependencies"].contains(&section)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, dependencies: &str) -> usize {
        let text = format!("{dependencies}\n[lints]\nworkspace = true\n");
        check_manifest(name, "Cargo.toml", &text).len()
    }

    #[test]
    fn dependencies_point_one_way() {
        let on_io = "[dependencies]\nlongwire-io.workspace = true";
        assert_eq!(complaints("longwire-runtime", on_io), 0);
        assert_eq!(complaints("longwire-io", on_io), 1);
        // The direction is wrong, and the dependency is not permitted for a pure crate.
        for (pure, _) in PURE {
            assert_eq!(complaints(pure, on_io), 2, "{pure}");
        }
        let on_packet = "[dependencies]\nlongwire-packet.workspace = true";
        assert_eq!(complaints("longwire-engine", on_packet), 0);
        assert_eq!(complaints("longwire-units", on_packet), 2);
    }

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        for text in [
            "[dev-dependencies]\nlongwire = { path = \"..\" }",
            "[build-dependencies]\nlongwire = \"1\"",
            "[target.'cfg(loom)'.dependencies]\nlongwire.workspace = true",
            "[dependencies.longwire]\npath = \"..\"",
        ] {
            assert_eq!(complaints("longwire-io", text), 1, "{text}");
        }
    }

    #[test]
    fn tests_alone_may_use_the_set_up_of_a_higher_crate() {
        let with = |kind: &str| format!("[{kind}]\nlongwire-testbed.workspace = true");
        assert_eq!(complaints("longwire-io", &with("dev-dependencies")), 0);
        assert_eq!(complaints("longwire-io", &with("dependencies")), 1);
        assert_eq!(complaints("longwire", &with("dependencies")), 0);
    }

    #[test]
    fn pure_crates_may_test_with_more_than_they_use() {
        for (pure, _) in PURE {
            assert_eq!(complaints(pure, "[dev-dependencies]\nproptest = \"1\""), 0);
            assert_eq!(complaints(pure, "[dependencies]\nlibc = \"1\""), 1);
        }
    }

    #[test]
    fn separate_crates_have_a_workspace_and_none_of_the_others() {
        let complaints = |text: &str| {
            let bytes = text.as_bytes().to_vec();
            let path = "Cargo.toml".to_owned();
            check_separate(&SourceFile { path, bytes }).len()
        };
        assert_eq!(complaints("[package]\n[workspace]\n"), 0);
        assert_eq!(complaints("[package]\n"), 1);
        let on_io = "[package]\n[workspace]\n[dependencies]\nlongwire-io = \"1\"\n";
        assert_eq!(complaints(on_io), 1);
    }

    #[test]
    fn lints_are_asked_for() {
        assert_eq!(check_manifest("longwire", "Cargo.toml", "").len(), 1);
    }
}

//! The table of checks, with their tiers.

use crate::runner::Runner;
use crate::{bench, book, ci, clients, fuzz, kube, page, python, release, test};

/// Tier of a check. `cargo xtask full` runs all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// On every commit: `cargo xtask ci`.
    Commit,
    /// If one of these files or folders has changed since the last recorded pass: `cargo xtask ci
    /// --paths`.
    Changed(&'static [&'static str]),
    /// Before a release: only `cargo xtask full`.
    Full,
}

/// A named group of steps.
#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub when: When,
    pub help: &'static str,
    pub run: fn(&mut Runner),
}

/// All checks in order of execution, fast ones first. In the commit tier, the tests come last, so
/// that their closing lines end the output.
pub const CHECKS: &[Check] = &[
    commit("format", "source formatting", ci::format),
    commit("deny", "licences and sources of dependencies", ci::deny),
    commit(
        "page-check",
        "the live view's page: types, lint, tests, committed build",
        page::check,
    ),
    commit("clippy", "clippy on every target", ci::clippy_workspace),
    commit("docs", "API documentation without warnings", ci::docs),
    commit(
        "links",
        "links of the book, including generated pages",
        book::check,
    ),
    commit(
        "tests",
        "every test; with arguments: `test`",
        test::run_step,
    ),
    Check {
        name: "workflows",
        when: When::Changed(&[".github/workflows", "xtask/src/ci.rs"]),
        help: "GitHub's workflows with actionlint (needs Go)",
        run: ci::workflows,
    },
    Check {
        name: "loom",
        when: When::Changed(&["crates/longwire-io", "xtask/src/fuzz.rs", "Cargo.lock"]),
        help: "concurrent parts of longwire-io under loom",
        run: fuzz::loom,
    },
    Check {
        name: "asan",
        when: When::Changed(&["crates/longwire-io", "xtask/src/fuzz.rs", "Cargo.lock"]),
        help: "tests of longwire-io under AddressSanitizer (needs nightly)",
        run: fuzz::asan,
    },
    Check {
        name: "browser",
        when: When::Changed(&[
            "ui",
            "crates/longwire/page",
            "crates/longwire/src/view.rs",
            "crates/longwire-control",
            "xtask/src/page.rs",
        ]),
        help: "the live view's page in a browser, against real runs",
        run: page::in_browser,
    },
    Check {
        name: "python",
        when: When::Changed(&[
            "python",
            "crates/longwire-python",
            "crates/longwire/src/report",
            "docs/reference/python.md",
            "xtask/python",
            "xtask/src/python.rs",
        ]),
        help: "the Python package: built, installed, types, tests",
        run: python::run_steps,
    },
    Check {
        name: "clients",
        when: When::Changed(&[
            "clients",
            "crates/longwire-control",
            "crates/longwire/src/report",
            "xtask/src/clients.rs",
        ]),
        help: "the clients in Node and Go: generated, types, tests",
        run: clients::run_steps,
    },
    Check {
        name: "cni",
        when: When::Changed(&[
            "crates/longwire-cni",
            "crates/longwire/src/commands/cni.rs",
            "crates/longwire/tests/it/cni",
            "xtask/src/ci.rs",
        ]),
        help: "the CNI plugin with the CNI project's cnitool (needs Go)",
        run: ci::cni,
    },
    Check {
        name: "kube",
        when: When::Changed(&[
            "crates/longwire-kube",
            "crates/longwire-node",
            "crates/longwire/src/commands/node.rs",
            "packaging/kubernetes",
            "xtask/src/kube.rs",
        ]),
        help: "longwire-kube: clippy and tests",
        run: kube::run_steps,
    },
    Check {
        name: "api",
        when: When::Changed(&[
            "crates/longwire-control",
            "xtask/api",
            "xtask/src/python.rs",
        ]),
        help: "the control API with a generated client and schemathesis",
        run: python::check_api,
    },
    full("readme", "the README's first command", release::readme),
    full(
        "packages",
        "packages, built and installed (needs root)",
        release::packages,
    ),
    full(
        "book",
        "the book as HTML in target/book (needs mdbook)",
        book::run_steps,
    ),
    full("examples", "every example of the crates", release::examples),
    full(
        "bench-tiny",
        "every bench once, at minimum size",
        bench::run_tiny,
    ),
    full("fuzz-lint", "clippy on the fuzz targets", ci::clippy_fuzz),
    full(
        "fuzz",
        "every fuzz target (needs nightly and cargo-fuzz)",
        fuzz::run_targets,
    ),
    full(
        "kube-control",
        "longwire-kube with a control plane",
        kube::control,
    ),
    full(
        "kube-pods",
        "longwire-kube with kubelets and pods",
        kube::pods,
    ),
    full(
        "soak",
        "`exec` under traffic and changes: memory stays bounded",
        release::soak,
    ),
];

const fn commit(name: &'static str, help: &'static str, run: fn(&mut Runner)) -> Check {
    Check {
        name,
        when: When::Commit,
        help,
        run,
    }
}

const fn full(name: &'static str, help: &'static str, run: fn(&mut Runner)) -> Check {
    Check {
        when: When::Full,
        ..commit(name, help, run)
    }
}

impl Check {
    /// Returns the first changed file that affects this check.
    pub fn affected_by<'a>(&self, changed: &'a [String]) -> Option<&'a str> {
        let When::Changed(paths) = self.when else {
            return None;
        };
        let is_below = |file: &str, path: &str| {
            let rest = file.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut files = changed.iter().map(String::as_str);
        files.find(|file| paths.iter().any(|path| is_below(file, path)))
    }
}

/// Returns the checks of a tier with these names, or all of them, in table order.
///
/// # Errors
/// If a name is not in the tier.
pub fn chosen(names: &[&str], is_in: fn(When) -> bool) -> Result<Vec<&'static Check>, String> {
    let mut checks: Vec<&Check> = CHECKS.iter().filter(|check| is_in(check.when)).collect();
    let is_known = |name: &str| checks.iter().any(|check| check.name == name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(format!("no check '{name}' in this tier"));
    }
    checks.retain(|check| names.is_empty() || names.contains(&check.name));
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runner::root;

    #[test]
    fn names_are_unique_and_paths_exist() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
        for check in CHECKS {
            let When::Changed(paths) = check.when else {
                continue;
            };
            for path in paths {
                assert!(root().join(path).exists(), "{}: {path}", check.name);
            }
        }
    }

    #[test]
    fn changed_files_choose_checks() {
        let affected = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
            let checks = CHECKS
                .iter()
                .filter(|check| check.affected_by(&files).is_some());
            checks.map(|check| check.name).collect::<Vec<_>>()
        };
        assert!(affected(&[]).is_empty());
        assert!(affected(&["README.md", "crates/longwire-engine/src/lib.rs"]).is_empty());
        let node = "crates/longwire/src/commands/node.rs";
        let control = "crates/longwire-control/src/lib.rs";
        for (files, checks) in [
            (
                &["crates/longwire-io/src/clock.rs"][..],
                &["loom", "asan"][..],
            ),
            (&["Cargo.lock"], &["loom", "asan"]),
            (&["ui/src/main.tsx"], &["browser"]),
            // A path of the table matches only whole components.
            (&["ui.md", "clients.md"], &[]),
            (&[control], &["browser", "clients", "api"]),
            (&["docs/ci.md", node], &["kube"]),
        ] {
            assert_eq!(affected(files), checks, "{files:?}");
        }
    }

    #[test]
    fn chosen_checks_keep_the_order_of_the_table() {
        let names = |names: &[&str], is_in| {
            let checks = chosen(names, is_in);
            checks.map(|checks| checks.iter().map(|check| check.name).collect::<Vec<_>>())
        };
        let unknown = |name| Err(format!("no check '{name}' in this tier"));
        let both = Ok(vec!["clippy", "asan"]);
        assert_eq!(names(&["asan", "clippy"], |_| true), both);
        assert_eq!(names(&["clipy"], |_| true), unknown("clipy"));
        let loom = names(&["loom"], |when| when == When::Commit);
        assert_eq!(loom, unknown("loom"));
        let of_commit = names(&[], |when| when == When::Commit).expect("no name is wrong");
        assert!(of_commit.contains(&"tests") && !of_commit.contains(&"loom"));
        assert_eq!(names(&[], |_| true).map(|all| all.len()), Ok(CHECKS.len()));
    }
}

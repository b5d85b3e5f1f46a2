//! The page of the live view, built with Node from `ui/`. The built page is committed, so that
//! the program is built without Node.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clients::missing_node;
use crate::runner::{Outcome, Runner, built, cargo, limited, root, run, run_all};

const FOLDER: &str = "ui";

/// The built page.
const BUILT: &str = "crates/longwire/page";

/// Builds the page.
pub fn build(runner: &mut Runner) {
    runner.step("page: tools", || run(install()));
    runner.step("page: build", || run(npm(&["run", "build"])));
}

/// Checks the source of the page and whether the committed page is built from it.
pub fn check(runner: &mut Runner) {
    if let Some(why) = missing_node() {
        runner.step("page", || Outcome::Skipped(why));
        return;
    }
    runner.step("page: tools", || run(install()));
    runner.step("page: types, lint, tests, size, current", || {
        let committed = contents(&root().join(BUILT));
        match run(npm(&["run", "check"])) {
            Outcome::Passed if contents(&root().join(BUILT)) != committed => {
                Outcome::Failed(format!("{BUILT} was not current: commit it as it is now"))
            }
            outcome => outcome,
        }
    });
}

/// Tests the page in a browser against real runs.
pub fn in_browser(runner: &mut Runner) {
    runner.step("page: in a browser", || {
        let program = cargo(["build", "--bin", "longwire"]);
        let mut test = npm(&["run", "e2e"]);
        test.env("LONGWIRE_PROGRAM", built(Path::new("longwire")));
        run_all([install(), program, test])
    });
}

/// Returns the files of a folder and of those in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// Installs the packages of the lock file. `npm ci` refuses lock files that were written where
/// the registry lacks optional packages for other processors.
fn install() -> std::process::Command {
    npm(&["install", "--no-save", "--no-audit", "--no-fund"])
}

fn npm(arguments: &[&str]) -> std::process::Command {
    let mut npm = limited("npm");
    npm.args(arguments).current_dir(root().join(FOLDER));
    npm
}

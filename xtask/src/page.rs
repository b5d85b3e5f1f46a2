//! The page of the live view, built with Node from `ui/`. The result is committed, so that building
//! the program does not need Node.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clients::needs_node;
use crate::runner::Shortfall::Failed;
use crate::runner::{Runner, built, cargo, entries, limited, root, run, run_all};

const FOLDER: &str = "ui";

/// Folder of the built page.
const BUILT: &str = "crates/longwire/page";

pub fn build(runner: &mut Runner) {
    runner.step("page: tools", || run(install()));
    runner.step("page: build", || run(npm(&["run", "build"])));
}

/// Checks the page's source, and that the committed page is up to date.
pub fn check(runner: &mut Runner) {
    if let Err(why) = needs_node() {
        runner.step("page", || Err(why));
        return;
    }
    runner.step("page: tools", || run(install()));
    runner.step("page: types, lint, tests, size, current", || {
        let committed = contents(&root().join(BUILT));
        run(npm(&["run", "check"]))?;
        if contents(&root().join(BUILT)) == committed {
            return Ok(());
        }
        Err(Failed(format!(
            "{BUILT} was out of date and has been rebuilt; commit it"
        )))
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

/// Reads all files under a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in entries(folder) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// Installs the locked packages. `npm ci` refuses a lock file written with a registry that lacks
/// optional packages for other architectures.
fn install() -> std::process::Command {
    npm(&["install", "--no-save", "--no-audit", "--no-fund"])
}

fn npm(arguments: &[&str]) -> std::process::Command {
    let mut npm = limited("npm");
    npm.args(arguments).current_dir(root().join(FOLDER));
    npm
}

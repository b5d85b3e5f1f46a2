//! The page of the live view: built with Node from `ui/` into `ui/dist`, which the program
//! embeds when it is compiled.

use std::path::Path;

use crate::clients::missing_node;
use crate::runner::{Outcome, Runner, built, cargo, limited, root, run, run_all};

const FOLDER: &str = "ui";

/// Builds the page.
pub fn build(runner: &mut Runner) {
    runner.step("page: tools", || run(install()));
    runner.step("page: build", || run(npm(&["run", "build"])));
}

/// Builds and checks the page, then tests it in a browser against real runs.
pub fn run_steps(runner: &mut Runner) {
    if let Some(why) = missing_node() {
        runner.step("page", || Outcome::Skipped(why));
        return;
    }
    runner.step("page: tools", || run(install()));
    runner.step("page: types, lint, tests, size", || {
        run(npm(&["run", "check"]))
    });
    runner.step("page: in a browser", || {
        // The build script of the program embeds what was just built.
        let program = cargo(["build", "--bin", "longwire"]);
        let mut test = npm(&["run", "e2e"]);
        test.env("LONGWIRE_PROGRAM", built(Path::new("longwire")));
        run_all([program, test])
    });
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

//! Checks GitHub workflows with `actionlint`, installed in `target/clients` like the
//! other Go tools.

use crate::clients::{folder, go_environment, missing_go};
use crate::runner::{Outcome, Runner, limited, run_all};

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";

/// Installs `actionlint` and runs it.
pub fn run_steps(runner: &mut Runner) {
    runner.step("workflows", || {
        if let Some(why) = missing_go() {
            return Outcome::Skipped(why);
        }
        let bin = folder().join("gopath/bin");
        let mut install = limited("go");
        install.args(["install", ACTIONLINT]);
        go_environment(&mut install);
        install.env("GOBIN", &bin);
        let check = limited(&bin.join("actionlint").to_string_lossy());
        run_all([install, check])
    });
}

//! Checks GitHub workflows with `actionlint`, installed in `target/clients` like the
//! other Go tools.

use crate::clients::install_go;
use crate::runner::{Runner, limited, run};

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";

/// Installs `actionlint` and runs it.
pub fn run_steps(runner: &mut Runner) {
    runner.step("workflows", || {
        let bin = install_go(ACTIONLINT)?;
        run(limited(&bin.join("actionlint").to_string_lossy()))
    });
}

//! Tests the CNI plugin with `cnitool`, the CNI project's runtime, which needs Go.

use crate::clients::{go_environment, missing_go};
use crate::runner::{Outcome, Runner, cargo, limited, locked, run, run_all};

/// Module of `cnitool`.
const CNITOOL: &str = "github.com/containernetworking/cni/cnitool@v1.3.1";

/// Installs `cnitool` and runs the test with it.
pub fn run_steps(runner: &mut Runner) {
    runner.step("CNI: cnitool", || {
        if let Some(why) = missing_go() {
            return Outcome::Skipped(why);
        }
        let bin = crate::clients::folder().join("gopath/bin");
        let mut install = limited("go");
        install.args(["install", CNITOOL]);
        go_environment(&mut install);
        install.env("GOBIN", &bin);
        let mut test = cargo(["test", "--package", "longwire", "--test", "it"]);
        test.args(locked()).arg("cni::cnitool");
        test.env("CNITOOL", bin.join("cnitool"));
        match run(install) {
            Outcome::Passed => run_all([test]),
            other => other,
        }
    });
}

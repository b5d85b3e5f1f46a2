//! Tests the CNI plugin with `cnitool`, the CNI project's runtime, which needs Go.

use crate::clients::install_go;
use crate::runner::{Runner, cargo, locked, run};

/// Module of `cnitool`.
const CNITOOL: &str = "github.com/containernetworking/cni/cnitool@v1.3.1";

/// Installs `cnitool` and runs the test with it.
pub fn run_steps(runner: &mut Runner) {
    runner.step("CNI: cnitool", || {
        let bin = install_go(CNITOOL)?;
        let mut test = cargo(["test", "--package", "longwire", "--test", "it"]);
        test.args(locked()).arg("cni::cnitool");
        test.env("CNITOOL", bin.join("cnitool"));
        run(test)
    });
}

//! `longwire-kube`, a separate workspace, and its tests against Kubernetes.
//!
//! The first run builds the Kubernetes programs (kube-apiserver, kubelet and others, all of one
//! version), kwok and Helm from Go modules into `target/kube/bin`. etcd, containerd and runc come
//! from the system. No image registry is needed.

use std::path::PathBuf;

use crate::book::copy;
use crate::clients::{go_environment, needs_go};
use crate::python::with_pytest;
use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{
    Outcome, Runner, cargo, limited, locked, root, run, run_all, succeeds, target_dir, workspace,
};

/// Manifest of the crate.
pub const MANIFEST: [&str; 2] = ["--manifest-path", "crates/longwire-kube/Cargo.toml"];

/// Kubernetes version that kubelets report; must match `programs/go.mod`.
const VERSION: &str = "v1.35.4";
/// A test against Kubernetes.
#[derive(Debug)]
pub struct KubeTest {
    file: &'static str,
    /// Programs that must be installed.
    takes: &'static [&'static str],
    /// Programs of Kubernetes, which are built.
    programs: &'static [&'static str],
    /// Another program to build, with its Go module and version.
    other: (&'static str, &'static str),
}

/// The controller and agents against a control plane, with simulated nodes and pods (kwok).
pub const CONTROL: KubeTest = KubeTest {
    file: "test_control.py",
    takes: &["etcd", "etcdctl", "openssl"],
    programs: &["kube-apiserver", "kubectl"],
    other: ("kwok", "sigs.k8s.io/kwok/cmd/kwok@v0.7.0"),
};

/// Kubelets and pods on two machines, which are emulated by namespaces.
pub const PODS: KubeTest = KubeTest {
    file: "test_pods.py",
    takes: &[
        "etcd",
        "openssl",
        "containerd",
        "runc",
        "iperf3",
        "ping",
        "busybox",
        "curl",
    ],
    programs: &[
        "kube-apiserver",
        "kubectl",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
    ],
    other: ("helm", "helm.sh/helm/v3/cmd/helm@v3.19.0"),
};

/// Runs clippy and the tests of the crate.
pub fn run_steps(runner: &mut Runner) {
    runner.step("kube: clippy and tests", || {
        let lint = ["clippy", "--all-targets"].into_iter().chain(MANIFEST);
        let mut lint = cargo(lint);
        lint.args(locked()).args(["--", "--deny", "warnings"]);
        let mut test = cargo(["test"].into_iter().chain(MANIFEST));
        test.args(locked());
        // Some tests run `longwire node`.
        test.env("LONGWIRE", target_dir().join("debug/longwire"));
        let program = cargo(["build", "--package", "longwire"]);
        let commands = [lint, test].map(|mut command| {
            command.env("CARGO_TARGET_DIR", target());
            command
        });
        run_all([program].into_iter().chain(commands))
    });
}

/// Runs the test against a control plane.
pub fn control(runner: &mut Runner) {
    test(runner, &CONTROL, &[]);
}

/// Runs the test with kubelets and pods.
pub fn pods(runner: &mut Runner) {
    test(runner, &PODS, &[]);
}

/// Builds the programs of a test and runs it.
pub fn test(runner: &mut Runner, test: &KubeTest, words: &[&str]) {
    let mut is_built = false;
    runner.step("kube: programs", || {
        let outcome = programs(test);
        is_built = outcome.is_ok();
        outcome
    });
    if !is_built {
        return;
    }
    let file = test.file;
    runner.step(&format!("kube: {file}"), || {
        let folder = root().join("crates/longwire-kube/tests/cluster");
        let mut command = with_pytest()?;
        command
            .args(["-q", "-s", "-p", "no:cacheprovider", "--durations=5", file])
            .args(words)
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LONGWIRE", target_dir().join("debug/longwire"))
            .env("LONGWIRE_KUBE", target().join("debug/longwire-kube"))
            .env("LONGWIRE_KUBE_BIN", bin())
            .env("LONGWIRE_PACKAGING", root().join("packaging"));
        run(command)
    });
}

/// Returns the target directory of the crate, whose dependencies are built with other features than
/// the workspace's.
fn target() -> PathBuf {
    target_dir().join("kube/target")
}

fn bin() -> PathBuf {
    target_dir().join("kube/bin")
}

/// Builds the programs that are missing.
fn programs(test: &KubeTest) -> Outcome {
    if let Err(Skipped(why)) = needs_go() {
        return Err(Failed(why));
    }
    let is_missing = |name: &&&str| !succeeds("which", &[name]);
    if let Some(name) = test.takes.iter().find(is_missing) {
        return Err(Failed(format!(
            "needs {name}: apt-get install etcd-server etcd-client openssl containerd runc iperf3 \
             iputils-ping busybox curl containernetworking-plugins"
        )));
    }
    let mut build = cargo(["build"].into_iter().chain(MANIFEST));
    build.args(locked()).env("CARGO_TARGET_DIR", target());
    let mut longwire = workspace("build");
    longwire.args(["--bin", "longwire"]);
    run_all([build, longwire])?;
    let wanted = test.programs.iter().copied();
    let wanted: Vec<&str> = wanted.filter(|name| !bin().join(name).exists()).collect();
    kubernetes(&wanted)?;
    let (name, module) = test.other;
    if bin().join(name).exists() {
        return Ok(());
    }
    let mut install = limited("go");
    install.args(["install", "-ldflags", "-s -w", module]);
    go_environment(&mut install);
    install.env("GOBIN", bin());
    run(install)
}

/// Builds Kubernetes programs.
fn kubernetes(names: &[&str]) -> Outcome {
    if names.is_empty() {
        return Ok(());
    }
    // Use a copy, because `go mod tidy` adds about a hundred modules to go.mod.
    let module = target_dir().join("kube/programs");
    let from = root().join("crates/longwire-kube/tests/cluster/programs");
    if let Err(error) = copy(&from, &module) {
        return Err(Failed(format!("{}: {error}", module.display())));
    }
    let go = |words: &[&str]| {
        let mut command = limited("go");
        go_environment(&mut command);
        command.args(words).current_dir(&module);
        command
    };
    let flags = format!("-s -w -X k8s.io/component-base/version.gitVersion={VERSION}");
    let builds = names.iter().map(|name| {
        let mut command = go(&["build", "-ldflags", &flags, "-o"]);
        command.arg(bin().join(name));
        command.arg(format!("k8s.io/kubernetes/cmd/{name}"));
        command
    });
    run_all([go(&["mod", "tidy"])].into_iter().chain(builds))
}

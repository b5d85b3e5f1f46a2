//! Programs required by the checks, with their Debian packages.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::fuzz::has_nightly;
use crate::runner::{Outcome, Runner, cargo, limited, run, run_all, succeeds};

/// A program, by its name on PATH or its path, and its package.
type Tool = (&'static str, &'static str);

/// Programs that `cargo xtask ci` requires.
const TESTS: &[Tool] = &[
    ("busybox", "busybox"),
    ("cc", "gcc"),
    ("chromium", "chromium"),
    ("containerd", "containerd"),
    ("curl", "curl"),
    ("dnsmasq", "dnsmasq-base"),
    ("dumpcap", "wireshark-common"),
    ("gzip", "gzip"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("jq", "jq"),
    ("lz4", "lz4"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("pdftotext", "poppler-utils"),
    ("ping", "iputils-ping"),
    ("promtool", "prometheus"),
    ("python3", "python3-venv"),
    ("runc", "runc"),
    ("tcpdump", "tcpdump"),
    ("tmux", "tmux"),
    ("tshark", "tshark"),
    ("udhcpc", "udhcpc"),
    ("zstd", "zstd"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("/usr/lib/frr/zebra", "frr"),
];

/// Programs that only `cargo xtask full` requires.
const FULL: &[Tool] = &[
    ("c++", "g++"),
    ("debootstrap", "debootstrap"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("go", "golang"),
    ("objcopy", "binutils"),
    ("openssl", "openssl"),
    ("rpm", "rpm"),
    ("shellcheck", "shellcheck"),
    ("systemd-analyze", "systemd"),
    ("/usr/lib/postgresql", "postgresql"),
];

/// Services that Debian enables when they are installed; tests start their own instances.
const SERVICES: [(&str, &str); 2] = [("frr", "frr.service"), ("prometheus", "prometheus.service")];

/// Cargo subcommands; `true` for those that only `cargo xtask full` requires.
const CARGO_TOOLS: [(&str, bool); 5] = [
    ("cargo-deny", false),
    ("cargo-deb", true),
    ("cargo-generate-rpm", true),
    ("mdbook", true),
    ("cargo-fuzz", true),
];

fn exists(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    // The PATH of an ordinary user may lack the system directories.
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    env::split_paths(&path)
        .chain(system)
        .any(|folder| folder.join(program).is_file())
}

/// Returns the missing packages for the tests, or for all checks.
fn missing(full: bool) -> Vec<&'static str> {
    let tools = TESTS.iter().chain(if full { FULL } else { &[] });
    let missing = tools.filter(|(program, _)| !exists(program));
    missing.map(|(_, package)| *package).collect()
}

/// Returns the command that installs missing packages for the tests; `None` if none is missing.
pub fn remedy() -> Option<String> {
    let packages = missing(false).join(" ");
    let command = format!("sudo apt-get install --no-install-recommends {packages}");
    (!packages.is_empty()).then_some(command)
}

/// Installs the programs needed by the tests, or by all checks.
pub fn install(runner: &mut Runner, full: bool) {
    let packages = missing(full);
    if !packages.is_empty() {
        runner.step("packages", || apt_get(&packages));
    }
    for (name, only_full) in CARGO_TOOLS {
        let fuzz = name == "cargo-fuzz";
        if exists(name) || (only_full && !full) || (fuzz && !has_nightly()) {
            continue;
        }
        runner.step(name, || {
            let mut install = cargo(["install", name, "--locked", "--quiet"]);
            // Do not optimise, because that takes longer than all runs together.
            install.arg("--debug").env_remove("CARGO_TARGET_DIR");
            run(install)
        });
    }
}

/// Returns whether this user is root.
pub fn is_root() -> bool {
    succeeds("sh", &["-c", "test $(id -u) = 0"])
}

fn apt_get(packages: &[&str]) -> Outcome {
    let root = is_root();
    let command = |words: &[&str]| -> Command {
        let mut command = limited(if root { "env" } else { "sudo" });
        if !root {
            command.args(["--non-interactive", "env"]);
        }
        command.arg("DEBIAN_FRONTEND=noninteractive").args(words);
        command
    };
    let update = command(&["apt-get", "update", "--quiet=2"]);
    let mut install = command(&["apt-get", "install", "--quiet=2", "--yes"]);
    install.arg("--no-install-recommends").args(packages);
    let outcome = run_all([update, install]);
    let installed = |(package, _): &(&str, &str)| packages.contains(package);
    for (_, service) in SERVICES.into_iter().filter(installed) {
        let _ = command(&["systemctl", "disable", "--now", service]).output();
    }
    outcome
}

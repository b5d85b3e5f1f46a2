//! Programs required by the checks, with their Debian packages.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::fuzz::has_nightly;
use crate::runner::{Outcome, Runner, cargo, limited, run, run_all, succeeds};

/// A program and its package.
struct Tool {
    /// Name on PATH, or a path.
    program: &'static str,
    package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// Programs that `cargo xtask ci` requires.
const TESTS: &[Tool] = &[
    tool("busybox", "busybox"),
    tool("cc", "gcc"),
    tool("chromium", "chromium"),
    tool("containerd", "containerd"),
    tool("curl", "curl"),
    tool("dnsmasq", "dnsmasq-base"),
    tool("dumpcap", "wireshark-common"),
    tool("gzip", "gzip"),
    tool("ip", "iproute2"),
    tool("iperf3", "iperf3"),
    tool("jq", "jq"),
    tool("lz4", "lz4"),
    tool("node", "nodejs"),
    tool("npm", "npm"),
    tool("pdftotext", "poppler-utils"),
    tool("ping", "iputils-ping"),
    tool("promtool", "prometheus"),
    tool("python3", "python3-venv"),
    tool("runc", "runc"),
    tool("tcpdump", "tcpdump"),
    tool("tmux", "tmux"),
    tool("tshark", "tshark"),
    tool("udhcpc", "udhcpc"),
    tool("zstd", "zstd"),
    tool("/usr/lib/cni/bridge", "containernetworking-plugins"),
    tool("/usr/lib/frr/zebra", "frr"),
];

/// Programs that only `cargo xtask full` requires.
const FULL: &[Tool] = &[
    tool("c++", "g++"),
    tool("debootstrap", "debootstrap"),
    tool("etcd", "etcd-server"),
    tool("etcdctl", "etcd-client"),
    tool("go", "golang"),
    tool("objcopy", "binutils"),
    tool("openssl", "openssl"),
    tool("rpm", "rpm"),
    tool("shellcheck", "shellcheck"),
    tool("systemd-analyze", "systemd"),
    tool("/usr/lib/postgresql", "postgresql"),
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
    let missing = tools.filter(|tool| !exists(tool.program));
    missing.map(|tool| tool.package).collect()
}

/// Returns the command that installs missing packages for the tests; `None` if none is missing.
pub fn remedy() -> Option<String> {
    let packages = missing(false);
    if packages.is_empty() {
        return None;
    }
    let packages = packages.join(" ");
    Some(format!(
        "sudo apt-get install --no-install-recommends {packages}"
    ))
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
        let mut all = if root {
            vec![]
        } else {
            vec!["sudo", "--non-interactive"]
        };
        all.extend(["env", "DEBIAN_FRONTEND=noninteractive"]);
        all.extend(words);
        let mut command = limited(all[0]);
        command.args(&all[1..]);
        command
    };
    let update = command(&["apt-get", "update", "--quiet=2"]);
    let mut install = command(&["apt-get", "install", "--quiet=2", "--yes"]);
    install.arg("--no-install-recommends").args(packages);
    let outcome = run_all([update, install]);
    for (_, service) in SERVICES
        .iter()
        .filter(|(package, _)| packages.contains(package))
    {
        let _ = command(&["systemctl", "disable", "--now", service]).output();
    }
    outcome
}

//! Checks the image with podman and docker, if installed. They are optional, because both use
//! containerd or runc, and their Debian packages are large.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::containers::{CONNECT, Daemon, judge};
use super::{Context, ensure};
use crate::image::reference;
use crate::run::{At, Result, exists, finish, run, text};

/// Start of the remedy in the error message.
const RIGHT: &str = "--cap-add SYS_ADMIN --security-opt apparmor=unconfined";

/// Loads and runs the image with podman.
pub fn podman(context: &Context, image: &Path) -> Result<()> {
    if !exists("podman") {
        println!("  podman is not installed: not tested");
        return Ok(());
    }
    let store = context.scratch.join("podman");
    // podman refuses paths with more than 50 characters.
    let runtime = PathBuf::from(format!("/run/longwire-test-{}", std::process::id()));
    let podman = || -> Command {
        let mut command = Command::new("podman");
        command.arg("--root").arg(store.join("root"));
        command.arg("--runroot").arg(&runtime);
        command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
        command
    };
    // podman would raise these limits above those of this process, for which root needs
    // CAP_SYS_RESOURCE.
    let limits = [
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
    ];
    let result = use_engine("podman", &podman, &limits, true, image);
    // Mounts in podman's store would prevent removal of the test's directory. `system reset` would
    // also remove data shared with other stores.
    run(podman().args(["rmi", "--all", "--force"]))?;
    std::fs::remove_dir_all(&runtime).at(&runtime)?;
    result
}

/// Loads and runs the image with docker, with a private daemon.
pub fn docker(context: &Context, image: &Path) -> Result<()> {
    if !exists("dockerd") || !exists("docker") {
        println!("  docker is not installed: not tested");
        return Ok(());
    }
    let id = std::process::id();
    let socket = PathBuf::from(format!("/run/longwire-test-{id}-docker.sock"));
    let docker = || {
        let mut command = Command::new("docker");
        let host = format!("unix://{}", socket.display());
        command.arg("--host").arg(host);
        command
    };
    let version = || {
        let mut command = docker();
        command.arg("version");
        command
    };
    let _daemon = dockerd(context, &socket, version)?;
    use_engine("docker", &docker, &[], false, image)
}

/// Loads the image and runs it with `run_flags`, as root and as another user, each with and without
/// the capability that the error message names. `allows` is whether `exec` works without the
/// capability.
fn use_engine(
    name: &str,
    engine: &dyn Fn() -> Command,
    run_flags: &[&str],
    allows: bool,
    image: &Path,
) -> Result<()> {
    run(engine().args(["load", "--input"]).arg(image))?;
    let reference = reference("longwire");
    let mut images = engine();
    images.args(["images", "--format", "{{.Repository}}:{{.Tag}}"]);
    let names = text(&mut images)?;
    let is_loaded = names.lines().any(|line| line == reference);
    ensure(is_loaded, || {
        format!("the image {reference} was loaded as {names}")
    })?;
    let (right, user) = (["--cap-add", "SYS_ADMIN"], ["--user", "1000"]);
    let both = [right, user].concat();
    for (flags, works) in [
        (&[][..], allows),
        (&user, allows),
        (&right, true),
        (&both, true),
    ] {
        let mut container = engine();
        container
            .args(["run", "--rm", "--network", "none"])
            // podman requests a million descriptors, which may exceed the limit of this machine.
            .args(["--ulimit", "nofile=1024:1024"])
            .args(run_flags)
            .args(flags);
        // The program is the entry point of the image.
        container.arg(&reference).args(&CONNECT[1..]);
        let what = format!("{name} {}", flags.join(" "));
        judge(&what, works, &finish(&mut container)?, RIGHT)?;
    }
    Ok(())
}

/// Starts a dockerd in directories of the test.
fn dockerd(context: &Context, socket: &Path, request: impl Fn() -> Command) -> Result<Daemon> {
    let directory = context.scratch.join("docker");
    std::fs::create_dir_all(&directory).at(&directory)?;
    let mut command = Command::new("dockerd");
    command
        .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
        .args(["--storage-driver", "vfs", "--host"])
        .arg(format!("unix://{}", socket.display()))
        .arg("--data-root")
        .arg(directory.join("data"))
        .arg("--exec-root")
        .arg(directory.join("exec"))
        .arg("--pidfile")
        .arg(directory.join("pid"));
    let (log, sockets) = (directory.join("log"), vec![socket.to_owned()]);
    let limit = Duration::from_secs(30);
    Daemon::start(&mut command, &log, sockets, limit, request)
}

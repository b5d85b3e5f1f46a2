//! containerd and runc, if installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use longwire_attach::{Machine, State, TargetError};
use longwire_testbed::support::{Folder, have, skip};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::common::{container, pod};

/// Timeout for containerd's answers.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A containerd with separate directories, stopped on drop.
struct Engine {
    process: Child,
    folder: Folder,
}

impl Engine {
    fn start() -> Option<Engine> {
        if !nix::unistd::geteuid().is_root() {
            return skip("needs root, for containerd");
        }
        if !["containerd", "ctr", "runc"].into_iter().all(have) {
            return None;
        }
        let folder = Folder::new();
        let configuration = format!(
            "version = 2\nroot = '{}'\nstate = '{}'\n\
             disabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\naddress = '{}'\n",
            folder.file("root"),
            folder.file("state"),
            folder.file("state/c.sock"),
        );
        fs::write(folder.file("config.toml"), configuration).expect("a file");
        let log = fs::File::create(folder.file("log")).expect("a file");
        let process = Command::new("containerd")
            .args(["--config", &folder.file("config.toml")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("containerd");
        let engine = Engine { process, folder };
        let begin = Instant::now();
        while !engine.ctr(&["version"]).is_ok_and(|o| o.status.success()) {
            let log = || fs::read_to_string(engine.folder.file("log")).unwrap_or_default();
            assert!(begin.elapsed() < TIMEOUT, "containerd: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(engine)
    }

    fn ctr(&self, arguments: &[&str]) -> io::Result<Output> {
        let mut command = Command::new("ctr");
        command.args(["--address", &self.folder.file("state/c.sock")]);
        command.args(["--namespace", &namespace()]);
        command.args(arguments).output()
    }

    fn must(&self, arguments: &[&str]) {
        let output = self.ctr(arguments).expect("ctr");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ctr {arguments:?}: {error}");
    }

    /// Starts a sleeping container.
    fn run(&self, flags: &[&str], id: &str) {
        let files = self.folder.file("files");
        if !Path::new(&files).exists() {
            write_files(Path::new(&files));
        }
        let mut arguments = vec!["run", "--detach", "--rootfs"];
        arguments.extend(flags);
        arguments.extend([files.as_str(), id, "/bin/sleep", "1000"]);
        self.must(&arguments);
    }

    /// Returns the machine with this containerd's directories.
    fn machine(&self) -> Machine {
        let address = self.folder.file("state/c.sock");
        Machine::at(Path::new("/")).with_variables([("CONTAINERD_ADDRESS", address)])
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for id in [web().as_str(), PLAIN, HOST] {
            let _ = self.ctr(&["tasks", "kill", "--signal", "KILL", id]);
            let _ = self.ctr(&["tasks", "delete", "--force", id]);
            let _ = self.ctr(&["containers", "delete", id]);
        }
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.process.wait();
        // containerd leaves runc's state directory and the cgroups. Removal fails while they are in
        // use.
        let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
        let hierarchies = hierarchies.flatten().map(|entry| entry.path());
        let cgroups = hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]);
        for parent in cgroups.chain([PathBuf::from("/run/containerd/runc")]) {
            let _ = fs::remove_dir(parent.join(namespace()));
        }
    }
}

/// Returns the containerd namespace. It is unique, because runc keeps all namespaces' containers in
/// one directory.
fn namespace() -> String {
    format!("longwire-attach-{}", std::process::id())
}

/// Returns an ID in generated form that is unique to this test.
fn web() -> String {
    format!("3fa9{:060x}", u128::from(std::process::id()) << 64)
}

/// A user-chosen ID, such as one given to `ctr`.
const PLAIN: &str = "longwire-attach-plain";

/// The container with host networking.
const HOST: &str = "longwire-attach-host";

/// Writes a container's files: `sleep` and its libraries.
fn write_files(root: &Path) {
    let sleep = Command::new("which").arg("sleep").output().expect("which");
    let sleep = String::from_utf8_lossy(&sleep.stdout).trim().to_owned();
    fs::create_dir_all(root.join("bin")).expect("a directory");
    fs::copy(&sleep, root.join("bin/sleep")).expect("a copy");
    // A static program has no libraries.
    let libraries = Command::new("ldd").arg(&sleep).output().expect("ldd");
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let paths = libraries.split_whitespace();
    for path in paths.filter(|word| word.starts_with('/')) {
        let copy = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("a directory")).expect("directories");
        fs::copy(path, copy).expect("a copy");
    }
}

#[test]
fn containers_of_a_real_containerd_are_found() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let web: &str = &web();
    let annotation = ["--annotation", "nerdctl/name=longwire-attach-shop"];
    engine.run(&annotation, web);
    let cri = |key: &str, value: &str| format!("io.kubernetes.cri.{key}={value}");
    let sandbox = [
        cri("container-type", "sandbox"),
        cri("sandbox-namespace", "longwire-attach"),
        cri("sandbox-name", "web-0"),
    ];
    let sandbox = sandbox.iter().flat_map(|text| ["--annotation", text]);
    engine.run(&sandbox.collect::<Vec<_>>(), PLAIN);
    engine.run(&["--net-host"], HOST);
    let machine = engine.machine();
    let mut inodes = Vec::new();
    let shop = "longwire-attach-shop";
    let shops = format!("containerd:{shop}");
    for names in [
        &[web, &web[..50], shop, &shops][..],
        &[PLAIN, "longwire-attach-p"],
        &[HOST],
    ] {
        let resolve = |name: &&str| {
            let found = machine.resolve(&container(name));
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(found.is_host, names.contains(&HOST), "{name}");
            found.inode()
        };
        let inode = resolve(&names[0]);
        assert!(names.iter().all(|name| resolve(name) == inode), "{names:?}");
        assert!(!inodes.contains(&inode), "{names:?}");
        inodes.push(inode);
    }

    let by_pod = machine.resolve(&pod("longwire-attach/web-0"));
    assert_eq!(by_pod.expect("a pod").inode(), inodes[1]);

    let mut running = machine.containers();
    running.retain(|container| container.namespace.as_deref() == Some(&namespace()));
    let mut ids: Vec<&str> = running.iter().map(|c| c.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [web, HOST, PLAIN]);

    // Without containerd's directories, the process identifies the container.
    let by_process = Machine::at(Path::new("/")).resolve(&container(&web[..50]));
    let by_process = by_process.expect("by its cgroup");
    assert_eq!(by_process.inode(), inodes[0]);
    assert!(by_process.description.contains("an unknown runtime"));

    the_end_is_reported(&engine, &machine, web);
}

/// Stops a container, checks that it is reported as stopped, and starts it again.
fn the_end_is_reported(engine: &Engine, machine: &Machine, web: &str) {
    let found = machine.resolve(&container(web)).expect("it runs");
    let process = found.process().expect("a descriptor");
    let mut fds = [PollFd::new(process, PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::ZERO), Ok(0));
    engine.must(&["tasks", "kill", "--signal", "KILL", web]);
    assert_eq!(poll(&mut fds, PollTimeout::from(20_000u16)), Ok(1));
    let error = machine.resolve(&found.target).expect_err("it has ended");
    match error {
        TargetError::NotRunning { candidates, .. } => {
            assert_eq!(candidates[0].state, State::Stopped);
        }
        // containerd has removed the task.
        TargetError::Unknown(_) => {}
        error => panic!("{error}"),
    }
    let _ = engine.ctr(&["tasks", "delete", "--force", web]);
    engine.must(&["tasks", "start", "--detach", web]);
    let again = machine.resolve(&found.target).expect("it runs again");
    assert_ne!(again.pid, found.pid);
}

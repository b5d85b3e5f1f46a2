//! A private containerd with runc and an image of this machine's programs.

pub mod image;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, addr_add, link_up, veth};
use longwire_testbed::support::{Folder, skip};

use super::process::{RunningProgram, TIMEOUT};
use super::site::well;
use super::{Ran, ran};

/// The device of each joined container.
pub const DEVICE: &str = "eth0";

/// A running containerd, stopped with its containers on drop.
pub struct Engine {
    process: Child,
    folder: Folder,
    /// The containerd namespace: runc keeps the containers of all of them in one
    /// directory.
    namespace: String,
}

impl Engine {
    /// Starts containerd without its CRI, and imports the image.
    pub fn start() -> Option<Engine> {
        let settings = |_: &Folder| "disabled_plugins = ['io.containerd.grpc.v1.cri']\n".to_owned();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let network = NetNamespace::current().expect("a namespace");
        // One per engine: at its end it removes the cgroups, in which another engine
        // may be creating a container.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("longwire-{}-{number}", std::process::id());
        Engine::start_with(&namespace, &network, settings)
    }

    /// Starts containerd in a network with these settings, and imports the image into a
    /// containerd namespace; `None` where it cannot run.
    pub fn start_with(
        namespace: &str,
        network: &NetNamespace,
        settings: impl Fn(&Folder) -> String,
    ) -> Option<Engine> {
        if !nix::unistd::geteuid().is_root() {
            return skip("needs root, for containerd");
        }
        for program in [
            "containerd",
            "ctr",
            "runc",
            "iperf3",
            "ping",
            "curl",
            "busybox",
        ] {
            let found = Command::new("which").arg(program).output();
            if !found.is_ok_and(|found| found.status.success()) {
                return skip(format!("{program} is not installed"));
            }
        }
        let folder = Folder::new();
        let configuration = format!(
            "version = 2\nroot = '{}'\nstate = '{}'\n{}[grpc]\naddress = '{}'\n",
            folder.file("root"),
            folder.file("state"),
            settings(&folder),
            folder.file("state/c.sock"),
        );
        fs::write(folder.file("config.toml"), configuration).expect("a file");
        let log = fs::File::create(folder.file("log")).expect("a file");
        let mut command = Command::new("containerd");
        command.args(["--config", &folder.file("config.toml")]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log);
        let process = network.run(|| command.spawn()).expect("entered");
        let engine = Engine {
            process: process.expect("containerd"),
            folder,
            namespace: namespace.to_owned(),
        };
        let begin = Instant::now();
        while engine.ctr(&["version"]).code != 0 {
            assert!(begin.elapsed() < TIMEOUT, "containerd: {}", engine.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        let image = image::write(&engine.folder);
        engine.well(&["images", "import", "--snapshotter", "native", &image]);
        Some(engine)
    }

    /// Returns the test's folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns containerd's address.
    pub fn socket(&self) -> String {
        self.folder.file("state/c.sock")
    }

    /// Returns containerd's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ctr");
        command.args(["--address", &self.socket()]);
        command
            .args(["--namespace", &self.namespace])
            .args(arguments);
        command
    }

    /// Runs `ctr`.
    pub fn ctr(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().expect("ctr"))
    }

    /// Runs `ctr`, which must succeed; returns its output.
    #[track_caller]
    pub fn well(&self, arguments: &[&str]) -> String {
        well(arguments, self.ctr(arguments))
    }

    /// Creates and starts a container.
    pub fn run(&self, name: &str, flags: &[&str], program: &[&str]) -> Container<'_> {
        let id = format!("longwire-{name}-{}", std::process::id());
        let mut arguments = vec!["run", "--detach", "--snapshotter", "native"];
        arguments.extend(flags);
        arguments.extend([image::NAME, &id]);
        arguments.extend(program);
        self.well(&arguments);
        Container { engine: self, id }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for id in self.ctr(&["containers", "list", "-q"]).stdout.lines() {
            let _ = self.ctr(&["tasks", "resume", id]);
            let _ = self.ctr(&["tasks", "kill", "--signal", "KILL", id]);
            let _ = self.ctr(&["tasks", "delete", "--force", id]);
            let _ = self.ctr(&["containers", "delete", id]);
        }
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        let _ = self.process.wait();
        // Mounts of pods whose test failed would prevent the folder's removal.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for point in points.filter(|point| Path::new(point).starts_with(self.folder.path())) {
            let _ = Command::new("umount").arg(point).status();
        }
        remove_cgroups(&self.namespace);
        let _ = fs::remove_dir(Path::new("/run/containerd/runc").join(&self.namespace));
    }
}

/// Removes the cgroups with this name, which runc and the kernel leave behind; those in
/// use stay.
pub fn remove_cgroups(name: &str) {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
    let hierarchies = hierarchies.flatten().map(|entry| entry.path());
    for parent in hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]) {
        let _ = fs::remove_dir(parent.join(name));
    }
}

/// A container.
pub struct Container<'a> {
    engine: &'a Engine,
    /// Its ID.
    pub id: String,
}

impl Container<'_> {
    /// Returns the PID of the first process.
    pub fn pid(&self) -> u32 {
        let tasks = self.engine.well(&["tasks", "list"]);
        let row = tasks.lines().find(|line| line.starts_with(&self.id));
        let pid = row.and_then(|row| row.split_whitespace().nth(1)?.parse().ok());
        pid.unwrap_or_else(|| panic!("no PID of {} in {tasks}", self.id))
    }

    /// Returns the state, such as `RUNNING`.
    pub fn state(&self) -> String {
        let tasks = self.engine.well(&["tasks", "list"]);
        let row = tasks.lines().find(|line| line.starts_with(&self.id));
        let state = row.and_then(|row| row.split_whitespace().nth(2));
        state.unwrap_or_default().to_owned()
    }

    /// Returns the network namespace.
    pub fn namespace(&self) -> NetNamespace {
        NetNamespace::of_process(self.pid()).expect("a namespace")
    }

    /// Runs a `ctr tasks` command on the container.
    #[track_caller]
    pub fn task(&self, arguments: &[&str]) {
        self.engine
            .well(&[&["tasks"], arguments, &[self.id.as_str()]].concat());
    }

    /// Freezes the processes until the drop, and waits until the kernel has frozen all.
    /// `ctr tasks pause` does not wait: runc thaws them unless all freeze in a moment.
    pub fn freeze(&self) -> Freezer {
        let freezer = Freezer::of(self.pid());
        freezer.set(true);
        let begin = Instant::now();
        while !freezer.is_frozen() {
            assert!(begin.elapsed() < TIMEOUT, "{} does not freeze", self.id);
            std::thread::sleep(Duration::from_millis(10));
        }
        freezer
    }

    fn exec_command(&self, program: &[&str]) -> Command {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let exec = format!("exec-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let start = ["tasks", "exec", "--exec-id", &exec, &self.id];
        self.engine.command(&[&start, program].concat())
    }

    /// Runs a program in the container.
    pub fn exec(&self, program: &[&str]) -> Ran {
        ran(self.exec_command(program).output().expect("ctr"))
    }

    /// Runs a program that must succeed; returns its output.
    #[track_caller]
    pub fn bytes(&self, program: &[&str]) -> Vec<u8> {
        let output = self.exec_command(program).output().expect("ctr");
        let bytes = output.stdout.clone();
        assert!(output.status.success(), "{program:?}: {:?}", ran(output));
        bytes
    }

    /// Starts a program in the container.
    pub fn spawn(&self, program: &[&str]) -> RunningProgram {
        let mut command = self.exec_command(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        RunningProgram::of(command.stderr(Stdio::piped()).spawn().expect("ctr"))
    }

    /// Kills the container and waits for the end of its namespaces.
    pub fn kill(&self) {
        self.task(&["kill", "--signal", "KILL"]);
        self.wait_for("STOPPED");
    }

    /// Waits for a state.
    pub fn wait_for(&self, state: &str) {
        let begin = Instant::now();
        while self.state() != state {
            assert!(begin.elapsed() < TIMEOUT, "{} is {}", self.id, self.state());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the shortest round trip to an address, in milliseconds; `None` without a
    /// reply.
    pub fn round_trip(&self, address: &str) -> Option<f64> {
        let ping = ["ping", "-c", "4", "-i", "0.1", "-W", "2", "-q", address];
        let text = self.exec(&ping).stdout;
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }

    /// Asserts the shortest round trip, in milliseconds: a busy machine delays some,
    /// but rarely all.
    #[track_caller]
    pub fn assert_round_trip(&self, address: &str, expected: f64) {
        let mut found = f64::INFINITY;
        for _ in 0..10 {
            let one = self.round_trip(address);
            found = found.min(one.unwrap_or_else(|| panic!("no answer of {address}")));
            assert!(found > expected - 0.1, "{found} ms, not {expected} ms");
            if found < expected + 5.0 {
                return;
            }
        }
        panic!("{found} ms, not {expected} ms");
    }
}

/// The freezer of a cgroup, which thaws it on drop.
pub enum Freezer {
    /// Directory of the first version's hierarchy.
    V1(PathBuf),
    /// Directory of the unified hierarchy.
    V2(PathBuf),
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.set(false);
    }
}

impl Freezer {
    /// Returns the freezer of a process.
    fn of(pid: u32) -> Freezer {
        let lines = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("cgroups");
        let path = |controller: &str| {
            let mut lines = lines.lines();
            lines.find_map(|line| line.split_once(controller)?.1.strip_prefix('/'))
        };
        let root = Path::new("/sys/fs/cgroup");
        match path(":freezer:") {
            Some(path) => Freezer::V1(root.join("freezer").join(path)),
            None => Freezer::V2(root.join(path("::").expect("a cgroup"))),
        }
    }

    fn set(&self, frozen: bool) {
        let (file, text) = match (self, frozen) {
            (Freezer::V1(cgroup), true) => (cgroup.join("freezer.state"), "FROZEN"),
            (Freezer::V1(cgroup), false) => (cgroup.join("freezer.state"), "THAWED"),
            (Freezer::V2(cgroup), true) => (cgroup.join("cgroup.freeze"), "1"),
            (Freezer::V2(cgroup), false) => (cgroup.join("cgroup.freeze"), "0"),
        };
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    fn is_frozen(&self) -> bool {
        let (file, line) = match self {
            Freezer::V1(cgroup) => (cgroup.join("freezer.state"), "FROZEN"),
            Freezer::V2(cgroup) => (cgroup.join("cgroup.events"), "frozen 1"),
        };
        let state = fs::read_to_string(&file);
        let state = state.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        state.lines().any(|found| found == line)
    }
}

/// Joins two containers with a veth pair: their devices are [`DEVICE`], with these
/// addresses in one /24 subnet.
pub fn join(ends: [(&Container<'_>, &str); 2]) {
    let namespaces = ends.map(|(container, _)| container.namespace());
    let end = |at: usize| veth::End {
        name: DEVICE,
        namespace: Some(&namespaces[at]),
        ..veth::End::default()
    };
    let (a, b) = (end(0), end(1));
    veth::create(&veth::VethConfig { a, b }).expect("a pair");
    for (namespace, (_, address)) in namespaces.iter().zip(ends) {
        let address = address.parse().expect("an address");
        let set_up = || {
            addr_add(DEVICE, address, 24)?;
            link_up(DEVICE)
        };
        namespace.run(set_up).expect("entered").expect("a device");
    }
}

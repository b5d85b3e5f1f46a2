//! A private containerd with runc and an image of this machine's programs.

pub mod image;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use longwire_io::net::{NetNamespace, addr_add, link_up, veth};
use longwire_testbed::support::{Folder, skip, within};

use super::program::{Ran, RunningProgram, eventually, piped, run};

/// Device of each joined container.
pub const DEVICE: &str = "eth0";

/// A running containerd, stopped with its containers on drop.
pub struct Engine {
    process: Child,
    folder: Folder,
    /// Namespace in containerd. runc keeps the containers of all namespaces in one directory, so
    /// names must be unique.
    namespace: String,
}

impl Engine {
    /// Starts containerd without its CRI plugin, and imports the image; `None` if it cannot run.
    pub fn start() -> Option<Engine> {
        let settings = |_: &Folder| "disabled_plugins = ['io.containerd.grpc.v1.cri']\n".to_owned();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let network = NetNamespace::current().expect("a namespace");
        // Use a namespace per engine: an engine that exits removes its cgroups, in which another
        // could be creating a container.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("longwire-{}-{number}", std::process::id());
        Engine::start_with(&namespace, &network, settings)
    }

    /// Starts containerd in a network with these settings, and imports the image into a containerd
    /// namespace; `None` if containerd cannot run.
    pub fn start_with(
        namespace: &str,
        network: &NetNamespace,
        settings: impl Fn(&Folder) -> String,
    ) -> Option<Engine> {
        if !nix::unistd::geteuid().is_root() {
            return skip("needs root, for containerd");
        }
        for program in "containerd ctr runc iperf3 ping curl busybox".split(' ') {
            if run(format!("which {program}")).code != 0 {
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
        eventually("containerd does not answer", || {
            engine.ctr("version").code == 0
        });
        let image = image::write(&engine.folder);
        engine.well(format!("images import --snapshotter native {image}"));
        Some(engine)
    }

    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    pub fn socket(&self) -> String {
        self.folder.file("state/c.sock")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }

    fn line(&self, line: impl AsRef<str>) -> String {
        let (socket, namespace) = (self.socket(), &self.namespace);
        format!(
            "ctr --address {socket} --namespace {namespace} {}",
            line.as_ref()
        )
    }

    pub fn ctr(&self, line: impl AsRef<str>) -> Ran {
        run(self.line(line))
    }

    /// Runs `ctr`, which must succeed; returns its output.
    #[track_caller]
    pub fn well(&self, line: impl AsRef<str>) -> String {
        self.ctr(line).well().stdout
    }

    pub fn run(&self, name: &str, flags: &str, program: &str) -> Container<'_> {
        let id = format!("longwire-{name}-{}", std::process::id());
        let image = image::NAME;
        self.well(format!(
            "run --detach --snapshotter native {flags} {image} {id} {program}"
        ));
        Container { engine: self, id }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for id in self.ctr("containers list -q").stdout.lines() {
            let ends = [
                "tasks resume",
                "tasks kill --signal KILL",
                "tasks delete --force",
            ];
            for end in ends.into_iter().chain(["containers delete"]) {
                let _ = self.ctr(format!("{end} {id}"));
            }
        }
        let _ = run(format!("kill {}", self.process.id()));
        let _ = self.process.wait();
        // Mounts left by a failed test's pods would prevent removal of the folder.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for point in points.filter(|point| Path::new(point).starts_with(self.folder.path())) {
            let _ = run(format!("umount {point}"));
        }
        remove_cgroups(&self.namespace);
        let _ = fs::remove_dir(Path::new("/run/containerd/runc").join(&self.namespace));
    }
}

/// Removes leftover cgroups of this name from every hierarchy; those in use stay.
pub fn remove_cgroups(name: &str) {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
    let hierarchies = hierarchies.flatten().map(|entry| entry.path());
    for parent in hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]) {
        let _ = fs::remove_dir(parent.join(name));
    }
}

pub struct Container<'a> {
    engine: &'a Engine,
    pub id: String,
}

impl Container<'_> {
    /// Returns a column of the container's row in the task list: PID or state.
    fn task_column(&self, column: usize) -> String {
        let tasks = self.engine.well("tasks list");
        let row = tasks.lines().find(|line| line.starts_with(&self.id));
        let found = row.and_then(|row| row.split_whitespace().nth(column));
        found.unwrap_or_default().to_owned()
    }

    /// Returns the PID of the first process.
    pub fn pid(&self) -> u32 {
        self.task_column(1).parse().expect("a PID")
    }

    /// Returns the state, such as `RUNNING`.
    pub fn state(&self) -> String {
        self.task_column(2)
    }

    pub fn namespace(&self) -> NetNamespace {
        NetNamespace::of_process(self.pid()).expect("a namespace")
    }

    /// Runs a `ctr tasks` command on the container.
    #[track_caller]
    pub fn task(&self, command: &str) {
        self.engine.well(format!("tasks {command} {}", self.id));
    }

    /// Freezes all processes until the freezer is dropped, and waits until the kernel has frozen
    /// them. `ctr tasks pause` cannot be used: unless all processes freeze quickly, runc thaws
    /// them.
    pub fn freeze(&self) -> Freezer {
        let freezer = Freezer::of(self.pid());
        freezer.set(true);
        eventually("it does not freeze", || freezer.is_frozen());
        freezer
    }

    fn exec_line(&self, program: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = &self.id;
        self.engine
            .line(format!("tasks exec --exec-id exec-{number} {id} {program}"))
    }

    /// Runs a program in the container.
    pub fn exec(&self, program: &str) -> Ran {
        run(self.exec_line(program))
    }

    /// Runs a program that must succeed; returns its output.
    #[track_caller]
    pub fn bytes(&self, program: &str) -> Vec<u8> {
        let output = piped(self.exec_line(program)).output().expect("ctr");
        assert!(output.status.success(), "{program}: {output:?}");
        output.stdout
    }

    /// Starts a program in the container.
    pub fn spawn(&self, program: &str) -> RunningProgram {
        RunningProgram::spawn(&mut piped(self.exec_line(program)))
    }

    /// Kills the container and waits for the end of its namespaces.
    pub fn kill(&self) {
        self.task("kill --signal KILL");
        self.wait_for("STOPPED");
    }

    pub fn wait_for(&self, state: &str) {
        eventually(state, || self.state() == state);
    }
}

/// The freezer of a cgroup, which thaws on drop.
pub enum Freezer {
    /// Directory in the cgroup v1 hierarchy.
    V1(PathBuf),
    /// Directory in the unified hierarchy.
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

/// Joins two containers with a veth pair whose ends are named [`DEVICE`], with these addresses in
/// one /24 subnet.
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
        within(namespace, || {
            addr_add(DEVICE, address, 24)?;
            link_up(DEVICE)
        });
    }
}

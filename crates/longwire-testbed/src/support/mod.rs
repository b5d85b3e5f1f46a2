//! Building blocks for tests: namespaces, wires, stations, folders, frames, captures, plugins and
//! case tables.

mod binomial;
pub mod capture;
mod conformance;
mod disk;
mod draws;
mod file_options;
pub mod frames;
pub mod gap_wire;
mod plugin;
mod rows;

use std::fmt::{Debug, Display};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{NetError, NetNamespace, link_up};

pub use binomial::interval as binomial_interval;
pub use conformance::{ExampleFiles, assert_models_conform, model_examples};
pub use disk::{fill_disk, with_small_disk};
pub use draws::Draws;
pub use file_options::FileOption;
pub use plugin::{compile_plugin, repository};
pub use rows::{rows, words};

/// Skips a test: prints the reason and returns `None`. `cargo xtask test` lists the reasons. In CI,
/// where the variable `CI` is set, every test must run.
///
/// # Panics
///
/// In CI.
pub fn skip<T>(why: impl Display) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "not skipped in CI: {why}");
    eprintln!("skipped: {why}");
    if let Some(list) = std::env::var_os("LONGWIRE_SKIPPED") {
        let line = format!("{why}").trim().replace('\n', " ") + "\n";
        let opened = fs::OpenOptions::new().append(true).create(true).open(list);
        // Use a single write, because other tests append too.
        let _ = opened.and_then(|mut list| list.write_all(line.as_bytes()));
    }
    None
}

/// Returns the output of a program, or skips the test if it is not installed.
///
/// # Panics
///
/// If the program cannot be started; see also [`skip`].
pub fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let program = command.get_program().to_string_lossy();
            skip(format!("{program} is not installed"))
        }
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// Returns whether a program is installed; skips the test if not.
///
/// # Panics
///
/// See [`output`].
pub fn have(program: &str) -> bool {
    output(Command::new(program).arg("--version")).is_some()
}

/// Creates a network namespace; skips the test if that is not allowed.
///
/// # Panics
///
/// See [`skip`].
pub fn namespace() -> Option<NetNamespace> {
    NetNamespace::new().map_or_else(skip, Some)
}

/// Runs fallible work in a namespace; returns its value.
///
/// # Panics
///
/// If the namespace cannot be entered, or the work fails.
#[track_caller]
pub fn within<T: Send, E: Debug + Send>(
    namespace: &NetNamespace,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> T {
    match namespace.run(work).expect("the namespace is entered") {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}

/// Returns one end of a wire: a device with one queue, by default in the calling thread's
/// namespace.
pub fn device<'a>(name: &'a str, namespace: Option<&'a NetNamespace>) -> End<'a> {
    End {
        name,
        namespace,
        queues: Some(1),
        ..End::default()
    }
}

/// Creates a veth pair with both ends up.
///
/// # Errors
///
/// If the pair cannot be created, or a namespace cannot be entered.
pub fn wire(a: End<'_>, b: End<'_>) -> Result<(), NetError> {
    let ends = [(a.namespace, a.name), (b.namespace, b.name)];
    let pair = VethConfig { a, b };
    // Create the pair inside: a user namespace has no privileges in the caller's namespace.
    inside(ends[0].0, || veth::create(&pair))?;
    ends.into_iter()
        .try_for_each(|(namespace, name)| inside(namespace, || link_up(name)))
}

/// Runs `work` in a namespace, by default the calling thread's.
fn inside(
    namespace: Option<&NetNamespace>,
    work: impl FnOnce() -> Result<(), NetError> + Send,
) -> Result<(), NetError> {
    match namespace {
        Some(namespace) => namespace.run(work)?,
        None => work(),
    }
}

/// Hosts without addresses, each in a separate namespace and wired to a shared namespace.
#[derive(Debug)]
pub struct Stations {
    /// Shared namespace, with a device for each host.
    pub middle: NetNamespace,
    /// The hosts' namespaces, each with the device [`Stations::DEVICE`].
    pub hosts: Vec<NetNamespace>,
}

impl Stations {
    /// Device of a host.
    pub const DEVICE: &str = "eth0";

    /// Creates `count` hosts, at most 256.
    ///
    /// # Errors
    ///
    /// If a namespace or a device cannot be created.
    pub fn new(count: usize) -> Result<Stations, NetError> {
        let mut stations = Stations {
            middle: NetNamespace::new()?,
            hosts: Vec::new(),
        };
        for number in 0..count {
            let host = NetNamespace::new()?;
            host.run(|| link_up("lo"))??;
            let end = End {
                mac: Some(Stations::mac(number)),
                ..device(Stations::DEVICE, Some(&host))
            };
            let port = Stations::port(number);
            wire(device(&port, Some(&stations.middle)), end)?;
            stations.hosts.push(host);
        }
        Ok(stations)
    }

    /// Returns the name of the device that faces a host: `p0` and so on.
    pub fn port(host: usize) -> String {
        format!("p{host}")
    }

    /// Returns the MAC address of a host.
    pub fn mac(host: usize) -> [u8; 6] {
        [2, 0, 0, 0, 1, host as u8]
    }
}

/// A folder for one test, removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with a unique name.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    pub fn new() -> Folder {
        Folder::create().unwrap_or_else(|error| panic!("no folder for the test: {error}"))
    }

    /// Like [`Folder::new`], for use outside tests.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create() -> io::Result<Folder> {
        Folder::create_in(&std::env::temp_dir())
    }

    /// Like [`Folder::create`], within another folder, which is created if missing.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create_in(parent: &Path) -> io::Result<Folder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("longwire-test-{}-{number}", std::process::id());
        let path = parent.join(name);
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

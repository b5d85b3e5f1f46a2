//! Registry of this machine's attachments. Each `longwire attach` without a node has an entry and a
//! control socket in the run directory; the node lists its own attachments.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longwire_attach::process_start;
use longwire_capture::state_file::StagedFile;
use longwire_client::node::{
    ATTACHMENTS, AttachmentList, AttachmentSpec, AttachmentState, AttachmentView,
};
use longwire_client::{Address, Client};
use longwire_io::run_directory;
use longwire_node::store::{self, Facts};
use longwire_node::{names, place};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::commands::node::{self, own_directory};
use crate::report::output::print_line;

/// Directory of the entries, within the run directory.
const DIRECTORY: &str = "attached";
/// Prefix of a control socket's name; the attachment's name and a suffix follow.
const SOCKET_PREFIX: &str = "attach-";
const SOCKET_SUFFIX: &str = ".sock";
/// Maximum time between creating a control socket and listening on it.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// File mode of the entries: any user may list attachments.
const MODE: u32 = 0o644;
/// Reason shown for a killed process's attachment, which has no link.
pub(super) const CLOSED: &str = "closed because its emulator ended";

/// An attachment and its owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Registered {
    #[serde(flatten)]
    pub view: AttachmentView,
    /// Owning process; `None` if the node owns it.
    #[serde(flatten)]
    pub process: Option<AttachProcess>,
}

/// A `longwire attach` process, as stored in its entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AttachProcess {
    pub pid: u32,
    /// Process start time in clock ticks since boot, to detect a reused PID.
    started: u64,
    pub control: PathBuf,
    facts: Facts,
    /// Whether the process has ended but left its interfaces closed.
    #[serde(default, skip_deserializing)]
    pub closed: bool,
}

impl AttachProcess {
    /// Returns whether the process is still running.
    pub fn is_alive(&self) -> bool {
        process_start(self.pid).is_ok_and(|started| started == self.started)
    }
}

impl Registered {
    /// Opens the interfaces that an ended process left closed, and removes the files of a
    /// fail-closed attachment.
    pub fn open(&self, process: &AttachProcess) -> Result<(), Error> {
        process.facts.open_others(&[])?;
        if self.view.spec.fail.is_open() {
            return Ok(());
        }
        let directory = process.control.with_file_name(DIRECTORY);
        let _ = fs::remove_file(file_in(&directory, &self.view.name));
        let _ = fs::remove_file(&process.control);
        Ok(())
    }

    /// Returns the error for using a closed attachment.
    pub fn refuse_closed(&self) -> Error {
        let name = &self.view.name;
        Error::usage(format!(
            "'{name}' is {CLOSED}: `longwire attach detach {name}` opens it"
        ))
    }
}

/// A run's entry, removed on drop.
pub(super) struct Registration {
    entry: Registered,
    file: PathBuf,
    /// Address of the run's control API.
    pub address: Address,
    is_written: bool,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A remaining file would name a dead process; `list` removes it unless interfaces stay
        // closed.
        if self.is_written && !std::thread::panicking() {
            let _ = fs::remove_file(&self.file);
        }
    }
}

impl Registration {
    /// Chooses a name from a short and a long description of the place unless `name` is given.
    /// Creates missing directories, but not yet the file.
    pub fn create(
        name: Option<&str>,
        [label, place]: [String; 2],
        (interfaces, facts): (Vec<String>, Facts),
        spec: AttachmentSpec,
    ) -> Result<Registration, Error> {
        let run = own_directory()?;
        let directory = run.join(DIRECTORY);
        let created = run_directory::create(&directory);
        created.map_err(Error::file(&directory, "cannot create the run directory"))?;
        let interface = match interfaces.as_slice() {
            [one] => Some(one.as_str()),
            _ => Some(place::ALL),
        };
        let name = names::choose(name, &label, interface).map_err(Error::usage)?;
        let mut present = entries(&directory)?.into_iter();
        if let Some(present) = present.find(|entry| entry.view.name == name) {
            if present.process.as_ref().is_some_and(|it| it.closed) {
                return Err(present.refuse_closed());
            }
            return Err(Error::usage(format!(
                "a link named '{name}' is already attached; choose another name with --name, or \
                 change it with `longwire attach set {name} …`"
            )));
        }
        let control = run.join(format!("{SOCKET_PREFIX}{name}{SOCKET_SUFFIX}"));
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let pid = std::process::id();
        let process = AttachProcess {
            pid,
            started: process_start(pid).unwrap_or_default(),
            control: control.clone(),
            facts,
            closed: false,
        };
        let view = AttachmentView {
            name,
            state: AttachmentState::Attached,
            reason: None,
            taken: false,
            place: Some(place),
            interfaces,
            since_unix: Some(since.unwrap_or_default().as_secs()),
            returns: 0,
            spec,
            warnings: Vec::new(),
        };
        Ok(Registration {
            file: file_in(&directory, &view.name),
            address: Address::Unix(control),
            entry: Registered {
                view,
                process: Some(process),
            },
            is_written: false,
        })
    }

    pub fn name(&self) -> &str {
        &self.entry.view.name
    }

    pub fn write(&mut self) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(&self.entry).map_err(io::Error::from)?;
        let staged = StagedFile::new(&self.file, text.as_bytes(), MODE);
        let made = staged.and_then(StagedFile::commit_new);
        made.map_err(Error::file(&self.file, "cannot record the attachment"))?;
        self.is_written = true;
        Ok(())
    }

    /// Keeps the entry on drop, because interfaces stay closed.
    pub fn keep(&mut self) {
        self.is_written = false;
    }
}

/// Returns all attachments: first those of this user's and the system's processes, by name, then
/// those of the node.
pub(super) fn all() -> Result<Vec<Registered>, Error> {
    let mut all = of_processes()?;
    all.extend(of_node()?);
    Ok(all)
}

/// Returns the attachment with this name.
///
/// # Errors
/// If none has this name; the error lists the existing names.
pub(super) fn named(name: &str) -> Result<Registered, Error> {
    let find = |all: &[Registered]| all.iter().find(|one| one.view.name == name).cloned();
    let mut all = of_processes()?;
    if let Some(found) = find(&all) {
        return Ok(found);
    }
    all.extend(of_node()?);
    find(&all).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| one.view.name.as_str()).collect();
        let present = match names.as_slice() {
            [] => "there are none".to_owned(),
            names => format!("attached links are {}", names.join(", ")),
        };
        Error::usage(format!("no attached link named '{name}'; {present}"))
    })
}

/// Returns the node's attachments; empty without a node. Warns if the node does not answer.
fn of_node() -> Result<Vec<Registered>, Error> {
    let Some(socket) = node::socket() else {
        return Ok(Vec::new());
    };
    let mut client = Client::new(Address::Unix(socket.clone()), None)?;
    let error = match client.get(ATTACHMENTS) {
        Ok(answer) => {
            let list: AttachmentList = read(answer)?;
            let of_node = |view| Registered {
                view,
                process: None,
            };
            return Ok(list.attachments.into_iter().map(of_node).collect());
        }
        Err(error) => error,
    };
    // A killed node leaves a stale socket.
    let stale = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
    if !UnixStream::connect(&socket).is_err_and(|error| stale.contains(&error.kind())) {
        print_line(format_args!(
            "warning: the node's links are not listed: {error}"
        ));
    }
    Ok(Vec::new())
}

/// Returns the attachments of processes, by name. Reads only directories that other users cannot
/// write to, because entries name processes to kill and files to remove.
fn of_processes() -> Result<Vec<Registered>, Error> {
    let mut all = Vec::new();
    for run in run_directory::all(std::env::var_os(run_directory::VARIABLE)) {
        let directory = run.join(DIRECTORY);
        if run_directory::is_trusted(&directory) {
            all.extend(entries(&directory)?);
        }
    }
    all.sort_by(|a, b| a.view.name.cmp(&b.view.name));
    Ok(all)
}

/// Reads the entries of a directory. Removes those of dead processes, unless their interfaces are
/// closed.
fn entries(directory: &Path) -> Result<Vec<Registered>, Error> {
    remove_dead_sockets(directory.parent().unwrap_or(directory));
    let files = match store::files(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files.map_err(Error::file(directory, "cannot list attached links"))?,
    };
    let mut found = Vec::new();
    for path in files {
        // The entry is still being written, or has been removed since it was listed.
        let Ok(mut entry) = store::read_file::<Registered>(&path) else {
            continue;
        };
        let Some(process) = &mut entry.process else {
            continue;
        };
        // Evaluate `is_alive` once: a process that ends in between must count as closed.
        let alive = process.is_alive();
        process.closed = !alive && process.facts.are_closed();
        if process.closed {
            entry.view.state = AttachmentState::Waiting;
            entry.view.reason = Some(CLOSED.to_owned());
        } else if !alive {
            // Remove pins of interfaces that are gone; usually there are none.
            let _ = process.facts.open_others(&[]);
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(&process.control);
            continue;
        }
        found.push(entry);
    }
    Ok(found)
}

fn file_in(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

/// Removes control sockets of runs that were killed before they wrote an entry.
fn remove_dead_sockets(run: &Path) {
    for entry in fs::read_dir(run).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(SOCKET_PREFIX) && name.ends_with(SOCKET_SUFFIX)) {
            continue;
        }
        let path = entry.path();
        let made = entry.metadata().and_then(|socket| socket.modified());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        // The owner of a newer socket may not be listening yet.
        let is_old = age.is_some_and(|age| age > BEGIN_MAX);
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_old && UnixStream::connect(&path).is_err_and(refused) {
            let _ = fs::remove_file(&path);
        }
    }
}

pub(super) fn put(name: &str, spec: &AttachmentSpec) -> Result<AttachmentView, Error> {
    let mut client = client()?.ok_or_else(node::missing)?;
    read(client.put(&format!("{ATTACHMENTS}/{name}"), &json!(spec))?)
}

/// Returns whether the node has an attachment of this name.
pub(super) fn exists(name: &str) -> Result<bool, Error> {
    let Some(mut client) = client()? else {
        return Ok(false);
    };
    Ok(client.get(&format!("{ATTACHMENTS}/{name}")).is_ok())
}

/// Removes an attachment of the node.
pub(super) fn detach(name: &str) -> Result<(), Error> {
    if let Some(mut client) = client()? {
        client.delete(&format!("{ATTACHMENTS}/{name}"))?;
    }
    Ok(())
}

/// Returns a client for this user's or the system's node; `None` if there is none.
fn client() -> Result<Option<Client>, Error> {
    let client = node::socket().map(|socket| Client::new(Address::Unix(socket), None));
    Ok(client.transpose()?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|error| {
        Error::failed(format!(
            "unexpected answer from the node; it may have another version: \
             {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A FIFO or a link to a device among the entries is skipped.
    #[test]
    fn entries_that_are_no_files_are_not_waited_for() {
        let folder = longwire_testbed::support::Folder::new();
        let entry = folder.path().join("x.json");
        nix::unistd::mkfifo(&entry, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("y.json")).expect("a link");
        assert!(entries(folder.path()).expect("a directory").is_empty());
        assert!(entry.exists());
    }
}

//! Attached links of this machine: each `longwire attach` run has a file and a control
//! socket in the run directory.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use longwire_capture::state_file::{self, StagedFile};
use longwire_client::node::AttachmentView;
use longwire_client::{Address, Client};
use longwire_io::attach::Pins;
use longwire_io::run_directory;
use longwire_node::place;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::attach_node;
use super::attach_options::DirectedOptions;
use super::attach_traffic::SelectedTraffic;
use crate::{Error, Globals};

/// Directory of the files, within the run directory.
const DIRECTORY: &str = "attached";
/// Prefix and suffix of a control socket's name, around the link's name.
const SOCKET_PREFIX: &str = "attach-";
const SOCKET_SUFFIX: &str = ".sock";
/// Maximum time from the creation of a control socket until its run listens.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// The mode of the files: any user may list links.
const MODE: u32 = 0o644;
/// Time that `detach` waits for a run to end before it kills it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `attach set`.
#[derive(Debug, Args)]
pub struct AttachSetArgs {
    /// The link's name in `attach list`
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Options, as in delay=80ms
    #[arg(value_name = "OPTION=VALUE", required = true, value_parser = super::ctl::option)]
    pub options: Vec<(String, String)>,

    /// Only what the interface's namespace sends, or only what it receives; as up- or down-
    /// in front of an option
    #[arg(long, value_name = "up|down", value_parser = ["up", "down"])]
    pub direction: Option<String>,
}

/// Arguments of `attach detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// The links' names in `attach list`
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,

    /// Every attached link
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// An attached link, as stored in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub name: String,
    /// The target, as worded in messages.
    pub place: String,
    pub interfaces: Vec<String>,
    #[serde(flatten)]
    pub traffic: SelectedTraffic,
    pub pid: i32,
    /// Start time of the process in clock ticks after boot (field 22 of
    /// /proc/PID/stat): detects a reused PID.
    started: u64,
    /// Unix time of the start, in seconds.
    since_unix: u64,
    pub control: PathBuf,
    /// Names of the pins of a fail-closed attachment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pins: Vec<String>,
    /// The process has ended, but the interfaces are closed.
    #[serde(default, skip_deserializing)]
    pub closed: bool,
}

/// The name and socket of a run that is about to attach.
pub(super) struct NewRun {
    record: Record,
    file: PathBuf,
    address: Address,
}

/// The entry of a run, removed on drop.
pub(super) struct Registration {
    name: String,
    file: PathBuf,
}

impl Registration {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps the entry, for interfaces that stay closed. Returns its name.
    pub(super) fn keep(mut self) -> String {
        self.file = PathBuf::new();
        std::mem::take(&mut self.name)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A file that is left names a dead process: `list` removes it, unless
        // interfaces stay closed.
        if std::thread::panicking() {
            return;
        }
        let _ = fs::remove_file(&self.file);
    }
}

impl NewRun {
    /// Chooses the name from a short and a long description of the place. Creates
    /// missing directories, but no file yet.
    pub(super) fn create(
        name: Option<&str>,
        [label, place]: [&str; 2],
        interfaces: &[String],
        traffic: SelectedTraffic,
    ) -> Result<NewRun, Error> {
        let directory = own_directory()?;
        let interface = match interfaces {
            [one] => Some(one.as_str()),
            _ => Some(place::ALL),
        };
        let name = attach_node::name(name, label, interface)?;
        let of_name = |record: &Record| record.name == name;
        let present = records(&directory)?.into_iter().find(of_name);
        if present.as_ref().is_some_and(|record| record.closed) {
            return Err(Error::Usage(format!(
                "'{name}' is closed, and its emulator has ended: `longwire attach detach {name}` \
                 opens it"
            )));
        }
        if present.is_some() {
            return Err(Error::Usage(format!(
                "a link named '{name}' is attached already: choose another with --name, or change \
                 it with `longwire attach set {name} …`"
            )));
        }
        let run = directory.parent().unwrap_or(&directory);
        let control = run.join(format!("{SOCKET_PREFIX}{name}{SOCKET_SUFFIX}"));
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let pid = std::process::id().cast_signed();
        let record = Record {
            place: place.to_owned(),
            interfaces: interfaces.to_vec(),
            traffic,
            pid,
            started: start_of(pid).unwrap_or_default(),
            since_unix: since.unwrap_or_default().as_secs(),
            control: control.clone(),
            pins: Vec::new(),
            closed: false,
            name,
        };
        Ok(NewRun {
            file: directory.join(format!("{}.json", record.name)),
            address: Address::Unix(control),
            record,
        })
    }

    /// Returns the address of the run's control API.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Writes the entry, with the pins of fail-closed interfaces.
    pub(super) fn register(mut self, pins: Vec<Pins>) -> Result<Registration, Error> {
        self.record.pins = pins.iter().map(|pins| pins.name().to_owned()).collect();
        let text = serde_json::to_string_pretty(&self.record).map_err(io::Error::from)?;
        let staged = StagedFile::new(&self.file, text.as_bytes(), MODE);
        let made = staged.and_then(StagedFile::commit_new);
        made.map_err(Error::file(&self.file, "cannot record the attachment"))?;
        Ok(Registration {
            name: self.record.name,
            file: self.file,
        })
    }
}

/// Changes options of an attached link.
pub(super) fn set(args: &AttachSetArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let options = DirectedOptions::new(args)?;
    options.warn(globals)?;
    let (name, answer) = match named(&args.name)? {
        LinkHolder::Run(record) if record.closed => {
            return Err(Error::Failed(format!(
                "'{0}' is closed, and its emulator has ended: `longwire attach detach {0}` opens \
                 it",
                record.name
            )));
        }
        LinkHolder::Run(record) => {
            options.check(&record.traffic)?;
            let links = record.interfaces.iter().flat_map(|interface| {
                options.tables().map(move |(direction, options)| {
                    let direction = direction.map(|direction| format!(".{direction}"));
                    let link = format!("{interface}{}", direction.unwrap_or_default());
                    (link, json!(options))
                })
            });
            let links: Map<String, Value> = links.collect();
            let mut client = Client::new(Address::Unix(record.control.clone()), None)?;
            let answer = client.post("/v1/changes", &json!({ "set": links }))?;
            (record.name, answer)
        }
        LinkHolder::OfNode(view) => {
            options.check(&SelectedTraffic::of_spec(&view.spec))?;
            let view = attach_node::set(&view, &options)?;
            (view.name.clone(), json!(view))
        }
    };
    if globals.json {
        println!("{answer}");
    } else if !globals.quiet {
        println!("'{name}' was changed");
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends `attach` runs and waits for their exit.
pub(super) fn detach(args: &DetachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let found: Vec<LinkHolder> = if args.all {
        let of_node = attach_node::views()?.into_iter();
        let of_node = of_node.map(|view| LinkHolder::OfNode(Box::new(view)));
        runs()?
            .into_iter()
            .map(LinkHolder::Run)
            .chain(of_node)
            .collect()
    } else {
        let found = args.names.iter().map(|name| named(name));
        found.collect::<Result<_, _>>()?
    };
    let mut ending = Vec::new();
    for named in found {
        match named {
            LinkHolder::Run(record) => {
                if !record.closed {
                    end(&record, Signal::SIGTERM)?;
                }
                ending.push(record);
            }
            LinkHolder::OfNode(view) => {
                attach_node::detach(&view.name)?;
                if !globals.quiet {
                    println!("'{}' was detached", view.name);
                }
            }
        }
    }
    for record in &ending {
        if !has_ended(record) {
            end(record, Signal::SIGKILL)?;
            if !has_ended(record) {
                return Err(Error::Failed(format!(
                    "process {} of '{}' does not end, although it was killed: the kernel holds it",
                    record.pid, record.name
                )));
            }
        }
        record.open()?;
        if !globals.quiet {
            println!("'{}' was detached", record.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the run's process to end; returns false on timeout.
fn has_ended(record: &Record) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while record.is_alive() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn end(record: &Record, signal: Signal) -> Result<(), Error> {
    match kill(Pid::from_raw(record.pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(Error::Failed(format!(
            "cannot end process {} of '{}': {error}",
            record.pid, record.name
        ))),
    }
}

impl Record {
    /// Returns whether the process still runs.
    fn is_alive(&self) -> bool {
        start_of(self.pid).is_some_and(|started| started == self.started)
    }

    pub(super) fn fails_closed(&self) -> bool {
        !self.pins.is_empty()
    }

    fn pins(&self) -> impl Iterator<Item = Pins> {
        self.pins.iter().filter_map(|name| Pins::named(name))
    }

    /// Opens the interfaces that the process left closed.
    fn open(&self) -> Result<(), Error> {
        for pins in self.pins() {
            pins.remove()?;
        }
        if !self.pins.is_empty() {
            let file = self.control.with_file_name(DIRECTORY);
            let _ = fs::remove_file(file.join(format!("{}.json", self.name)));
            let _ = fs::remove_file(&self.control);
        }
        Ok(())
    }
}

/// The owner of an attached link.
enum LinkHolder {
    Run(Record),
    OfNode(Box<AttachmentView>),
}

/// Returns the `attach` runs of this user and of the system.
pub(super) fn runs() -> Result<Vec<Record>, Error> {
    let mut all = Vec::new();
    for directory in all_directories() {
        all.extend(records(&directory)?);
    }
    Ok(all)
}

fn named(name: &str) -> Result<LinkHolder, Error> {
    let all = runs()?;
    if let Some(record) = all.iter().find(|record| record.name == name) {
        return Ok(LinkHolder::Run(record.clone()));
    }
    let of_node = attach_node::views()?;
    if let Some(view) = of_node.iter().find(|view| view.name == name) {
        return Ok(LinkHolder::OfNode(Box::new(view.clone())));
    }
    let names = all.iter().map(|record| record.name.as_str());
    let names: Vec<&str> = names
        .chain(of_node.iter().map(|view| view.name.as_str()))
        .collect();
    let present = match names.as_slice() {
        [] => "none is".to_owned(),
        names => format!("attached are {}", names.join(", ")),
    };
    Err(Error::Usage(format!(
        "no link named '{name}' is attached; {present}"
    )))
}

/// Reads the entries of a directory, and removes those of dead processes.
fn records(directory: &Path) -> Result<Vec<Record>, Error> {
    remove_dead_sockets(directory.parent().unwrap_or(directory));
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::file(directory, "cannot list attached links"))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        // Being written, or removed since it was listed.
        let Some(mut record) = read(&path) else {
            continue;
        };
        // Evaluated once: a process that ends meanwhile must be found closed.
        let alive = record.is_alive();
        record.closed = !alive && record.pins().any(|pins| pins.are_attached());
        if record.closed || alive {
            found.push(record);
        } else {
            // Pins of interfaces that are gone; usually there are none.
            record.pins().for_each(|pins| drop(pins.remove()));
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(&record.control);
        }
    }
    Ok(found)
}

/// Removes control sockets of runs that were killed before they had an entry.
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
        // A younger one may not listen yet.
        let is_old = age.is_some_and(|age| age > BEGIN_MAX);
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_old && UnixStream::connect(&path).is_err_and(refused) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&state_file::read(path).ok()?).ok()
}

/// Returns the start time of a process in clock ticks after boot; `None` if it has
/// ended.
fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18)?.parse().ok())?
}

/// Creates and returns the directory of this user's links.
fn own_directory() -> Result<PathBuf, Error> {
    let run = run_directory::own().ok_or_else(|| {
        let variable = run_directory::VARIABLE;
        Error::Failed(format!("attaching takes root: try sudo ({variable} names no directory for runtime files of this user)"))
    })?;
    let directory = run.join(DIRECTORY);
    for directory in [&run, &directory] {
        let created = run_directory::create(directory);
        created.map_err(Error::file(directory, "cannot create the run directory"))?;
    }
    Ok(directory)
}

/// Returns the directories whose entries are trusted: entries name processes to kill
/// and files to remove.
fn all_directories() -> Vec<PathBuf> {
    let all = run_directory::all(std::env::var_os(run_directory::VARIABLE));
    let all = all.into_iter().map(|run| run.join(DIRECTORY));
    all.filter(|directory| run_directory::is_trusted(directory))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry's name may belong to any kind of file.
    #[test]
    fn entries_that_are_no_files_are_not_waited_for() {
        let folder = longwire_testbed::support::Folder::new();
        let entry = folder.path().join("x.json");
        nix::unistd::mkfifo(&entry, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("y.json")).expect("a link");
        assert!(records(folder.path()).expect("a directory").is_empty());
        assert!(entry.exists());
    }

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = std::process::id().cast_signed();
        assert!(start_of(own).is_some_and(|start| start > 0));
        assert_eq!(start_of(i32::MAX), None);
    }
}

//! IPv4 forwarding on the host's devices for `--uplink`, switched on where it
//! is off, and put back.
//!
//! What was changed is written down in `/run/longwire` first, in one file a
//! run, which the run keeps locked while it lives. So the guard or another run
//! finds out what a killed run left, and runs at the
//! same time do not switch off what the other needs: the first to end hands
//! its record over.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longwire_capture::state_file;
use longwire_io::net::sysctl;
use longwire_io::run_directory;
use nix::fcntl::{Flock, FlockArg};

const DIRECTORY: &str = "/run/longwire";
const PREFIX: &str = "uplink-";

/// Forwarding is on as long as this lives; [`release`] puts it back.
#[derive(Debug)]
pub struct Forwarding {
    _record: Flock<File>,
}

fn record_of(process: i32) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{PREFIX}{process}"))
}

/// Switches forwarding on for the devices, in the calling thread's namespace.
pub fn switch_on(process: i32, devices: &[String]) -> io::Result<Forwarding> {
    run_directory::create(Path::new(DIRECTORY))?;
    let _lock = lock()?;
    let file = state_file::create(&record_of(process))?;
    let mut record = try_lock(file)?.ok_or(io::ErrorKind::WouldBlock)?;
    let mut off = Vec::new();
    for device in devices {
        let key = format!("ipv4/conf/{device}/forwarding");
        if sysctl::get(&key).map_err(io::Error::other)? == "0" {
            writeln!(record, "{key}")?;
            off.push(key);
        }
    }
    record.sync_all()?;
    for key in off {
        sysctl::set(&key, "1").map_err(io::Error::other)?;
    }
    Ok(Forwarding { _record: record })
}

/// Puts back what a run changed, once that run has let go of its record or
/// has died; or hands the duty to another run that needs it.
pub fn release(process: i32) {
    let record = record_of(process);
    if !record.exists() {
        return;
    }
    if let Ok(_lock) = lock() {
        put_back(&record);
    }
}

/// Puts back what killed runs left.
pub fn release_stale() {
    if !Path::new(DIRECTORY).exists() {
        return;
    }
    if let Ok(_lock) = lock() {
        for record in records() {
            if !is_held(&record) {
                put_back(&record);
            }
        }
    }
}

fn put_back(record: &Path) {
    let Ok(keys) = state_file::read_text(record) else {
        return;
    };
    let heir = records()
        .into_iter()
        .find(|other| other != record && is_held(other));
    match heir.and_then(|path| File::options().append(true).open(path).ok()) {
        Some(mut heir) => {
            let _ = heir.write_all(keys.as_bytes());
        }
        None => {
            for key in keys.lines() {
                // A device that is gone has nothing to put back.
                let _ = sysctl::set(key, "0");
            }
        }
    }
    let _ = fs::remove_file(record);
}

fn records() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(DIRECTORY) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(PREFIX)
        })
        .collect()
}

/// Whether the run that wrote a record lives.
fn is_held(record: &Path) -> bool {
    state_file::open(record).is_ok_and(|file| matches!(try_lock(file), Ok(None)))
}

/// The lock, or `None` where somebody has it.
fn try_lock(file: File) -> io::Result<Option<Flock<File>>> {
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}

/// The lock on all records: the directory itself.
fn lock() -> io::Result<Flock<File>> {
    let directory = File::open(DIRECTORY)?;
    Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
}

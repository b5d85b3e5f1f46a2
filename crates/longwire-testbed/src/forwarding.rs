//! Enables IPv4 forwarding on the host's devices for `--uplink`, and restores the previous
//! settings.
//!
//! Changes are first recorded in `/run/longwire`, in one file per run, which the run keeps locked.
//! The guard or another run can therefore clean up after a killed run. Of concurrent runs, the
//! first to end passes its record to another that still needs forwarding.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longwire_capture::state_file;
use longwire_io::net::sysctl;
use longwire_io::run_directory;
use nix::fcntl::{Flock, FlockArg};

const DIRECTORY: &str = "/run/longwire";
const PREFIX: &str = "uplink-";

/// Keeps forwarding enabled until [`release`] restores the settings.
#[derive(Debug)]
pub struct Forwarding {
    _record: Flock<File>,
}

fn record_of(process: i32) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{PREFIX}{process}"))
}

/// Enables forwarding for the devices, in the calling thread's namespace.
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

/// Reverts a run's changes once the run has released its record or ended. If another run still
/// needs them, passes the record on instead.
pub fn release(process: i32) {
    let record = record_of(process);
    if !record.exists() {
        return;
    }
    if let Ok(_lock) = lock() {
        put_back(&record);
    }
}

/// Reverts the changes of killed runs.
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
                // Fails if the device has been removed, which leaves nothing to revert.
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

/// Returns whether the run that wrote a record still exists.
fn is_held(record: &Path) -> bool {
    state_file::open(record).is_ok_and(|file| matches!(try_lock(file), Ok(None)))
}

/// Returns the lock, or `None` if another process holds it.
fn try_lock(file: File) -> io::Result<Option<Flock<File>>> {
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}

/// Locks all records by locking the directory.
fn lock() -> io::Result<Flock<File>> {
    let directory = File::open(DIRECTORY)?;
    Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
}

//! RCU grace periods of the kernel. System calls that attach a program, or create or close a packet
//! ring, wait for one. A grace period takes 5 to 25 ms, an expedited one about 0.1 ms.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use longwire_capture::state_file;
use nix::fcntl::{Flock, FlockArg};

use crate::run_directory;

/// The system-wide setting; 1 expedites grace periods.
const SETTING: &str = "/sys/kernel/rcu_expedited";
/// A file in the run directory, locked by the process that changed the setting. A nonempty file
/// without a lock means that the process was killed.
const MARKER: &str = "rcu-expedited";

/// Expedites grace periods on the whole machine until dropped.
///
/// Expediting costs an interrupt on each busy core. On real-time machines, `rcu_normal` overrides
/// the setting.
#[derive(Debug)]
pub struct ExpeditedGrace {
    /// `None` if another process or the user owns the setting.
    marker: Option<Flock<File>>,
}

impl ExpeditedGrace {
    /// Starts expediting. A no-op if this is not permitted or the setting is already changed.
    pub fn begin() -> ExpeditedGrace {
        let directory = run_directory::own().filter(|_| Path::new(SETTING).exists());
        let marker = directory.and_then(|directory| {
            run_directory::create(&directory).ok()?;
            // Another user could have placed a symbolic link at the marker's path.
            if !run_directory::is_private(&directory) {
                return None;
            }
            begin_with(&directory.join(MARKER), Path::new(SETTING))
                .ok()
                .flatten()
        });
        ExpeditedGrace { marker }
    }
}

/// Writes 1 to the setting and returns the marker; `None` if the setting has another owner.
fn begin_with(marker: &Path, setting: &Path) -> io::Result<Option<Flock<File>>> {
    let file = state_file::open_lock(marker)?;
    let Ok(mut marker) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        return Ok(None);
    };
    let mut left = String::new();
    marker.read_to_string(&mut left)?;
    let is_on = fs::read_to_string(setting)?.trim_end() != "0";
    if is_on && left.is_empty() {
        return Ok(None);
    }
    if left.is_empty() {
        marker.write_all(b"0\n")?;
    }
    if let Err(error) = fs::write(setting, "1") {
        marker.set_len(0)?;
        return Err(error);
    }
    Ok(Some(marker))
}

/// Writes 0 to the setting.
fn end_with(marker: &mut File, setting: &Path) -> io::Result<()> {
    fs::write(setting, "0")?;
    marker.set_len(0)?;
    marker.rewind()
}

impl Drop for ExpeditedGrace {
    fn drop(&mut self) {
        if let Some(marker) = &mut self.marker {
            // On failure, the next run tries again.
            let _ = end_with(marker, Path::new(SETTING));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let name = format!("longwire-grace-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a directory");
        folder
    }

    #[test]
    fn the_setting_is_restored_once_and_by_who_changed_it() {
        let folder = folder("restored");
        let (marker, setting) = (folder.join("marker"), folder.join("setting"));
        let read = || fs::read_to_string(&setting).expect("a setting");
        fs::write(&setting, "0\n").expect("it is written");
        let begin = || begin_with(&marker, &setting).expect("it begins");
        let mut first = begin().expect("ours");
        assert_eq!(read(), "1");
        // A second process starts in between.
        assert!(begin().is_none());
        end_with(&mut first, &setting).expect("it ends");
        drop(first);
        assert_eq!(read(), "0");
        // The user's own setting stays in place.
        fs::write(&setting, "1\n").expect("it is written");
        assert!(begin().is_none());
        fs::remove_dir_all(folder).expect("it is removed");
    }

    #[test]
    fn the_setting_of_a_killed_process_is_restored_by_the_next() {
        let folder = folder("killed");
        let (marker, setting) = (folder.join("marker"), folder.join("setting"));
        fs::write(&setting, "0\n").expect("it is written");
        let begin = || begin_with(&marker, &setting).expect("it begins");
        drop(begin());
        assert_eq!(fs::read_to_string(&setting).expect("a setting"), "1");
        let mut next = begin().expect("taken over from a killed process");
        end_with(&mut next, &setting).expect("it ends");
        drop(next);
        assert_eq!(fs::read_to_string(&setting).expect("a setting"), "0");
        assert_eq!(fs::read_to_string(&marker).expect("a marker"), "");
        fs::remove_dir_all(folder).expect("it is removed");
    }
}

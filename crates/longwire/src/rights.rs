//! Drops unneeded privileges once the ports are open.

use std::path::Path;

use longwire_io::rights::{self, Capability};

use crate::cli::ReportArgs;

/// Drops privileges of the calling thread and of threads that it starts later. Keeps `needs`, the
/// privileges for timing and for restoring settings, and the one to write the report next to other
/// users' files.
pub(crate) fn give_up(report: &ReportArgs, needs: &[Capability]) {
    give_up_for(report.report.as_deref(), needs);
}

/// Like [`give_up`], for the given report file; `None` for threads that write no report.
pub(crate) fn give_up_for(report: Option<&Path>, needs: &[Capability]) {
    let mut kept = needs.to_vec();
    if report.is_some() {
        kept.push(Capability::DacOverride);
    }
    // Best effort: the run also works with unneeded privileges.
    let _ = rights::give_up(&kept);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown};

    use longwire_capture::whole_file::{check, write};
    use longwire_testbed::support::Folder;

    use super::*;

    #[test]
    fn a_file_keeps_its_owner() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let folder = Folder::new();
        let path = folder.path().join("a.json");
        fs::write(&path, "old").expect("writable");
        let owner = Some(61_234);
        chown(&path, owner, owner).expect("a user");
        write(&path, |out| out.write_all(b"new")).expect("writable");
        // A thread without privileges cannot change file ownership.
        let later = path.clone();
        let limited = std::thread::spawn(move || {
            give_up_for(Some(&later), &[]);
            check(&later)?;
            write(&later, |out| out.write_all(b"newer"))
        });
        let found = || fs::metadata(&path).expect("it is there");
        assert_eq!((found().uid(), found().gid()), (61_234, 61_234));
        limited.join().expect("it ends").expect("writable");
        assert_eq!(fs::read(&path).expect("it is there"), b"newer");
        assert_eq!((found().uid(), found().gid()), (61_234, 61_234));
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
    }
}

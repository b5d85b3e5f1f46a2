//! Small file systems, for tests of full disks.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::{Folder, skip};

/// Runs a test on a thread with its own mounts, in a directory on a 64 KiB file system. Skips the
/// test if the file system cannot be created.
///
/// # Panics
///
/// If the test panics; see also [`skip`].
pub fn with_small_disk(test: impl FnOnce(&Path) + Send) {
    let folder = Folder::new();
    let run = || {
        let none = None::<&str>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let made = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(none, "/", none, private, none))
            .and_then(|()| {
                let (kind, size) = (Some("tmpfs"), Some("size=64k,mode=700"));
                mount(kind, folder.path(), kind, MsFlags::empty(), size)
            });
        if let Err(error) = made {
            skip::<()>(format!("no file system can be mounted: {error}"));
            return;
        }
        test(folder.path());
    };
    let ended = thread::scope(|scope| scope.spawn(run).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Fills a file system with a file.
///
/// # Panics
///
/// If the file system does not become full.
pub fn fill_disk(ballast: &Path) {
    let mut file = File::create(ballast).expect("a file");
    let full = (0..1 << 10).find_map(|_| file.write_all(&[0; 1 << 10]).err());
    let full = full.expect("the disk is small");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    fs::metadata(ballast).expect("it is there");
}

//! Network namespaces held by a file descriptor. They have no name and no
//! mount, so nothing of them is left when the last holder is gone, however it
//! ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::NetError;

/// The namespace of the calling thread, as a file.
const OWN: &str = "/proc/thread-self/ns/net";

/// Where `ip netns` keeps namespaces by their names.
const NAMED: &str = "/run/netns";

/// A network namespace. It lives as long as this value, a thread in it, or a
/// process in it.
#[derive(Debug)]
pub struct NetNamespace {
    file: OwnedFd,
    inode: u64,
}

impl NetNamespace {
    /// Makes a new, empty network namespace. The calling thread stays where
    /// it is.
    ///
    /// # Errors
    ///
    /// Without CAP_SYS_ADMIN in the thread's user namespace.
    pub fn new() -> Result<NetNamespace, NetError> {
        // A namespace is made by moving a thread into it; this one has no
        // other purpose, and leaves the descriptor behind.
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    unshare(CloneFlags::CLONE_NEWNET)
                        .map_err(|e| NetError::system("make", "a network namespace", e))?;
                    NetNamespace::current()
                })
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The namespace that the calling thread is in.
    pub fn current() -> Result<NetNamespace, NetError> {
        NetNamespace::at(OWN)
    }

    /// The namespace that `ip netns add` gave this name.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or it may not be opened.
    pub fn named(name: &str) -> Result<NetNamespace, NetError> {
        NetNamespace::at(&format!("{NAMED}/{name}"))
    }

    fn at(path: &str) -> Result<NetNamespace, NetError> {
        let open = || -> io::Result<NetNamespace> {
            let file = File::open(path)?;
            let inode = file.metadata()?.ino();
            Ok(NetNamespace {
                file: file.into(),
                inode,
            })
        };
        open().map_err(|e| NetError::system("open", path, e))
    }

    /// Another holder of the same namespace.
    pub fn try_clone(&self) -> Result<NetNamespace, NetError> {
        let file = self
            .file
            .try_clone()
            .map_err(|e| NetError::system("hold", "a network namespace", e))?;
        Ok(NetNamespace {
            file,
            inode: self.inode,
        })
    }

    /// Moves the calling thread into the namespace for good.
    ///
    /// Sockets and devices that a thread opened stay in the namespace they
    /// were opened in.
    pub fn enter(&self) -> Result<(), NetError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|e| NetError::system("enter", "a network namespace", e))
    }

    /// Runs `work` on a thread of its own inside the namespace, and waits for
    /// it. A panic of `work` goes on in the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        thread::scope(|scope| {
            scope
                .spawn(|| self.enter().map(|()| work()))
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The number that identifies the namespace in the system, as in
    /// `/proc/PID/ns/net`.
    pub fn inode(&self) -> u64 {
        self.inode
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

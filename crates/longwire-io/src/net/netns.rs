//! Network namespaces held by descriptor. They have no name and no mount, so the kernel removes
//! them with their last holder, even after SIGKILL.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::fstat;
use nix::sys::statfs::{FsType, fstatfs};

use super::NetError;
use crate::port::socket::get_option;

/// Path of the calling thread's namespace file.
const OWN: &str = "/proc/thread-self/ns/net";

/// The directory of `ip netns`, which lists namespaces by name.
const NAMED: &str = "/run/netns";

nix::ioctl_none_bad!(
    /// Opens the user namespace that owns a namespace.
    owner_of,
    // NS_GET_USERNS from linux/nsfs.h.
    0xb701
);

nix::ioctl_read_bad!(
    /// Writes the ID of the user who owns a user namespace.
    user_of,
    // NS_GET_OWNER_UID from linux/nsfs.h.
    0xb704,
    libc::uid_t
);

/// Magic number of the namespace file system (linux/magic.h).
const NSFS_MAGIC: FsType = FsType(0x6e73_6673);

nix::ioctl_none_bad!(
    /// Returns a namespace's kind as a clone(2) flag.
    kind_of,
    // NS_GET_NSTYPE from linux/nsfs.h.
    0xb703
);

/// A namespace's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceId {
    /// Namespace cookie. Unique until reboot; 0 before Linux 5.14, which lacks cookies.
    pub(crate) cookie: u64,
    /// Inode number of the namespace file, which may be reused.
    pub(crate) inode: u64,
}

impl NamespaceId {
    /// Returns the identity of the calling thread's namespace.
    pub(crate) fn current() -> NamespaceId {
        NamespaceId {
            cookie: cookie().unwrap_or(0),
            inode: fs::metadata(OWN).map_or(0, |metadata| metadata.ino()),
        }
    }
}

/// Returns the cookie of the calling thread's namespace.
fn cookie() -> io::Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
    get_option(socket.as_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE)
}

/// Returns the inode and file of each namespace that has a name or a process.
pub(super) fn visible() -> Vec<(u64, PathBuf)> {
    let entries = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let named = entries(NAMED).map(|entry| entry.path());
    let processes = entries("/proc").map(|entry| entry.path().join("ns/net"));
    let files = named.chain(processes);
    files
        .filter_map(|path| Some((fs::metadata(&path).ok()?.ino(), path)))
        .collect()
}

/// A network namespace. It lives as long as this value, or as a thread or process in it.
#[derive(Debug)]
pub struct NetNamespace {
    file: OwnedFd,
    inode: u64,
}

/// Runs `work` on a separate thread and waits for it.
///
/// # Errors
/// No more threads can be created (`ulimit -u`).
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
    thread::scope(|scope| {
        let thread = started(thread::Builder::new().spawn_scoped(scope, work))?;
        Ok(joined(thread))
    })
}

fn started<T>(
    thread: io::Result<ScopedJoinHandle<'_, T>>,
) -> Result<ScopedJoinHandle<'_, T>, NetError> {
    thread.map_err(|e| NetError::system("start", "a thread (see `ulimit -u`)", e))
}

/// Waits for a thread and returns its result. Propagates a panic.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl NetNamespace {
    /// Creates an empty network namespace without entering it.
    ///
    /// # Errors
    /// Missing CAP_SYS_ADMIN in the thread's user namespace.
    pub fn new() -> Result<NetNamespace, NetError> {
        // A thread can create a namespace only by moving into it, so use a temporary thread.
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|e| NetError::system("make", "a network namespace", e))?;
            NetNamespace::current()
        })?
    }

    /// Returns the calling thread's namespace.
    ///
    /// # Errors
    /// [`NetError::System`] if `/proc` is not mounted or no descriptor is free.
    pub fn current() -> Result<NetNamespace, NetError> {
        NetNamespace::at(Path::new(OWN))
    }

    /// Opens a namespace by its `ip netns` name.
    ///
    /// # Errors
    /// No namespace has this name, or opening it is not permitted.
    pub fn named(name: &str) -> Result<NetNamespace, NetError> {
        NetNamespace::at(&Path::new(NAMED).join(name))
    }

    /// Opens a process's namespace.
    ///
    /// # Errors
    /// The process does not exist, or opening its namespace is not permitted.
    pub fn of_process(process: u32) -> Result<NetNamespace, NetError> {
        NetNamespace::at(Path::new(&format!("/proc/{process}/ns/net")))
    }

    /// Opens a namespace by file: a link under `/proc/PID/ns`, or a mount of one.
    ///
    /// # Errors
    /// As for [`NetNamespace::named`].
    pub fn at(path: &Path) -> Result<NetNamespace, NetError> {
        let open = || -> io::Result<NetNamespace> {
            let file = File::open(path)?;
            let inode = file.metadata()?.ino();
            Ok(NetNamespace {
                file: file.into(),
                inode,
            })
        };
        open().map_err(|e| NetError::system("open", path.display().to_string(), e))
    }

    /// Takes an open file after checking that it is a network namespace.
    ///
    /// # Errors
    /// `InvalidInput` if it is another kind of file or namespace; kernel errors.
    pub fn from_file(file: OwnedFd) -> io::Result<NetNamespace> {
        let other = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        // On other file systems the request number has another meaning.
        if fstatfs(&file)?.filesystem_type() != NSFS_MAGIC {
            return other("not a network namespace");
        }
        // SAFETY: the descriptor is open, and the request has no argument.
        let kind = unsafe { kind_of(file.as_raw_fd()) }?;
        if kind != libc::CLONE_NEWNET {
            return other("a namespace, but not a network namespace");
        }
        let inode = fstat(&file)?.st_ino;
        Ok(NetNamespace { file, inode })
    }

    /// Returns another handle to the same namespace.
    ///
    /// # Errors
    /// [`NetError::System`] if no descriptor is free.
    pub fn try_clone(&self) -> Result<NetNamespace, NetError> {
        let file = self.file.try_clone();
        Ok(NetNamespace {
            file: file.map_err(|e| NetError::system("reopen", "a network namespace", e))?,
            inode: self.inode,
        })
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// Sockets and devices stay in the namespace in which the thread opened them.
    ///
    /// # Errors
    /// [`NetError::System`] without CAP_SYS_ADMIN in the thread's user namespace and in the network
    /// namespace's owner.
    pub fn enter(&self) -> Result<(), NetError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|e| NetError::system("enter", "a network namespace", e))
    }

    /// Runs `work` on a separate thread inside the namespace and waits for it. Propagates a panic
    /// in `work`.
    ///
    /// # Errors
    /// [`NetError::System`] if no more threads can be created (`ulimit -u`), or as for
    /// [`NetNamespace::enter`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        on_a_thread(|| self.enter().map(|()| work()))?
    }

    /// Like [`NetNamespace::run`], for two tasks at once.
    ///
    /// # Errors
    /// As for [`NetNamespace::run`].
    pub fn run_both<A: Send, B: Send>(
        &self,
        first: impl FnOnce() -> A + Send,
        second: impl FnOnce() -> B + Send,
    ) -> Result<(A, B), NetError> {
        // The inner thread starts in the namespace of the outer one.
        self.run(|| {
            thread::scope(|scope| {
                let second = started(thread::Builder::new().spawn_scoped(scope, second))?;
                let first = first();
                Ok((first, joined(second)))
            })
        })?
    }

    /// Returns whether the namespace belongs to this process's user namespace or a descendant. Only
    /// then do the process's capabilities apply in it. The kernel opens no other owners
    /// (ioctl_ns(2)).
    ///
    /// # Errors
    /// The kernel does not report the owner (before Linux 4.9).
    pub fn is_ours(&self) -> Result<bool, NetError> {
        match self.user_namespace() {
            Ok(_) => Ok(true),
            Err(nix::Error::EPERM) => Ok(false),
            Err(error) => {
                let action = "find the owner of";
                Err(NetError::system(action, "a network namespace", error))
            }
        }
    }

    /// Returns the user who owns the namespace's user namespace: root, or a rootless container's
    /// user.
    ///
    /// # Errors
    /// EPERM if the owner is outside this process's user namespace.
    pub fn owner(&self) -> io::Result<u32> {
        let owner = self.user_namespace()?;
        let mut user = 0;
        // SAFETY: the descriptor is open, and the kernel writes one number to `user`.
        unsafe { user_of(owner.as_raw_fd(), &raw mut user) }?;
        Ok(user)
    }

    fn user_namespace(&self) -> nix::Result<OwnedFd> {
        // SAFETY: the descriptor is open, and the request has no argument.
        let owner = unsafe { owner_of(self.file.as_raw_fd()) }?;
        // SAFETY: the kernel has just opened this descriptor, which has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(owner) })
    }

    /// Returns the inode number of `/proc/PID/ns/net`, which identifies the namespace on this
    /// system.
    pub fn inode(&self) -> u64 {
        self.inode
    }
}

impl From<NetNamespace> for OwnedFd {
    fn from(namespace: NetNamespace) -> OwnedFd {
        namespace.file
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

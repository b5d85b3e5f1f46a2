//! Interface locks. They determine which ports, of this process or other processes, may share an
//! interface.
//!
//! A lock is a socket that listens at a name in the abstract namespace of Unix sockets. Like
//! interfaces, that namespace belongs to the network namespace. A name can be bound only once, the
//! kernel frees it when its holder ends, even by SIGKILL, and a connection identifies the holder.
//!
//! | port | locks |
//! |---|---|
//! | of `run`, `exec`: carries arriving frames, and sends | *carry*, *send* |
//! | of `replay --to`, `generate --to`: sends | *send* |
//! | of `receive`: reads arriving frames | neither |
//!
//! A receiver may therefore share an interface with a run or a sender, while two runs, two senders,
//! or a run and a sender conflict. AF_XDP takes arriving frames away from every other reader, so
//! its ports hold the lock *take*, which conflicts with all reading ports.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};

use super::PortError;
use super::options::Purpose;
use crate::net::interface::Interface;

/// Maximum length of a command line in messages, in characters.
const COMMAND_MAX: usize = 120;

/// Number of attempts, and interval between them, to bind a name that is taken but at which no
/// process listens.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// A port's locks, held until drop.
#[derive(Debug)]
pub(crate) struct PortLock {
    _held: Vec<OwnedFd>,
}

/// How a port receives arriving frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// No reception.
    Nothing,
    /// Copies, like every other reader.
    Copies,
    /// Exclusive: no other reader receives the frames.
    Frames,
}

/// A kind of lock on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Carry,
    Send,
    Take,
    Read,
    /// The reader of a TAP device.
    Tap,
}

impl Claim {
    fn word(self) -> &'static str {
        match self {
            Claim::Carry => "carry",
            Claim::Send => "send",
            Claim::Take => "take",
            Claim::Read => "read",
            Claim::Tap => "tap",
        }
    }

    /// Returns the holder's use of the interface and the reason for the conflict.
    fn conflict(self) -> &'static str {
        match self {
            Claim::Carry => "forwards frames from it; a second reader would duplicate them",
            Claim::Send => "sends on it; two senders would disturb each other's timing",
            Claim::Take => "receives all frames of the interface through AF_XDP",
            Claim::Read => "reads from it, and AF_XDP would take its frames",
            Claim::Tap => "has the device open",
        }
    }
}

impl PortLock {
    /// Returns an empty set of locks, for interfaces invisible to other processes.
    pub(crate) fn none() -> PortLock {
        PortLock { _held: Vec::new() }
    }

    /// Acquires a port's locks on an interface in the calling thread's namespace.
    ///
    /// # Errors
    /// [`PortError::InUse`] with the process that holds one of them.
    pub(crate) fn acquire(
        port: &str,
        interface: &Interface,
        purpose: Purpose,
        reads: ReadMode,
    ) -> Result<PortLock, PortError> {
        let locks = Locks { port, interface };
        let carries = matches!(purpose, Purpose::Forward | Purpose::ForwardIn);
        let sends = matches!(purpose, Purpose::Forward | Purpose::Send);
        let mut held = Vec::new();
        for (claim, wanted) in [(Claim::Carry, carries), (Claim::Send, sends)] {
            if wanted {
                held.extend(locks.take(claim)?);
            }
        }
        match reads {
            ReadMode::Nothing => {}
            // Bind first, then search: if two processes start simultaneously, at least one finds
            // the other.
            ReadMode::Copies => {
                held.extend(locks.share(Claim::Read));
                if let Some(holder) = other(|| LockHolder::of(&locks.name(Claim::Take))) {
                    return Err(locks.refuse(Claim::Take, &holder));
                }
            }
            ReadMode::Frames => {
                held.extend(locks.take(Claim::Take)?);
                if let Some(holder) = other(|| locks.reader()) {
                    return Err(locks.refuse(Claim::Read, &holder));
                }
            }
        }
        Ok(PortLock { _held: held })
    }

    /// Acquires a TAP port's lock, which only identifies the holder: the kernel itself rejects a
    /// second port. `None` if sockets are unavailable.
    pub(crate) fn of_tap(index: u32) -> Option<PortLock> {
        let held = bound(&name_of(index, Claim::Tap)).ok()?;
        Some(PortLock { _held: vec![held] })
    }
}

/// Returns the process that holds a TAP device, as the subject of a sentence.
pub(crate) fn user_of_tap(device: &str) -> String {
    let interface = Interface::find(device).ok();
    let holder = interface.and_then(|found| LockHolder::of(&name_of(found.index, Claim::Tap)));
    holder.map_or_else(|| "another program".to_owned(), |holder| holder.describe())
}

fn name_of(index: u32, claim: Claim) -> String {
    format!("longwire/{index}/{}", claim.word())
}

/// Returns the holder found by `look`. This process counts only after several attempts, because a
/// recently closed port may still be open in a child that has not yet executed its program.
fn other(look: impl Fn() -> Option<LockHolder>) -> Option<LockHolder> {
    let own = Some(process::id().cast_signed());
    for _ in 0..TRIES {
        match look() {
            Some(holder) if holder.process == own => std::thread::sleep(TRY_AGAIN),
            found => return found,
        }
    }
    look()
}

/// The locks of one interface.
struct Locks<'a> {
    port: &'a str,
    interface: &'a Interface,
}

impl Locks<'_> {
    fn name(&self, claim: Claim) -> String {
        name_of(self.interface.index, claim)
    }

    /// Acquires an exclusive lock; `None` if sockets are unavailable, in which case nothing is
    /// locked.
    fn take(&self, claim: Claim) -> Result<Option<OwnedFd>, PortError> {
        let name = self.name(claim);
        for _ in 0..TRIES {
            match bound(&name) {
                Ok(held) => return Ok(Some(held)),
                Err(Errno::EADDRINUSE) => {}
                Err(_) => return Ok(None),
            }
            if let Some(holder) = other(|| LockHolder::of(&name)) {
                return Err(self.refuse(claim, &holder));
            }
            // The holder has ended or does not listen yet.
            std::thread::sleep(TRY_AGAIN);
        }
        Err(self.refuse(claim, &LockHolder { process: None }))
    }

    /// Acquires a shared lock, with a separate name per holder.
    fn share(&self, claim: Claim) -> Option<OwnedFd> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        bound(&format!("{}/{}.{number}", self.name(claim), process::id())).ok()
    }

    /// Returns the holder of a reading port.
    fn reader(&self) -> Option<LockHolder> {
        let prefix = format!("@{}/", self.name(Claim::Read));
        // The table is that of the calling thread's namespace, like the sockets.
        let table = fs::read_to_string("/proc/thread-self/net/unix").ok()?;
        let names = table
            .lines()
            .filter_map(|line| line.split_whitespace().nth(7));
        let mut readers = names.filter(|name| name.starts_with(&prefix));
        readers.find_map(|name| LockHolder::of(&name[1..]))
    }

    fn refuse(&self, claim: Claim, holder: &LockHolder) -> PortError {
        PortError::InUse {
            port: self.port.to_owned(),
            interface: self.interface.name.clone(),
            holder: holder.describe(),
            conflict: claim.conflict(),
            remedy: holder.remedy(claim, &self.interface.name),
            only_by_xdp: claim == Claim::Read,
        }
    }
}

/// Binds and listens at an abstract name.
fn bound(name: &str) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let held = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    bind(held.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    // Connections stay in the backlog and are never accepted.
    listen(&held, Backlog::MAXCONN)?;
    Ok(held)
}

/// The process that holds a lock.
struct LockHolder {
    /// `None` if this process cannot see it.
    process: Option<i32>,
}

impl LockHolder {
    /// Returns the process that listens at an abstract name; `None` if there is none.
    fn of(name: &str) -> Option<LockHolder> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let question = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
        let address = UnixAddr::new_abstract(name.as_bytes()).ok()?;
        match connect(question.as_raw_fd(), &address) {
            Ok(()) => {
                let credentials = getsockopt(&question, PeerCredentials).ok();
                // 0 stands for a process in another PID namespace.
                let process = credentials.map(|found| found.pid()).filter(|pid| *pid > 0);
                Some(LockHolder { process })
            }
            // A process listens, but its backlog is full.
            Err(Errno::EAGAIN) => Some(LockHolder { process: None }),
            Err(_) => None,
        }
    }

    fn is_own(&self) -> bool {
        self.process.map(i32::cast_unsigned) == Some(process::id())
    }

    fn describe(&self) -> String {
        if self.is_own() {
            return "this command already".to_owned();
        }
        let Some(process) = self.process else {
            return "a Longwire process in another container".to_owned();
        };
        match command_of(process) {
            Ok(command) if !command.is_empty() => format!("process {process} (`{command}`)"),
            _ => format!("process {process}"),
        }
    }

    fn remedy(&self, claim: Claim, interface: &str) -> String {
        match (claim, self.process) {
            _ if self.is_own() => "name each interface once".to_owned(),
            (Claim::Read, _) => format!("write packet:{interface} to share them"),
            (_, Some(process)) => format!("stop it first, with: kill {process}"),
            (_, None) => "stop it first, or choose another interface".to_owned(),
        }
    }
}

/// Returns a process's command line.
fn command_of(process: i32) -> io::Result<String> {
    let line = fs::read(format!("/proc/{process}/cmdline"))?;
    let words = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    let mut command = words
        .map(String::from_utf8_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    // Control characters would affect the terminal.
    command.retain(|character| !character.is_control());
    if let Some((end, _)) = command.char_indices().nth(COMMAND_MAX) {
        command.truncate(end);
        command += "…";
    }
    Ok(command)
}

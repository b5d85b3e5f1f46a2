//! eBPF programs that take frames only while this process lives.
//!
//! When a process is killed, the kernel closes its links and sockets, and waits one or two RCU
//! grace periods for each: 0.2 s per attachment, 20 s for a hundred. Meanwhile, frames would be
//! redirected to unread ports. The programs therefore tail-call through a program array, which the
//! kernel empties when the array's last descriptor closes. The tail call then fails, and the frame
//! passes.
//!
//! To make that immediate, a thread with a separate descriptor table (CLOSE_RANGE_UNSHARE) holds
//! the arrays' descriptors: a dying thread closes its table without waiting for other threads. Core
//! dumps are disabled, since a dump could delay this for seconds.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::thread;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};

use crate::bpf::{self, ProgramKind};
use crate::sync::locked;

use super::given::SEND;
use super::taker;

/// Size of a request: a key. The request carries the descriptor to hold, or none to close the key's
/// descriptor.
const REQUEST: usize = size_of::<u64>();
/// Size of the thread's answer: an error number, or 0.
const ANSWER: usize = size_of::<i32>();

static HOLDER: Mutex<Option<Holder>> = Mutex::new(None);

/// A program array that the kernel empties when this value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct AliveCall {
    key: u64,
}

/// The socket to the holder thread.
#[derive(Debug)]
struct Holder {
    socket: OwnedFd,
    next: u64,
}

/// Starts the holder thread unless it is running. It stays in the caller's network namespace.
///
/// # Errors
/// The kernel refuses a thread, a socket or a descriptor table.
pub(super) fn start() -> io::Result<()> {
    let mut holder = locked(&HOLDER);
    if holder.is_none() {
        prctl::set_dumpable(false)?;
        *holder = Some(Holder::start()?);
    }
    Ok(())
}

/// Returns a socket that reaches end-of-file as soon as this process ends.
///
/// # Errors
/// The kernel refuses a thread, a socket or a descriptor table.
pub fn closed_at_end() -> io::Result<OwnedFd> {
    start()?;
    let (held, returned) = pair()?;
    hand_over(held.as_fd())?;
    Ok(returned)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
    Ok(socketpair(family, kind, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Passes a descriptor to the thread and returns its key.
fn hand_over(descriptor: BorrowedFd<'_>) -> io::Result<u64> {
    let mut holder = locked(&HOLDER);
    let holder = holder.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    let key = holder.next;
    holder.next += 1;
    holder.request(key, Some(descriptor))?;
    Ok(key)
}

impl AliveCall {
    /// Creates an array whose program redirects frames to `device`. Also returns the array's
    /// descriptor, which the caller must close after loading a program that uses it.
    ///
    /// # Errors
    /// The rights to load a program are missing, or [`start`] was not called.
    pub fn to(device: u32) -> io::Result<(AliveCall, OwnedFd)> {
        let program = taker::redirect(device, SEND);
        let program = bpf::load_program(ProgramKind::Tcx, "longwire_taken", &program)?;
        let array = bpf::create_program_array()?;
        bpf::enter(array.as_fd(), 0, program.as_fd())?;
        let key = hand_over(array.as_fd())?;
        Ok((AliveCall { key }, array))
    }
}

impl Drop for AliveCall {
    fn drop(&mut self) {
        let holder = locked(&HOLDER);
        if let Some(holder) = holder.as_ref() {
            let _ = holder.request(self.key, None);
        }
    }
}

impl Holder {
    fn start() -> io::Result<Holder> {
        let (socket, other) = pair()?;
        let other = other.into_raw_fd();
        let thread = thread::Builder::new().name("lw-alive".to_owned());
        thread.spawn(move || hold(other))?;
        // Keep the other end open until the thread answers: the thread may still be copying this
        // descriptor table.
        let answer = answer(socket.as_fd())?;
        // SAFETY: the number belongs to this table; the thread has its own table by now, or has
        // ended.
        drop(unsafe { OwnedFd::from_raw_fd(other) });
        answer?;
        Ok(Holder { socket, next: 0 })
    }

    /// Makes the thread hold a descriptor, or close the one with this key, and waits for the
    /// result.
    fn request(&self, key: u64, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let request = key.to_ne_bytes();
        let numbers: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let rights = if numbers.is_empty() { &[] } else { &rights[..] };
        send(self.socket.as_raw_fd(), &request, rights)?;
        answer(self.socket.as_fd())?
    }
}

fn send(socket: RawFd, bytes: &[u8], rights: &[ControlMessage<'_>]) -> io::Result<()> {
    let parts = [IoSlice::new(bytes)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    restarted(|| sendmsg::<()>(socket, &parts, rights, flags, None)).map(drop)
}

/// Receives the thread's answer. The outer error means that none arrived.
fn answer(socket: BorrowedFd<'_>) -> io::Result<io::Result<()>> {
    let mut answer = [0; ANSWER];
    let bytes = restarted(|| {
        let mut parts = [IoSliceMut::new(&mut answer)];
        let number = socket.as_raw_fd();
        recvmsg::<()>(number, &mut parts, None, MsgFlags::empty()).map(|got| got.bytes)
    })?;
    match (bytes, i32::from_ne_bytes(answer)) {
        (ANSWER, 0) => Ok(Ok(())),
        (ANSWER, error) => Ok(Err(io::Error::from_raw_os_error(error))),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Retries a call interrupted by a signal.
fn restarted<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Holds descriptors until the process ends. Body of the holder thread.
fn hold(socket: RawFd) {
    // Signal handlers must not run in this thread: their descriptors would refer to its table.
    let masked = SigSet::all().thread_block().map_err(io::Error::from);
    be_first();
    let alone = masked.and_then(|()| keep_only(socket));
    let failed = alone.is_err();
    if reply(socket, alone).is_err() || failed {
        return;
    }
    let mut held = HashMap::new();
    loop {
        let done = match receive(socket) {
            Ok(None) => return,
            Ok(Some((key, descriptor))) => {
                held.remove(&key);
                held.extend(descriptor.map(|held| (key, held)));
                Ok(())
            }
            Err(error) => Err(error),
        };
        if reply(socket, done).is_err() {
            return;
        }
    }
}

fn reply(socket: RawFd, done: io::Result<()>) -> io::Result<()> {
    let error = done.err();
    let number = error.map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    send(socket, &number.to_ne_bytes(), &[])
}

/// Raises the thread's priority if permitted, so that it is not delayed when many threads end at
/// the same time.
fn be_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 selects the calling thread, and the kernel reads a valid structure.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}

/// Unshares the descriptor table and closes all descriptors except `descriptor`.
fn keep_only(descriptor: RawFd) -> io::Result<()> {
    let number = descriptor.cast_unsigned();
    let close = |first: u32, last: u32, flags: u32| {
        // SAFETY: after unsharing, close_range closes descriptors only in this thread's table, and
        // the thread owns none of them.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
        Errno::result(result).map(drop)
    };
    close(number + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE)?;
    if let Some(last) = number.checked_sub(1) {
        close(0, last, 0)?;
    }
    Ok(())
}

/// Receives a request: its key, and the descriptor to hold, or no descriptor to close the key's.
/// `None` if the process has ended.
fn receive(socket: RawFd) -> io::Result<Option<(u64, Option<OwnedFd>)>> {
    let mut key = [0; REQUEST];
    let mut space = cmsg_space!(RawFd);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let (bytes, is_cut, number) = restarted(|| {
        let mut parts = [IoSliceMut::new(&mut key)];
        let got = recvmsg::<()>(socket, &mut parts, Some(&mut space), flags)?;
        let is_cut = got.flags.contains(MsgFlags::MSG_CTRUNC);
        let rights = got.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
            _ => None,
        });
        Ok((got.bytes, is_cut, rights))
    })?;
    // SAFETY: recvmsg has just created this descriptor, which has no other owner.
    let descriptor = number.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    if bytes == 0 {
        return Ok(None);
    }
    // The kernel truncated the message, because the descriptor table is full.
    if is_cut {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    Ok(Some((u64::from_ne_bytes(key), descriptor)))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_are_held_until_they_are_released() {
        start().expect("a thread");
        let (kept, mut other) = UnixStream::pair().expect("sockets");
        let key = hand_over(kept.as_fd()).expect("held");
        drop(kept);
        other.set_nonblocking(true).expect("a socket");
        let read = other.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(io::ErrorKind::WouldBlock), "the held end is open");
        drop(AliveCall { key });
        assert_eq!(other.read(&mut [0]).expect("its end is closed"), 0);
    }
}

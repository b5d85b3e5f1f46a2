//! Programs that run only while this process lives.
//!
//! A killed process ends its attachments by closing their links and sockets, for each of
//! which the kernel waits for a grace period or two: 0.2 s for an attachment, one after the
//! other, 20 s for a hundred. Until then, frames would be taken to ports that no one reads.
//! So the programs that take frames call another through a program array, which the kernel
//! empties when its last descriptor closes; the call then fails, and the frame passes.
//!
//! For that to be at once, the descriptors of the arrays are in a table of a separate thread,
//! which shares no other descriptor (CLOSE_RANGE_UNSHARE): a thread that dies closes its
//! table, in any order with those of other threads, and without a wait.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::cmsg_space;
use nix::sys::signal::SigSet;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};

use crate::bpf::{self, ProgramKind};

use super::program;

/// Bytes of a key in a message to the thread.
const KEY: usize = size_of::<u64>();
/// Bytes of the thread's answer: the error number of its start, or 0.
const ANSWER: usize = size_of::<i32>();

/// The thread that holds descriptors for this process.
static HOLDER: Mutex<Option<Holder>> = Mutex::new(None);

/// A program array that the kernel empties when this process ends, or when this is dropped.
#[derive(Debug)]
pub(super) struct AliveCall {
    key: u64,
}

/// The socket to the thread.
#[derive(Debug)]
struct Holder {
    socket: OwnedFd,
    next: u64,
}

/// Starts the thread, unless it runs. It stays in the network namespace of the calling
/// thread.
///
/// # Errors
/// If the kernel refuses a thread, a socket or a table of descriptors.
pub(super) fn start() -> io::Result<()> {
    let mut holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    if holder.is_none() {
        *holder = Some(Holder::start()?);
    }
    Ok(())
}

/// Returns a socket that is at its end as soon as this process ends.
///
/// # Errors
/// If the kernel refuses a thread, a socket or a table of descriptors.
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

/// Hands a descriptor to the thread. Returns its key there.
fn hand_over(descriptor: BorrowedFd<'_>) -> io::Result<u64> {
    let mut holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let holder = holder.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    let key = holder.next;
    holder.next += 1;
    holder.send(key, Some(descriptor))?;
    Ok(key)
}

impl AliveCall {
    /// Makes an array with a program that takes frames to `device`. Returns its descriptor
    /// as well, which the caller is to close after it has loaded a program with it.
    ///
    /// # Errors
    /// Without the rights to load a program, and before [`start`].
    pub fn to(device: u32) -> io::Result<(AliveCall, OwnedFd)> {
        let program = program::redirect(device, program::SEND);
        let program = bpf::load_program(ProgramKind::Tcx, "longwire_taken", &program)?;
        let array = bpf::create_program_array()?;
        bpf::enter(array.as_fd(), 0, program.as_fd())?;
        let key = hand_over(array.as_fd())?;
        Ok((AliveCall { key }, array))
    }
}

impl Drop for AliveCall {
    fn drop(&mut self) {
        let holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = holder.as_ref() {
            let _ = holder.send(self.key, None);
        }
    }
}

impl Holder {
    fn start() -> io::Result<Holder> {
        let (socket, other) = pair()?;
        let other = other.into_raw_fd();
        let thread = thread::Builder::new().name("lw-alive".to_owned());
        let spawned = thread.spawn(move || hold(other));
        let mut answer = [0; ANSWER];
        let ready = spawned.and_then(|_| {
            let mut parts = [IoSliceMut::new(&mut answer)];
            let got = recvmsg::<()>(socket.as_raw_fd(), &mut parts, None, MsgFlags::empty());
            Ok(got.map(|got| got.bytes)?)
        });
        // SAFETY: the number is of this table; the thread has one of its own by now, or has
        // ended.
        drop(unsafe { OwnedFd::from_raw_fd(other) });
        match (ready?, i32::from_ne_bytes(answer)) {
            (ANSWER, 0) => Ok(Holder { socket, next: 0 }),
            (ANSWER, error) => Err(io::Error::from_raw_os_error(error)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Hands a descriptor to the thread, or has it close the one of this key.
    fn send(&self, key: u64, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let key = key.to_ne_bytes();
        let numbers: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let message = [ControlMessage::ScmRights(&numbers)];
        let message = if numbers.is_empty() {
            &[]
        } else {
            &message[..]
        };
        let parts = [IoSlice::new(&key)];
        let to = self.socket.as_raw_fd();
        sendmsg::<()>(to, &parts, message, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }
}

/// Holds descriptors until the process ends.
fn hold(socket: RawFd) {
    // Handlers of signals use descriptors, which would be others here.
    let masked = SigSet::all().thread_block().map_err(io::Error::from);
    let alone = masked.and_then(|()| keep_only(socket));
    let error = alone
        .err()
        .map(|error| error.raw_os_error().unwrap_or(libc::EIO));
    let answer = error.unwrap_or(0).to_ne_bytes();
    let answered = sendmsg::<()>(
        socket,
        &[IoSlice::new(&answer)],
        &[],
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
    if error.is_some() || answered.is_err() {
        return;
    }
    let mut held = HashMap::new();
    while let Ok(Some((key, descriptor))) = receive(socket) {
        match descriptor {
            Some(descriptor) => held.insert(key, descriptor),
            None => held.remove(&key),
        };
    }
}

/// Gives the calling thread a table of descriptors with this one alone.
fn keep_only(descriptor: RawFd) -> io::Result<()> {
    let number = descriptor.cast_unsigned();
    let close = |first: u32, last: u32, flags: u32| {
        // SAFETY: close_range closes descriptors of this thread alone, which owns none of
        // those in the table that it had in common with others.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    close(number + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE)?;
    match number.checked_sub(1) {
        Some(last) => close(0, last, 0),
        None => Ok(()),
    }
}

/// Receives a message: a key, and its descriptor if it is to be held. `None` at the end.
fn receive(socket: RawFd) -> io::Result<Option<(u64, Option<OwnedFd>)>> {
    let mut key = [0; KEY];
    let mut parts = [IoSliceMut::new(&mut key)];
    let mut space = cmsg_space!(RawFd);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let got = recvmsg::<()>(socket, &mut parts, Some(&mut space), flags)?;
    if got.bytes != KEY {
        return Ok(None);
    }
    let rights = got.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    // SAFETY: recvmsg has just made this descriptor, for us alone.
    let descriptor = rights.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    Ok(Some((u64::from_ne_bytes(key), descriptor)))
}

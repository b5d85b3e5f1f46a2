//! Send stamps of packet sockets, which the kernel puts on the socket's error queue,
//! numbered by request.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use longwire_engine::Nanos;
use nix::time::ClockId;

use super::super::clocks::ahead_of_monotonic;
use super::super::socket::set_option;
use super::super::{SendStamp, StampedBy};
use super::device_clock::DeviceClock;

/// Maximum number of frames that wait for a stamp; beyond it the oldest are dropped.
const WAITING_MAX: usize = 8192;

/// Words of a stamp's control messages: three times, of which the first is the kernel's
/// and the last the device's, followed by the number.
const CONTROL_WORDS: usize = 32;

/// `SO_TIMESTAMPING`, and the kind of its control messages.
pub(super) const TIMESTAMPING: libc::c_int = 37;
/// `SO_EE_ORIGIN_TXTIME`: a frame was not sent, because its time had passed.
const ORIGIN_LAUNCH: u8 = 6;

/// The error queue of a sending socket.
pub(super) struct SendErrorQueue {
    socket: OwnedFd,
    /// Reads the device's clock, if the device stamps.
    device: Option<DeviceClock>,
    /// Releases of stamped frames in transit (`None` if unsent); `first` is the first
    /// one's number.
    waiting: VecDeque<Option<Nanos>>,
    first: u32,
    /// Received stamps.
    received: VecDeque<SendStamp>,
    missed: u64,
}

impl SendErrorQueue {
    pub(super) fn new(socket: BorrowedFd<'_>) -> io::Result<SendErrorQueue> {
        Ok(SendErrorQueue {
            socket: socket.try_clone_to_owned()?,
            device: None,
            waiting: VecDeque::new(),
            first: 0,
            received: VecDeque::new(),
            missed: 0,
        })
    }

    /// Enables send stamps on the socket, by the device's clock if given, otherwise by
    /// the kernel's.
    pub(super) fn start(&mut self, device: Option<DeviceClock>) -> io::Result<()> {
        let source = match device {
            Some(_) => libc::SOF_TIMESTAMPING_RAW_HARDWARE,
            None => libc::SOF_TIMESTAMPING_SOFTWARE,
        };
        let flags = source | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        self.device = device;
        set_option(self.socket.as_fd(), libc::SOL_SOCKET, TIMESTAMPING, &flags)
    }

    /// Returns the source of the stamps.
    pub(super) fn by(&self) -> StampedBy {
        match self.device {
            Some(_) => StampedBy::Device,
            None => StampedBy::Kernel,
        }
    }

    /// Returns the flags of a frame's control message.
    pub(super) fn flags(&self) -> u32 {
        match self.device {
            Some(_) => libc::SOF_TIMESTAMPING_TX_HARDWARE,
            None => libc::SOF_TIMESTAMPING_TX_SOFTWARE,
        }
    }

    /// Records that the kernel has numbered a frame to be stamped.
    pub(super) fn numbered(&mut self, release: Option<Nanos>) {
        if self.waiting.len() == WAITING_MAX {
            self.collect();
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.waiting.push_back(release);
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut impl FnMut(SendStamp)) {
        self.collect();
        self.received.drain(..).for_each(take);
    }

    /// Returns the number of frames not sent because their time had passed.
    pub(super) fn missed(&mut self) -> u64 {
        self.collect();
        self.missed
    }

    /// Reads the queue.
    fn collect(&mut self) {
        if let Some(device) = &mut self.device {
            device.compare();
        }
        let mut wall_ahead = None;
        while let Ok(Some(found)) = receive(self.socket.as_fd()) {
            if found.origin == ORIGIN_LAUNCH {
                self.missed += 1;
                continue;
            }
            let left = match &self.device {
                Some(device) if found.device > 0 => device.monotonic(found.device),
                None if found.kernel > 0 => {
                    let ahead = *wall_ahead
                        .get_or_insert_with(|| ahead_of_monotonic(ClockId::CLOCK_REALTIME));
                    found.kernel.saturating_add_signed(ahead.saturating_neg())
                }
                _ => continue,
            };
            let Some(release) = self.release_of(found.number) else {
                continue;
            };
            if self.received.len() == WAITING_MAX {
                self.received.pop_front();
            }
            self.received.push_back(SendStamp {
                release,
                left: Nanos::from_nanos(left),
                by: self.by(),
            });
        }
    }

    /// Returns the release of a numbered frame; stamps of previous frames will not
    /// follow.
    fn release_of(&mut self, number: u32) -> Option<Nanos> {
        let place = number.wrapping_sub(self.first) as usize;
        if place >= self.waiting.len() {
            return None;
        }
        self.first = number.wrapping_add(1);
        self.waiting.drain(..place);
        self.waiting.pop_front().flatten()
    }
}

/// A stamp from the error queue.
struct StampMessage {
    origin: u8,
    number: u32,
    kernel: u64,
    device: u64,
}

/// Receives the next stamp, if there is one.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<StampMessage>> {
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which
    // zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message has no parts, and room for control messages that
    // lives during the call.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) } < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EAGAIN) => Ok(None),
            _ => Err(error),
        };
    }
    let mut found = StampMessage {
        origin: 0,
        number: 0,
        kernel: 0,
        device: 0,
    };
    // SAFETY: the kernel filled `message` in; the pointer is null or to a
    // header inside of `control`.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: not null, so it points to a whole header, followed by the data
        // of its kind, which the kernel wrote.
        unsafe { read_part(&*next, libc::CMSG_DATA(next), &mut found) };
        // SAFETY: as for the first.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok(Some(found))
}

/// Reads one control message.
///
/// # Safety
/// `data` must have the type that the header declares.
unsafe fn read_part(header: &libc::cmsghdr, data: *const u8, found: &mut StampMessage) {
    match (header.cmsg_level, header.cmsg_type) {
        (libc::SOL_SOCKET, TIMESTAMPING) => {
            // SAFETY: `struct scm_timestamping` is three times in a row.
            let times = unsafe { data.cast::<[libc::timespec; 3]>().read_unaligned() };
            found.kernel = nanos(times[0]);
            found.device = nanos(times[2]);
        }
        (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => {
            // SAFETY: the kernel sends this structure with a stamp.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            found.origin = error.ee_origin;
            found.number = error.ee_data;
        }
        _ => {}
    }
}

fn nanos(time: libc::timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

//! Receives datagrams with kernel timestamps, which do not depend on wakeup latency.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use super::{TrafficError, during};

/// Enables kernel timestamps.
pub(super) fn stamp_arrivals(socket: &UdpSocket) -> Result<(), TrafficError> {
    setsockopt(socket, ReceiveTimestampns, &true).map_err(|e| during("stamp arrivals")(e.into()))
}

pub(super) struct Stamped {
    pub len: usize,
    pub from: Option<std::net::SocketAddrV4>,
    /// Arrival time on CLOCK_REALTIME, in nanoseconds.
    pub arrival: i64,
}

/// Receives a datagram, subject to the socket's timeout.
pub(super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Stamped> {
    let mut control = nix::cmsg_space!(libc::timespec);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrIn>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let stamp = message.cmsgs()?.find_map(stamp_of);
    Ok(Stamped {
        len: message.bytes,
        from: message.address.map(Into::into),
        arrival: stamp.ok_or_else(|| io::Error::other("the kernel did not stamp a datagram"))?,
    })
}

fn stamp_of(message: ControlMessageOwned) -> Option<i64> {
    match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time.num_nanoseconds()),
        _ => None,
    }
}

/// Returns the current time on the timestamps' clock.
pub(super) fn realtime_ns() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| time.num_nanoseconds())
}

/// Reads the `nth` 8-byte number in a payload.
pub(super) fn number_at(payload: &[u8], nth: usize) -> Option<i64> {
    let bytes = payload.get(nth * 8..nth * 8 + 8)?;
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

/// Writes the `nth` 8-byte number of a payload.
pub(super) fn put_number(payload: &mut [u8], nth: usize, number: i64) {
    if let Some(bytes) = payload.get_mut(nth * 8..nth * 8 + 8) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

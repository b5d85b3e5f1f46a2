//! Device events of a network namespace.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use super::NetError;
use super::interface::{Interface, read};
use super::netlink_message::replies;

/// Device events of the opening thread's namespace, regardless of the reading thread.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkEvents {
    /// Starts collecting events of the calling thread's namespace.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn open() -> Result<LinkEvents, NetError> {
        let opened = || {
            let socket = socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
                SockProtocol::NetlinkRoute,
            )?;
            let groups = libc::RTMGRP_LINK.cast_unsigned();
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
            Ok(socket)
        };
        let socket = opened()
            .map_err(|error: nix::Error| NetError::system("collect", "events of devices", error))?;
        Ok(LinkEvents {
            socket,
            buffer: vec![0; 1 << 15],
        })
    }

    /// Passes each change of a device to `take`, oldest first, with the device's state at
    /// that time; `None` if the kernel dropped events. Never blocks.
    pub fn drain(&mut self, mut take: impl FnMut(Option<Interface>)) {
        loop {
            match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(len) => replies(&self.buffer[..len])
                    .filter(|event| event.kind == libc::RTM_NEWLINK)
                    .filter_map(|event| read(event.payload))
                    .for_each(|found| take(Some(found))),
                Err(Errno::ENOBUFS) => take(None),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for LinkEvents {
    /// Readable while events are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

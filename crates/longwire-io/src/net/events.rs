//! Events of the devices of a network namespace.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use super::NetError;
use super::interface::{Interface, read};
use super::netlink_message::replies;

/// The events of the namespace of the thread that opened it, regardless of the reading thread.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkEvents {
    /// Begins to collect events in the calling thread's namespace.
    ///
    /// # Errors
    /// Without a free descriptor.
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

    /// Passes each device that changed to `take`, as it was then, oldest first; `None` where
    /// the kernel has dropped events. Never blocks.
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
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

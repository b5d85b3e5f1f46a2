//! Closes packet and XDP sockets in parallel.
//!
//! The kernel waits for one or two RCU grace periods when it closes such a socket, 6 to 30 ms each
//! time. Waits that begin together share their grace periods.

use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};

use crate::sync::locked;

/// Threads that close sockets.
static CLOSING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// A socket that is closed on a separate thread; [`wait_closed`] waits for it, as does the end of
/// the process.
#[derive(Debug)]
pub(super) struct SlowSocket(Option<OwnedFd>);

impl From<OwnedFd> for SlowSocket {
    fn from(socket: OwnedFd) -> SlowSocket {
        SlowSocket(Some(socket))
    }
}

impl AsFd for SlowSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let Some(socket) = &self.0 else {
            unreachable!("only drop takes the socket");
        };
        socket.as_fd()
    }
}

impl AsRawFd for SlowSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for SlowSocket {
    fn drop(&mut self) {
        let socket = self.0.take();
        // If no thread starts, the dropped closure closes the socket.
        let closing = Builder::new()
            .name("longwire-close".to_owned())
            .spawn(move || drop(socket));
        let mut threads = locked(&CLOSING);
        // A finished thread keeps its stack until it is joined.
        for finished in threads.extract_if(.., |thread| thread.is_finished()) {
            let _ = finished.join();
        }
        threads.extend(closing);
    }
}

/// Waits until all sockets of dropped ports are closed.
pub fn wait_closed() {
    // Without the lock, so that other ports can close meanwhile.
    let threads = mem::take(&mut *locked(&CLOSING));
    for thread in threads {
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_dropped_socket_is_closed_after_the_wait() {
        let (socket, mut peer) = UnixStream::pair().expect("a pair of sockets");
        peer.set_nonblocking(true).expect("not blocking");
        drop(SlowSocket::from(OwnedFd::from(socket)));
        wait_closed();
        assert_eq!(peer.read(&mut [0]).ok(), Some(0));
    }
}

//! The UDP socket of a host: datagrams are sent and received many at once.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmmsg, sendmmsg,
    setsockopt, sockopt,
};

/// Datagrams that one system call sends or receives.
const BATCH: usize = 32;

/// The size of the socket's buffers, in bytes: 10 ms at 6 Gbit/s.
const SOCKET_BUFFER: usize = 8 << 20;

/// The shortest buffer for a datagram: handshakes are not longer.
const DATAGRAM_MIN: usize = 2048;

/// A socket, with the datagrams that it is going to send and those that it has received.
pub struct DatagramSocket {
    socket: UdpSocket,
    pub outbox: Outbox,
    pub inbox: Inbox,
}

/// Datagrams that are to be sent.
pub struct Outbox {
    bytes: Vec<u8>,
    /// The end of each, and its address.
    ends: Vec<(usize, SockaddrStorage)>,
    /// Errors of sending, with the receivers.
    pub errors: Vec<(SocketAddr, Errno)>,
}

/// Datagrams that have been received.
pub struct Inbox {
    buffer: Vec<u8>,
    /// The longest datagram; of a longer one the rest is missing, and it is refused.
    len_max: usize,
    received: Vec<(usize, SocketAddr)>,
}

impl DatagramSocket {
    /// Opens a socket for datagrams of up to `mtu` bytes.
    ///
    /// # Errors
    /// If the address is not one of this machine, or is taken.
    pub fn open(listen: SocketAddr, mtu: usize) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        // With CAP_NET_ADMIN beyond the system's limit; without, up to it.
        if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER)?;
        }
        if setsockopt(&socket, sockopt::SndBufForce, &SOCKET_BUFFER).is_err() {
            setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER)?;
        }
        // One byte more than is accepted shows that a datagram is too long.
        let len_max = mtu.max(DATAGRAM_MIN) + 1;
        Ok(DatagramSocket {
            socket,
            outbox: Outbox {
                bytes: Vec::new(),
                ends: Vec::new(),
                errors: Vec::new(),
            },
            inbox: Inbox {
                buffer: vec![0; BATCH * len_max],
                len_max,
                received: Vec::new(),
            },
        })
    }

    /// Returns the descriptor, to wait for datagrams.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives the datagrams that are there, up to a batch; returns their number.
    pub fn receive(&mut self) -> usize {
        self.inbox.receive(&self.socket)
    }

    /// Sends all datagrams of the outbox.
    pub fn flush(&mut self) {
        self.outbox.flush(&self.socket);
    }
}

impl Outbox {
    /// Adds a datagram.
    pub fn push(&mut self, address: SocketAddr, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((self.bytes.len(), address.into()));
    }

    /// Whether a system call would send a whole batch.
    pub fn is_full(&self) -> bool {
        self.ends.len() >= BATCH
    }

    /// Sends all. A datagram that the kernel does not take is lost like one on the way: the
    /// receiver asks for its frames, or counts them.
    fn flush(&mut self, socket: &UdpSocket) {
        let mut start = 0;
        for ends in self.ends.chunks(BATCH) {
            let mut slices = Vec::with_capacity(ends.len());
            let mut addresses = Vec::with_capacity(ends.len());
            for (end, address) in ends {
                slices.push([IoSlice::new(&self.bytes[start..*end])]);
                addresses.push(Some(*address));
                start = *end;
            }
            send_all(socket, &slices, &addresses, &mut self.errors);
        }
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Sends datagrams, and leaves out those that are refused, with a note of the reason.
fn send_all(
    socket: &UdpSocket,
    slices: &[[IoSlice<'_>; 1]],
    addresses: &[Option<SockaddrStorage>],
    errors: &mut Vec<(SocketAddr, Errno)>,
) {
    let mut sent = 0;
    while sent < slices.len() {
        let mut headers = MultiHeaders::preallocate(slices.len() - sent, None);
        let (slices, addresses) = (&slices[sent..], &addresses[sent..]);
        let fd = socket.as_raw_fd();
        match sendmmsg(
            fd,
            &mut headers,
            slices,
            addresses,
            [],
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(done) => sent += done.count().max(1),
            Err(Errno::EINTR) => {}
            // The first one has no way, or an earlier one had none.
            Err(error) => {
                let to = addresses[0].as_ref().and_then(address_of);
                errors.extend(to.map(|to| (to, error)));
                sent += 1;
            }
        }
    }
}

impl Inbox {
    /// Returns a datagram by its index, and its sender.
    pub fn get(&self, index: usize) -> (&[u8], SocketAddr) {
        let (len, from) = self.received[index];
        let place: Range<usize> = index * self.len_max..index * self.len_max + len;
        (&self.buffer[place], from)
    }

    fn receive(&mut self, socket: &UdpSocket) -> usize {
        self.received.clear();
        let slices = self.buffer.chunks_exact_mut(self.len_max);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            slices.map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(
            socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            flags,
            None,
        );
        // Nothing is there, or an earlier datagram had no receiver.
        let Ok(received) = received else {
            return 0;
        };
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let received = received.map(|datagram| {
            let from = datagram.address.as_ref().and_then(address_of);
            (datagram.bytes, from.unwrap_or(unknown))
        });
        self.received.extend(received);
        self.received.len()
    }
}

/// Returns an address; one of IPv4 also if a socket of IPv6 has received it.
fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = |address: &SockaddrIn| SocketAddr::V4((*address).into());
    let v6 = |address: &SockaddrIn6| SocketAddr::V6((*address).into());
    let four = address.as_sockaddr_in().map(v4);
    let either = four.or_else(|| address.as_sockaddr_in6().map(v6))?;
    Some(SocketAddr::new(either.ip().to_canonical(), either.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_one_address_and_errors_of_sending_are_kept() {
        let open = |listen: &str| {
            let listen = listen.parse().expect("an address");
            DatagramSocket::open(listen, 1_400).expect("a socket")
        };
        let (mut here, mut there) = (open("127.0.0.1:0"), open("[::]:0"));
        let port = there.socket.local_addr().expect("an address").port();
        here.outbox.push(([127, 0, 0, 1], port).into(), &[1; 20]);
        here.outbox
            .push("[::1]:4795".parse().expect("one"), &[2; 20]);
        here.flush();
        while there.receive() == 0 {}
        let from = here.socket.local_addr().map_err(|error| error.kind());
        assert_eq!(Ok(there.inbox.get(0).1), from);
        let errors: Vec<String> = here
            .outbox
            .errors
            .iter()
            .map(|it| it.0.to_string())
            .collect();
        assert_eq!(errors, ["[::1]:4795"]);
    }

    #[test]
    fn datagrams_come_in_order_and_refused_ones_are_left_out() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let open = || DatagramSocket::open(local, 1_400).expect("a socket");
        let (mut here, mut there) = (open(), open());
        let to = there.socket.local_addr().expect("an address");
        for number in 0..100_u8 {
            here.outbox.push(to, &vec![number; usize::from(number)]);
        }
        // No datagram can be as long.
        here.outbox.push(to, &[1; 70_000]);
        here.outbox.push(to, &[7; 3_000]);
        here.outbox.push(to, &[4; 4]);
        here.flush();
        let mut lengths = Vec::new();
        while lengths.len() < 102 {
            for index in 0..there.receive() {
                let (datagram, from) = there.inbox.get(index);
                assert_eq!(Ok(from), here.socket.local_addr().map_err(|e| e.kind()));
                assert!(datagram.len() > 99 || datagram.iter().all(|b| *b == datagram.len() as u8));
                lengths.push(datagram.len());
            }
        }
        let expected = (0..100).chain([DATAGRAM_MIN + 1, 4]);
        assert_eq!(lengths, expected.collect::<Vec<usize>>());
    }
}

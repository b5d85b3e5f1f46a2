//! The UDP socket of a host: datagrams are sent and received many at once.
//!
//! Datagrams of one length to one host pass the kernel as one buffer, which it or the
//! network interface cuts (UDP_SEGMENT); those that arrive together may be joined in the
//! same way (UDP_GRO).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6,
    SockaddrStorage, recvmmsg, sendmmsg, sendmsg, setsockopt, sockopt,
};

/// Buffers that one system call receives, and datagrams of different lengths that one sends.
const BATCH: usize = 32;

/// Datagrams of one length that one system call sends: the limit of Linux before 6.9.
const SEGMENTS_MAX: usize = 64;

/// The longest buffer that the kernel cuts, or joins: that of an IPv4 packet, without headers.
const BUFFER_LEN: usize = 65_507;

/// The distance of the buffers: an odd number of cache lines, so that their first bytes do
/// not share the same few of the cache.
const BUFFER_STRIDE: usize = 1025 * 64;

/// The size of the socket's buffers, in bytes: 10 ms at 6 Gbit/s.
const SOCKET_BUFFER: usize = 8 << 20;

/// The shortest limit of a datagram's length: handshakes are not longer.
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
    /// The longest datagrams that the kernel cuts a buffer into; zero if it does not.
    segment_max: usize,
    /// Errors of sending, with the receivers.
    pub errors: Vec<(SocketAddr, Errno)>,
}

/// Datagrams that have been received.
pub struct Inbox {
    buffer: Vec<u8>,
    /// The longest datagram; of a longer one the rest is missing, and it is refused.
    len_max: usize,
    received: Vec<(Range<usize>, SocketAddr)>,
    /// Buffers that the kernel dropped, because the socket had no room for them.
    pub overflows: u64,
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
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        // Without it, the kernel cuts what came joined.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        // One byte more than is accepted shows that a datagram is too long.
        let len_max = mtu.max(DATAGRAM_MIN) + 1;
        Ok(DatagramSocket {
            socket,
            outbox: Outbox {
                bytes: Vec::new(),
                ends: Vec::new(),
                segment_max: usize::from(u16::MAX),
                errors: Vec::new(),
            },
            inbox: Inbox {
                buffer: vec![0; BATCH * BUFFER_STRIDE],
                len_max,
                received: Vec::new(),
                overflows: 0,
            },
        })
    }

    /// Returns the descriptor, to wait for datagrams.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives the datagrams that are there, up to a batch of buffers; returns their number.
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
        self.ends.len() >= SEGMENTS_MAX
    }

    /// Sends all. A datagram that the kernel does not take is lost like one on the way: the
    /// receiver asks for its frames, or counts them.
    fn flush(&mut self, socket: &UdpSocket) {
        // Those before `unsent` are sent.
        let (mut unsent, mut next) = (0, 0);
        while next < self.ends.len() {
            let alike = next..next + self.alike(next);
            next = alike.end;
            if alike.len() > 1 {
                self.send_each(socket, unsent..alike.start);
                unsent = alike.start;
                if self.send_segments(socket, alike) {
                    unsent = next;
                }
            }
        }
        self.send_each(socket, unsent..next);
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the place of datagrams.
    fn place(&self, datagrams: &Range<usize>) -> Range<usize> {
        let start = datagrams.start.checked_sub(1);
        let end = |index: usize| self.ends[index].0;
        start.map_or(0, end)..end(datagrams.end - 1)
    }

    /// Returns how many datagrams can be sent as one buffer, from one on: they have its
    /// receiver and its length, but the last may be shorter.
    fn alike(&self, first: usize) -> usize {
        let place = self.place(&(first..first + 1));
        let (start, len) = (place.start, place.len());
        if len == 0 || len > self.segment_max {
            return 1;
        }
        let count_max = SEGMENTS_MAX.min(BUFFER_LEN / len);
        let mut before = place.end;
        let mut count = 1;
        for (end, address) in &self.ends[first + 1..] {
            let other = end - before;
            let fits = count < count_max && end - start <= BUFFER_LEN;
            if !fits || other > len || other == 0 || *address != self.ends[first].1 {
                break;
            }
            count += 1;
            before = *end;
            if other < len {
                break;
            }
        }
        count
    }

    /// Sends datagrams that are alike as one buffer. Returns whether the kernel took it.
    fn send_segments(&mut self, socket: &UdpSocket, datagrams: Range<usize>) -> bool {
        let place = self.place(&datagrams);
        let first = self.place(&(datagrams.start..datagrams.start + 1));
        let len = first.len() as u16;
        let sent = sendmsg(
            socket.as_raw_fd(),
            &[IoSlice::new(&self.bytes[place])],
            &[ControlMessage::UdpGsoSegments(&len)],
            MsgFlags::MSG_DONTWAIT,
            Some(&self.ends[datagrams.start].1),
        );
        match sent {
            // Longer than the MTU: these are sent in fragments.
            Err(Errno::EINVAL | Errno::EMSGSIZE) => self.segment_max = usize::from(len) - 1,
            // Not on this interface, or not by this kernel.
            Err(Errno::EIO | Errno::EOPNOTSUPP) => self.segment_max = 0,
            Err(_) | Ok(_) => {}
        }
        sent.is_ok()
    }

    /// Sends datagrams one by one.
    fn send_each(&mut self, socket: &UdpSocket, datagrams: Range<usize>) {
        if datagrams.is_empty() {
            return;
        }
        let mut start = self.place(&datagrams).start;
        for ends in self.ends[datagrams].chunks(BATCH) {
            let mut slices = Vec::with_capacity(ends.len());
            let mut addresses = Vec::with_capacity(ends.len());
            for (end, address) in ends {
                slices.push([IoSlice::new(&self.bytes[start..*end])]);
                addresses.push(Some(*address));
                start = *end;
            }
            send_all(socket, &slices, &addresses, &mut self.errors);
        }
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
        let (place, from) = &self.received[index];
        (&self.buffer[place.clone()], *from)
    }

    fn receive(&mut self, socket: &UdpSocket) -> usize {
        self.received.clear();
        let slices = self.buffer.chunks_exact_mut(BUFFER_STRIDE);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = slices
            .map(|buffer| [IoSliceMut::new(&mut buffer[..BUFFER_LEN])])
            .collect();
        let control = cmsg_space!(i32, u32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, Some(control));
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
        for (index, buffer) in received.enumerate() {
            let from = buffer.address.as_ref().and_then(address_of);
            let mut segment = buffer.bytes;
            for message in buffer.cmsgs().into_iter().flatten() {
                match message {
                    ControlMessageOwned::UdpGroSegments(len) => {
                        segment = usize::try_from(len).unwrap_or(segment);
                    }
                    // The low half of the number since the socket was opened.
                    ControlMessageOwned::RxqOvfl(low) => {
                        self.overflows += u64::from(low.wrapping_sub(self.overflows as u32));
                    }
                    _ => {}
                }
            }
            let place = index * BUFFER_STRIDE;
            let end = place + buffer.bytes;
            // An empty datagram is one, too.
            let starts = (place..end.max(place + 1)).step_by(segment.max(1));
            self.received.extend(starts.map(|start| {
                let len = segment.min(end - start).min(self.len_max);
                (start..start + len, from.unwrap_or(unknown))
            }));
        }
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
    use longwire_io::net::link::set_mtu;
    use longwire_io::net::link_up;

    use super::*;

    fn pair() -> (DatagramSocket, DatagramSocket, SocketAddr) {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let open = || DatagramSocket::open(local, 1_400).expect("a socket");
        let (here, there) = (open(), open());
        let to = there.socket.local_addr().expect("an address");
        (here, there, to)
    }

    /// Receives as many datagrams, and returns their lengths and first bytes.
    fn take(there: &mut DatagramSocket, count: usize) -> Vec<(usize, u8)> {
        let mut taken = Vec::new();
        while taken.len() < count {
            for index in 0..there.receive() {
                let (datagram, _) = there.inbox.get(index);
                let first = *datagram.first().expect("a byte");
                assert!(datagram.iter().all(|byte| *byte == first));
                taken.push((datagram.len(), first));
            }
        }
        taken
    }

    /// Lengths of datagrams of which some are sent as one buffer: with a shorter one at the
    /// end, with more than a buffer has, and others between them.
    fn lengths() -> Vec<(usize, u8)> {
        let runs = [
            (1_400, 150),
            (700, 1),
            (1_300, 2),
            (9, 1),
            (1_400, 70),
            (60, 3),
        ];
        let lengths = runs.iter().flat_map(|(len, times)| [*len].repeat(*times));
        lengths.zip((0..=250).cycle()).collect()
    }

    fn exchange(here: &mut DatagramSocket, there: &mut DatagramSocket, to: SocketAddr) {
        let expected = lengths();
        for (len, byte) in &expected {
            here.outbox.push(to, &vec![*byte; *len]);
        }
        here.flush();
        assert_eq!(take(there, expected.len()), expected);
        assert!(here.outbox.errors.is_empty(), "{:?}", here.outbox.errors);
    }

    #[test]
    fn datagrams_of_a_length_are_sent_together_and_come_one_by_one() {
        let (mut here, mut there, to) = pair();
        exchange(&mut here, &mut there, to);
        assert_eq!(here.outbox.segment_max, usize::from(u16::MAX));
        // A kernel or an interface that does not cut buffers.
        here.outbox.segment_max = 0;
        exchange(&mut here, &mut there, to);
    }

    #[test]
    fn datagrams_that_are_longer_than_the_mtu_are_sent_in_fragments() {
        let Some(space) = longwire_testbed::support::namespace() else {
            return;
        };
        let exchanged = space.run(|| {
            set_mtu("lo", 1_400).expect("an MTU");
            link_up("lo").expect("it is up");
            let (mut here, mut there, to) = pair();
            exchange(&mut here, &mut there, to);
            assert_eq!(here.outbox.segment_max, 1_399);
            exchange(&mut here, &mut there, to);
        });
        exchanged.expect("it is entered");
    }

    #[test]
    fn buffers_for_which_there_is_no_room_are_counted() {
        let (mut here, mut there, to) = pair();
        setsockopt(&there.socket, sockopt::RcvBuf, &10_000).expect("it is set");
        for _ in 0..200 {
            here.outbox.push(to, &[1; 1_000]);
            here.flush();
        }
        let mut came = 0;
        loop {
            let received = there.receive();
            if received == 0 {
                break;
            }
            came += received as u64;
        }
        // A datagram comes with the number of those that were dropped before it.
        here.outbox.push(to, &[2; 1_000]);
        here.flush();
        assert_eq!(take(&mut there, 1), [(1_000, 2)]);
        assert!(came > 0);
        assert_eq!(there.inbox.overflows, 200 - came);
    }

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
        let (mut here, mut there, to) = pair();
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

//! A host's UDP socket, with batched system calls.
//!
//! Datagrams of equal length to one host are passed to the kernel as one buffer, which the kernel
//! or the NIC segments (UDP_SEGMENT). Received datagrams may be coalesced likewise (UDP_GRO).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6,
    SockaddrStorage, getsockopt, recvmmsg, sendmmsg, sendmsg, setsockopt, sockopt,
};

/// Buffers per receive call.
const BUFFERS: usize = 16;

/// Maximum number of datagrams processed before sending again, which bounds the delay of outgoing
/// frames.
const TAKEN_AT_ONCE: usize = 64;

/// Maximum number of datagrams with different lengths per send call.
const BATCH: usize = 32;

/// Maximum number of segments per send call: the limit before Linux 6.9.
const SEGMENTS_MAX: usize = 64;

/// Maximum buffer to segment in bytes. With Ethernet, IPv6 and UDP headers it stays below 65,536,
/// above which receivers do not coalesce.
const SEGMENTS_LEN_MAX: usize = 65_473;

/// Maximum received buffer in bytes: an IPv4 packet's payload.
const BUFFER_LEN: usize = 65_507;

/// Distance between buffers in bytes: an odd number of cache lines, so that their first
/// bytes map to different cache sets.
const BUFFER_STRIDE: usize = 1025 * 64;

/// Socket buffer size in bytes: 10 ms at 6 Gbit/s.
const SOCKET_BUFFER: usize = 8 << 20;

/// A socket with queues of outgoing and received datagrams.
pub struct DatagramSocket {
    socket: UdpSocket,
    pub outbox: Outbox,
    pub inbox: Inbox,
}

/// Outgoing datagrams.
#[derive(Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Each datagram's end offset and address.
    ends: Vec<(usize, SockaddrStorage)>,
    /// Maximum datagram length in bytes for UDP_SEGMENT; 0 if unsupported.
    segment_max: usize,
    /// Lower limits for receivers to which sending longer buffers failed.
    segment_max_to: Vec<(SockaddrStorage, usize)>,
    /// Send errors with their receivers.
    pub errors: Vec<(SocketAddr, Errno)>,
}

/// Received datagrams.
#[derive(Default)]
pub struct Inbox {
    buffer: Vec<u8>,
    received: Vec<(Range<usize>, SocketAddr)>,
    /// Number of datagrams taken.
    taken: usize,
    /// Buffers dropped by the kernel at the socket.
    pub overflows: u64,
}

impl DatagramSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// The address is not local or is in use.
    pub fn open(listen: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        // Privileged processes may exceed the system's limit.
        if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER)?;
        }
        if setsockopt(&socket, sockopt::SndBufForce, &SOCKET_BUFFER).is_err() {
            setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER)?;
        }
        // Best effort: without these options, drops are not counted and datagrams are not
        // coalesced.
        let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        // A kernel without support would ignore the request and send IP fragments.
        let has_segments = getsockopt(&socket, sockopt::UdpGsoSegment).is_ok();
        Ok(DatagramSocket {
            socket,
            outbox: Outbox {
                segment_max: if has_segments { SEGMENTS_LEN_MAX } else { 0 },
                ..Outbox::default()
            },
            inbox: Inbox {
                buffer: vec![0; BUFFERS * BUFFER_STRIDE],
                ..Inbox::default()
            },
        })
    }

    /// Returns the descriptor for polling.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives datagrams and returns their indices, possibly none.
    pub fn receive(&mut self) -> Range<usize> {
        self.inbox.receive(&self.socket)
    }

    /// Sends all outgoing datagrams.
    pub fn flush(&mut self) {
        self.outbox.flush(&self.socket);
    }
}

impl Outbox {
    pub fn push(&mut self, address: SocketAddr, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((self.bytes.len(), address.into()));
    }

    /// Returns whether a full batch is queued.
    pub fn is_full(&self) -> bool {
        self.ends.len() >= SEGMENTS_MAX
    }

    /// Sends all datagrams. A datagram refused by the kernel is treated as lost in transit: the
    /// receiver requests its frames or counts them.
    fn flush(&mut self, socket: &UdpSocket) {
        // Datagrams before `unsent` have been sent.
        let (mut unsent, mut next) = (0, 0);
        while next < self.ends.len() {
            let alike = next..next + self.count_alike(next);
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

    /// Returns the byte range that datagrams occupy.
    fn range_of(&self, datagrams: &Range<usize>) -> Range<usize> {
        let start = datagrams.start.checked_sub(1);
        let end = |index: usize| self.ends[index].0;
        start.map_or(0, end)..end(datagrams.end - 1)
    }

    /// Returns the number of datagrams from `first` on that fit in one buffer: they have the same
    /// receiver and length, except that the last may be shorter.
    fn count_alike(&self, first: usize) -> usize {
        let range = self.range_of(&(first..first + 1));
        let (start, len) = (range.start, range.len());
        let receiver = self.ends[first].1;
        if len > self.segment_max_of(&receiver) {
            return 1;
        }
        let mut before = range.end;
        let mut count = 1;
        for (end, address) in &self.ends[first + 1..] {
            let other = end - before;
            let fits = count < SEGMENTS_MAX && end - start <= SEGMENTS_LEN_MAX;
            if !fits || other > len || other == 0 || *address != receiver {
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

    fn segment_max_of(&self, receiver: &SockaddrStorage) -> usize {
        let mut limits = self.segment_max_to.iter();
        let limit = limits.find(|(address, _)| address == receiver);
        limit.map_or(self.segment_max, |(_, limit)| *limit)
    }

    fn limit_segments(&mut self, receiver: SockaddrStorage, len_max: usize) {
        self.segment_max_to
            .retain(|(address, _)| *address != receiver);
        self.segment_max_to.push((receiver, len_max));
    }

    /// Sends datagrams of equal length as one buffer. Returns whether the kernel accepted the
    /// buffer.
    fn send_segments(&mut self, socket: &UdpSocket, datagrams: Range<usize>) -> bool {
        let range = self.range_of(&datagrams);
        let len = self.range_of(&(datagrams.start..datagrams.start + 1)).len() as u16;
        let receiver = self.ends[datagrams.start].1;
        let sent = sendmsg(
            socket.as_raw_fd(),
            &[IoSlice::new(&self.bytes[range])],
            &[ControlMessage::UdpGsoSegments(&len)],
            MsgFlags::MSG_DONTWAIT,
            Some(&receiver),
        );
        match sent {
            // The datagrams exceed the MTU, so send those of this length individually, as IP
            // fragments.
            Err(Errno::EINVAL | Errno::EMSGSIZE) => {
                self.limit_segments(receiver, usize::from(len) - 1);
            }
            // Segmentation is unsupported on this interface: no checksum offload, or IPsec.
            Err(Errno::EIO | Errno::EOPNOTSUPP) => self.limit_segments(receiver, 0),
            Err(_) | Ok(_) => {}
        }
        sent.is_ok()
    }

    /// Sends datagrams without segmentation, several per system call.
    fn send_each(&mut self, socket: &UdpSocket, datagrams: Range<usize>) {
        if datagrams.is_empty() {
            return;
        }
        let mut start = self.range_of(&datagrams).start;
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

/// Sends datagrams, and records refused ones as errors.
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
        match sendmmsg(
            socket.as_raw_fd(),
            &mut headers,
            slices,
            addresses,
            [],
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(done) => sent += done.count().max(1),
            Err(Errno::EINTR) => {}
            // The error belongs to the first datagram or, if reported by ICMP, to an earlier one.
            Err(error) => {
                let to = addresses[0].as_ref().and_then(address_of);
                errors.extend(to.map(|to| (to, error)));
                sent += 1;
            }
        }
    }
}

impl Inbox {
    /// Returns a datagram and its sender.
    pub fn get(&self, index: usize) -> (&[u8], SocketAddr) {
        let (range, from) = &self.received[index];
        (&self.buffer[range.clone()], *from)
    }

    fn receive(&mut self, socket: &UdpSocket) -> Range<usize> {
        if self.taken == self.received.len() {
            self.receive_buffers(socket);
            self.taken = 0;
        }
        let next = self.taken..self.received.len().min(self.taken + TAKEN_AT_ONCE);
        self.taken = next.end;
        next
    }

    fn receive_buffers(&mut self, socket: &UdpSocket) {
        self.received.clear();
        let slices = self.buffer.chunks_exact_mut(BUFFER_STRIDE);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = slices
            .map(|buffer| [IoSliceMut::new(&mut buffer[..BUFFER_LEN])])
            .collect();
        let control = cmsg_space!(i32, u32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BUFFERS, Some(control));
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(
            socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            flags,
            None,
        );
        // No datagram has arrived, or one sent earlier caused an error (ICMP).
        let Ok(received) = received else {
            return;
        };
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        for (index, buffer) in received.enumerate() {
            let from = buffer.address.as_ref().and_then(address_of);
            let mut segment_len = buffer.bytes;
            for message in buffer.cmsgs().into_iter().flatten() {
                match message {
                    ControlMessageOwned::UdpGroSegments(len) => {
                        segment_len = usize::try_from(len).unwrap_or(segment_len);
                    }
                    ControlMessageOwned::RxqOvfl(low) => note_overflows(&mut self.overflows, low),
                    _ => {}
                }
            }
            let begin = index * BUFFER_STRIDE;
            let end = begin + buffer.bytes;
            // Also covers an empty datagram.
            let starts = (begin..end.max(begin + 1)).step_by(segment_len.max(1));
            self.received.extend(
                starts.map(|start| (start..end.min(start + segment_len), from.unwrap_or(unknown))),
            );
        }
    }
}

/// Updates the drop count from its low half. Buffers queued at the same time may report it out of
/// order.
fn note_overflows(overflows: &mut u64, low: u32) {
    let more = low.wrapping_sub(*overflows as u32) as i32;
    *overflows += u64::try_from(more).unwrap_or(0);
}

/// Converts an address. IPv4-mapped addresses become IPv4.
fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = |address: &SockaddrIn| SocketAddr::V4((*address).into());
    let v6 = |address: &SockaddrIn6| SocketAddr::V6((*address).into());
    let four = address.as_sockaddr_in().map(v4);
    let either = four.or_else(|| address.as_sockaddr_in6().map(v6))?;
    Some(SocketAddr::new(either.ip().to_canonical(), either.port()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use longwire_io::net::link::set_mtu;
    use longwire_io::net::link_up;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn open(listen: &str) -> DatagramSocket {
        DatagramSocket::open(listen.parse().expect("an address")).expect("a socket")
    }

    fn address(socket: &DatagramSocket) -> SocketAddr {
        socket.socket.local_addr().expect("an address")
    }

    /// Receives `count` datagrams. Returns their lengths, first bytes and senders.
    fn take(there: &mut DatagramSocket, count: usize) -> Vec<(usize, u8, SocketAddr)> {
        let mut taken = Vec::new();
        let begun = Instant::now();
        while taken.len() < count {
            for index in there.receive() {
                let (datagram, from) = there.inbox.get(index);
                let first = datagram.first().copied().unwrap_or_default();
                assert!(datagram.iter().all(|byte| *byte == first));
                taken.push((datagram.len(), first, from));
            }
            assert!(begun.elapsed() < TIMEOUT, "{} of {count}", taken.len());
        }
        taken
    }

    /// Returns lengths and bytes of datagrams of which only some fit in one buffer: a shorter one
    /// at the end, more than the maximum, and different lengths in between.
    fn datagrams() -> Vec<(usize, u8)> {
        let runs = [
            (1_400, 70),
            (700, 1),
            (1_300, 2),
            (9, 1),
            (1_400, 50),
            (0, 1),
            (60, 3),
        ];
        let lengths = runs.iter().flat_map(|(len, times)| [*len].repeat(*times));
        let numbered = lengths.zip(0..);
        numbered
            .map(|(len, byte)| (len, if len == 0 { 0 } else { byte }))
            .collect()
    }

    /// Sends datagrams to two hosts and checks what they receive.
    fn exchange(here: &mut DatagramSocket, there: &mut [DatagramSocket; 2]) {
        for receiver in there.iter().map(address) {
            for (len, byte) in datagrams() {
                here.outbox.push(receiver, &vec![byte; len]);
            }
        }
        here.flush();
        assert!(here.outbox.errors.is_empty(), "{:?}", here.outbox.errors);
        let from = address(here);
        let expected = datagrams().into_iter().map(|(len, byte)| (len, byte, from));
        let expected: Vec<_> = expected.collect();
        for there in there {
            assert_eq!(take(there, expected.len()), expected);
        }
    }

    #[test]
    fn datagrams_of_equal_length_are_sent_as_one_and_received_separately() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let (mut here, mut there) = (open(local), [open(local), open(local)]);
            exchange(&mut here, &mut there);
            assert!(here.outbox.segment_max > 0, "{local}");
            assert!(here.outbox.segment_max_to.is_empty(), "{local}");
            // Simulates a kernel without segmentation.
            here.outbox.segment_max = 0;
            exchange(&mut here, &mut there);
        }
    }

    #[test]
    fn datagrams_that_are_longer_than_the_mtu_are_sent_in_fragments() {
        let Some(space) = longwire_testbed::support::namespace() else {
            return;
        };
        let exchanged = space.run(|| {
            set_mtu("lo", 1_400).expect("an MTU");
            link_up("lo").expect("it is up");
            let local = "127.0.0.1:0";
            let (mut here, mut there) = (open(local), [open(local), open(local)]);
            exchange(&mut here, &mut there);
            let receiver: SockaddrStorage = address(&there[0]).into();
            assert_eq!(here.outbox.segment_max_of(&receiver), 1_399);
            exchange(&mut here, &mut there);
        });
        exchanged.expect("it is entered");
    }

    #[test]
    fn dropped_buffers_are_counted() {
        let (mut here, mut there) = (open("127.0.0.1:0"), open("127.0.0.1:0"));
        setsockopt(&there.socket, sockopt::RcvBuf, &10_000).expect("it is set");
        let to = address(&there);
        for _ in 0..200 {
            here.outbox.push(to, &[1; 1_000]);
            here.flush();
        }
        let mut came = 0;
        loop {
            let received = there.receive();
            if received.is_empty() {
                break;
            }
            came += received.len() as u64;
        }
        // A datagram carries the drop count at its arrival.
        here.outbox.push(to, &[2; 1_000]);
        here.flush();
        assert_eq!(take(&mut there, 1), [(1_000, 2, address(&here))]);
        assert!(came > 0);
        assert_eq!(there.inbox.overflows, 200 - came);
    }

    #[test]
    fn the_number_of_dropped_buffers_never_decreases() {
        let mut overflows = 0;
        for (low, expected) in [(5, 5), (4, 5), (5, 5), (1 << 31, 1 << 31)] {
            note_overflows(&mut overflows, low);
            assert_eq!(overflows, expected);
        }
        note_overflows(&mut overflows, u32::MAX);
        note_overflows(&mut overflows, 3);
        assert_eq!(overflows, (1 << 32) + 3);
    }

    #[test]
    fn a_sender_has_one_address_and_errors_of_sending_are_kept() {
        let (mut here, mut there) = (open("127.0.0.1:0"), open("[::]:0"));
        let port = address(&there).port();
        here.outbox.push(([127, 0, 0, 1], port).into(), &[1; 20]);
        here.outbox
            .push("[::1]:4795".parse().expect("one"), &[2; 20]);
        // This datagram exceeds the maximum length.
        here.outbox
            .push(([127, 0, 0, 1], port).into(), &[1; 70_000]);
        here.outbox.push(([127, 0, 0, 1], port).into(), &[4; 4]);
        here.flush();
        let from = address(&here);
        assert_eq!(take(&mut there, 2), [(20, 1, from), (4, 4, from)]);
        let errors = here.outbox.errors.iter().map(|it| it.0.to_string());
        let errors: Vec<String> = errors.collect();
        assert_eq!(
            errors,
            ["[::1]:4795".to_owned(), format!("127.0.0.1:{port}")]
        );
    }
}

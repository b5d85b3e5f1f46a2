//! Builds and checks test frames with plain loops over big-endian words. Shares no code with the
//! implementation.

use longwire_io::port::{Checksum, SegmentKind, Segments};

/// Parameters of a test frame.
#[derive(Clone, Debug)]
pub struct FrameSpec {
    pub v6: bool,
    pub udp: bool,
    pub vlan_tags: usize,
    /// IPv4: 4-byte words of options. IPv6: extension headers.
    pub extras: usize,
    /// 4-byte words of TCP options.
    pub tcp_options: usize,
    pub tcp_flags: u8,
    pub sequence: u32,
    pub id: u16,
    pub payload: Vec<u8>,
}

impl FrameSpec {
    pub fn tcp(payload: usize) -> FrameSpec {
        FrameSpec {
            v6: false,
            udp: false,
            vlan_tags: 0,
            extras: 0,
            tcp_options: 3,
            tcp_flags: 0x18,
            sequence: 0xffff_ff00,
            id: 0xfffe,
            payload: (0..payload).map(|i| (i * 7 + i / 251) as u8).collect(),
        }
    }

    pub fn udp(payload: usize) -> FrameSpec {
        FrameSpec {
            udp: true,
            ..FrameSpec::tcp(payload)
        }
    }

    pub fn v6(self) -> FrameSpec {
        FrameSpec { v6: true, ..self }
    }

    pub fn checksum(&self) -> Checksum {
        Checksum {
            start: self.transport_at() as u16,
            offset: (self.checksum_at() - self.transport_at()) as u16,
        }
    }

    pub fn segments(&self, payload_len: u16) -> Segments {
        Segments {
            kind: match (self.udp, self.v6) {
                (true, _) => SegmentKind::Udp,
                (false, false) => SegmentKind::TcpV4,
                (false, true) => SegmentKind::TcpV6,
            },
            header_len: self.payload_at() as u16,
            payload_len,
            cwr_once: false,
        }
    }

    pub fn network_at(&self) -> usize {
        14 + 4 * self.vlan_tags
    }

    pub fn transport_at(&self) -> usize {
        let network = if self.v6 {
            40 + 8 * self.extras
        } else {
            20 + 4 * self.extras
        };
        self.network_at() + network
    }

    pub fn payload_at(&self) -> usize {
        let transport = if self.udp {
            8
        } else {
            20 + 4 * self.tcp_options
        };
        self.transport_at() + transport
    }

    pub fn checksum_at(&self) -> usize {
        self.transport_at() + if self.udp { 6 } else { 16 }
    }

    /// Returns the frame with a partial checksum: the pseudo-header sum.
    pub fn build_partial(&self) -> Vec<u8> {
        let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
        for _ in 0..self.vlan_tags {
            frame.extend([0x81, 0x00, 0x00, 0x05]);
        }
        let protocol = if self.udp { 17 } else { 6 };
        let transport = self.build_transport();
        if self.v6 {
            self.push_v6(&mut frame, protocol, transport.len());
        } else {
            self.push_v4(&mut frame, protocol, transport.len());
        }
        assert_eq!(frame.len(), self.transport_at());
        frame.extend(transport);
        let partial = pseudo_sum(&frame, self.network_at(), self.transport_at(), protocol);
        let at = self.checksum_at();
        frame[at..at + 2].copy_from_slice(&partial.to_be_bytes());
        frame
    }

    fn build_transport(&self) -> Vec<u8> {
        let mut bytes = vec![0x30, 0x39, 0xd4, 0x31];
        if self.udp {
            bytes.extend((self.payload.len() as u16 + 8).to_be_bytes());
            bytes.extend([0, 0]);
        } else {
            bytes.extend(self.sequence.to_be_bytes());
            bytes.extend([0x11, 0x22, 0x33, 0x44]);
            bytes.push(((5 + self.tcp_options) as u8) << 4);
            bytes.extend([self.tcp_flags, 0x20, 0x00, 0, 0, 0, 0]);
            bytes.extend(std::iter::repeat_n(1, 4 * self.tcp_options));
        }
        bytes.extend(&self.payload);
        bytes
    }

    fn push_v4(&self, frame: &mut Vec<u8>, protocol: u8, transport_len: usize) {
        frame.extend([0x08, 0x00]);
        let at = frame.len();
        let header_len = 20 + 4 * self.extras;
        frame.extend([0x40 | (header_len / 4) as u8, 0]);
        frame.extend(((header_len + transport_len) as u16).to_be_bytes());
        frame.extend(self.id.to_be_bytes());
        frame.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 168, 7, 9]);
        frame.extend(std::iter::repeat_n(1, 4 * self.extras));
        let sum = !fold(words(&frame[at..]));
        frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }

    fn push_v6(&self, frame: &mut Vec<u8>, protocol: u8, transport_len: usize) {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(((8 * self.extras + transport_len) as u16).to_be_bytes());
        // Destination options of the requested length.
        let next = |left: usize| if left > 0 { 60 } else { protocol };
        frame.extend([next(self.extras), 64]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 2]);
        for left in (0..self.extras).rev() {
            frame.extend([next(left), 0, 1, 4, 0, 0, 0, 0]);
        }
    }
}

/// Checks every length and checksum of a whole TCP or UDP frame and returns its payload. Panics on
/// an error.
pub fn verify(frame: &[u8], spec: &FrameSpec) -> Vec<u8> {
    let (network, transport) = (spec.network_at(), spec.transport_at());
    let field = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    if spec.v6 {
        assert_eq!(field(network + 4), frame.len() - network - 40, "length");
    } else {
        assert_eq!(field(network + 2), frame.len() - network, "length");
        assert_eq!(fold(words(&frame[network..transport])), 0xffff, "IPv4");
    }
    if spec.udp {
        assert_eq!(field(transport + 4), frame.len() - transport, "UDP length");
    }
    let protocol = if spec.udp { 17 } else { 6 };
    let pseudo = pseudo_sum(frame, network, transport, protocol);
    let sum = fold(u64::from(pseudo) + words(&frame[transport..]));
    assert_eq!(sum, 0xffff, "transport checksum");
    frame[spec.payload_at()..].to_vec()
}

/// Returns the folded pseudo-header sum.
pub fn pseudo_sum(frame: &[u8], network: usize, transport: usize, protocol: u8) -> u16 {
    let addresses = if frame[network] >> 4 == 6 {
        &frame[network + 8..network + 40]
    } else {
        &frame[network + 12..network + 20]
    };
    let len = (frame.len() - transport) as u64;
    fold(words(addresses) + len + u64::from(protocol))
}

/// Returns the sum of big-endian 16-bit words.
pub fn words(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

/// Folds to 16 bits, adding the carries.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

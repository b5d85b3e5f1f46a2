//! Builds and checks test frames. Shares no code with the implementation.

use longwire_io::port::{Checksum, SegmentKind, Segments};
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet, ipv6, sum};

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
        let protocol = if self.udp { 17 } else { 6 };
        let transport = self.build_transport();
        let tags = vec![5; self.vlan_tags];
        let mut frame = if self.v6 {
            let options = vec![(60, &[0, 0, 1, 4, 0, 0, 0, 0][..]); self.extras];
            ethernet(&tags, 0x86dd, &ipv6(0, &options, protocol, &transport))
        } else {
            let header = Ipv4 {
                fragment: 0x4000,
                options: &vec![1; 4 * self.extras],
                ..PLAIN4
            };
            ethernet(&tags, 0x0800, &header.packet(protocol, &transport))
        };
        let (network_at, transport_at) = (self.network_at(), self.transport_at());
        assert_eq!(frame.len(), transport_at + transport.len());
        if !self.v6 {
            frame[network_at + 4..network_at + 6].copy_from_slice(&self.id.to_be_bytes());
            put_sum(&mut frame, network_at..transport_at, network_at + 10);
        }
        let partial = pseudo_sum(&frame, network_at, transport_at, protocol);
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
}

/// Puts the checksum of these bytes at this offset.
pub fn put_sum(frame: &mut [u8], bytes: std::ops::Range<usize>, at: usize) {
    frame[at..at + 2].fill(0);
    let sum = !sum(&[&frame[bytes]]);
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Checks every length and checksum of a complete TCP or UDP frame and returns its payload. Panics
/// on an error.
pub fn verify(frame: &[u8], spec: &FrameSpec) -> Vec<u8> {
    let (network, transport) = (spec.network_at(), spec.transport_at());
    let field = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    if spec.v6 {
        assert_eq!(field(network + 4), frame.len() - network - 40, "length");
    } else {
        assert_eq!(field(network + 2), frame.len() - network, "length");
        assert_eq!(sum(&[&frame[network..transport]]), 0xffff, "IPv4");
    }
    if spec.udp {
        assert_eq!(field(transport + 4), frame.len() - transport, "UDP length");
    }
    let protocol = if spec.udp { 17 } else { 6 };
    let pseudo = pseudo_sum(frame, network, transport, protocol);
    let sum = sum(&[&pseudo.to_be_bytes(), &frame[transport..]]);
    assert_eq!(sum, 0xffff, "transport checksum");
    frame[spec.payload_at()..].to_vec()
}

/// Returns the pseudo-header sum.
pub fn pseudo_sum(frame: &[u8], network: usize, transport: usize, protocol: u8) -> u16 {
    let addresses = if frame[network] >> 4 == 6 {
        &frame[network + 8..network + 40]
    } else {
        &frame[network + 12..network + 20]
    };
    let len = (frame.len() - transport) as u32;
    sum(&[addresses, &len.to_be_bytes(), &[0, protocol]])
}

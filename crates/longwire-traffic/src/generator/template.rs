//! Template for generated frames.

use longwire_packet::MacAddress;
use longwire_packet::probe::Probe;
use longwire_units::random::Stream;

use super::GeneratorConfig;
use super::flows::{Flow, FlowConfig, Protocol};
use super::payload::Payload;

/// A frame that is complete except for its varying fields.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    v6: bool,
    protocol: Protocol,
    /// First MAC address and number of addresses.
    sources: (MacAddress, u64),
    destinations: (MacAddress, u64),
    /// Offsets of the IP header, the transport header and the payload.
    ip: usize,
    transport: usize,
    payload: usize,
    /// One's complement sum of the constant part of the IPv4 header.
    ip_sum: u64,
    /// One's complement sum of the constant part of the transport header, including the
    /// pseudo-header's protocol.
    transport_sum: u64,
    /// One's complement sums of payload prefixes, excluding the probe, indexed by number of words.
    payload_sums: Vec<u32>,
}

impl Template {
    pub fn new(config: &GeneratorConfig, len_max: u32, stream: &mut Stream) -> Template {
        let flows = &config.flows;
        let v6 = flows.sources.is_v6();
        let ip = 14 + 4 * flows.vlans.len();
        let transport = ip + if v6 { 40 } else { 20 };
        let payload = transport
            + match flows.protocol {
                Protocol::Tcp => 20,
                Protocol::Udp | Protocol::Icmp => 8,
            };
        // Reserve room for the headers even if sizes are too short; the caller rejects such sizes.
        let mut template = Template {
            bytes: vec![0; (len_max as usize).max(payload)],
            v6,
            protocol: flows.protocol,
            sources: (flows.source_mac, flows.source_macs),
            destinations: (flows.destination_mac, flows.destination_macs),
            ip,
            transport,
            payload,
            ip_sum: 0,
            transport_sum: 0,
            payload_sums: Vec::new(),
        };
        template.write_ethernet(flows);
        template.write_ip(flows);
        template.write_transport(flows);
        template.write_payload(config, stream);
        template
    }

    /// Returns the length of all headers.
    pub fn headers(&self) -> u32 {
        self.payload as u32
    }

    /// Sets the MAC addresses of frame `number`.
    #[inline]
    pub fn turn(&mut self, number: u64) {
        let (first, count) = self.destinations;
        if count > 1 {
            self.bytes[..6].copy_from_slice(&first.number(number % count).0);
        }
        let (first, count) = self.sources;
        if count > 1 {
            self.bytes[6..12].copy_from_slice(&first.number(number % count).0);
        }
    }

    fn write_ethernet(&mut self, flows: &FlowConfig) {
        self.bytes[..6].copy_from_slice(&flows.destination_mac.0);
        self.bytes[6..12].copy_from_slice(&flows.source_mac.0);
        let mut at = 12;
        for (index, tag) in flows.vlans.iter().enumerate() {
            let innermost = index + 1 == flows.vlans.len();
            let ether_type: u16 = if innermost { 0x8100 } else { 0x88a8 };
            put16(&mut self.bytes, at, ether_type);
            let control = u16::from(tag.priority) << 13 | tag.id;
            put16(&mut self.bytes, at + 2, control);
            at += 4;
        }
        put16(&mut self.bytes, at, if self.v6 { 0x86dd } else { 0x0800 });
    }

    fn write_ip(&mut self, flows: &FlowConfig) {
        let protocol = self.protocol_number();
        let header = &mut self.bytes[self.ip..self.transport];
        let class = flows.dscp << 2;
        if self.v6 {
            header[0] = 0x60 | class >> 4;
            header[1] = class << 4;
            header[6] = protocol;
            header[7] = flows.ttl;
        } else {
            header[0] = 0x45;
            header[1] = class;
            // Don't Fragment is set, so the packet needs no identification (RFC 6864, section 4.1).
            header[6] = 0x40;
            header[8] = flows.ttl;
            header[9] = protocol;
        }
        self.ip_sum = sum(header);
    }

    fn write_transport(&mut self, flows: &FlowConfig) {
        let protocol = self.protocol_number();
        let header = &mut self.bytes[self.transport..self.payload];
        match self.protocol {
            Protocol::Udp => {}
            Protocol::Tcp => {
                // Acknowledgement number, data offset and maximum window.
                header[8..12].copy_from_slice(&1u32.to_be_bytes());
                header[12] = 5 << 4;
                header[13] = flows.tcp_flags.0;
                put16(header, 14, u16::MAX);
            }
            // Type of an echo request.
            Protocol::Icmp => header[0] = if self.v6 { 128 } else { 8 },
        }
        self.transport_sum = sum(header);
        if self.has_pseudo_header() {
            self.transport_sum += u64::from(protocol);
        }
    }

    fn write_payload(&mut self, config: &GeneratorConfig, stream: &mut Stream) {
        let payload = &mut self.bytes[self.payload..];
        match &config.payload {
            Payload::Zeros => {}
            Payload::Counting => {
                let bytes = payload.iter_mut().enumerate();
                bytes.for_each(|(index, byte)| *byte = index as u8);
            }
            Payload::Random => {
                for bytes in payload.chunks_mut(8) {
                    bytes.copy_from_slice(&stream.next_u64().to_le_bytes()[..bytes.len()]);
                }
            }
            Payload::Pattern(pattern) => {
                let bytes = payload.iter_mut().zip(pattern.iter().cycle());
                bytes.for_each(|(place, byte)| *place = *byte);
            }
        }
        let before = config.probe.map_or(0, |_| Probe::LEN);
        let mut total = 0u32;
        self.payload_sums.push(0);
        for (index, word) in payload.chunks_exact(2).enumerate() {
            if index * 2 >= before {
                // There are at most 2^15 words, so the sum is below 2^31.
                total += u32::from(u16::from_be_bytes([word[0], word[1]]));
            }
            self.payload_sums.push(total);
        }
    }

    fn protocol_number(&self) -> u8 {
        match self.protocol {
            Protocol::Udp => 17,
            Protocol::Tcp => 6,
            Protocol::Icmp if self.v6 => 58,
            Protocol::Icmp => 1,
        }
    }

    /// Whether the transport checksum covers a pseudo-header; ICMPv4's does not.
    fn has_pseudo_header(&self) -> bool {
        self.v6 || self.protocol != Protocol::Icmp
    }

    /// Returns a frame of `len` bytes, which must have room for headers and probe.
    #[inline]
    pub fn frame(&mut self, len: u32, flow: &mut Flow, probe: Option<Probe>) -> &[u8] {
        let len = len as usize;
        let transport_len = (len - self.transport) as u16;
        self.address(len, flow);
        let mut total = self.transport_sum + self.payload_sum(len);
        if let Some(probe) = probe {
            let payload = &mut self.bytes[self.payload..len];
            probe.write(payload);
            total += sum(&payload[..Probe::LEN]);
        }
        if self.has_pseudo_header() {
            total += u64::from(flow.addresses_sum) + u64::from(transport_len);
        }
        let header = &mut self.bytes[self.transport..self.payload];
        let ports = u64::from(flow.source_port) + u64::from(flow.destination_port);
        match self.protocol {
            Protocol::Udp => {
                put16(header, 0, flow.source_port);
                put16(header, 2, flow.destination_port);
                put16(header, 4, transport_len);
                let checksum = !fold(total + ports + u64::from(transport_len));
                // Zero would mean "no checksum" (RFC 768).
                put16(header, 6, if checksum == 0 { 0xffff } else { checksum });
            }
            Protocol::Tcp => {
                put16(header, 0, flow.source_port);
                put16(header, 2, flow.destination_port);
                header[4..8].copy_from_slice(&flow.sequence.to_be_bytes());
                let sequence = u64::from(flow.sequence >> 16) + u64::from(flow.sequence & 0xffff);
                put16(header, 16, !fold(total + ports + sequence));
                flow.sequence = flow.sequence.wrapping_add((len - self.payload) as u32);
            }
            Protocol::Icmp => {
                let sequence = flow.sequence as u16;
                put16(header, 4, flow.source_port);
                put16(header, 6, sequence);
                let changing = u64::from(flow.source_port) + u64::from(sequence);
                put16(header, 2, !fold(total + changing));
                flow.sequence = flow.sequence.wrapping_add(1);
            }
        }
        &self.bytes[..len]
    }

    /// Writes addresses, lengths and the IPv4 checksum.
    #[inline]
    fn address(&mut self, len: usize, flow: &Flow) {
        let header = &mut self.bytes[self.ip..self.transport];
        if self.v6 {
            put16(header, 4, (len - self.transport) as u16);
            header[8..24].copy_from_slice(&flow.source);
            header[24..40].copy_from_slice(&flow.destination);
        } else {
            let total = (len - self.ip) as u16;
            put16(header, 2, total);
            let sum = self.ip_sum + u64::from(total) + u64::from(flow.addresses_sum);
            put16(header, 10, !fold(sum));
            header[12..16].copy_from_slice(&flow.source[..4]);
            header[16..20].copy_from_slice(&flow.destination[..4]);
        }
    }

    /// Returns the one's complement sum of the payload of a frame of `len` bytes, excluding its
    /// probe.
    #[inline]
    fn payload_sum(&self, len: usize) -> u64 {
        let payload = len - self.payload;
        let mut sum = u64::from(self.payload_sums[payload / 2]);
        // Pad an odd last byte, which is never in the probe, because the probe's length is even.
        if payload % 2 == 1 {
            sum += u64::from(self.bytes[len - 1]) << 8;
        }
        sum
    }
}

#[inline]
fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Returns the sum of 16-bit words (RFC 1071) over an even number of bytes.
#[inline]
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    words
        .map(|word| u64::from(u16::from_be_bytes([word[0], word[1]])))
        .sum()
}

/// Folds a one's complement sum below 2^48 to 16 bits.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

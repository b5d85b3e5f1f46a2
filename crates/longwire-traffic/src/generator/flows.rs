//! Flows: the header fields that vary between generated frames.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use longwire_packet::MacAddress;
use longwire_units::random::Stream;

use super::addresses::{AddressRange, PortRange};
use super::error::{FLOWS_MAX, GeneratorError, MACS_MAX, refused};

/// Transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// UDP datagrams.
    #[default]
    Udp,
    /// TCP segments on established connections, with increasing sequence numbers but without
    /// handshake or retransmission.
    Tcp,
    /// ICMP echo requests; the source port is the identifier.
    Icmp,
}

/// Order of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowOrder {
    /// Round robin.
    #[default]
    RoundRobin,
    /// Drawn independently for each frame.
    Random,
}

/// TCP flags: header byte 13 (RFC 9293, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    const NAMES: [&'static str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
}

impl Default for TcpFlags {
    /// PSH and ACK, the flags of data segments.
    fn default() -> TcpFlags {
        TcpFlags(0x18)
    }
}

impl FromStr for TcpFlags {
    type Err = GeneratorError;

    /// Parses `psh,ack`, or `none`.
    fn from_str(text: &str) -> Result<TcpFlags, GeneratorError> {
        let mut flags = 0;
        for word in text.split([',', '+']).filter(|_| text != "none") {
            let word = word.trim().to_ascii_lowercase();
            let found = TcpFlags::NAMES.iter().position(|name| *name == word);
            let found = found.ok_or_else(|| refused(text, "not a list of TCP flags", "psh,ack"))?;
            flags |= 1 << found;
        }
        Ok(TcpFlags(flags))
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = TcpFlags::NAMES.iter().enumerate();
        let set = set.filter(|(bit, _)| self.0 >> bit & 1 == 1);
        match &*set.map(|(_, name)| *name).collect::<Vec<_>>().join(",") {
            "" => f.write_str("none"),
            set => f.write_str(set),
        }
    }
}

/// A VLAN tag (IEEE 802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN ID, 0 to 4095.
    pub id: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
}

impl FromStr for VlanTag {
    type Err = GeneratorError;

    /// Parses `100`, or `100:5` with a priority.
    fn from_str(text: &str) -> Result<VlanTag, GeneratorError> {
        let wrong = "not a VLAN from 0 to 4095 with a priority from 0 to 7";
        let (id, priority) = text.split_once(':').unwrap_or((text, "0"));
        let id = id.parse().ok().filter(|id| *id <= 4_095);
        let priority = priority.parse().ok().filter(|priority| *priority <= 7);
        match (id, priority) {
            (Some(id), Some(priority)) => Ok(VlanTag { id, priority }),
            _ => Err(refused(text, wrong, "100 or 100:5")),
        }
    }
}

/// Header fields of generated frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Number of distinct flows. Source addresses vary fastest, then destination addresses, source
    /// ports and destination ports.
    pub count: u64,
    /// Order of flows.
    pub order: FlowOrder,
    /// Source addresses.
    pub sources: AddressRange,
    /// Destination addresses.
    pub destinations: AddressRange,
    /// Source ports, or ICMP identifiers.
    pub source_ports: PortRange,
    /// Destination ports; unused for ICMP.
    pub destination_ports: PortRange,
    /// First source MAC address.
    pub source_mac: MacAddress,
    /// Number of consecutive source MAC addresses, used in rotation by the frames of all flows: 1
    /// to [`MACS_MAX`].
    pub source_macs: u64,
    /// First destination MAC address.
    pub destination_mac: MacAddress,
    /// Number of consecutive destination MAC addresses.
    pub destination_macs: u64,
    /// VLAN tags, outermost first; all but the innermost are service tags (IEEE 802.1ad).
    pub vlans: Vec<VlanTag>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub ttl: u8,
    /// TCP flags.
    pub tcp_flags: TcpFlags,
}

impl Default for FlowConfig {
    /// One UDP flow between benchmark addresses (198.18.0.0/15, RFC 2544 C.2.2), with locally
    /// administered MAC addresses.
    fn default() -> FlowConfig {
        FlowConfig {
            protocol: Protocol::Udp,
            count: 1,
            order: FlowOrder::RoundRobin,
            sources: AddressRange::one(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1))),
            destinations: AddressRange::one(IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1))),
            source_ports: PortRange::DYNAMIC,
            // The discard port (RFC 863).
            destination_ports: PortRange::one(9),
            source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            source_macs: 1,
            destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            destination_macs: 1,
            vlans: Vec::new(),
            dscp: 0,
            ttl: 64,
            tcp_flags: TcpFlags::default(),
        }
    }
}

impl fmt::Display for FlowConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Udp => "UDP",
            Protocol::Tcp => "TCP",
            Protocol::Icmp => "ICMP",
        };
        let flows = if self.count == 1 { "flow" } else { "flows" };
        let family = family(&self.sources);
        write!(f, "{} {flows} of {protocol} over {family}", self.count)
    }
}

fn family(addresses: &AddressRange) -> &'static str {
    if addresses.is_v6() { "IPv6" } else { "IPv4" }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Addresses; an IPv4 address occupies the first four bytes.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u16,
    pub destination_port: u16,
    /// One's complement sum of both addresses.
    pub addresses_sum: u32,
    /// Sequence number of the next segment or echo request.
    pub sequence: u32,
}

/// Flows in sending order.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    next: usize,
    /// Stream for random order.
    stream: Option<Stream>,
}

impl Flows {
    pub fn new(config: &FlowConfig, stream: Stream) -> Result<Flows, GeneratorError> {
        if config.sources.is_v6() != config.destinations.is_v6() {
            return Err(GeneratorError::Mixed {
                sources: family(&config.sources),
                destinations: family(&config.destinations),
            });
        }
        let count = config.count;
        if count == 0 || count > FLOWS_MAX {
            return Err(GeneratorError::FlowsRange { count });
        }
        for count in [config.source_macs, config.destination_macs] {
            if count == 0 || count > MACS_MAX {
                return Err(GeneratorError::MacsRange { count });
            }
        }
        let mut sizes = [
            config.sources.count(),
            config.destinations.count(),
            config.source_ports.count(),
            config.destination_ports.count(),
        ];
        if config.protocol == Protocol::Icmp {
            sizes[3] = 1;
        }
        let possible = sizes.iter().fold(1, |all: u128, n| all.saturating_mul(*n));
        if possible < u128::from(count) {
            return Err(GeneratorError::TooManyFlows { count, possible });
        }
        let flows = (0..count).map(|number| flow(config, &sizes, number));
        Ok(Flows {
            flows: flows.collect(),
            next: 0,
            stream: (config.order == FlowOrder::Random && count > 1).then_some(stream),
        })
    }

    /// Returns the next frame's flow.
    #[inline]
    pub fn next(&mut self) -> &mut Flow {
        let index = match &mut self.stream {
            Some(stream) => stream.up_to(self.flows.len() as u64 - 1) as usize,
            None => {
                let index = self.next;
                self.next += 1;
                if self.next == self.flows.len() {
                    self.next = 0;
                }
                index
            }
        };
        &mut self.flows[index]
    }
}

/// Returns flow `number`; its mixed-radix digits select addresses and ports.
fn flow(config: &FlowConfig, sizes: &[u128; 4], number: u64) -> Flow {
    let mut rest = u128::from(number);
    let digits = sizes.map(|size| {
        let digit = rest % size;
        rest /= size;
        digit
    });
    let source = octets(config.sources.address(digits[0]));
    let destination = octets(config.destinations.address(digits[1]));
    let sum = |address: [u8; 16]| -> u32 {
        let words = address.chunks_exact(2);
        words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum()
    };
    Flow {
        source,
        destination,
        source_port: config.source_ports.port(digits[2]),
        destination_port: config.destination_ports.port(digits[3]),
        addresses_sum: sum(source) + sum(destination),
        sequence: 0,
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => octets = address.octets(),
    }
    octets
}

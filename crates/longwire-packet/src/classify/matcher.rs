//! Rule conditions.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr};

use super::grammar::MatcherError;
use super::key::FrameFields;
use crate::bridge::PortIndex;
use crate::bytes::{left_aligned, ones};
use crate::filter::Filter;

/// An IPv4 or IPv6 prefix; host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Creates a prefix. `None` if `bits` is too large or a host bit is set.
    pub fn new(address: IpAddr, bits: u8) -> Option<Prefix> {
        let widest = Prefix::host(address).bits;
        let fits = bits <= widest && left_aligned(address) & !ones(bits) == 0;
        fits.then_some(Prefix { address, bits })
    }

    /// Creates a host prefix.
    pub fn host(address: IpAddr) -> Prefix {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Prefix { address, bits }
    }

    /// Returns the first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length: up to 32 for IPv4, 128 for IPv6.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether the prefix is a single address.
    pub fn is_host(&self) -> bool {
        *self == Prefix::host(self.address)
    }
}

/// An inclusive port range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    low: u16,
    high: u16,
}

impl PortRange {
    /// All ports.
    pub const ALL: PortRange = PortRange::of(0, u16::MAX);

    const fn of(low: u16, high: u16) -> PortRange {
        PortRange { low, high }
    }

    /// Creates a range; `None` if `low` exceeds `high`.
    pub fn new(low: u16, high: u16) -> Option<PortRange> {
        (low <= high).then_some(PortRange { low, high })
    }

    /// Creates a single-port range.
    pub fn one(port: u16) -> PortRange {
        PortRange::of(port, port)
    }

    /// Returns the first port.
    pub fn low(&self) -> u16 {
        self.low
    }

    /// Returns the last port.
    pub fn high(&self) -> u16 {
        self.high
    }

    /// Returns the port if the range has only one.
    pub(super) fn single(&self) -> Option<u16> {
        (self.low == self.high).then_some(self.low)
    }

    pub(super) fn holds(&self, port: u16) -> bool {
        (self.low..=self.high).contains(&port)
    }

    pub(super) fn covers(&self, other: &PortRange) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    pub(super) fn meets(&self, other: &PortRange) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// A condition on the outermost VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanMatch {
    /// Untagged, or with a truncated tag.
    Untagged,
    /// VLAN ID: 0 (priority-tagged) to 4094.
    Id(u16),
}

/// A filter with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFilter {
    text: String,
    filter: Filter,
}

impl WrittenFilter {
    /// Parses a filter.
    ///
    /// # Errors
    /// The parse error with its column.
    pub fn parse(text: &str) -> Result<WrittenFilter, crate::filter::FilterError> {
        Ok(WrittenFilter {
            text: text.into(),
            filter: Filter::parse(text)?,
        })
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Conditions on a frame. A field that is `None` may have any value; all other fields must match.
///
/// In text, fields are `key=value` pairs separated by commas, each key at most once and in any
/// order; `any` is the matcher without conditions:
/// `src=10.0.0.0/8,dst=10.1.2.3,proto=udp,dport=5000-5010,dscp=ef,vlan=7`.
///
/// | key | value | compared with |
/// |---|---|---|
/// | `src`, `dst` | address or prefix, IPv4 or IPv6 | addresses in the IP header (for ARP, use `filter=`) |
/// | `sport`, `dport` | port 0–65535, or a range | ports of TCP, UDP, DCCP, SCTP, UDP-Lite |
/// | `proto` | number 0–255, or a name such as `udp` | the transport protocol, after IPv6 extension headers |
/// | `dscp` | 0–63, or `ef`, `cs0`–`cs7`, `af11`–`af43` | the code point (RFC 2474) |
/// | `vlan` | 0–4094, or `none` | the outermost VLAN tag |
/// | `vlan-priority` | 0–7 | the priority in that tag |
/// | `inner-vlan` | 0–4094 | the second tag (QinQ) |
/// | `src-mac`, `dst-mac` | Ethernet address | addresses in the Ethernet header |
/// | `ethertype` | number, or a name such as `arp` | the type after all VLAN tags |
/// | `in-port` | port number, from 0 | the ingress port |
/// | `filter` | a [`Filter`], up to the end of the text | the whole frame, as with `--filter` |
///
/// A frame that lacks one of the matcher's fields does not match. Later fragments (unless
/// [`DatagramPorts`](super::DatagramPorts) provides the first one's ports), frames truncated before
/// the transport header and packets with more than eight extension headers have no ports; packets
/// without IP have no addresses. IPv6 packets truncated within their extension headers also have no
/// protocol. For frames shorter than 14 bytes, only the ingress port is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// Source address.
    pub source: Option<Prefix>,
    /// Destination address.
    pub destination: Option<Prefix>,
    /// Source port.
    pub source_ports: Option<PortRange>,
    /// Destination port.
    pub destination_ports: Option<PortRange>,
    /// Transport protocol number.
    pub protocol: Option<u8>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// The outermost VLAN tag.
    pub vlan: Option<VlanMatch>,
    /// The priority in the outermost VLAN tag, 0 to 7.
    pub vlan_priority: Option<u8>,
    /// VLAN ID in the second tag, 0 to 4094.
    pub inner_vlan: Option<u16>,
    /// Source Ethernet address.
    pub source_mac: Option<[u8; 6]>,
    /// Destination Ethernet address.
    pub destination_mac: Option<[u8; 6]>,
    /// The type after all VLAN tags.
    pub ethertype: Option<u16>,
    /// Ingress port.
    pub arrival_port: Option<PortIndex>,
    /// A further condition. Checked last: it is expensive and cannot be looked up in a table.
    pub filter: Option<Box<WrittenFilter>>,
}

impl Matcher {
    /// Checks that some frame can match and that all numbers are in range. The filter is not
    /// analysed.
    ///
    /// # Errors
    /// The field that is out of range or contradicts another.
    pub fn check(&self) -> Result<(), MatcherError> {
        super::grammar::check(self)
    }

    /// Whether there are no conditions except on the ingress port.
    pub(super) fn is_rest(&self) -> bool {
        let rest = Matcher {
            arrival_port: self.arrival_port,
            ..Matcher::default()
        };
        *self == rest
    }

    /// Whether there are conditions that table lookups do not check.
    pub(super) fn has_rest(&self) -> bool {
        let ranges = [self.source_ports, self.destination_ports];
        let is_range = |range: &PortRange| range.single().is_none();
        self.filter.is_some() || ranges.iter().flatten().any(is_range)
    }

    /// Whether a frame that satisfies the conditions checked by table lookups also satisfies the
    /// remaining ones.
    pub(super) fn rest_matches(&self, key: &FrameFields, frame: &[u8], wire_len: u32) -> bool {
        let (source, destination) = key.ports();
        let within = |range: Option<PortRange>, port| range.is_none_or(|range| range.holds(port));
        let filter = self.filter.as_ref();
        within(self.source_ports, source)
            && within(self.destination_ports, destination)
            && filter.is_none_or(|written| written.filter.matches(frame, wire_len))
    }

    /// Whether this matcher covers the remaining conditions of `other`, given that it covers the
    /// key. A filter covers only an identical one.
    pub(super) fn rest_covers(&self, other: &Matcher) -> bool {
        let covers = |mine: Option<PortRange>, theirs: Option<PortRange>| match (mine, theirs) {
            (None, _) => true,
            (Some(mine), Some(theirs)) => mine.covers(&theirs),
            // The key already records whether ports are present.
            (Some(mine), None) => mine == PortRange::ALL,
        };
        covers(self.source_ports, other.source_ports)
            && covers(self.destination_ports, other.destination_ports)
            && (self.filter.is_none() || self.filter == other.filter)
    }

    /// Whether the port ranges of both matchers intersect.
    pub(super) fn ranges_meet(&self, other: &Matcher) -> bool {
        let meet = |mine: Option<PortRange>, theirs: Option<PortRange>| {
            mine.zip(theirs)
                .is_none_or(|(mine, theirs)| mine.meets(&theirs))
        };
        meet(self.source_ports, other.source_ports)
            && meet(self.destination_ports, other.destination_ports)
    }

    /// Returns the specificity ([`Order::MostSpecific`](super::Order)), at most 60 bits.
    pub(super) fn specificity(&self) -> u64 {
        let address =
            |prefix: Option<Prefix>| prefix.map_or(0, |prefix| 1 + u64::from(prefix.bits));
        let ports = |range: Option<PortRange>| {
            range.map_or(0, |range| 1 + 65_535 - u64::from(range.high - range.low))
        };
        let fields = [
            (8, address(self.destination)),
            (8, address(self.source)),
            (17, ports(self.destination_ports)),
            (17, ports(self.source_ports)),
            (1, self.protocol.is_some().into()),
            (1, self.dscp.is_some().into()),
            (1, self.vlan.is_some().into()),
            (1, self.inner_vlan.is_some().into()),
            (1, self.vlan_priority.is_some().into()),
            (1, self.destination_mac.is_some().into()),
            (1, self.source_mac.is_some().into()),
            (1, self.ethertype.is_some().into()),
            (1, self.arrival_port.is_some().into()),
            (1, self.filter.is_some().into()),
        ];
        let join = |sum, (bits, value): (u32, u64)| sum << bits | value;
        fields.into_iter().fold(0, join)
    }
}

/// A matcher in 16 bytes if it has only IPv4 addresses, as in large networks.
#[derive(Clone, Debug)]
pub(super) enum StoredMatcher {
    /// Source and destination.
    Addresses([Option<Ipv4Prefix>; 2]),
    Other(Box<Matcher>),
}

const _: () = assert!(size_of::<Option<StoredMatcher>>() == 16);

#[derive(Clone, Copy, Debug)]
pub(super) struct Ipv4Prefix {
    address: [u8; 4],
    bits: u8,
}

impl Ipv4Prefix {
    fn of(prefix: Prefix) -> Option<Ipv4Prefix> {
        match prefix.address {
            IpAddr::V4(address) => Some(Ipv4Prefix {
                address: address.octets(),
                bits: prefix.bits,
            }),
            IpAddr::V6(_) => None,
        }
    }

    fn prefix(self) -> Prefix {
        Prefix {
            address: Ipv4Addr::from(self.address).into(),
            bits: self.bits,
        }
    }
}

impl StoredMatcher {
    pub fn new(matcher: Matcher) -> StoredMatcher {
        let prefixes = [matcher.source, matcher.destination];
        let stored = StoredMatcher::Addresses(prefixes.map(|prefix| Ipv4Prefix::of(prefix?)));
        if *stored.matcher() == matcher {
            stored
        } else {
            StoredMatcher::Other(Box::new(matcher))
        }
    }

    /// Returns the matcher.
    pub fn matcher(&self) -> Cow<'_, Matcher> {
        match self {
            StoredMatcher::Addresses(prefixes) => {
                let [source, destination] = prefixes.map(|prefix| Some(prefix?.prefix()));
                Cow::Owned(Matcher {
                    source,
                    destination,
                    ..Matcher::default()
                })
            }
            StoredMatcher::Other(matcher) => Cow::Borrowed(matcher),
        }
    }

    pub fn into_matcher(self) -> Matcher {
        match self {
            StoredMatcher::Addresses(_) => self.matcher().into_owned(),
            StoredMatcher::Other(matcher) => *matcher,
        }
    }

    /// See [`Matcher::has_rest`].
    pub fn has_rest(&self) -> bool {
        match self {
            StoredMatcher::Addresses(_) => false,
            StoredMatcher::Other(matcher) => matcher.has_rest(),
        }
    }

    /// See [`Matcher::rest_matches`].
    #[inline]
    pub fn rest_matches(&self, key: &FrameFields, frame: &[u8], wire_len: u32) -> bool {
        match self {
            StoredMatcher::Addresses(_) => true,
            StoredMatcher::Other(matcher) => matcher.rest_matches(key, frame, wire_len),
        }
    }
}

//! Parses and prints matchers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::net::IpAddr;
use core::str::FromStr;

use super::key::Cube;
use super::matcher::{Matcher, PortRange, Prefix, VlanMatch, WrittenFilter};
use crate::bridge::PortIndex;
use crate::bytes::{left_aligned, ones};
use crate::filter::values as names;
use crate::filter::values::{code_point, mac, number};
use crate::frame::VLAN_TYPES;
use crate::mac::MacAddress;

/// Error in a matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct MatcherError {
    /// The field as specified.
    pub field: String,
    /// Reason, with the valid values.
    pub message: String,
}

fn wrong(field: &str, message: impl Into<String>) -> MatcherError {
    MatcherError {
        field: field.into(),
        message: message.into(),
    }
}

/// Text of a matcher without conditions.
const ANY: &str = "any";

/// Matcher fields in output order.
pub const KEYS: [&str; 14] = [
    "src",
    "dst",
    "sport",
    "dport",
    "proto",
    "dscp",
    "vlan",
    "vlan-priority",
    "inner-vlan",
    "src-mac",
    "dst-mac",
    "ethertype",
    "in-port",
    "filter",
];

/// Maximum VLAN ID; 4095 is reserved (IEEE 802.1Q, table 9-2).
const VLAN_MAX: u16 = 4094;

const DSCP_MAX: u16 = 63;
const PRIORITY_MAX: u16 = 7;

impl FromStr for Matcher {
    type Err = MatcherError;

    fn from_str(text: &str) -> Result<Matcher, MatcherError> {
        let mut matcher = Matcher::default();
        let mut rest = text.trim();
        if rest == ANY {
            return Ok(matcher);
        }
        let mut seen = [false; KEYS.len()];
        loop {
            let (part, after) = next_part(rest);
            let Some((key, value)) = part.split_once('=') else {
                let message = format!(
                    "is not key=value; write comma-separated fields such as src=10.0.0.0/8, or \
                     '{ANY}' alone"
                );
                let part = part.trim();
                let name = if part.is_empty() { "empty field" } else { part };
                return Err(wrong(name, message));
            };
            let (key, value) = (key.trim(), value.trim());
            let Some(index) = KEYS.iter().position(|known| *known == key) else {
                let known = KEYS.join(", ");
                return Err(wrong(key, format!("unknown field; the fields are {known}")));
            };
            if core::mem::replace(&mut seen[index], true) {
                return Err(wrong(key, "given twice"));
            }
            set(&mut matcher, KEYS[index], value)?;
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
        check(&matcher)?;
        Ok(matcher)
    }
}

/// Splits off the first field. A filter extends to the end of the text, because it may contain
/// commas.
fn next_part(text: &str) -> (&str, Option<&str>) {
    let filter = text.trim_start().strip_prefix("filter");
    match text.split_once(',') {
        Some((part, rest)) if filter.is_none_or(|text| !text.trim_start().starts_with('=')) => {
            (part, Some(rest))
        }
        _ => (text, None),
    }
}

fn set(matcher: &mut Matcher, key: &str, value: &str) -> Result<(), MatcherError> {
    match key {
        "src" => matcher.source = Some(prefix(key, value)?),
        "dst" => matcher.destination = Some(prefix(key, value)?),
        "sport" => matcher.source_ports = Some(port_range(key, value)?),
        "dport" => matcher.destination_ports = Some(port_range(key, value)?),
        "proto" => {
            let what = "a protocol: a number, 0 to 255, or a name such as udp";
            let parse = |value: &str| number(value).or_else(|| names::protocol(value));
            matcher.protocol = Some(read(key, value, what, parse)?);
        }
        "dscp" => {
            let what = "a code point: 0 to 63, ef, cs0 to cs7, or af11 to af43";
            let parse = |value: &str| number(value).or_else(|| code_point(value));
            matcher.dscp = Some(read(key, value, what, parse)?);
        }
        "vlan" if value == "none" => matcher.vlan = Some(VlanMatch::Untagged),
        "vlan" => {
            let id = read(key, value, "a VLAN, 0 to 4094, or none", number)?;
            matcher.vlan = Some(VlanMatch::Id(id));
        }
        "vlan-priority" => {
            matcher.vlan_priority = Some(read(key, value, "a priority, 0 to 7", number)?);
        }
        "inner-vlan" => matcher.inner_vlan = Some(read(key, value, "a VLAN, 0 to 4094", number)?),
        "src-mac" => matcher.source_mac = Some(read(key, value, ETHERNET, mac)?),
        "dst-mac" => matcher.destination_mac = Some(read(key, value, ETHERNET, mac)?),
        "ethertype" => {
            let what = "an EtherType: a number such as 0x88cc, or a name such as arp";
            let parse = |value: &str| number(value).or_else(|| names::ethertype(value));
            matcher.ethertype = Some(read(key, value, what, parse)?);
        }
        "in-port" => {
            let port = read(key, value, "a port's number, from 0", number)?;
            matcher.arrival_port = Some(PortIndex(port));
        }
        _ => {
            let filter = WrittenFilter::parse(value)
                .map_err(|error| wrong(key, format!("{error} (column within the filter)")))?;
            matcher.filter = Some(Box::new(filter));
        }
    }
    Ok(())
}

const ETHERNET: &str = "an Ethernet address such as 02:00:00:00:00:01";

/// Parses a value; `what` describes the valid values in errors.
fn read<T>(
    field: &str,
    value: &str,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, MatcherError> {
    parse(value).ok_or_else(|| not(field, value, what))
}

fn not(field: &str, value: &str, what: &str) -> MatcherError {
    wrong(field, format!("'{value}' is not {what}"))
}

fn prefix(field: &str, text: &str) -> Result<Prefix, MatcherError> {
    let what = "an address or a prefix, such as 10.1.2.3, 10.0.0.0/8 or 2001:db8::/32";
    let no_prefix = || not(field, text, what);
    let (address, bits) = text.split_once('/').unzip();
    let address = IpAddr::from_str(address.unwrap_or(text)).map_err(|_| no_prefix())?;
    let Some(bits) = bits else {
        return Ok(Prefix::host(address));
    };
    let bits: u8 = number(bits).ok_or_else(no_prefix)?;
    if bits > Prefix::host(address).bits() {
        return Err(no_prefix());
    }
    Prefix::new(address, bits).ok_or_else(|| {
        let network = left_aligned(address) & ones(bits);
        let network = match address {
            IpAddr::V4(_) => IpAddr::from(((network >> 96) as u32).to_be_bytes()),
            IpAddr::V6(_) => IpAddr::from(network.to_be_bytes()),
        };
        let message = format!(
            "'{text}' has host bits set; write {network}/{bits} for the network, or {address} for \
             the address"
        );
        wrong(field, message)
    })
}

fn port_range(field: &str, text: &str) -> Result<PortRange, MatcherError> {
    let what = "a port, 0 to 65535, or a range from low to high such as 5000-5010";
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let range = number(low).zip(number(high));
    range
        .and_then(|(low, high)| PortRange::new(low, high))
        .ok_or_else(|| not(field, text, what))
}

/// See [`Matcher::check`].
pub(super) fn check(matcher: &Matcher) -> Result<(), MatcherError> {
    let vlan = match matcher.vlan {
        Some(VlanMatch::Id(id)) => Some(id),
        _ => None,
    };
    for (field, value, max) in [
        ("dscp", matcher.dscp.map(u16::from), DSCP_MAX),
        ("vlan", vlan, VLAN_MAX),
        (
            "vlan-priority",
            matcher.vlan_priority.map(u16::from),
            PRIORITY_MAX,
        ),
        ("inner-vlan", matcher.inner_vlan, VLAN_MAX),
    ] {
        if let Some(value) = value.filter(|value| *value > max) {
            let message = format!("{value} is too large; the maximum is {max}");
            return Err(wrong(field, message));
        }
    }
    if let Some(ethertype) = matcher.ethertype.filter(|found| VLAN_TYPES.contains(found)) {
        let message = format!(
            "{ethertype:#06x} is the type of a VLAN tag; ethertype is the type after all tags; \
             write vlan= to match a tag"
        );
        return Err(wrong("ethertype", message));
    }
    if !closes(matcher) {
        return Err(contradiction(matcher));
    }
    Ok(())
}

fn closes(matcher: &Matcher) -> bool {
    Cube::of(matcher).closed().is_some()
}

/// Reports the contradictory fields: those without which the matcher would be satisfiable.
fn contradiction(matcher: &Matcher) -> MatcherError {
    let without = |key: &str| {
        let mut other = matcher.clone();
        match key {
            "src" => other.source = None,
            "dst" => other.destination = None,
            "sport" => other.source_ports = None,
            "dport" => other.destination_ports = None,
            "proto" => other.protocol = None,
            "dscp" => other.dscp = None,
            "vlan" => other.vlan = None,
            "vlan-priority" => other.vlan_priority = None,
            "inner-vlan" => other.inner_vlan = None,
            "ethertype" => other.ethertype = None,
            _ => {}
        }
        other
    };
    let guilty = KEYS.into_iter().filter(|key| closes(&without(key)));
    let mut fields = guilty.collect::<Vec<_>>().join(", ");
    if fields.is_empty() {
        fields = "the matcher".into();
    }
    let message = "no frame can match: the addresses must have the same IP version, types and \
                   protocols must agree, and only tagged frames have a VLAN; remove a field";
    wrong(&fields, message)
}

impl Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = Fields { f, any: false };
        fields.write("src", self.source)?;
        fields.write("dst", self.destination)?;
        fields.write("sport", self.source_ports)?;
        fields.write("dport", self.destination_ports)?;
        match self.protocol.and_then(names::protocol_name) {
            Some(name) => fields.write("proto", Some(name))?,
            None => fields.write("proto", self.protocol)?,
        }

        fields.write("dscp", self.dscp)?;
        match self.vlan {
            Some(VlanMatch::Untagged) => fields.write("vlan", Some("none"))?,
            Some(VlanMatch::Id(id)) => fields.write("vlan", Some(id))?,
            None => {}
        }
        fields.write("vlan-priority", self.vlan_priority)?;
        fields.write("inner-vlan", self.inner_vlan)?;
        fields.write("src-mac", self.source_mac.map(MacAddress))?;
        fields.write("dst-mac", self.destination_mac.map(MacAddress))?;
        match self.ethertype.and_then(names::ethertype_name) {
            Some(name) => fields.write("ethertype", Some(name))?,
            None => {
                let number = self.ethertype.map(|kind| format!("{kind:#06x}"));
                fields.write("ethertype", number)?;
            }
        }
        fields.write("in-port", self.arrival_port)?;
        fields.write("filter", self.filter.as_ref().map(|filter| filter.text()))?;
        if fields.any { Ok(()) } else { f.write_str(ANY) }
    }
}

/// Writes comma-separated `key=value` pairs.
struct Fields<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    any: bool,
}

impl Fields<'_, '_> {
    fn write(&mut self, key: &str, value: Option<impl Display>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let comma = if self.any { "," } else { "" };
        self.any = true;
        write!(self.f, "{comma}{key}={value}")
    }
}

impl Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_host() {
            write!(f, "{}", self.address())
        } else {
            write!(f, "{}/{}", self.address(), self.bits())
        }
    }
}

impl Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(port) => write!(f, "{port}"),
            None => write!(f, "{}-{}", self.low(), self.high()),
        }
    }
}

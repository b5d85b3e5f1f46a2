//! Alteration options and their syntax.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::unaltered::UnalteredAction;
use super::value::{AlterError, one_mac};
use super::vlan::VlanChange;
use crate::filter::values::{Net, code_point, hexadecimal, number};
use crate::split::Splitter;

/// Alteration options. By default, truncated frames are restored and nothing else changes.
#[derive(Clone, Debug, Default)]
pub struct AlterOptions {
    /// Handling of truncated frames.
    pub truncated: Truncated,
    /// Whether frames end with an FCS, which is removed.
    pub strip_fcs: bool,
    /// Whether to repair all checksums, including those of whole frames.
    pub fix_checksums: bool,
    /// Source MAC address for all frames.
    pub source_mac: Option<SidedMac>,
    /// Destination MAC address for all frames.
    pub destination_mac: Option<SidedMac>,
    /// MAC addresses to replace everywhere.
    pub mac_maps: Vec<MacMap>,
    /// VLAN tag changes, applied in order.
    pub vlan: Vec<VlanChange>,
    /// Networks to replace.
    pub address_maps: Vec<AddressMap>,
    /// Anonymisation of IP addresses.
    pub anonymize: Option<Anonymize>,
    /// Ports to replace.
    pub port_maps: Vec<PortMap>,
    /// DSCP for all packets, 0 to 63.
    pub dscp: Option<u8>,
    /// TTL or hop limit change.
    pub ttl: Option<TtlChange>,
    /// Maximum payload in bytes after the Ethernet header.
    pub mtu: Option<u32>,
    /// Handling of longer frames.
    pub mtu_action: MtuAction,
    /// Address shifts per round.
    pub loop_addresses: Vec<LoopAddresses>,
    /// Whether TCP and RTP sequence numbers continue across rounds.
    pub loop_renumber: bool,
    /// Whether Ethernet and IP group addresses are preserved.
    pub keep_groups: bool,
    /// Whether packets inside tunnels are altered too.
    pub inner: bool,
    /// Handling of frames whose packets cannot be altered. By default, they are sent, or dropped if
    /// addresses are anonymised.
    pub unaltered: Option<UnalteredAction>,
    /// Seed for random payload.
    pub seed: u64,
    /// Identifies the side that sent a frame, for options with a value per side.
    pub splitter: Option<Splitter>,
}

impl AlterOptions {
    pub(super) fn on_unaltered(&self) -> UnalteredAction {
        let usual = if self.anonymize.is_some() {
            UnalteredAction::Drop
        } else {
            UnalteredAction::Send
        };
        self.unaltered.unwrap_or(usual)
    }
}

/// Handling of truncated frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Truncated {
    /// Fill with zeros.
    #[default]
    Zeros,
    /// Fill with random bytes, determined by seed and frame number.
    Random,
    /// Fill with a repeated pattern.
    Pattern(Vec<u8>),
    /// Send truncated.
    Keep,
    /// Drop.
    Skip,
}

impl FromStr for Truncated {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<Truncated, AlterError> {
        const WHAT: &str = "one of zeros, random, pattern:HEX, keep, skip";
        match text {
            "zeros" => Ok(Truncated::Zeros),
            "random" => Ok(Truncated::Random),
            "keep" => Ok(Truncated::Keep),
            "skip" => Ok(Truncated::Skip),
            _ => {
                let digits = text.strip_prefix("pattern:");
                let digits = digits.ok_or_else(|| AlterError::not(text, WHAT))?;
                let bytes = hexadecimal(digits).map(Truncated::Pattern);
                bytes.ok_or_else(|| AlterError::not(digits, "bytes in hexadecimal such as c0ffee"))
            }
        }
    }
}

/// An Ethernet address for all frames, or one per side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidedMac {
    /// Addresses for frames from the client and from the server.
    pub(super) sides: [[u8; 6]; 2],
    /// Whether the two differ.
    pub(super) is_sided: bool,
}

impl SidedMac {
    /// Whether the two addresses differ.
    pub fn is_sided(&self) -> bool {
        self.is_sided
    }
}

impl FromStr for SidedMac {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<SidedMac, AlterError> {
        let (first, second) = text.split_once(',').unwrap_or((text, text));
        Ok(SidedMac {
            sides: [one_mac(first)?, one_mac(second)?],
            is_sided: text.contains(','),
        })
    }
}

/// A replacement of an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacMap {
    pub(super) from: [u8; 6],
    pub(super) to: [u8; 6],
}

impl FromStr for MacMap {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<MacMap, AlterError> {
        let (from, to) = pair(text, "OLD=NEW, two Ethernet addresses")?;
        Ok(MacMap {
            from: one_mac(from)?,
            to: one_mac(to)?,
        })
    }
}

fn pair<'a>(text: &'a str, what: &str) -> Result<(&'a str, &'a str), AlterError> {
    text.split_once('=')
        .ok_or_else(|| AlterError::not(text, what))
}

/// The role of an address in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Destination,
}

/// Replacement of a network prefix; the remaining bits are preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// If set, applies only to source or destination addresses.
    pub(super) role: Option<Role>,
    pub(super) from: Net,
    pub(super) to: Net,
}

impl FromStr for AddressMap {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<AddressMap, AlterError> {
        let (role, nets) = match (text.strip_prefix("src:"), text.strip_prefix("dst:")) {
            (Some(nets), _) => (Some(Role::Source), nets),
            (_, Some(nets)) => (Some(Role::Destination), nets),
            _ => (None, text),
        };
        let (from, to) = pair(
            nets,
            "OLD=NEW, two networks, such as 10.0.0.0/8=192.168.0.0/16",
        )?;
        let (from, to) = (one_net(from)?, one_net(to)?);
        if from.version != to.version {
            return Err(AlterError::new(format!(
                "'{nets}' mixes IPv4 and IPv6; use one IP version"
            )));
        }
        Ok(AddressMap { role, from, to })
    }
}

fn one_net(text: &str) -> Result<Net, AlterError> {
    let what = "a network or address such as 10.0.0.0/8 or 2001:db8::1";
    Net::host_or_prefix(text).ok_or_else(|| AlterError::not(text, what))
}

/// Crypto-PAn key and scope.
#[derive(Clone, PartialEq, Eq)]
pub struct Anonymize {
    pub(super) key: [u8; 32],
    /// Whether to anonymise all addresses, as the published algorithm does.
    pub(super) plain: bool,
}

impl fmt::Debug for Anonymize {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anonymize")
            .field("plain", &self.plain)
            .finish_non_exhaustive()
    }
}

impl FromStr for Anonymize {
    type Err = AlterError;

    /// Errors must not contain the key.
    fn from_str(text: &str) -> Result<Anonymize, AlterError> {
        let plain = text.strip_suffix(",plain");
        let key = hexadecimal(plain.unwrap_or(text)).and_then(|bytes| bytes.try_into().ok());
        let key = key.ok_or_else(|| {
            AlterError::new(format!(
                "the key ({} characters) is not 64 hexadecimal digits, optionally followed by \
',plain'",
                text.len()
            ))
        })?;
        let plain = plain.is_some();
        Ok(Anonymize { key, plain })
    }
}

/// A replacement of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMap {
    /// If set, applies only to TCP, UDP or SCTP.
    pub(super) protocol: Option<u8>,
    pub(super) from: (u16, u16),
    pub(super) to: (u16, u16),
}

impl FromStr for PortMap {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<PortMap, AlterError> {
        const PROTOCOLS: [(&str, u8); 3] = [("tcp:", 6), ("udp:", 17), ("sctp:", 132)];
        let named = PROTOCOLS
            .iter()
            .find_map(|(name, number)| Some((text.strip_prefix(name)?, *number)));
        let (ports, protocol) = named.map_or((text, None), |(ports, number)| (ports, Some(number)));
        let (from, to) = pair(ports, "OLD=NEW, two ports or ranges of ports")?;
        let (from, to) = (port_range(from)?, port_range(to)?);
        if to.0 != to.1 && to.1 - to.0 != from.1 - from.0 {
            let message = format!("'{ports}': give one new port, or as many as old ones");
            return Err(AlterError::new(message));
        }
        Ok(PortMap { protocol, from, to })
    }
}

fn port_range(text: &str) -> Result<(u16, u16), AlterError> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let range = number(low)
        .zip(number(high))
        .filter(|(low, high)| low <= high);
    range.ok_or_else(|| AlterError::not(text, "a port or a range of ports such as 5000-5010"))
}

/// A change to the TTL or hop limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlChange {
    /// Set to this value, 1 to 255.
    Set(u8),
    /// Increase by this value, up to 255.
    Raise(u8),
    /// Decrease by this value, down to 1.
    Lower(u8),
}

impl FromStr for TtlChange {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<TtlChange, AlterError> {
        let change = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(by), _) => number(by).map(TtlChange::Raise),
            (_, Some(by)) => number(by).map(TtlChange::Lower),
            _ => number(text).filter(|ttl| *ttl > 0).map(TtlChange::Set),
        };
        change.ok_or_else(|| AlterError::not(text, "1 to 255, or a change such as -1 or +1"))
    }
}

/// Parses a code point: 0 to 63, or a name such as `ef`.
///
/// # Errors
/// For any other text.
pub fn parse_dscp(text: &str) -> Result<u8, AlterError> {
    let value = number(text)
        .or_else(|| code_point(text))
        .filter(|value| *value < 64);
    value.ok_or_else(|| AlterError::not(text, "a code point: 0 to 63, ef, cs1 or af11"))
}

/// Handling of frames that are too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuAction {
    /// Segment TCP super-packets and TCP packets that must not be fragmented, fragment IPv4 packets
    /// that allow it, and drop other frames.
    #[default]
    Fragment,
    /// Truncate, repairing lengths and checksums.
    Truncate,
    /// Drop.
    Drop,
}

impl FromStr for MtuAction {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<MtuAction, AlterError> {
        match text {
            "fragment" => Ok(MtuAction::Fragment),
            "truncate" => Ok(MtuAction::Truncate),
            "drop" => Ok(MtuAction::Drop),
            _ => Err(AlterError::not(text, "one of fragment, truncate, drop")),
        }
    }
}

/// An address shift per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopAddresses {
    pub(super) step: u32,
    /// If set, shifts only addresses in this network.
    pub(super) within: Option<Net>,
}

impl FromStr for LoopAddresses {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<LoopAddresses, AlterError> {
        let (step, within) = match text.split_once(',') {
            Some((step, net)) => (step, Some(one_net(net)?)),
            None => (text, None),
        };
        let what = "a number of addresses, 1 to 4294967295, optionally followed by ',NETWORK'";
        let step = number(step).filter(|step: &u32| *step > 0);
        let step = step.ok_or_else(|| AlterError::not(text, what))?;
        Ok(LoopAddresses { step, within })
    }
}

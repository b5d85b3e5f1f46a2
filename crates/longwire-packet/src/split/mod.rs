//! Splits a trace into frames from clients and frames from servers, for replay from two ports.

use alloc::vec::Vec;
use core::str::FromStr;

use longwire_units::random::absorb;

use crate::alter::value::{AlterError, one_mac};
use crate::bytes::array;
use crate::filter::values::Net;
use crate::flow::{Ends, FlowTable, ports};
use crate::frame::mac_header_len;
use crate::header::protocol::TCP;
use crate::header::{IpHeader, IpVersion, Piece, Transport};
use crate::mac::MacAddress;

/// Side of frames sent by clients.
pub const CLIENT: usize = 0;

/// Side of frames sent by servers.
pub const SERVER: usize = 1;

/// Determines the side that sent a frame.
///
/// A frame whose side is unknown, such as one without IP, takes the side of the last frame from the
/// same MAC address, or else the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splitter {
    rule: Rule,
    /// For a conversation, whether the endpoint with the lower hash is the client. For a MAC
    /// address, whether it belongs to a client.
    known: FlowTable<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// By networks of clients.
    Networks(Vec<Net>),
    /// By MAC addresses of clients.
    Macs(Vec<[u8; 6]>),
    /// The client sends the first SYN or, without TCP, the first packet.
    Syn,
    /// The server has the lower port; `Syn` breaks ties.
    Port,
}

const WHAT: &str = "one of client=NETWORK,..., mac=ADDRESS,..., syn, port";

impl Splitter {
    /// Returns the sender's side: 0 for clients, 1 for servers.
    pub fn side(&mut self, bytes: &[u8]) -> usize {
        let from_client = match &self.rule {
            Rule::Macs(clients) => {
                let source = array(bytes, 6);
                return side_of(source.is_some_and(|source| clients.contains(&source)));
            }
            Rule::Networks(clients) => from_networks(bytes, clients),
            Rule::Syn => self.first_sender(bytes),
            Rule::Port => match self.lower_port(bytes) {
                None => self.first_sender(bytes),
                told => told,
            },
        };
        side_of(self.as_neighbour(bytes, from_client))
    }

    /// Falls back to the side of the last frame from the same MAC address.
    fn as_neighbour(&mut self, bytes: &[u8], told: Option<bool>) -> bool {
        let Some(source) = array(bytes, 6).map(MacAddress) else {
            return told.unwrap_or(true);
        };
        let key = absorb(1, source.to_u64());
        match told {
            Some(from_client) => {
                self.known.put(key, from_client);
                from_client
            }
            None => self.known.get(key).unwrap_or(true),
        }
    }

    /// Whether the sender is the client, which sent the first SYN or the first packet.
    fn first_sender(&mut self, bytes: &[u8]) -> Option<bool> {
        let ip = IpHeader::parse(bytes)?;
        let transport = ip.transport(bytes)?;
        if transport.piece == Piece::Later {
            let (key, from_low) = Ends::of_datagram(bytes, &ip, &transport)?.conversation();
            let client_is_low = self.known.get(key)?;
            return Some(client_is_low == from_low);
        }
        let (key, from_low) = Ends::of(bytes, &ip, &transport)?.conversation();
        let client_is_low = match (opening(bytes, &transport), self.known.get(key)) {
            // A SYN is conclusive, even if ports are reused.
            (Some(by_client), _) => by_client == from_low,
            (None, Some(known)) => known,
            (None, None) => from_low,
        };
        self.known.put(key, client_is_low);
        let by_client = client_is_low == from_low;
        self.remember_pieces(bytes, &ip, &transport, by_client);
        Some(by_client)
    }

    /// Whether the destination has the lower port.
    fn lower_port(&mut self, bytes: &[u8]) -> Option<bool> {
        let ip = IpHeader::parse(bytes)?;
        let transport = ip.transport(bytes)?;
        let (source, destination) = ports(bytes, &transport)?;
        let by_client = (source != destination).then_some(source > destination)?;
        self.remember_pieces(bytes, &ip, &transport, by_client);
        Some(by_client)
    }

    /// Records the side of a first fragment, because later fragments have no ports.
    fn remember_pieces(&mut self, bytes: &[u8], ip: &IpHeader, first: &Transport, by_client: bool) {
        if first.piece == Piece::First
            && let Some(pieces) = Ends::of_datagram(bytes, ip, first)
        {
            let (key, from_low) = pieces.conversation();
            self.known.put(key, by_client == from_low);
        }
    }
}

impl FromStr for Splitter {
    type Err = AlterError;

    /// Parses a rule: `client=10.0.0.0/8,2001:db8::/32`, `mac=02:00:00:00:00:01`, `syn` or
    /// `port`.
    fn from_str(text: &str) -> Result<Splitter, AlterError> {
        let rule = match text.split_once('=').unwrap_or((text, "")) {
            ("client", nets) => {
                let one = |net| {
                    let what = "a network or address such as 10.0.0.0/8";
                    Net::host_or_prefix(net).ok_or_else(|| AlterError::not(net, what))
                };
                Rule::Networks(nets.split(',').map(one).collect::<Result<_, _>>()?)
            }
            ("mac", addresses) => Rule::Macs(
                addresses
                    .split(',')
                    .map(one_mac)
                    .collect::<Result<_, _>>()?,
            ),
            ("syn", "") => Rule::Syn,
            ("port", "") => Rule::Port,
            _ => return Err(AlterError::not(text, WHAT)),
        };
        Ok(Splitter {
            rule,
            known: FlowTable::new(),
        })
    }
}

fn side_of(from_client: bool) -> usize {
    if from_client { CLIENT } else { SERVER }
}

/// Whether a SYN comes from the client; returns `None` for other packets.
fn opening(bytes: &[u8], transport: &Transport) -> Option<bool> {
    const FLAGS_AT: usize = 13;
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    let flags = (transport.protocol == TCP).then(|| bytes.get(transport.at + FLAGS_AT))??;
    (flags & SYN != 0).then_some(flags & ACK == 0)
}

/// Whether a packet comes from these networks.
fn from_networks(bytes: &[u8], clients: &[Net]) -> Option<bool> {
    let (version, source) = match IpHeader::parse(bytes) {
        Some(ip) => {
            let source = &bytes[ip.source_at()..];
            (ip.version, &source[..ip.version.address_len()])
        }
        // ARP contains the sender's address.
        None => {
            let at = mac_header_len(bytes) as usize;
            let is_arp = bytes.get(at - 2..at) == Some(&[0x08, 0x06]);
            let sender = is_arp.then(|| bytes.get(at + 14..at + 18))??;
            (IpVersion::V4, sender)
        }
    };
    let holds = |net: &Net| net.version == version && net.holds(source);
    Some(clients.iter().any(holds))
}

//! Unanswered address requests: ARP requests (RFC 826) and neighbour solicitations (RFC 4861).
//!
//! A host without an answer drops its packets before they enter the link, so neither drops nor
//! artifacts show them. Requests are examined at their handover to an output port, and answers at
//! their arrival at an input port. Only short frames, which are copied anyway, are examined.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use longwire_engine::Nanos;
use longwire_packet::frame::mac_header_len;

use crate::sync::locked;

/// Maximum length of examined frames: a neighbour solicitation with two VLAN tags and several
/// options.
const LEN_MAX: usize = 128;

/// Timeout for the answer to a delivered request.
const TIMEOUT: Nanos = Nanos::from_secs(1);

/// Maximum number of pending requests. Further requests are not watched.
const PENDING_MAX: usize = 4096;

/// Maximum number of addresses whose port is remembered.
const OWNERS_MAX: usize = 1 << 16;

const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];
const VLAN_TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// A run's address requests and their answers.
#[derive(Debug, Default)]
pub(crate) struct AddressWatch {
    ports: Vec<String>,
    state: Mutex<WatchState>,
}

/// A port's handle to an [`AddressWatch`].
#[derive(Clone, Debug)]
pub(crate) struct PortAddresses {
    watch: Arc<AddressWatch>,
    port: usize,
}

#[derive(Debug, Default)]
struct WatchState {
    /// Requests in order of delivery.
    pending: VecDeque<PendingRequest>,
    /// The port that last answered for each address.
    owners: HashMap<IpAddr, usize>,
    /// Unanswered requests by port.
    unanswered: Vec<u64>,
}

/// A delivered request.
#[derive(Debug)]
struct PendingRequest {
    delivered: Nanos,
    port: usize,
    address: IpAddr,
}

/// An address resolution frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Request(IpAddr),
    Answer(IpAddr),
}

impl AddressWatch {
    /// Returns a watch over these ports.
    pub fn new(ports: Vec<String>) -> Arc<AddressWatch> {
        let state = WatchState {
            unanswered: vec![0; ports.len()],
            ..WatchState::default()
        };
        Arc::new(AddressWatch {
            ports,
            state: Mutex::new(state),
        })
    }

    /// Returns the handle for a port.
    pub fn port(self: &Arc<AddressWatch>, port: usize) -> PortAddresses {
        PortAddresses {
            watch: Arc::clone(self),
            port,
        }
    }

    /// Returns notes for the final report. Requests still pending at `now` are not included.
    pub fn notes(&self, now: Nanos) -> Vec<String> {
        let mut state = locked(&self.state);
        state.expire(now);
        let ports = self.ports.iter().zip(&state.unanswered);
        let ports = ports.filter(|(_, unanswered)| **unanswered > 0);
        let notes = ports.map(|(port, unanswered)| {
            format!(
                "the far side of {port} did not answer {unanswered} address request{} (ARP or \
                 neighbour solicitation) within a second of delivery",
                if *unanswered == 1 { "" } else { "s" }
            )
        });
        notes.collect()
    }
}

impl PortAddresses {
    /// Examines a frame handed to the port.
    #[inline]
    pub fn delivered(&self, frame: &[u8], at: Nanos) {
        if is_candidate(frame)
            && let Some(Message::Request(address)) = message(frame)
        {
            locked(&self.watch.state).request(self.port, address, at);
        }
    }

    /// Examines a frame that arrived at the port.
    #[inline]
    pub fn arrived(&self, frame: &[u8], at: Nanos) {
        if is_candidate(frame)
            && let Some(Message::Answer(address)) = message(frame)
        {
            locked(&self.watch.state).answer(self.port, address, at);
        }
    }
}

impl WatchState {
    fn request(&mut self, port: usize, address: IpAddr, at: Nanos) {
        self.expire(at);
        // A station at another port has the address, so none at this port needs to answer.
        let elsewhere = self
            .owners
            .get(&address)
            .is_some_and(|owner| *owner != port);
        if !elsewhere && self.pending.len() < PENDING_MAX {
            self.pending.push_back(PendingRequest {
                delivered: at,
                port,
                address,
            });
        }
    }

    fn answer(&mut self, port: usize, address: IpAddr, at: Nanos) {
        if self.owners.len() < OWNERS_MAX || self.owners.contains_key(&address) {
            self.owners.insert(address, port);
        }
        // An answer also counts for requests that a switch flooded to other ports.
        let answered = |request: &PendingRequest| {
            request.address == address && at <= request.delivered.saturating_add(TIMEOUT)
        };
        self.pending.retain(|request| !answered(request));
    }

    /// Counts expired requests.
    fn expire(&mut self, now: Nanos) {
        while let Some(oldest) = self.pending.front()
            && oldest.delivered.saturating_add(TIMEOUT) < now
        {
            self.unanswered[oldest.port] += 1;
            self.pending.pop_front();
        }
    }
}

/// Returns whether a frame may be address resolution, judging by only two or three bytes.
#[inline]
fn is_candidate(frame: &[u8]) -> bool {
    if frame.len() > LEN_MAX || frame.len() < 42 {
        return false;
    }
    match [frame[12], frame[13]] {
        ARP => true,
        IPV6 => frame[20] == ICMPV6,
        other => VLAN_TAGS.contains(&other),
    }
}

/// Parses an address resolution frame. Ignores probes and announcements (RFC 5227) and duplicate
/// address detection (RFC 4862), which need no answer.
#[cold]
fn message(frame: &[u8]) -> Option<Message> {
    let at = mac_header_len(frame) as usize;
    let packet = frame.get(at..)?;
    match *frame.get(at - 2..)?.first_chunk::<2>()? {
        ARP => arp(packet),
        IPV6 => neighbour_discovery(packet),
        _ => None,
    }
}

fn arp(packet: &[u8]) -> Option<Message> {
    const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
    if !packet.starts_with(&ETHERNET_AND_IPV4) {
        return None;
    }
    let (sender, target) = (address::<4>(packet, 14)?, address::<4>(packet, 24)?);
    match packet[6..8] {
        [0, 1] if !sender.is_unspecified() && sender != target => Some(Message::Request(target)),
        [0, 2] => Some(Message::Answer(sender)),
        _ => None,
    }
}

fn neighbour_discovery(packet: &[u8]) -> Option<Message> {
    if *packet.get(6)? != ICMPV6 {
        return None;
    }
    let (source, target) = (address::<16>(packet, 8)?, address::<16>(packet, 48)?);
    match packet[40] {
        NEIGHBOUR_SOLICITATION if !source.is_unspecified() => Some(Message::Request(target)),
        NEIGHBOUR_ADVERTISEMENT => Some(Message::Answer(target)),
        _ => None,
    }
}

/// Returns the address of `N` bytes at this place.
fn address<const N: usize>(packet: &[u8], at: usize) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    Some(IpAddr::from(*packet.get(at..)?.first_chunk()?))
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;

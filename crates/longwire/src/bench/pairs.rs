//! Test traffic for many links: link `n` carries the frames of address pair `n`, from 10.B.C.D to
//! (11+A).B.C.D, where A, B, C and D are the four bytes of `n`.

use std::sync::Arc;

use longwire_engine::{LinkConfig, LinkId, PathId};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::{Classifier, Matcher, Order, Prefix};
use longwire_runtime::OnPortLoss;
use longwire_runtime::deciding::{LinkCells, NetworkParts, Sharding, Target};

use crate::Error;

/// Minimum frame length in bytes: the headers and the payload of [`PairFrame::set`].
pub const LEN_MIN: u32 = 50;

/// Offset of the IPv4 addresses. The UDP payload contains the pair and the sequence number.
const ADDRESSES: usize = 26;
const PAYLOAD: usize = 42;

/// Builds a link, a path and a rule for each pair, from port 0 to port 1. All other frames are
/// dropped.
///
/// # Errors
/// [`Error::Failed`] if the classifier refuses a rule.
pub fn parts(links: u32, mut config: impl FnMut(u32) -> LinkConfig) -> Result<NetworkParts, Error> {
    let rule = |pair: u32| {
        let [source, destination] = addresses(pair);
        let matcher = Matcher {
            source: Some(Prefix::host(source.into())),
            destination: Some(Prefix::host(destination.into())),
            ..Matcher::default()
        };
        (matcher, Target::Path(PathId(pair)), 0)
    };
    let classifier = Classifier::with_rules(Order::First, Target::Drop, (0..links).map(rule));
    let classifier = classifier.map_err(|(_, error)| Error::failed(error))?;
    // As in a run, counters exist before configurations and survive them.
    let cells: Vec<Arc<LinkCells>> = (0..links).map(|_| Arc::default()).collect();
    Ok(NetworkParts {
        switch: BridgeConfig {
            switching: Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]),
            ..BridgeConfig::new(2)
        },
        classifier,
        links: (0..links).map(&mut config).zip(cells).collect(),
        paths: (0..links).map(|link| vec![LinkId(link)]).collect(),
        orders: Vec::new(),
        on_port_loss: OnPortLoss::End,
        sharding: Sharding::one(),
        remote: None,
    })
}

fn addresses(pair: u32) -> [[u8; 4]; 2] {
    let [a, b, c, d] = pair.to_be_bytes();
    [[10, b, c, d], [11 + a, b, c, d]]
}

/// A UDP frame, rewritten in place for each pair.
#[derive(Clone, Debug)]
pub struct PairFrame(Vec<u8>);

impl PairFrame {
    /// Returns a frame of `len` bytes, without FCS.
    pub fn new(len: u32) -> PairFrame {
        let len = len.max(LEN_MIN);
        let mut frame = vec![0; len as usize];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
        frame[22] = 64;
        frame[23] = 17;
        frame[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
        PairFrame(frame)
    }

    /// Returns the frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Sets the Ethernet addresses.
    pub fn set_macs(&mut self, source: [u8; 6], destination: [u8; 6]) {
        self.0[..6].copy_from_slice(&destination);
        self.0[6..12].copy_from_slice(&source);
    }

    /// Rewrites the frame for a pair, with a sequence number for the receiver, and returns its
    /// bytes.
    #[inline]
    pub fn set(&mut self, pair: u32, number: u32) -> &[u8] {
        let [source, destination] = addresses(pair);
        self.0[ADDRESSES..ADDRESSES + 4].copy_from_slice(&source);
        self.0[ADDRESSES + 4..ADDRESSES + 8].copy_from_slice(&destination);
        self.0[PAYLOAD..PAYLOAD + 4].copy_from_slice(&pair.to_le_bytes());
        self.0[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&number.to_le_bytes());
        &self.0
    }
}

/// Returns the pair and number written by [`PairFrame::set`]; `None` if the frame is too short.
#[inline]
pub fn read(frame: &[u8]) -> Option<(u32, u32)> {
    let payload: &[u8; 8] = frame.get(PAYLOAD..PAYLOAD + 8)?.first_chunk()?;
    let [a, b, c, d, e, f, g, h] = *payload;
    let read = u32::from_le_bytes;
    Some((read([a, b, c, d]), read([e, f, g, h])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_carry_their_pair_and_take_its_link() {
        let classifier = parts(3, |_| LinkConfig::default()).unwrap().classifier;
        let mut frame = PairFrame::new(64);
        for pair in [0, 2, 1] {
            let bytes = frame.set(pair, 7 + pair);
            assert_eq!(bytes.len(), 64);
            assert_eq!(read(bytes), Some((pair, 7 + pair)));
            let found = classifier.classify(PortIndex(0), bytes, 64);
            assert_eq!(found.target, Target::Path(PathId(pair)));
        }
        let found = classifier.classify(PortIndex(0), frame.set(3, 0), 64);
        assert_eq!(found.target, Target::Drop);
        assert_eq!(read(&[0; 49]), None);
    }
}

//! Altering the frames of a trace before they are sent: truncated ones filled
//! up, addresses, ports and tags rewritten, checksums kept right.
//!
//! [`Alterations::apply`] and `rewrite` below it show everything that happens
//! to a frame, in order. `docs/rewriting.md` tells it to users.

mod addresses;
mod anonymize;
mod arp;
mod fill;
mod icmp;
mod mac;
mod mtu;
mod options;
mod packet;
mod renumber;
mod vlan;
mod workspace;

use alloc::vec::Vec;

use longwire_units::Nanos;

use crate::frame::mac_header_len;
use crate::header::IpHeader;
use addresses::Addresses;
use mac::Macs;
use renumber::Renumber;
use workspace::Workspace;

pub use anonymize::CryptoPan;
pub use options::{
    AddressMap, AlterError, AlterOptions, Anonymize, LoopAddresses, MacMap, MtuAction, PortMap,
    SidedMac, Truncated, TtlChange, parse_dscp,
};
pub use vlan::VlanChange;

/// Where in the replay a frame stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// How many rounds of the trace came before this one.
    pub round: u64,
    /// When the frame is due after this round began.
    pub into_round: Nanos,
    /// Which frame of the trace it is, from 0.
    pub number: u64,
}

/// Longer frames are never made up: none has more than a large IPv6 packet of
/// a kernel's own (BIG TCP), and a capture that claims so lies.
const FRAME_MAX: u32 = 1 << 19;

/// The frame check sequence, in bytes.
const FCS_LEN: u32 = 4;

/// Alters frames. Made once, then given every frame that is to be sent, in
/// order.
#[derive(Clone, Debug)]
pub struct Alterations {
    options: AlterOptions,
    addresses: Addresses,
    macs: Macs,
    renumber: Option<Renumber>,
    /// By how many bytes frames grow at the most.
    growth: usize,
    /// Nothing but the filling up of truncated frames is asked for.
    only_fills: bool,
    counts: Counts,
    frame: Workspace,
    piece: Vec<u8>,
}

/// What is counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    filled: u64,
    skipped: u64,
    cut_in_headers: u64,
    too_long: u64,
    checksums_fixed: u64,
    checksums_unknown: u64,
    fragmented: u64,
    mtu_truncated: u64,
    mtu_dropped: u64,
    rtp_unknown: u64,
}

impl Default for Alterations {
    /// None: frames pass as they are, truncated ones too.
    fn default() -> Alterations {
        Alterations::new(AlterOptions {
            truncated: Truncated::Keep,
            ..AlterOptions::default()
        })
    }
}

impl Alterations {
    /// Alterations as the options say.
    pub fn new(options: AlterOptions) -> Alterations {
        Alterations {
            addresses: Addresses::new(&options),
            macs: Macs::new(&options),
            renumber: options.loop_renumber.then(Renumber::new),
            growth: options.vlan.iter().map(VlanChange::growth).sum(),
            only_fills: only_fills(&options),
            counts: Counts::default(),
            frame: Workspace::default(),
            piece: Vec::new(),
            options,
        }
    }

    /// Whether every frame passes as it is.
    pub fn is_nothing(&self) -> bool {
        self.only_fills && self.options.truncated == Truncated::Keep
    }

    /// By how many bytes a frame may be longer afterwards than it was on the
    /// wire.
    pub fn growth(&self) -> usize {
        self.growth
    }

    /// Alters a frame of `wire_len` bytes, of which `bytes` are the first. Each
    /// frame to be sent in its place goes to `take`, with its length on the
    /// wire: none, one, or several when it is cut into fragments.
    pub fn apply(
        &mut self,
        bytes: &[u8],
        wire_len: u32,
        about: About,
        take: &mut dyn FnMut(&[u8], u32),
    ) {
        // A record that holds more than was on the wire was on the wire.
        let mut wire_len = wire_len.max(bytes.len() as u32);
        let mut bytes = bytes;
        if self.options.strip_fcs {
            wire_len = wire_len.saturating_sub(FCS_LEN);
            bytes = &bytes[..bytes.len().min(wire_len as usize)];
        }
        let is_cut = (bytes.len() as u32) < wire_len;
        if self.only_fills && (!is_cut || self.options.truncated == Truncated::Keep) {
            return take(bytes, wire_len);
        }
        if is_cut && self.options.truncated == Truncated::Skip {
            self.counts.skipped += 1;
            return;
        }
        let side = self.side(bytes);
        self.frame.load(bytes, self.growth);
        if is_cut && self.options.truncated != Truncated::Keep {
            match wire_len <= FRAME_MAX {
                true => self.fill(wire_len as usize, about.number),
                false => self.counts.too_long += 1,
            }
        } else if self.options.fix_checksums && !is_cut {
            fill::fix_checksums(&mut self.frame, &mut self.counts);
        }
        let loaded = self.frame.len();
        self.rewrite(side, &about);
        let wire_len = (wire_len as usize).max(loaded) + self.frame.len() - loaded;
        self.send(wire_len as u32, take);
    }

    /// Which side the frame comes from, where an option wants to know.
    fn side(&mut self, bytes: &[u8]) -> usize {
        match &mut self.options.splitter {
            Some(splitter) if self.macs.is_sided() => splitter.side(bytes),
            _ => 0,
        }
    }

    fn fill(&mut self, len: usize, number: u64) {
        let payload = fill::Payload::new(&self.options, number);
        fill::fill(&mut self.frame, len, payload, &mut self.counts);
    }

    /// Everything that is rewritten in a frame, in order.
    fn rewrite(&mut self, side: usize, about: &About) {
        let macs = self.macs.rewrite(&mut self.frame, side);
        if let Some(ip) = IpHeader::parse(&self.frame) {
            let transport = ip.transport(&self.frame);
            let mut renumbered = crate::checksum::Change::NONE;
            if let (Some(renumber), Some(transport)) = (&mut self.renumber, &transport) {
                let counts = &mut self.counts;
                renumbered = renumber.rewrite(&mut self.frame, &ip, transport, about, counts);
            }
            packet::Rewriting {
                addresses: &mut self.addresses,
                ports: &self.options.port_maps,
                macs: &macs,
                counts: &mut self.counts,
                round: about.round,
            }
            .rewrite(&mut self.frame, &ip, transport.as_ref(), renumbered);
            packet::set_class(&mut self.frame, &ip, self.options.dscp, self.options.ttl);
        } else {
            arp::rewrite(&mut self.frame, &mut self.addresses, &macs, about.round);
        }
        for change in &self.options.vlan {
            change.make(&mut self.frame);
        }
    }

    /// Hands the frame over, in pieces or shorter if it is too long.
    fn send(&mut self, wire_len: u32, take: &mut dyn FnMut(&[u8], u32)) {
        let header_len = mac_header_len(&self.frame);
        let fits = |mtu| wire_len <= header_len.saturating_add(mtu);
        match self.options.mtu.filter(|mtu| !fits(*mtu)) {
            None => take(&self.frame, wire_len),
            Some(mtu) => {
                let action = self.options.mtu_action;
                let counts = &mut self.counts;
                mtu::shorten(&mut self.frame, mtu, action, &mut self.piece, counts, take);
            }
        }
    }

    /// The trace begins again: what the rounds before have shown is kept.
    pub fn next_round(&mut self) {
        if let Some(renumber) = &mut self.renumber {
            renumber.next_round();
        }
    }

    /// What was counted, by name.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.counts;
        alloc::vec![
            ("truncated_filled", counts.filled),
            ("truncated_skipped", counts.skipped),
            ("truncated_in_headers", counts.cut_in_headers),
            ("truncated_too_long", counts.too_long),
            ("checksums_fixed", counts.checksums_fixed),
            ("checksums_unknown", counts.checksums_unknown),
            ("mtu_fragmented", counts.fragmented),
            ("mtu_truncated", counts.mtu_truncated),
            ("mtu_dropped", counts.mtu_dropped),
            ("rtp_not_renumbered", counts.rtp_unknown),
        ]
    }
}

/// Whether frames that are whole pass as they are.
fn only_fills(options: &AlterOptions) -> bool {
    // Named one by one, so that a new option is not forgotten here.
    let AlterOptions {
        truncated: _,
        strip_fcs,
        fix_checksums,
        source_mac,
        destination_mac,
        mac_maps,
        vlan,
        address_maps,
        anonymize,
        port_maps,
        dscp,
        ttl,
        mtu,
        mtu_action: _,
        loop_addresses,
        loop_renumber,
        keep_groups: _,
        seed: _,
        splitter: _,
    } = options;
    let changed = *strip_fcs
        || *fix_checksums
        || *loop_renumber
        || source_mac.is_some()
        || destination_mac.is_some()
        || anonymize.is_some()
        || dscp.is_some()
        || ttl.is_some()
        || mtu.is_some()
        || !mac_maps.is_empty()
        || !vlan.is_empty()
        || !address_maps.is_empty()
        || !port_maps.is_empty()
        || !loop_addresses.is_empty();
    !changed
}

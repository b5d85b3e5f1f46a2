//! Alters a trace's frames before they are sent: restores truncated frames, rewrites addresses,
//! ports and tags, and keeps checksums valid.
//!
//! [`Alterations::apply`] and `rewrite` show all steps in order. User documentation is in
//! `docs/rewriting.md`.

mod addresses;
mod announced;
mod anonymize;
mod arp;
mod extensions;
mod fill;
pub mod help;
mod layers;
mod mac;
mod messages;
mod mtu;
mod options;
mod packet;
mod renumber;
mod rewriting;
mod tunnel;
mod unaltered;
pub(crate) mod value;
mod vlan;
mod workspace;

use alloc::string::String;
use alloc::vec::Vec;

use longwire_units::Nanos;

use crate::frame::mac_header_len;
use crate::header::IpHeader;
use addresses::Addresses;
use mac::Macs;
use renumber::Renumber;
use rewriting::Rewriting;
use unaltered::{Unaltered, UnalteredCounts};
use workspace::Workspace;

pub use options::{
    AddressMap, AlterOptions, Anonymize, LoopAddresses, MacMap, MtuAction, PortMap, SidedMac,
    Truncated, TtlChange, parse_dscp,
};
pub use unaltered::UnalteredAction;
pub use value::AlterError;
pub use vlan::VlanChange;

/// Position of a frame in the replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Number of completed rounds through the trace.
    pub round: u64,
    /// Due time, relative to the start of the round.
    pub into_round: Nanos,
    /// Frame number in the trace, from 0.
    pub number: u64,
}

/// Maximum length to which frames are restored, that of a BIG TCP packet. A capture with longer
/// wire lengths is invalid.
const FRAME_MAX: u32 = 1 << 19;

/// Length of the FCS in bytes.
const FCS_LEN: u32 = 4;

/// Alters frames. Create it once, then apply it to every frame, in sending order.
#[derive(Clone, Debug)]
pub struct Alterations {
    options: AlterOptions,
    addresses: Addresses,
    macs: Macs,
    renumber: Option<Renumber>,
    /// Maximum growth in bytes per frame.
    growth: usize,
    /// Whether the only alteration is restoring truncated frames.
    only_fills: bool,
    /// Whether packet fields change, so that frames without a packet count as unaltered.
    rewrites_packets: bool,
    /// Whether any changed field also occurs in packets inside tunnels.
    looks_inside: bool,
    /// Handling of frames that were not fully altered.
    on_unaltered: UnalteredAction,
    segmenter: Option<Segmenter>,
    counts: Counts,
    frame: Workspace,
    piece: Vec<u8>,
}

/// Segments the TCP packet of a whole frame to an MTU in bytes and passes on each resulting frame.
/// The vector is scratch memory. Returns `false`, without output, if the frame is unsuitable.
pub type Segmenter = fn(&mut [u8], usize, &mut Vec<u8>, &mut dyn FnMut(&[u8])) -> bool;

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
    mtu_segmented: u64,
    mtu_dropped: u64,
    lengths_fixed: u64,
    unaltered: UnalteredCounts,
    rtp_unknown: u64,
}

impl Default for Alterations {
    /// Passes all frames unchanged, including truncated ones.
    fn default() -> Alterations {
        Alterations::new(AlterOptions {
            truncated: Truncated::Keep,
            ..AlterOptions::default()
        })
    }
}

impl Alterations {
    /// Creates alterations from options.
    pub fn new(options: AlterOptions) -> Alterations {
        Alterations {
            addresses: Addresses::new(&options),
            macs: Macs::new(&options),
            renumber: options.loop_renumber.then(Renumber::default),
            growth: options.vlan.iter().map(VlanChange::growth).sum(),
            only_fills: only_fills(&options),
            rewrites_packets: rewrites_packets(&options),
            looks_inside: looks_inside(&options),
            on_unaltered: options.on_unaltered(),
            segmenter: None,
            counts: Counts::default(),
            frame: Workspace::default(),
            piece: Vec::new(),
            options,
        }
    }

    /// Sets the segmenter for TCP super-packets and TCP packets that exceed the MTU but must not be
    /// fragmented. Without a segmenter, packets that must not be fragmented are dropped.
    pub fn segment_with(&mut self, segmenter: Segmenter) {
        self.segmenter = Some(segmenter);
    }

    /// Whether all frames pass unchanged.
    pub fn is_nothing(&self) -> bool {
        self.only_fills && self.options.truncated == Truncated::Keep
    }

    /// Returns the maximum number of bytes by which a frame may grow beyond its wire length.
    pub fn growth(&self) -> usize {
        self.growth
    }

    /// Alters a frame of `wire_len` bytes, of which `bytes` were captured. Passes the resulting
    /// frames (none, one, or several fragments) with their wire lengths to `take`.
    pub fn apply(
        &mut self,
        bytes: &[u8],
        wire_len: u32,
        about: About,
        take: &mut dyn FnMut(&[u8], u32),
    ) {
        // A record longer than its wire length is inconsistent; its bytes are trusted.
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
        // The side that sent the frame; 0 unless an option needs it.
        let side = match &mut self.options.splitter {
            Some(splitter) if self.macs.is_sided() => splitter.side(bytes),
            _ => 0,
        };
        self.frame.load(bytes, self.growth);
        if is_cut && self.options.truncated != Truncated::Keep {
            if wire_len <= FRAME_MAX {
                let (frame, len) = (&mut self.frame, wire_len as usize);
                fill::fill(frame, len, &self.options, about.number, &mut self.counts);
            } else {
                self.counts.too_long += 1
            }
        } else if self.options.fix_checksums && !is_cut {
            fill::fix_checksums(&mut self.frame, self.options.inner, &mut self.counts);
        }
        let loaded = self.frame.len();
        if let Some(reason) = self.rewrite(side, &about) {
            self.counts.unaltered.count(reason, self.on_unaltered);
            if self.on_unaltered == UnalteredAction::Drop {
                return;
            }
        }
        let wire_len = (wire_len as usize).max(loaded) + self.frame.len() - loaded;
        self.send(wire_len as u32, take);
    }

    /// Rewrites a frame. Returns the reason if part of it was not rewritten.
    fn rewrite(&mut self, side: usize, about: &About) -> Option<Unaltered> {
        let macs = self.macs.rewrite(&mut self.frame, side);
        let mut unaltered = None;
        if self.rewrites_packets || macs.anything {
            let mut rewriting = Rewriting {
                addresses: &mut self.addresses,
                ports: &self.options.port_maps,
                macs: &macs,
                renumber: self.renumber.as_mut(),
                counts: &mut self.counts,
                about,
                inner: self.options.inner,
                looks_inside: self.looks_inside,
                unaltered: None,
                depth: 0,
            };
            let frame = &mut self.frame;
            let packet = match IpHeader::parse(frame) {
                Some(ip) => {
                    rewriting.packet(frame, &ip, Some(0));
                    Some(ip)
                }
                None => {
                    let found = layers::find(frame);
                    rewriting.content(frame, &found);
                    found.ip()
                }
            };
            unaltered = rewriting.unaltered.filter(|_| self.rewrites_packets);
            if let Some(ip) = packet {
                packet::set_class(frame, &ip, self.options.dscp, self.options.ttl);
            }
        }
        for change in &self.options.vlan {
            change.make(&mut self.frame);
        }
        unaltered
    }

    /// Passes the frame on, fragmented or truncated if it is too long.
    fn send(&mut self, wire_len: u32, take: &mut dyn FnMut(&[u8], u32)) {
        let header_len = mac_header_len(&self.frame);
        let fits = |mtu| wire_len <= header_len.saturating_add(mtu);
        match self.options.mtu.filter(|mtu| !fits(*mtu)) {
            Some(mtu) => self.shorten(mtu, wire_len, take),
            None => take(&self.frame, wire_len),
        }
    }

    /// Starts the next round through the trace, keeping the state from earlier rounds.
    pub fn next_round(&mut self) {
        if let Some(renumber) = &mut self.renumber {
            renumber.next_round();
        }
    }

    /// Returns the counters with their names.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.counts;
        let mut list = alloc::vec![
            ("truncated_filled", counts.filled),
            ("truncated_skipped", counts.skipped),
            ("truncated_in_headers", counts.cut_in_headers),
            ("truncated_too_long", counts.too_long),
            ("checksums_fixed", counts.checksums_fixed),
            ("checksums_unknown", counts.checksums_unknown),
            ("mtu_fragmented", counts.fragmented),
            ("mtu_truncated", counts.mtu_truncated),
            ("mtu_segmented", counts.mtu_segmented),
            ("mtu_dropped", counts.mtu_dropped),
            ("lengths_fixed", counts.lengths_fixed),
            ("rtp_not_renumbered", counts.rtp_unknown),
        ];
        counts.unaltered.list(&mut list);
        list
    }

    /// Returns a note about frames that were not fully altered, if any.
    pub fn note(&self) -> Option<String> {
        self.counts.unaltered.note(self.on_unaltered)
    }
}

/// Whether whole frames pass unchanged.
fn only_fills(options: &AlterOptions) -> bool {
    !options.strip_fcs
        && !rewrites_packets(options)
        && options.source_mac.is_none()
        && options.destination_mac.is_none()
        && options.mac_maps.is_empty()
        && options.vlan.is_empty()
        && options.mtu.is_none()
}

/// Whether any field of a packet changes.
fn rewrites_packets(options: &AlterOptions) -> bool {
    looks_inside(options) || options.dscp.is_some() || options.ttl.is_some()
}

/// Whether any changed field also occurs in packets inside tunnels. DSCP and TTL apply only to the
/// outermost packet.
fn looks_inside(options: &AlterOptions) -> bool {
    options.fix_checksums
        || options.loop_renumber
        || options.anonymize.is_some()
        || !options.address_maps.is_empty()
        || !options.port_maps.is_empty()
        || !options.loop_addresses.is_empty()
}

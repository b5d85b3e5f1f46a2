//! Counts of records that were converted to Ethernet, or left out.

use std::collections::BTreeMap;

use longwire_units::count_of;

use super::left_out::LeftOut;
use super::link_type::Framing;

/// Counts of records converted to Ethernet, and of records left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Frames that started with their IP header.
    pub raw_ip: u64,
    /// Frames that started with BSD's four-byte loopback header.
    pub loopback: u64,
    /// Frames of a Linux cooked capture, such as of the device `any`.
    pub cooked: u64,
    /// Frames of PPP.
    pub ppp: u64,
    /// Frames of Cisco HDLC.
    pub cisco_hdlc: u64,
    /// IEEE 802.11 data frames.
    pub wireless: u64,
    /// Records left out, by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
}

impl RecordCounts {
    /// Returns the number of frames that got an Ethernet header.
    pub fn converted(&self) -> u64 {
        let kinds = self.kinds().into_iter();
        kinds.map(|(count, _)| count).sum()
    }

    /// Adds the counts of another capture.
    pub fn add(&mut self, other: &RecordCounts) {
        self.raw_ip += other.raw_ip;
        self.loopback += other.loopback;
        self.cooked += other.cooked;
        self.ppp += other.ppp;
        self.cisco_hdlc += other.cisco_hdlc;
        self.wireless += other.wireless;
        for (reason, count) in &other.left_out {
            *self.left_out.entry(*reason).or_default() += count;
        }
    }

    /// Returns the number of records left out as too long.
    pub fn too_long(&self) -> u64 {
        self.left_out_if(|reason| *reason == LeftOut::TooLong)
    }

    /// Returns the number of records left out that Ethernet cannot carry.
    pub fn unusable(&self) -> u64 {
        self.left_out_if(|reason| !matches!(reason, LeftOut::TooLong | LeftOut::OtherInterface))
    }

    fn left_out_if(&self, holds: impl Fn(&LeftOut) -> bool) -> u64 {
        let found = self.left_out.iter().filter(|(reason, _)| holds(reason));
        found.map(|(_, count)| count).sum()
    }

    /// Returns the counts with the names that reports give them.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        let other_type = self.left_out_if(|reason| matches!(reason, LeftOut::LinkType(_)));
        let other_interface = self.left_out_if(|reason| *reason == LeftOut::OtherInterface);
        [
            ("given_ethernet_header", self.converted()),
            ("not_ethernet", self.unusable() - other_type),
            ("other_link_type", other_type),
            ("other_interface", other_interface),
            ("record_too_long", self.too_long()),
        ]
    }

    /// Returns a sentence for each kind of conversion and each reason.
    pub fn notes(&self) -> Vec<String> {
        let kinds = self.kinds().into_iter().filter(|(count, _)| *count > 0);
        let converted = kinds.map(|(count, kind)| {
            let frames = count_of(count, "frame");
            let given = format!("added an Ethernet header to {frames} captured as {kind}");
            match kind {
                "IEEE 802.11" => given,
                _ => format!(
                    "{given}, with 02:00:00:00:00:01 and 02:00:00:00:00:02 for stations that the \
                     capture does not name"
                ),
            }
        });
        let left_out = self.left_out.iter().map(|(reason, count)| {
            let records = count_of(*count, "record");
            format!("skipped {records}: {reason}")
        });
        converted.chain(left_out).collect()
    }

    fn kinds(&self) -> [(u64, &'static str); 6] {
        [
            (self.raw_ip, "raw IP"),
            (self.loopback, "BSD loopback"),
            (self.cooked, "Linux cooked"),
            (self.ppp, "PPP"),
            (self.cisco_hdlc, "Cisco HDLC"),
            (self.wireless, "IEEE 802.11"),
        ]
    }

    pub(super) fn convert(&mut self, framing: Framing) {
        match framing {
            Framing::Ethernet => {}
            Framing::Ip => self.raw_ip += 1,
            Framing::Family => self.loopback += 1,
            Framing::Cooked | Framing::Cooked2 => self.cooked += 1,
            Framing::Ppp | Framing::PppDirected | Framing::PppSession => self.ppp += 1,
            Framing::CiscoHdlc => self.cisco_hdlc += 1,
            Framing::Wireless(_) => self.wireless += 1,
        }
    }

    #[cold]
    pub(super) fn leave_out(&mut self, reason: LeftOut) {
        *self.left_out.entry(reason).or_default() += 1;
    }
}

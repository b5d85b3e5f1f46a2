//! Counts of records converted to Ethernet and, by reason, of skipped records.

use std::collections::BTreeMap;

use longwire_units::count_of;

/// Counts of converted and skipped records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Frames that started with their IP header.
    pub raw_ip: u64,
    /// Frames that started with BSD's four-byte loopback header.
    pub loopback: u64,
    /// Frames from a Linux cooked capture, such as the device `any`.
    pub cooked: u64,
    /// PPP frames.
    pub ppp: u64,
    /// Cisco HDLC frames.
    pub cisco_hdlc: u64,
    /// IEEE 802.11 data frames.
    pub wireless: u64,
    /// Skipped records by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
}

impl RecordCounts {
    /// Returns the number of frames that were given an Ethernet header.
    pub fn converted(&self) -> u64 {
        let kinds = self.kinds().into_iter();
        kinds.map(|(count, _)| count).sum()
    }

    /// Adds another capture's counts.
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

    /// Returns the number of records skipped as too long.
    pub fn too_long(&self) -> u64 {
        self.left_out_if(|reason| *reason == LeftOut::TooLong)
    }

    /// Returns the number of records skipped because they cannot be converted to Ethernet.
    pub fn unusable(&self) -> u64 {
        self.left_out_if(|reason| !matches!(reason, LeftOut::TooLong | LeftOut::OtherInterface))
    }

    fn left_out_if(&self, holds: impl Fn(&LeftOut) -> bool) -> u64 {
        let found = self.left_out.iter().filter(|(reason, _)| holds(reason));
        found.map(|(_, count)| count).sum()
    }

    /// Returns the counts with their names in reports.
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

    /// Returns a sentence for each kind of conversion and each reason for skipping.
    pub fn notes(&self) -> Vec<String> {
        let kinds = self.kinds().into_iter().filter(|(count, _)| *count > 0);
        let converted = kinds.map(|(count, kind)| {
            let frames = count_of(count, "frame");
            let given = format!("added an Ethernet header to {frames} captured as {kind}");
            match kind {
                "IEEE 802.11" => given,
                _ => format!(
                    "{given}; 02:00:00:00:00:01 and 02:00:00:00:00:02 stand for stations whose \
                     addresses were not captured"
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

    #[cold]
    pub(super) fn leave_out(&mut self, reason: LeftOut) {
        *self.left_out.entry(reason).or_default() += 1;
    }
}

/// The reason why a record was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum LeftOut {
    /// The link type has no conversion to Ethernet.
    #[error("link type {0} ({name}) cannot be converted to Ethernet", name = link_type_name(*.0))]
    LinkType(u32),
    /// The record's interface was not selected.
    #[error("captured on another interface")]
    OtherInterface,
    /// More than [`CAPTURED_MAX`](super::CAPTURED_MAX) captured bytes.
    #[error("longer than 256 KiB")]
    TooLong,
    /// The record is truncated before its payload.
    #[error("truncated within the headers")]
    CutHeader,
    /// The protocol has no EtherType.
    #[error("the protocol has no EtherType")]
    Protocol,
    /// An IEEE 802.11 management or control frame.
    #[error("IEEE 802.11 management or control")]
    WirelessControl,
    /// An IEEE 802.11 data frame without payload.
    #[error("IEEE 802.11 data without payload")]
    WirelessEmpty,
    /// An encrypted IEEE 802.11 frame.
    #[error("IEEE 802.11, encrypted")]
    WirelessEncrypted,
    /// An IEEE 802.11 fragment or aggregate.
    #[error("IEEE 802.11 fragment or aggregate")]
    WirelessPart,
    /// An IEEE 802.11 frame received with an incorrect FCS.
    #[error("IEEE 802.11 with a wrong frame check sequence")]
    WirelessDamaged,
}

/// Returns the name of a link type that has no conversion.
pub(super) fn link_type_name(link_type: u32) -> &'static str {
    match link_type {
        6 => "token ring",
        10 => "FDDI",
        107 => "frame relay",
        147..=162 => "private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 230 | 283 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "Linux netfilter log",
        253 => "netlink",
        _ => "unknown",
    }
}

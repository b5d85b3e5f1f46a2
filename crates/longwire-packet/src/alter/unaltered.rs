//! Counts frames that were not fully altered.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use longwire_units::count_of;

use super::value::AlterError;

/// The reason why a frame, or part of it, was not altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unaltered {
    /// An EtherType that does not carry IP.
    NotIp,
    /// LLC without IP.
    Llc,
    /// Link control protocols: PPPoE discovery, LCP, 802.1X, OAM.
    Control,
    /// Encrypted, compressed, or protected by MACsec.
    Encrypted,
    /// Truncated within a header.
    Truncated,
    /// Inconsistent header.
    Malformed,
    /// A header or message of unknown format, which may include addresses.
    Unknown,
    /// A packet inside a tunnel, which the configuration excludes.
    Tunnel,
}

/// Counter names by reason.
const REASONS: [&str; 8] = [
    "unaltered_not_ip",
    "unaltered_llc",
    "unaltered_control",
    "unaltered_encrypted",
    "unaltered_truncated",
    "unaltered_malformed",
    "unaltered_unknown",
    "unaltered_tunnel",
];

/// Handling of frames that cannot be altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnalteredAction {
    /// Send.
    Send,
    /// Drop.
    Drop,
}

impl FromStr for UnalteredAction {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<UnalteredAction, AlterError> {
        match text {
            "send" => Ok(UnalteredAction::Send),
            "drop" => Ok(UnalteredAction::Drop),
            _ => Err(AlterError::not(text, "one of send, drop")),
        }
    }
}

/// Counts of frames that were not fully altered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnalteredCounts {
    by_reason: [u64; REASONS.len()],
    dropped: u64,
}

impl UnalteredCounts {
    pub fn count(&mut self, reason: Unaltered, action: UnalteredAction) {
        self.by_reason[reason as usize] += 1;
        self.dropped += u64::from(action == UnalteredAction::Drop);
    }

    /// Appends the counters with their names.
    pub fn list(&self, list: &mut Vec<(&'static str, u64)>) {
        list.extend(REASONS.into_iter().zip(self.by_reason));
        list.push(("unaltered_dropped", self.dropped));
    }

    /// Returns a note about these frames, if any.
    pub fn note(&self, action: UnalteredAction) -> Option<String> {
        let frames = self.by_reason.iter().sum();
        let tunnels = self.by_reason[Unaltered::Tunnel as usize];
        let frames = (frames > 0).then(|| count_of(frames, "frame"))?;
        let mut note = match action {
            UnalteredAction::Send => format!(
                "sent {frames} unaltered or only partly altered; to drop them, use --unaltered drop"
            ),
            UnalteredAction::Drop => format!(
                "dropped {frames} that could not be fully altered; to send them, use --unaltered \
                 send"
            ),
        };
        if tunnels > 0 {
            let tunnels = count_of(tunnels, "tunnelled packet");
            note.push_str(&format!("; --inner alters {tunnels}"));
        }
        Some(note)
    }
}

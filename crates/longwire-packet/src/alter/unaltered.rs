//! Frames that could not be altered, or only in part.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use longwire_units::number_of;

use super::options::AlterError;

/// Why a frame left unaltered, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unaltered {
    /// Its type is not one that carries IP.
    NotIp,
    /// LLC that carries no IP.
    Llc,
    /// It controls a link: PPPoE's discovery, LCP, 802.1X, OAM.
    Control,
    /// It is encrypted, compressed, or secured by MACsec.
    Encrypted,
    /// Its bytes end within a header.
    Truncated,
    /// A header contradicts itself.
    Malformed,
    /// A header or message whose addresses are not understood.
    Unknown,
    /// The packet in it is to stay.
    Tunnel,
}

/// Every reason, with the name of its counter.
const REASONS: [(Unaltered, &str); 8] = [
    (Unaltered::NotIp, "unaltered_not_ip"),
    (Unaltered::Llc, "unaltered_llc"),
    (Unaltered::Control, "unaltered_control"),
    (Unaltered::Encrypted, "unaltered_encrypted"),
    (Unaltered::Truncated, "unaltered_truncated"),
    (Unaltered::Malformed, "unaltered_malformed"),
    (Unaltered::Unknown, "unaltered_unknown"),
    (Unaltered::Tunnel, "unaltered_tunnel"),
];

/// Treatment of frames that cannot be altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnalteredAction {
    /// They are sent.
    Send,
    /// They are not sent.
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

/// Counts of frames that were not altered, or only in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnalteredCounts {
    by_reason: [u64; REASONS.len()],
    dropped: u64,
}

impl UnalteredCounts {
    pub fn count(&mut self, reason: Unaltered, action: UnalteredAction) {
        let place = REASONS.iter().position(|(known, _)| *known == reason);
        if let Some(place) = place {
            self.by_reason[place] += 1;
        }
        self.dropped += u64::from(action == UnalteredAction::Drop);
    }

    /// Adds the counters, by name.
    pub fn list(&self, list: &mut Vec<(&'static str, u64)>) {
        let names = REASONS.iter().map(|(_, name)| *name);
        list.extend(names.zip(self.by_reason));
        list.push(("unaltered_dropped", self.dropped));
    }

    /// Returns a sentence about these frames, if there are any.
    pub fn note(&self, action: UnalteredAction) -> Option<String> {
        let frames = self.by_reason.iter().sum();
        let tunnels = self.by_reason[REASONS.len() - 1];
        let frames = (frames > 0).then(|| number_of(frames, "frame"))?;
        let mut note = match action {
            UnalteredAction::Send => format!(
                "sent {frames} that the options could not alter, or only in part; --unaltered \
                 drop drops them"
            ),
            UnalteredAction::Drop => format!(
                "left out {frames} that the options could not alter, or only in part; --unaltered \
                 send sends them"
            ),
        };
        if tunnels > 0 {
            let tunnels = number_of(tunnels, "tunnelled packet");
            note.push_str(&format!("; --inner alters {tunnels}"));
        }
        Some(note)
    }
}

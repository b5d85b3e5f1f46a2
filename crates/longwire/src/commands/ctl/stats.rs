//! Counters in responses of the API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// Counters of a link, or sums over several.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Totals {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// By reason, without those at zero.
    pub dropped: BTreeMap<String, u64>,
    pub raised: u64,
    pub ecn_marked: u64,
    pub corrupted: u64,
    pub duplicated: u64,
    pub late: u64,
    /// Late while the network was overloaded.
    #[serde(default)]
    pub overload: u64,
    /// Frames in the queue and in service.
    pub queued: u64,
}

impl Totals {
    /// Returns all frames that were lost.
    pub fn lost(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns every counter with its name.
    pub fn named(&self) -> Vec<(String, u64)> {
        let mut named = vec![
            ("packets in".to_owned(), self.packets_in),
            ("bytes in".to_owned(), self.bytes_in),
            ("packets out".to_owned(), self.packets_out),
            ("bytes out".to_owned(), self.bytes_out),
            ("queued".to_owned(), self.queued),
        ];
        let dropped = self.dropped.iter();
        named.extend(dropped.map(|(reason, count)| (format!("dropped: {reason}"), *count)));
        let rare = [
            ("raised", self.raised),
            ("ECN marked", self.ecn_marked),
            ("corrupted", self.corrupted),
            ("duplicated", self.duplicated),
            ("late", self.late),
            ("overload", self.overload),
        ];
        let seen = rare.into_iter().filter(|(_, count)| *count > 0);
        named.extend(seen.map(|(name, count)| (name.to_owned(), count)));
        named
    }
}

/// Changes of counters per second.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Rates {
    pub packets_in_per_s: f64,
    pub bits_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bits_out_per_s: f64,
    pub drops_per_s: f64,
}

/// Totals and rates; no rates in the first event.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct LinkCounters {
    pub totals: Totals,
    #[serde(default)]
    pub rates: Option<Rates>,
}

/// An event of the stream.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Event {
    pub elapsed_s: f64,
    /// Number of links; directions count separately.
    pub links: u64,
    #[serde(flatten)]
    pub counted: LinkCounters,
    /// Each link, if requested.
    #[serde(default)]
    pub each: Option<Vec<LinkEvent>>,
}

/// A link of an event.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct LinkEvent {
    pub name: String,
    #[serde(flatten)]
    pub counted: LinkCounters,
}

/// Parses a response; fails if this version does not know its format.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| {
        Error::Failed(format!(
            "the response of the run has an unknown format ({error}); is it of another version? \
             --json prints the response"
        ))
    })
}

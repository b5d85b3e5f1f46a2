//! What the API tells of counters.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// What was counted of a link, or of several.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Totals {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// By reason, those that there were.
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
    /// All that was lost.
    pub fn lost(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// All of it, with names.
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

/// What is counted a second.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Rates {
    pub packets_in_per_s: f64,
    pub bits_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bits_out_per_s: f64,
    pub drops_per_s: f64,
}

/// Both; rates only when there was a time before.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Counted {
    pub totals: Totals,
    #[serde(default)]
    pub rates: Option<Rates>,
}

/// An event of the stream.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Event {
    pub elapsed_s: f64,
    /// How many there are, directions apart.
    pub links: u64,
    #[serde(flatten)]
    pub counted: Counted,
    /// Each link, if they were asked for.
    #[serde(default)]
    pub each: Option<Vec<Row>>,
}

/// A link of an event.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    pub name: String,
    #[serde(flatten)]
    pub counted: Counted,
}

/// Reads what was told, if it is what this version tells.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| {
        Error::Failed(format!(
            "the run that answers tells things otherwise ({error}); is it of another version? \
             --json shows what it tells"
        ))
    })
}

//! Which traces are sent, and how.

use longwire_engine::Nanos;
use longwire_engine::replay::Pace;
use longwire_packet::alter::Alterations;
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;

use super::Moment;

/// Which traces are sent, and how.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// The files; `-` is the standard input.
    pub traces: Vec<String>,
    /// All traces are one, in the order of their stamps; else each follows the
    /// one before it.
    pub merge: bool,
    /// What sets the pace.
    pub pace: Pace,
    /// Longer gaps of the trace are cut to this.
    pub gap_cap: Option<Nanos>,
    /// How often all of it is sent, at least once; `None`: for ever.
    pub rounds: Option<u64>,
    /// The time between two rounds; by default the mean gap.
    pub round_gap: Option<Nanos>,
    /// The most frames of the trace that are sent, in all rounds together.
    pub limit: Option<u64>,
    /// Frames before this are left out. Offsets count from the first frame of
    /// each trace, or of all that are merged.
    pub from: Option<Moment>,
    /// Frames at this and later are left out.
    pub until: Option<Moment>,
    /// Only frames that match are sent.
    pub filter: Option<Filter>,
    /// How frames are changed.
    pub alterations: Alterations,
    /// Sends the two directions to two outputs.
    pub splitter: Option<Splitter>,
}

impl Default for TraceConfig {
    /// No trace yet; once, as it was captured.
    fn default() -> TraceConfig {
        TraceConfig {
            traces: Vec::new(),
            merge: false,
            pace: Pace::default(),
            gap_cap: None,
            rounds: Some(1),
            round_gap: None,
            limit: None,
            from: None,
            until: None,
            filter: None,
            alterations: Alterations::default(),
            splitter: None,
        }
    }
}

//! Configuration of a trace feed.

use longwire_engine::Nanos;
use longwire_engine::replay::Pace;
use longwire_packet::alter::Alterations;
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;

use super::Moment;

/// Configuration of a trace feed.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// The files; `-` is the standard input.
    pub traces: Vec<String>,
    /// Merge all traces, in the order of their stamps; otherwise they are sent
    /// one after the other.
    pub merge: bool,
    /// Send each trace to its own output, all in the order of their stamps.
    pub apart: bool,
    /// The only interface of pcapng traces that is sent, by name or by number from 0.
    pub interface: Option<String>,
    /// The source of the pace.
    pub pace: Pace,
    /// The limit for gaps of the trace; longer ones are shortened to it.
    pub gap_cap: Option<Nanos>,
    /// The number of rounds, at least one; `None`: without end.
    pub rounds: Option<u64>,
    /// The time between two rounds; by default the mean gap.
    pub round_gap: Option<Nanos>,
    /// The maximum number of frames sent, in all rounds together.
    pub limit: Option<u64>,
    /// Frames before this are left out. Offsets count from the first frame of
    /// each trace, or of all that are merged.
    pub from: Option<Moment>,
    /// Frames at this and later are left out.
    pub until: Option<Moment>,
    /// Only matching frames are sent.
    pub filter: Option<Filter>,
    /// Alterations of frames.
    pub alterations: Alterations,
    /// Sends the two directions to two outputs.
    pub splitter: Option<Splitter>,
}

impl Default for TraceConfig {
    /// Returns a configuration without traces: one round, at the pace of the
    /// capture.
    fn default() -> TraceConfig {
        TraceConfig {
            traces: Vec::new(),
            merge: false,
            apart: false,
            interface: None,
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

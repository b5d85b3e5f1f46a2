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
    /// Trace files; `-` is standard input.
    pub traces: Vec<String>,
    /// Merge all traces by stamp instead of sending them one after the other.
    pub merge: bool,
    /// Send each trace to a separate output, all in order of their stamps.
    pub apart: bool,
    /// The only pcapng interface to send, by name or by number from 0.
    pub interface: Option<String>,
    /// The source of the pace.
    pub pace: Pace,
    /// Maximum gap; longer ones are shortened to it.
    pub gap_cap: Option<Nanos>,
    /// Number of rounds, at least one; `None` repeats forever.
    pub rounds: Option<u64>,
    /// Gap between rounds; the mean gap by default.
    pub round_gap: Option<Nanos>,
    /// Maximum number of frames over all rounds.
    pub limit: Option<u64>,
    /// Skip earlier frames. Offsets count from the first frame of each trace, or of all
    /// merged traces.
    pub from: Option<Moment>,
    /// Skip frames from this position on.
    pub until: Option<Moment>,
    /// Send only matching frames.
    pub filter: Option<Filter>,
    /// Alterations of frames before they are sent.
    pub alterations: Alterations,
    /// Splits the two directions over two outputs.
    pub splitter: Option<Splitter>,
}

impl Default for TraceConfig {
    /// Returns a configuration without traces: one round at the pace of the capture.
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

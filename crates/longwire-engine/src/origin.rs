//! What the models of a link begin from: their random streams, and the time
//! that their schedules count from.

use longwire_units::Nanos;
use longwire_units::random::{Purpose, Stream};

/// Where models begin. Models that come with a change of a running link begin
/// at the time of the change, with streams that its number decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub seed: u64,
    pub link: u32,
    pub epoch: Nanos,
    /// How many times the link has been changed; 0 for a fresh one.
    pub change: u64,
}

impl Origin {
    /// The stream of the only model of its purpose.
    pub fn stream(&self, purpose: Purpose) -> Stream {
        self.stream_of(purpose, "", 0)
    }

    /// The stream of the `nth` model called `model`.
    pub fn stream_of(&self, purpose: Purpose, model: &str, nth: u32) -> Stream {
        Stream::of_change(self.seed, self.link, purpose, model, nth, self.change)
    }
}

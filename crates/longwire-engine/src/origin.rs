//! The origin of a link's models: their random streams and their epoch.

use longwire_units::Nanos;
use longwire_units::random::{Purpose, Stream};

/// Origin of models. Models installed by a change of a running link start at that change,
/// with streams derived from its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub seed: u64,
    pub link: u32,
    pub epoch: Nanos,
    /// Number of previous changes; 0 for a new link.
    pub change: u64,
}

impl Origin {
    /// Returns the stream of a purpose with only one model.
    pub fn stream(&self, purpose: Purpose) -> Stream {
        self.stream_of(purpose, "", 0)
    }

    /// Returns the stream of the `nth` model called `model`.
    pub fn stream_of(&self, purpose: Purpose, model: &str, nth: u32) -> Stream {
        Stream::of_change(self.seed, self.link, purpose, model, nth, self.change)
    }
}

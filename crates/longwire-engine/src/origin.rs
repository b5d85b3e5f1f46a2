//! Origin of a link's models: their random streams and epoch.

use longwire_units::Nanos;
use longwire_units::random::{Purpose, Stream};

/// Origin of models. Models installed by a change to a running link start at that change, and their
/// streams derive from the change's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub seed: u64,
    pub link: u32,
    pub epoch: Nanos,
    /// Number of earlier changes; 0 for a new link.
    pub change: u64,
}

impl Origin {
    /// Returns the stream for a purpose with only one model.
    pub fn stream(&self, purpose: Purpose) -> Stream {
        self.stream_of(purpose, "", 0)
    }

    /// Returns the stream for the `nth` model named `model`.
    pub fn stream_of(&self, purpose: Purpose, model: &str, nth: u32) -> Stream {
        Stream::of_change(self.seed, self.link, purpose, model, nth, self.change)
    }
}

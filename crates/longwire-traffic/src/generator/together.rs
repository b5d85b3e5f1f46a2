//! Merges several generators into one output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult};
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, FeedFrame, FeedStatus};

use super::GeneratorConfig;
use super::error::GeneratorError;
use super::feed::GeneratorFeed;

/// Merges frames of several generators by due time; ties go to the earlier generator. Generators
/// have separate rates, arrivals, sizes, headers and probe streams. Each needs a rate, because
/// unpaced frames have no due time.
pub struct TogetherFeed {
    streams: Vec<GeneratorFeed>,
    /// Length and due time of each generator's next frame.
    heads: Vec<Option<(u32, Nanos)>>,
    sent: Arc<[AtomicU64]>,
    start: Epoch,
}

impl TogetherFeed {
    /// Creates the generators.
    ///
    /// # Errors
    /// If there is no generator, or one is invalid or has no rate.
    pub fn new(configs: Vec<GeneratorConfig>) -> Result<TogetherFeed, GeneratorError> {
        if configs.is_empty() || configs.iter().any(|config| config.rate.is_none()) {
            return Err(GeneratorError::NoStream);
        }
        let streams = configs.into_iter().map(GeneratorFeed::new);
        let mut streams: Vec<GeneratorFeed> = streams.collect::<Result<_, _>>()?;
        let heads = streams.iter_mut().map(GeneratorFeed::next).collect();
        Ok(TogetherFeed {
            sent: streams.iter().map(|_| AtomicU64::new(0)).collect(),
            heads,
            streams,
            start: Epoch::ZERO,
        })
    }

    /// Returns each generator's live frame count.
    pub fn sent(&self) -> Arc<[AtomicU64]> {
        Arc::clone(&self.sent)
    }

    /// Returns the generator whose next frame is due first.
    #[inline]
    fn earliest(&self) -> Option<usize> {
        let heads = self.heads.iter().enumerate();
        let heads = heads.filter_map(|(at, head)| head.map(|(_, due)| (due, at)));
        heads.min().map(|(_, at)| at)
    }
}

impl Feed for TogetherFeed {
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut frames = 0;
        while frames < max
            && let Some(at) = self.earliest()
            && let Some((len, due)) = self.heads[at]
        {
            let stream = &mut self.streams[at];
            stream.make(len, due, self.start.wall, take);
            self.heads[at] = stream.next();
            stream.ended = self.heads[at].is_none();
            // Read at the end, and to report progress.
            self.sent[at].store(stream.sent, Ordering::Relaxed);
            frames += 1;
        }
        let end = self.heads.iter().all(Option::is_none);
        Ok(ReceiveResult { frames, end })
    }

    fn begin(&mut self, start: Epoch) {
        self.start = start;
    }

    fn frame_max(&self) -> usize {
        let lengths = self.streams.iter().map(GeneratorFeed::frame_max);
        lengths.max().unwrap_or(0)
    }

    fn status(&self) -> FeedStatus {
        let streams: Vec<FeedStatus> = self.streams.iter().map(GeneratorFeed::status).collect();
        let names = streams.iter().map(|status| status.name.as_str());
        // The slowest generator determines progress.
        let fractions = streams.iter().map(|status| status.fraction);
        let least = |least: f64, fraction: Option<f64>| Some(least.min(fraction?));
        let sent = self.streams.iter().map(GeneratorFeed::sent);
        FeedStatus {
            name: names.collect::<Vec<_>>().join("; "),
            fraction: fractions.into_iter().try_fold(1.0, least),
            counts: vec![("generated", sent.sum())],
            notes: Vec::new(),
        }
    }
}

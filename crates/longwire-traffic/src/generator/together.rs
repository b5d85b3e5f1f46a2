//! Merges several generators into one output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult};
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, FeedFrame, FeedStatus};

use super::config::GeneratorConfig;
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
        while frames < max {
            let Some(at) = self.earliest() else { break };
            let stream = &mut self.streams[at];
            let Some((len, due)) = self.heads[at] else {
                break;
            };
            stream.make(len, due, self.start.wall, take);
            self.heads[at] = stream.next();
            stream.ended = self.heads[at].is_none();
            // Read at the end, and to report progress.
            self.sent[at].store(stream.sent, Ordering::Relaxed);
            frames += 1;
        }
        Ok(ReceiveResult {
            frames,
            end: self.heads.iter().all(Option::is_none),
        })
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
        FeedStatus {
            name: names.collect::<Vec<_>>().join("; "),
            fraction: fractions.into_iter().try_fold(1.0, least),
            counts: vec![(
                "generated",
                self.streams.iter().map(GeneratorFeed::sent).sum(),
            )],
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ARRIVALS, SIZES};
    use longwire_packet::probe::Probe;

    use crate::generator::{FlowConfig, MacAddress, Payload};

    fn config(stream: u32, rate: &str, count: u64) -> GeneratorConfig {
        GeneratorConfig {
            flows: FlowConfig::default(),
            sizes: Arc::from(SIZES.parse("60").expect("sizes")),
            arrivals: Arc::from(ARRIVALS.parse("constant").expect("arrivals")),
            rate: Some(rate.parse().expect("a rate")),
            payload: Payload::Zeros,
            probe: Some(stream),
            count: Some(count),
            time: None,
            seed: 1,
        }
    }

    #[test]
    fn frames_of_all_streams_are_ordered_by_time() {
        let configs = vec![config(0, "1kpps", 4), config(1, "2kpps", 8)];
        let mut feed = TogetherFeed::new(configs).expect("a feed");
        let sent = feed.sent();
        let mut frames = Vec::new();
        loop {
            let received = feed.feed(3, &mut |fed| {
                let probe = Probe::find(&fed.bytes[42..]).expect("a probe");
                frames.push((fed.due.as_nanos() / 1_000, probe.stream, probe.sequence));
            });
            if received.expect("generated").end {
                break;
            }
        }
        let mut expected = Vec::new();
        for n in 0..4 {
            expected.push((n * 1_000, 0, n));
            expected.push((n * 1_000, 1, 2 * n));
            expected.push((n * 1_000 + 500, 1, 2 * n + 1));
        }
        assert_eq!(frames, expected);
        let sent: Vec<u64> = sent.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        assert_eq!(sent, [4, 8]);
        assert_eq!(feed.status().fraction, Some(1.0));
    }

    #[test]
    fn streams_without_a_rate_are_refused() {
        assert!(matches!(
            TogetherFeed::new(Vec::new()),
            Err(GeneratorError::NoStream)
        ));
        let mut config = config(0, "1kpps", 1);
        config.rate = None;
        assert!(TogetherFeed::new(vec![config]).is_err());
    }

    #[test]
    fn mac_addresses_take_turns() {
        let mut config = config(0, "1kpps", 5);
        config.flows.source_mac = MacAddress([2, 0, 0, 0xff, 0xff, 0xfe]);
        config.flows.source_macs = 3;
        config.flows.destination_macs = 2;
        let mut feed = GeneratorFeed::new(config.clone()).expect("a feed");
        let mut macs = Vec::new();
        let all = feed.feed(9, &mut |fed| {
            macs.push((fed.bytes[5], fed.bytes[6..12].to_vec()));
        });
        assert!(all.expect("generated").end);
        let source = |last: [u8; 3]| [&[2, 0, 0][..], &last].concat();
        let [one, two, three] = [[0xff, 0xff, 0xfe], [0xff, 0xff, 0xff], [0, 0, 0]].map(source);
        let expected = [
            (2, one.clone()),
            (3, two.clone()),
            (2, three),
            (3, one),
            (2, two),
        ];
        assert_eq!(macs, expected);
        config.flows.source_macs = 0;
        assert!(GeneratorFeed::new(config).is_err());
    }
}

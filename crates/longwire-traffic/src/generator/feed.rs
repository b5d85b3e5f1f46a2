//! Feed of generated frames.

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult};
use longwire_packet::probe::Probe;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, FeedFrame, FeedStatus};
use longwire_units::random::{Purpose, Stream};

use super::GeneratorConfig;
use super::error::GeneratorError;
use super::flows::Flows;
use super::template::Template;
use crate::arrivals::{Arrivals, Load};

/// A feed of generated frames.
pub struct GeneratorFeed {
    config: GeneratorConfig,
    template: Template,
    flows: Flows,
    pace: Option<Box<dyn Arrivals>>,
    /// Size of all frames, if constant.
    fixed: Option<u32>,
    sizes_stream: Stream,
    arrivals_stream: Stream,
    /// Start of the replay on both clocks.
    start: Epoch,
    pub(super) sent: u64,
    /// Due time of the last frame.
    last: Nanos,
    pub(super) ended: bool,
    frame_max: usize,
}

impl GeneratorFeed {
    /// Creates a generator.
    ///
    /// # Errors
    /// If sizes are too short for the headers, or flows are invalid.
    pub fn new(config: GeneratorConfig) -> Result<GeneratorFeed, GeneratorError> {
        let (least, greatest) = config.sizes.range();
        let stream = |purpose| Stream::new(config.seed, 0, purpose);
        let template = Template::new(&config, greatest, &mut stream(Purpose::Payload));
        let probe = config.probe.is_some();
        let needed = template.headers() + if probe { Probe::LEN as u32 } else { 0 };
        if least < needed {
            return Err(GeneratorError::TooShort {
                size: least,
                headers: template.headers(),
                probe,
                least: needed,
            });
        }
        let flows = Flows::new(&config.flows, stream(Purpose::Flows))?;
        let load = config.rate.map(|rate| Load::new(rate, &*config.sizes));
        Ok(GeneratorFeed {
            template,
            flows,
            pace: load.map(|load| config.arrivals.begin(load)),
            fixed: config.sizes.fixed(),
            sizes_stream: stream(Purpose::Sizes),
            arrivals_stream: stream(Purpose::Arrivals),
            start: Epoch::ZERO,
            sent: 0,
            last: Nanos::ZERO,
            ended: false,
            frame_max: greatest as usize,
            config,
        })
    }

    /// Returns the number of frames generated.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the length and due time of the next frame; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(u32, Nanos)> {
        if self.config.count.is_some_and(|count| self.sent >= count) {
            return None;
        }
        let len = match self.fixed {
            Some(len) => len,
            None => self.config.sizes.draw(self.sent, &mut self.sizes_stream),
        };
        let due = match &mut self.pace {
            Some(pace) => pace.due(len, &mut self.arrivals_stream),
            None => Nanos::ZERO,
        };
        let over = self.config.time.is_some_and(|time| due >= time);
        (due != Nanos::MAX && !over).then_some((len, due))
    }

    /// Generates a frame from the values returned by [`GeneratorFeed::next`]; `made` is the
    /// wall-clock time of the start.
    #[inline]
    pub(super) fn make(
        &mut self,
        len: u32,
        due: Nanos,
        made: Nanos,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) {
        let probe = self.config.probe.map(|stream| Probe {
            stream,
            sequence: self.sent,
            sent: made.saturating_add(due),
        });
        let flow = self.flows.next();
        self.template.turn(self.sent);
        let bytes = self.template.frame(len, flow, probe);
        take(FeedFrame {
            bytes,
            wire_len: len,
            due,
            output: 0,
        });
        self.last = due;
        self.sent += 1;
    }

    /// Returns the progress by count or by time, whichever is further.
    fn fraction(&self) -> Option<f64> {
        if self.ended {
            return Some(1.0);
        }
        let counted = self.config.count.filter(|count| *count > 0);
        let counted = counted.map(|count| self.sent as f64 / count as f64);
        let timed = self.config.time.filter(|_| self.pace.is_some());
        let timed = timed.map(|time| self.last.as_secs_f64() / time.as_secs_f64());
        match (counted, timed) {
            (Some(counted), Some(timed)) => Some(counted.max(timed)),
            (counted, timed) => counted.or(timed),
        }
    }
}

impl Feed for GeneratorFeed {
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut made = self.start.wall;
        if self.pace.is_none() {
            let now = monotonic_now();
            made = self.start.wall_time(now);
            // Unpaced frames are always due, so compare the elapsed time.
            let elapsed = now.saturating_sub(self.start.monotonic);
            self.ended |= self.config.time.is_some_and(|time| elapsed >= time);
        }
        let mut frames = 0;
        while frames < max && !self.ended {
            let Some((len, due)) = self.next() else {
                self.ended = true;
                break;
            };
            self.make(len, due, made, take);
            frames += 1;
        }
        let end = self.ended;
        Ok(ReceiveResult { frames, end })
    }

    fn begin(&mut self, start: Epoch) {
        self.start = start;
    }

    fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    fn frame_max(&self) -> usize {
        self.frame_max
    }

    fn status(&self) -> FeedStatus {
        let config = &self.config;
        let pace = match config.rate {
            Some(rate) => format!("{rate}, {}", config.arrivals),
            None => "top speed".to_owned(),
        };
        FeedStatus {
            name: format!("{}, sizes {}, {pace}", config.flows, config.sizes),
            fraction: self.fraction(),
            counts: vec![("generated", self.sent)],
            notes: Vec::new(),
        }
    }
}

//! A link in virtual time that operates on arrays of arrivals.

use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkConfig, LinkId, Nanos,
};

/// Returns the names of verdicts by code. The code of a drop is 1 plus the index of its reason.
pub fn verdict_names() -> Vec<&'static str> {
    let drops = DropReason::ALL.into_iter().map(DropReason::name);
    ["delivered"].into_iter().chain(drops).collect()
}

/// Number of frames between signal checks.
const BATCH: usize = 1 << 16;

/// Arrival times in nanoseconds and lengths in bytes.
pub struct Arrivals {
    times: Vec<u64>,
    lengths: Vec<u64>,
}

impl Arrivals {
    /// Creates arrivals from times in nanoseconds and lengths in bytes. There is one length per
    /// frame, or one for all frames.
    ///
    /// # Errors
    /// If there are neither one length per time nor a single length, if times decrease, or if a
    /// length is outside 1..2^32.
    pub fn new(times: Vec<u64>, lengths: Vec<u64>) -> Result<Arrivals, String> {
        if lengths.len() != times.len() && lengths.len() != 1 {
            return Err(format!(
                "{} arrivals, but {} lengths; give one per arrival, or one for all",
                times.len(),
                lengths.len()
            ));
        }
        if let Some(at) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(format!(
                "arrival {} is earlier than its predecessor; sort the arrivals",
                at + 1
            ));
        }
        let fits = |length: &u64| (1..=u64::from(u32::MAX)).contains(length);
        if let Some(at) = lengths.iter().position(|length| !fits(length)) {
            return Err(format!(
                "length {at} is {}; it must be 1 to 4294967295",
                lengths[at]
            ));
        }
        Ok(Arrivals { times, lengths })
    }

    fn frame(&self, index: usize) -> FrameMeta {
        let length = self.lengths[if self.lengths.len() == 1 { 0 } else { index }];
        FrameMeta::new(Nanos::from_nanos(self.times[index]), length as u32)
    }
}

/// Results: first one per frame, then one for each delivered copy of a duplicated frame.
#[derive(Default)]
pub struct Results {
    /// Numbers of the frames.
    pub frames: Vec<u64>,
    /// Codes: indices into [`verdict_names`].
    pub verdicts: Vec<u8>,
    /// Departure times in nanoseconds. Like `releases`, 0 for dropped frames.
    pub departures: Vec<u64>,
    pub releases: Vec<u64>,
}

impl Results {
    fn of(frames: usize) -> Results {
        Results {
            frames: (0..frames as u64).collect(),
            verdicts: vec![0; frames],
            departures: vec![0; frames],
            releases: vec![0; frames],
        }
    }
}

/// Frames are indices without bytes.
impl FrameAccess<usize> for Results {
    fn copy(&mut self, index: &mut usize) -> usize {
        *index
    }
}

impl LaneHost<usize> for Results {
    fn delivered(&mut self, index: usize, delivery: &Delivery, is_duplicate: bool) {
        let (departure, release) = (delivery.departure.as_nanos(), delivery.release.as_nanos());
        if is_duplicate {
            self.frames.push(index as u64);
            self.verdicts.push(0);
            self.departures.push(departure);
            self.releases.push(release);
        } else {
            self.departures[index] = departure;
            self.releases[index] = release;
        }
    }

    fn dropped(&mut self, index: usize, reason: DropReason) {
        self.verdicts[index] = 1 + reason.index() as u8;
    }
}

/// A link in virtual time, with its arrivals and results.
pub struct Simulation<'a> {
    lane: Lane<usize>,
    arrivals: &'a Arrivals,
    next: usize,
    results: Results,
}

impl Simulation<'_> {
    /// Creates a link whose run starts at the first arrival.
    pub fn new(mut config: LinkConfig, seed: u64, arrivals: &Arrivals) -> Simulation<'_> {
        config.epoch = Nanos::from_nanos(arrivals.times.first().copied().unwrap_or(0));
        Simulation {
            lane: Lane::new(Link::new(config, seed, LinkId(0))),
            arrivals,
            next: 0,
            results: Results::of(arrivals.times.len()),
        }
    }

    /// Processes a batch of frames. Returns whether frames remain.
    pub fn advance(&mut self) -> bool {
        let count = self.arrivals.times.len();
        let end = count.min(self.next + BATCH);
        for index in self.next..end {
            let frame = self.arrivals.frame(index);
            self.lane.poll(..=frame.arrival, &mut self.results);
            self.lane.offer(frame, index, &mut self.results);
        }
        self.next = end;
        end < count
    }

    /// Delivers the frames still in the link, and returns the results.
    pub fn finish(mut self) -> Results {
        self.lane.poll(.., &mut self.results);
        self.results
    }
}

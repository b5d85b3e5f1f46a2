//! Statistics over received frames.

use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_io::PortError;
use longwire_packet::frame;
use longwire_packet::header::IpHeader;
use longwire_packet::probe::Probe;
use longwire_runtime::record::Epoch;
use longwire_units::count_of;

use super::ReceiveConfig;
use super::comparison::Comparison;
use super::live::LiveComparison;
use super::rates::Series;
use super::report::{ReceiveReport, Unseen};
use super::spread::Distribution;
use super::streams::Streams;
use super::timing::ScheduleComparison;

/// Statistics over received frames.
pub(super) struct Account {
    config: ReceiveConfig,
    /// Converts arrivals to wall-clock time.
    epoch: Epoch,
    /// Number of frames.
    pub packets: u64,
    bytes: u64,
    left_out: u64,
    first: Nanos,
    last: Nanos,
    latest: Nanos,
    /// Number of frames timestamped earlier than their predecessor.
    set_back: u64,
    gaps: Distribution,
    series: Series,
    expected: Option<ScheduleComparison>,
    comparison: Option<Comparison>,
    /// Comparison with frames sent by this process.
    pub live: Option<LiveComparison>,
    streams: Streams,
    capture: Option<CaptureWriter>,
    error: Option<String>,
    pub unseen: Unseen,
}

impl Account {
    /// Opens the trace for comparison and the capture to write, if any. `epoch` converts arrivals
    /// to wall-clock time.
    ///
    /// # Errors
    /// If either cannot be opened.
    pub(super) fn open(config: ReceiveConfig, epoch: Epoch) -> Result<Account, PortError> {
        let comparison = config.against.clone().map(Comparison::open).transpose()?;
        let capture = config.capture.as_deref().map(CaptureWriter::create);
        Ok(Account {
            epoch,
            packets: 0,
            bytes: 0,
            left_out: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
            latest: Nanos::ZERO,
            set_back: 0,
            // Gaps of a steady flow differ only slightly, so use a high resolution.
            gaps: Distribution::with_digits(4),
            series: Series::new(),
            expected: config.expect_gap.map(|_| ScheduleComparison::default()),
            comparison,
            live: None,
            streams: Streams::default(),
            capture: capture.transpose()?,
            error: None,
            unseen: Unseen::default(),
            config,
        })
    }

    /// Records a frame, possibly truncated by its capture.
    #[inline]
    pub(super) fn frame(&mut self, bytes: &[u8], wire_len: u32, arrival: Nanos) {
        if self.is_complete() {
            return;
        }
        let filter = self.config.filter.as_ref();
        if filter.is_some_and(|filter| !filter.matches(bytes, wire_len)) {
            self.left_out += 1;
            return;
        }
        if self.packets == 0 {
            (self.first, self.last, self.latest) = (arrival, arrival, arrival);
        } else {
            let gap = arrival.as_nanos().wrapping_sub(self.last.as_nanos());
            self.gaps.record(gap.cast_signed());
            self.set_back += u64::from(arrival < self.last);
            self.last = arrival;
            self.latest = self.latest.max(arrival);
        }
        if let (Some(against), Some(gap)) = (&mut self.expected, self.config.expect_gap) {
            against.record(gap.saturating_mul(self.packets), arrival, self.packets > 0);
        }
        self.packets += 1;
        self.bytes += u64::from(wire_len);
        let since = arrival.saturating_sub(self.first);
        self.series.record(since, u64::from(wire_len));
        if let Some(comparison) = &mut self.comparison {
            comparison.record(bytes, wire_len, arrival);
        }
        if let Some(live) = &mut self.live {
            live.record(bytes, arrival);
        }
        if let Some(probe) = payload_of(bytes).and_then(Probe::find) {
            self.streams.record(&probe, self.epoch.wall_time(arrival));
        }
        if self.capture.is_some() {
            self.write(bytes, wire_len, arrival);
        }
    }

    fn write(&mut self, bytes: &[u8], wire_len: u32, arrival: Nanos) {
        let stamp = self.epoch.wall_time(arrival);
        if let Some(capture) = &mut self.capture
            && let Err(error) = capture.write(stamp, bytes, wire_len)
        {
            self.error.get_or_insert(error.to_string());
            self.capture = None;
        }
    }

    /// Reads ahead in the trace and matches live arrivals. Must be called after each burst.
    pub(super) fn rest(&mut self) {
        if let Some(comparison) = &mut self.comparison
            && comparison.room() > 0
        {
            comparison.read_ahead();
        }
        if let Some(live) = &mut self.live {
            live.settle();
        }
    }

    /// Whether the requested number of frames has arrived.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.config.count.is_some_and(|count| self.packets >= count)
    }

    /// Records an error that ends the run.
    pub(super) fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// Matches the remaining live arrivals and closes the capture.
    pub(super) fn finish(&mut self) {
        if let Some(live) = &mut self.live {
            live.settle();
        }
        if let Some(Err(error)) = self.capture.take().map(CaptureWriter::finish) {
            self.error.get_or_insert(error.to_string());
        }
    }

    /// Returns the current report, without the fields of the port and the thread.
    pub(super) fn report(&self) -> ReceiveReport {
        let seconds = self.latest.saturating_sub(self.first).as_secs_f64();
        // n frames span n - 1 gaps, so exclude the first frame.
        let per_second = |amount: f64| match self.packets {
            0 | 1 => 0.0,
            _ if seconds == 0.0 => 0.0,
            packets => amount * (packets - 1) as f64 / packets as f64 / seconds,
        };
        let (comparison, live) = (self.comparison.as_ref(), self.live.as_ref());
        let trace = comparison.map(Comparison::report);
        let mut notes = comparison.map_or_else(Vec::new, Comparison::notes);
        if self.set_back > 0 {
            notes.push(format!(
                "{} stamped earlier than the previous frame; such gaps count as negative",
                count_of(self.set_back, "frame")
            ));
        }
        ReceiveReport {
            duration_s: seconds,
            packets: self.packets,
            bytes: self.bytes,
            packets_per_s: per_second(self.packets as f64),
            bits_per_s: per_second(self.bytes as f64 * 8.0),
            left_out: self.left_out,
            unseen: self.unseen,
            rates: self.series.report(),
            gap_us: self.gaps.spread(1e3),
            expected_gap: self.expected.as_ref().map(ScheduleComparison::report),
            trace: trace.or(live.map(LiveComparison::report)),
            delay: live.map(LiveComparison::delay),
            streams: self.streams.report(),
            stray_probes: self.streams.stray,
            notes,
            error: self
                .error
                .clone()
                .or(comparison.and_then(Comparison::error)),
            ..ReceiveReport::default()
        }
    }
}

/// Returns a frame's transport payload, or everything after the MAC header if the frame has no IP.
#[inline]
fn payload_of(bytes: &[u8]) -> Option<&[u8]> {
    let Some(ip) = IpHeader::parse(bytes) else {
        return bytes.get(frame::mac_header_len(bytes) as usize..);
    };
    let transport = ip.transport(bytes)?;
    let header = match transport.protocol {
        // ICMP, UDP and ICMPv6 headers have eight bytes.
        1 | 17 | 58 => 8,
        // The TCP data offset is in 32-bit words.
        6 => usize::from(bytes.get(transport.at + 12)? >> 4) * 4,
        _ => 0,
    };
    bytes.get(transport.at + header..)
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;

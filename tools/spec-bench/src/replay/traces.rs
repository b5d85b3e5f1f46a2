//! The traces: TCPivo's evenly spaced ones, Poisson arrivals, and bursts of mixed sizes. Every
//! frame is unique, so that the receiver can identify it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_packet::repair_checksums;
use longwire_units::random::Stream;

use longwire::Error;

/// A trace, by its arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// TCPivo's first trace: a packet every 70 us
    Even70us,
    /// TCPivo's second trace: a packet every 2,500 us
    Even2500us,
    /// 100,000 packets per second, Poisson
    Poisson100k,
    /// 500,000 packets per second, Poisson
    Poisson500k,
    /// Bursts of the simple Internet mix at 1 Gbit/s, 30,000 packets per second
    BurstyImix,
}

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::Even70us => "even 70 us",
            Workload::Even2500us => "even 2,500 us",
            Workload::Poisson100k => "Poisson 100 kpps",
            Workload::Poisson500k => "Poisson 500 kpps",
            Workload::BurstyImix => "bursty IMIX 30 kpps",
        }
    }

    /// Returns the mean gap between packets, in nanoseconds.
    fn gap_ns(self) -> u64 {
        match self {
            Workload::Even70us => 70_000,
            Workload::Even2500us => 2_500_000,
            Workload::Poisson100k => 10_000,
            Workload::Poisson500k => 2_000,
            Workload::BurstyImix => 33_333,
        }
    }

    /// Returns the number of packets that take as long as `of_70us` packets with gaps of 70 us, at
    /// most a million.
    fn packets(self, of_70us: u64) -> u64 {
        let fitting = of_70us * 70_000 / self.gap_ns();
        match self {
            Workload::Even70us => fitting,
            // Send enough packets for meaningful percentiles.
            Workload::Even2500us => fitting.clamp(200.min(of_70us), 50_000),
            _ => fitting.min(1_000_000),
        }
    }
}

/// Time per byte on the wire, which determines the spacing of frames in a burst.
const WIRE_NS_PER_BYTE: u64 = 8;

/// Mean number of frames per burst.
const BURST: u64 = 32;

/// Frame lengths of the simple Internet mix (7:4:1), without FCS.
const IMIX: [u64; 12] = [60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514];

/// Additional bytes on the wire: preamble, FCS, gap.
const OVERHEAD: u64 = 24;

/// Generates frames: the gap before each, and its length.
struct Frames {
    workload: Workload,
    chance: Stream,
    last_len: u64,
}

impl Frames {
    fn next(&mut self) -> (Nanos, u64) {
        let gap = Nanos::from_nanos(self.workload.gap_ns());
        match self.workload {
            Workload::Even70us | Workload::Even2500us => (gap, 60),
            Workload::Poisson100k | Workload::Poisson500k => (self.chance.exponential(gap), 60),
            Workload::BurstyImix => self.next_of_burst(),
        }
    }

    /// Returns the next frame of a burst. Burst lengths are geometric; silences between bursts are
    /// exponential, with a mean that yields the mean rate.
    fn next_of_burst(&mut self) -> (Nanos, u64) {
        let len = IMIX[self.chance.up_to(IMIX.len() as u64 - 1) as usize];
        let on_wire = (self.last_len + OVERHEAD) * WIRE_NS_PER_BYTE;
        self.last_len = len;
        let mut gap = Nanos::from_nanos(on_wire);
        if self.chance.up_to(BURST - 1) == 0 {
            let mean_len: u64 = IMIX.iter().sum::<u64>() / IMIX.len() as u64;
            let busy = (mean_len + OVERHEAD) * WIRE_NS_PER_BYTE;
            let silence = Nanos::from_nanos((self.workload.gap_ns() - busy) * BURST);
            gap = gap.saturating_add(self.chance.exponential(silence));
        }
        (gap, len)
    }
}

/// A trace on disk.
pub struct Trace {
    pub workload: Workload,
    pub path: PathBuf,
    pub packets: u64,
    pub gap_p50_us: f64,
}

impl Trace {
    /// Writes a trace into a directory.
    pub fn write(workload: Workload, of_70us: u64, directory: &Path) -> Result<Trace, Error> {
        let packets = workload.packets(of_70us);
        let path = directory.join(format!("{workload:?}.pcap"));
        let mut writer = CaptureWriter::create(&path.to_string_lossy())?;
        let mut frames = Frames {
            workload,
            chance: Stream::of_seed(1),
            last_len: 60,
        };
        // Start in 2023.
        let start = Nanos::from_secs(1_700_000_000);
        let mut stamp = start;
        let mut gaps = Vec::with_capacity(packets as usize);
        let mut frame = Vec::new();
        for number in 0..packets {
            let (gap, len) = frames.next();
            if number > 0 {
                stamp = stamp.saturating_add(gap);
                gaps.push(gap.as_nanos());
            }
            build(&mut frame, len as usize, number);
            writer.write(stamp, &frame, len as u32)?;
        }
        writer.finish()?;
        let middle = gaps.len() / 2;
        let median = if gaps.is_empty() {
            0
        } else {
            *gaps.select_nth_unstable(middle).1
        };
        Ok(Trace {
            workload,
            path,
            packets,
            gap_p50_us: median as f64 / 1e3,
        })
    }

    /// Removes the file.
    pub fn remove(self) {
        // Best effort: the directory is removed at the end in any case.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Builds a UDP datagram that contains its number. No station has its destination address, so the
/// stack of the receiving host discards it immediately.
fn build(frame: &mut Vec<u8>, len: usize, number: u64) {
    frame.clear();
    frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let ip_len = (len - 14) as u16;
    frame.extend([0x45, 0]);
    frame.extend(ip_len.to_be_bytes());
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
    frame.extend([0xc3, 0x50, 0xc3, 0x51]);
    frame.extend((ip_len - 20).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(number.to_be_bytes());
    frame.resize(len, 0);
    repair_checksums(frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_the_rates_that_their_names_say() {
        for (workload, mean_ns) in [
            (Workload::Even70us, 70_000.0),
            (Workload::Even2500us, 2_500_000.0),
            (Workload::Poisson100k, 10_000.0),
            (Workload::Poisson500k, 2_000.0),
            (Workload::BurstyImix, 33_333.0),
        ] {
            let mut frames = Frames {
                workload,
                chance: Stream::of_seed(1),
                last_len: 60,
            };
            let count = 200_000;
            let total: f64 = (0..count).map(|_| frames.next().0.as_nanos() as f64).sum();
            // The mean gap of the bursty trace has a standard deviation of 1.3 % with 6,250 bursts;
            // those of other traces are smaller. The seed is 1.
            let mean = total / f64::from(count);
            assert!((mean / mean_ns - 1.0).abs() < 0.04, "{workload:?}: {mean}");
        }
    }

    #[test]
    fn frames_are_whole_and_different() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for len in [60, 590, 1514] {
            build(&mut one, len, 7);
            build(&mut other, len, 8);
            assert_eq!(one.len(), len);
            assert_ne!(one, other);
            let mut repaired = one.clone();
            repair_checksums(&mut repaired);
            assert_eq!(one, repaired);
            // The value that means "no checksum" must not occur.
            assert_ne!(one[40..42], [0, 0]);
        }
    }
}

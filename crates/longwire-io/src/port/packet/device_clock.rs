//! The clock of a network device, from which its send stamps are taken, compared with
//! the system's.
//!
//! No device with a clock was available: this follows the kernel's documentation
//! (Documentation/networking/timestamping.rst, and linux/ptp_clock.h on clocks with
//! descriptors) and has been tested with synthetic readings only.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::time::ClockId;

use super::super::clocks::ClockReading;

/// `CLOCKFD` of the kernel's dynamic clocks.
const CLOCK_BEHIND_DESCRIPTOR: libc::clockid_t = 3;

/// A device's clock, compared with CLOCK_MONOTONIC at intervals.
pub(super) struct DeviceClock {
    /// Kept open: the clock's number refers to it.
    _file: File,
    clock: ClockId,
    comparison: Comparison,
}

impl DeviceClock {
    /// Opens the clock of this number, `/dev/ptpN`.
    pub(super) fn open(number: u32) -> io::Result<DeviceClock> {
        let file = File::open(format!("/dev/ptp{number}"))?;
        let clock = ClockId::from_raw((!file.as_raw_fd() << 3) | CLOCK_BEHIND_DESCRIPTOR);
        // The wrapper reports errors, unlike the reading below.
        nix::time::clock_gettime(clock)?;
        let reading = Point::of(ClockReading::new(clock));
        Ok(DeviceClock {
            _file: file,
            clock,
            comparison: Comparison {
                before: reading,
                now: reading,
            },
        })
    }

    /// Reads both clocks again.
    pub(super) fn compare(&mut self) {
        self.comparison = Comparison {
            before: self.comparison.now,
            now: Point::of(ClockReading::new(self.clock)),
        };
    }

    /// Converts a time of the device's clock to CLOCK_MONOTONIC.
    pub(super) fn monotonic(&self, device: u64) -> u64 {
        self.comparison.monotonic(device)
    }
}

/// A time on both clocks.
#[derive(Clone, Copy, Debug)]
struct Point {
    device: u64,
    ahead: i64,
}

impl Point {
    fn of(reading: ClockReading) -> Point {
        Point {
            device: reading.other,
            ahead: reading.offset(),
        }
    }
}

/// The last two readings of both clocks. A device's clock may run freely, some parts in
/// a hundred thousand faster or slower: between the readings its lead is interpolated
/// linearly.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    before: Point,
    now: Point,
}

impl Comparison {
    fn monotonic(&self, device: u64) -> u64 {
        let passed = i128::from(self.now.device) - i128::from(self.before.device);
        let gained = i128::from(self.now.ahead) - i128::from(self.before.ahead);
        let back = i128::from(self.now.device) - i128::from(device);
        let correction = match passed {
            0 => 0,
            passed => gained * back / passed,
        };
        let ahead = i128::from(self.now.ahead) - correction;
        u64::try_from(i128::from(device) - ahead).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    #[test]
    fn a_steady_clock_is_a_constant_ahead() {
        let point = |device| Point { device, ahead: DAY };
        let day = DAY.cast_unsigned();
        let comparison = Comparison {
            before: point(day + 1_000),
            now: point(day + 9_000),
        };
        assert_eq!(comparison.monotonic(day + 5_000), 5_000);
        assert_eq!(comparison.monotonic(day + 1_000), 1_000);
    }

    #[test]
    fn a_clock_that_gains_is_followed_between_two_looks() {
        // 50 parts in a million fast, read every 100 ms.
        let day = DAY.cast_unsigned();
        let device = |monotonic: u64| day + monotonic + monotonic / 20_000;
        let look = |monotonic: u64| Point {
            device: device(monotonic),
            ahead: (device(monotonic) - monotonic).cast_signed(),
        };
        let comparison = Comparison {
            before: look(1_000_000_000),
            now: look(1_100_000_000),
        };
        for monotonic in [1_000_000_000, 1_030_000_000, 1_099_999_000] {
            let found = comparison.monotonic(device(monotonic));
            assert!(found.abs_diff(monotonic) <= 1, "{found} {monotonic}");
        }
    }

    #[test]
    fn a_device_without_a_clock_is_an_error() {
        assert!(DeviceClock::open(u32::MAX).is_err());
    }
}

//! Timing checks: clock, sleep and pauses.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use super::Finding;
use super::system::{field, number, read};
use crate::report::words::micros;

pub(super) fn check() -> Vec<Finding> {
    let mut findings = vec![clock(), timer_slack(), throttling()];
    // Measure on a separate thread: the reduced timer slack must not outlast the measurement.
    let measured = thread::spawn(|| (wake_up_latencies(), spin(WITNESS_TIME))).join();
    if let Ok((latencies, pauses)) = measured {
        findings.extend(latencies.map(|latencies| waking(&latencies)));
        findings.push(pausing(&pauses));
    }
    findings
}

fn clock() -> Finding {
    /// A slower clock read indicates a system call.
    const READ_NOTABLE_NS: u128 = 150;
    const READS: u32 = 10_000;
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .unwrap_or_else(|| "unknown".to_owned());
    let start = Instant::now();
    for _ in 0..READS {
        // Only the duration of the call matters.
        let _ = std::hint::black_box(clock_gettime(ClockId::CLOCK_MONOTONIC));
    }
    let read_ns = start.elapsed().as_nanos() / u128::from(READS);
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let flags = field(&cpuinfo, "flags").unwrap_or_default();
    let has = |wanted| flags.split_ascii_whitespace().any(|flag| flag == wanted);
    let stable = if has("constant_tsc") && has("nonstop_tsc") {
        ", constant and nonstop TSC"
    } else {
        ""
    };
    let found = format!("{source}, {read_ns} ns per read{stable}");
    Finding::warn_unless(read_ns <= READ_NOTABLE_NS, "clock", found)
        .costs("slow clock reads reduce throughput and accuracy")
        .fix("the kernel parameter clocksource=tsc, if the TSC is stable")
}

fn timer_slack() -> Finding {
    let slack = micros(f64::from(prctl::get_timerslack().unwrap_or(0)) / 1e3);
    let found = format!("{slack} by default; Longwire sets 1 ns");
    Finding::ok("timer slack", found)
}

/// Checks real-time throttling: by default, a spinning SCHED_FIFO thread stops for 50 ms per
/// second.
fn throttling() -> Finding {
    let runtime = number("/proc/sys/kernel/sched_rt_runtime_us");
    let period = number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let found = match runtime {
        None => "unknown".to_owned(),
        Some(-1) => "off".to_owned(),
        Some(runtime) => format!(
            "spinning real-time threads are throttled for {} in every {}; a replay's sender \
             requests SCHED_FIFO, and gives it up while busy",
            micros((period - runtime) as f64),
            micros(period as f64)
        ),
    };
    Finding::ok("real-time limit", found)
}

/// Number of sleeps used to measure wake-up latency, and their duration.
const SLEEPS: usize = 200;
const SLEEP_NS: i64 = 100_000;

/// Measures wake-up latencies with minimum timer slack; returns them sorted, or `None` if sleeping
/// fails.
fn wake_up_latencies() -> Option<Vec<Duration>> {
    // If the kernel refuses, the measured latencies show it.
    let _ = prctl::set_timerslack(1);
    let now = || clock_gettime(ClockId::CLOCK_MONOTONIC).ok();
    let mut latencies = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let until = now()? + TimeSpec::new(0, SLEEP_NS);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &until) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
        latencies.push(Duration::from(now()?).saturating_sub(Duration::from(until)));
    }
    latencies.sort();
    Some(latencies)
}

fn waking(latencies: &[Duration]) -> Finding {
    /// Maximum 99th percentile without a warning; suitable machines stay well below it.
    const P99_NOTABLE: Duration = Duration::from_micros(150);
    let at = |percent: usize| {
        let index = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
        latencies.get(index).copied().unwrap_or_default()
    };
    let show = |latency: Duration| micros(latency.as_secs_f64() * 1e6);
    let [median, p99, max] = [50, 99, 100].map(|percent| show(at(percent)));
    let found = format!("median {median}, p99 {p99}, max {max} late after sleeping 100 us");
    Finding::warn_unless(at(99) <= P99_NOTABLE, "wake-up", found)
        .costs("Longwire wakes this long before each release, then spins")
        .fix("--wait spin with a spare core; stop other programs; shallower idle states")
}

/// Duration of the spin, and minimum gap between clock reads that counts as a pause.
const WITNESS_TIME: Duration = Duration::from_millis(200);
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// Spins for `time`; returns the gaps of at least [`PAUSE_MIN`] between clock reads.
fn spin(time: Duration) -> Vec<Duration> {
    let start = Instant::now();
    let mut last = start;
    let mut pauses = Vec::new();
    while last.duration_since(start) < time {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap >= PAUSE_MIN {
            pauses.push(gap);
        }
        last = now;
    }
    pauses
}

fn pausing(pauses: &[Duration]) -> Finding {
    let spun = WITNESS_TIME.as_millis();
    let Some(longest) = pauses.iter().max() else {
        return Finding::ok("pauses", format!("none seen in {spun} ms of spinning"));
    };
    let total: Duration = pauses.iter().sum();
    let show = |time: Duration| micros(time.as_secs_f64() * 1e6);
    Finding::warn(
        "pauses",
        format!(
            "{} in {spun} ms of spinning, at most {}, {} in total",
            pauses.len(),
            show(*longest),
            show(total)
        ),
    )
    .costs("frames due during a pause are late; runs report pauses separately")
    .fix("stop other programs; if this is a virtual machine, run it on a dedicated host")
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn latencies_are_summed_up_by_their_percentiles() {
        let latencies: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        let finding = waking(&latencies);
        assert_eq!(finding.status, Status::Ok);
        let percentiles = "median 51.0 us, p99 100 us";
        assert!(finding.found.starts_with(percentiles), "{finding:?}");
        assert_eq!(waking(&[Duration::from_millis(1)]).status, Status::Warn);
        assert_eq!(waking(&[]).status, Status::Ok);
    }

    #[test]
    fn pauses_are_counted_with_the_longest() {
        let finding = pausing(&[Duration::from_micros(150), Duration::from_millis(2)]);
        let pauses = "2 in 200 ms of spinning, at most 2.00 ms, 2.15 ms in total";
        assert_eq!(finding.found, pauses);
        assert_eq!(pausing(&[]).status, Status::Ok);
    }
}

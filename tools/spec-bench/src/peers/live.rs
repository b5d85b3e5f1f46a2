//! Figures of live links, measured with ordinary sockets on both sides.

use std::time::Duration;

use longwire::Error;
use longwire::bench::harness::median;
use longwire_traffic::sockets::{Path, UdpFlow, round_trips, tcp_flow, udp_flow};

use super::comparison::Reading;
use super::session::Emulator;
use crate::light::{DELAY, light_load, rtt_error_us};
use crate::program::failed;

/// Length of the datagrams at full speed.
const SMALL: u32 = 64;

/// Minimum time between probes without load.
const INTERVAL: Duration = Duration::from_millis(2);

const TIMEOUT: Duration = Duration::from_secs(1);

/// Emulators started per round.
const STARTS: usize = 5;

/// Measures TCP, then datagrams at full speed.
///
/// # Errors
/// If the emulator fails.
pub fn traffic(emulator: &Emulator, time: Duration) -> Result<Vec<Reading>, Error> {
    let session = emulator.start(Duration::ZERO)?;
    let tcp = tcp_flow(session.path(), time, time / 4)?;
    session.stop()?;
    // A new session, so that its report counts only these datagrams.
    let session = emulator.start(Duration::ZERO)?;
    let overflows = receive_overflows(session.path())?;
    let flood = udp_flow(session.path(), UdpFlow::new(SMALL, 0, time))?;
    let overflows = receive_overflows(session.path())? - overflows;
    let seen = flood.received + overflows + session.stop()?;
    let unseen = flood.sent.saturating_sub(seen);
    let share = 100.0 * unseen as f64 / flood.sent.max(1) as f64;
    let delivered = flood.received as f64 / time.as_secs_f64() / 1e3;
    Ok(vec![
        Reading::more("TCP", "Gbit/s", tcp.goodput / 1e9),
        Reading::more("64 B UDP, delivered", "kpps", delivered),
        Reading::less("64 B UDP, unseen losses", "%", share),
    ])
}

/// Returns the number of datagrams that the receiving host dropped because a socket was full: they
/// crossed the link.
fn receive_overflows(path: Path<'_>) -> Result<u64, Error> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
    overflows_in(&path.to.namespace.run(read)??)
        .ok_or_else(|| failed("no counters of UDP in /proc/net/snmp"))
}

/// Reads `RcvbufErrors` of UDP: a line of names, then one of values.
fn overflows_in(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(name, _)| *name == "RcvbufErrors")?;
    value.parse().ok()
}

/// Measures RTTs without load at several delays.
///
/// # Errors
/// If the emulator fails.
pub fn delay(emulator: &Emulator, delays: &[Duration], probes: u32) -> Result<Vec<Reading>, Error> {
    let mut readings = Vec::new();
    for delay in delays {
        let session = emulator.start(*delay)?;
        let (path, timeout) = (session.path(), TIMEOUT + 2 * *delay);
        // Neighbour discovery and cold caches are not the link's.
        round_trips(path, 5, Duration::ZERO, timeout)?;
        let trips = round_trips(path, probes, INTERVAL, timeout)?;
        session.stop()?;
        let emulated = match emulator {
            Emulator::Bare => Duration::ZERO,
            _ => *delay,
        };
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = format!("RTT error at {} ms, {name}", delay.as_millis());
            let error = rtt_error_us(&trips, share, emulated);
            readings.push(Reading::less(figure, "us", error));
        }
    }
    Ok(readings)
}

/// Measures CPU time with few packets.
///
/// # Errors
/// If the emulator fails.
pub fn load(emulator: &Emulator, rates: &[u64], time: Duration) -> Result<Vec<Reading>, Error> {
    let mut readings = Vec::new();
    for rate in rates {
        let session = emulator.start(DELAY)?;
        let load = light_load(session.path(), *rate, time, || session.usage())?;
        session.stop()?;
        let percent = 100.0 * load.cores;
        readings.push(Reading::less(format!("CPU at {rate} pps"), "%", percent));
    }
    Ok(readings)
}

/// Measures the time to start and end with `true` as the command.
///
/// # Errors
/// If the emulator fails.
pub fn start_up(emulator: &Emulator) -> Result<Vec<Reading>, Error> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        times.push(emulator.start_and_end()?.as_secs_f64() * 1e3);
    }
    Ok(vec![Reading::less("start and end", "ms", median(times))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_found_by_name() {
        let snmp = "Tcp: InErrs\nTcp: 7\n\
                    Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 10 1 2 11 42 3\n";
        assert_eq!(overflows_in(snmp), Some(42));
        assert_eq!(overflows_in("Udp: InDatagrams\nUdp: 10\n"), None);
    }
}

//! Datagram round-trip times.
//!
//! Arrivals are kernel timestamps, as for `ping`. The time for which the responder holds a datagram
//! is subtracted, so that only the path in both directions remains.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::stamped::{self, number_at, put_number, realtime_ns};
use super::udp::{exchange, payload_len, receiver_of};
use super::{Path, TrafficError, UDP_HEADERS, during};

/// Round-trip times.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// Sorted times in nanoseconds.
    pub times_ns: Vec<u64>,
    /// Number of requests without a response.
    pub lost: u64,
}

impl RoundTrips {
    /// Returns the median in nanoseconds.
    pub fn median_ns(&self) -> Option<u64> {
        self.times_ns.get(self.times_ns.len() / 2).copied()
    }
}

/// Round-trip measurement settings.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// Frame length in bytes including the Ethernet header, 58 to 1514. Responses have the same
    /// length.
    pub frame_len: u32,
    /// Number of requests.
    pub count: u32,
    /// Minimum interval between requests, of which at most one is outstanding.
    pub interval: Duration,
    /// Response timeout.
    pub timeout: Duration,
}

/// Measures `count` round trips with minimum-size datagrams.
///
/// # Errors
/// If a namespace cannot be entered or a socket operation fails.
pub fn round_trips(
    path: Path<'_>,
    count: u32,
    interval: Duration,
    timeout: Duration,
) -> Result<RoundTrips, TrafficError> {
    let probes = Probes {
        frame_len: UDP_HEADERS + ANSWER_LEN as u32,
        count,
        interval,
        timeout,
    };
    probe_trips(path, probes)
}

/// Measures round trips.
///
/// # Errors
/// If a namespace cannot be entered or a socket operation fails.
pub fn probe_trips(path: Path<'_>, probes: Probes) -> Result<RoundTrips, TrafficError> {
    let server = receiver_of(path)?;
    let serve = |done: &AtomicBool| serve(&server, done);
    let (trips, ()) = exchange(path, &server, serve, |client| ask(client, probes))?;
    Ok(trips)
}

/// Length of a response: request number, and time for which the request was held.
const ANSWER_LEN: usize = 16;

fn serve(server: &UdpSocket, done: &AtomicBool) -> Result<(), TrafficError> {
    let poll = Some(Duration::from_millis(20));
    server.set_read_timeout(poll).map_err(during("wait"))?;
    stamped::stamp_arrivals(server)?;
    let mut buffer = [0u8; 2048];
    while !done.load(Ordering::Acquire) {
        let Ok(request) = stamped::receive(server, &mut buffer) else {
            continue;
        };
        if let Some(from) = request.from {
            let len = request.len.clamp(ANSWER_LEN, buffer.len());
            put_number(&mut buffer, 1, realtime_ns() - request.arrival);
            // The client counts lost responses.
            let _ = server.send_to(&buffer[..len], from);
        }
    }
    Ok(())
}

fn ask(client: &UdpSocket, probes: Probes) -> Result<RoundTrips, TrafficError> {
    let mut trips = RoundTrips::default();
    client
        .set_read_timeout(Some(probes.timeout))
        .map_err(during("wait"))?;
    stamped::stamp_arrivals(client)?;
    let mut request = vec![0u8; payload_len(probes.frame_len).max(ANSWER_LEN)];
    for number in 0..i64::from(probes.count) {
        let start = Instant::now();
        put_number(&mut request, 0, number);
        let sent = realtime_ns();
        client.send(&request).map_err(during("send"))?;
        match answer(client, number) {
            Some((arrival, held)) => {
                let time = (arrival - sent - held).max(0);
                trips.times_ns.push(time as u64);
            }
            None => trips.lost += 1,
        }
        std::thread::sleep(probes.interval.saturating_sub(start.elapsed()));
    }
    trips.times_ns.sort_unstable();
    Ok(trips)
}

/// Returns the arrival of a response, and the time for which the responder held the request.
fn answer(client: &UdpSocket, number: i64) -> Option<(i64, i64)> {
    let mut buffer = [0u8; 2048];
    loop {
        let got = stamped::receive(client, &mut buffer).ok()?;
        let payload = &buffer[..got.len];
        // Skip late responses to earlier requests.
        if number_at(payload, 0) == Some(number) {
            return Some((got.arrival, number_at(payload, 1)?));
        }
    }
}

//! Round trips: datagrams sent there and back.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::udp::receiver_of;
use super::{Path, TrafficError, during};

/// Round-trip times.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// In nanoseconds, sorted.
    pub times_ns: Vec<u64>,
    /// Requests that were never answered.
    pub lost: u64,
}

impl RoundTrips {
    /// The median, in nanoseconds.
    pub fn median_ns(&self) -> Option<u64> {
        self.times_ns.get(self.times_ns.len() / 2).copied()
    }
}

/// Makes `count` round trips, one every `interval` at the earliest and never
/// two at a time. An answer is awaited for `patience`.
pub fn round_trips(
    path: Path<'_>,
    count: u32,
    interval: Duration,
    patience: Duration,
) -> Result<RoundTrips, TrafficError> {
    let server = receiver_of(path)?;
    let target = server.local_addr().map_err(during("name a socket"))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server, &done));
        let trips = path.from.namespace.run(|| {
            let client = UdpSocket::bind((path.from.address, 0)).map_err(during("open a socket"))?;
            client.connect(target).map_err(during("reach the other end"))?;
            ask(&client, count, interval, patience)
        });
        done.store(true, Ordering::Release);
        serving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        trips?
    })
}

fn serve(server: &UdpSocket, done: &AtomicBool) -> Result<(), TrafficError> {
    let poll = Some(Duration::from_millis(20));
    server.set_read_timeout(poll).map_err(during("wait"))?;
    let mut buffer = [0u8; 2048];
    while !done.load(Ordering::Acquire) {
        if let Ok((len, from)) = server.recv_from(&mut buffer) {
            // A lost answer is counted by the client.
            let _ = server.send_to(&buffer[..len], from);
        }
    }
    Ok(())
}

fn ask(
    client: &UdpSocket,
    count: u32,
    interval: Duration,
    patience: Duration,
) -> Result<RoundTrips, TrafficError> {
    let mut trips = RoundTrips::default();
    let mut buffer = [0u8; 2048];
    client.set_read_timeout(Some(patience)).map_err(during("wait"))?;
    for number in 0..count {
        let request = u64::from(number).to_le_bytes();
        let start = Instant::now();
        client.send(&request).map_err(during("send"))?;
        // An answer to an earlier request is a late one: look on.
        let answered = loop {
            match client.recv(&mut buffer) {
                Ok(len) if buffer[..len] == request => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        let elapsed = start.elapsed();
        if answered {
            trips.times_ns.push(elapsed.as_nanos() as u64);
        } else {
            trips.lost += 1;
        }
        std::thread::sleep(interval.saturating_sub(elapsed));
    }
    trips.times_ns.sort_unstable();
    Ok(trips)
}

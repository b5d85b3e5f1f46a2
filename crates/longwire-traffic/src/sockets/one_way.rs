//! One-way delay of timestamped datagrams.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longwire_runtime::host;

use super::pace::Pace;
use super::stamped::{self, number_at, put_number, realtime_ns};
use super::udp::{enlarge_receive_buffer, exchange, payload_len, receiver_of};
use super::{Path, TrafficError, during};

/// Payload length of a datagram, which contains its number and send time.
const STAMP_LEN: usize = 16;

/// Time to wait for late datagrams, beyond the link's delay.
const GRACE: Duration = Duration::from_millis(300);

/// Results of a timestamped flow.
#[derive(Clone, Debug, Default)]
pub struct OneWay {
    /// Sorted one-way delays in nanoseconds.
    pub times_ns: Vec<i64>,
    /// Number and delay of each datagram, in arrival order.
    pub arrivals: Vec<(u64, i64)>,
    /// Datagrams sent.
    pub sent: u64,
}

impl OneWay {
    /// Returns a delay quantile in nanoseconds.
    pub fn quantile(&self, share: f64) -> i64 {
        let index = (share * self.times_ns.len().saturating_sub(1) as f64).round() as usize;
        self.times_ns.get(index).copied().unwrap_or(0)
    }

    /// Returns the mean and standard deviation in nanoseconds.
    pub fn mean_stddev(&self) -> (f64, f64) {
        let count = self.times_ns.len().max(1) as f64;
        let mean = self.times_ns.iter().map(|t| *t as f64).sum::<f64>() / count;
        let variance = self.times_ns.iter().map(|t| (*t as f64 - mean).powi(2));
        (mean, (variance.sum::<f64>() / count).sqrt())
    }

    /// Returns the number of datagrams that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.times_ns.len() as u64)
    }
}

/// Sends `count` datagrams in frames of `frame_len` bytes at `per_second`, and measures the delay
/// of each.
///
/// The sender reads CLOCK_REALTIME just before the system call, and the receiver's kernel
/// timestamps arrivals on the same clock. Both threads run on `core`, if given; otherwise, the
/// scheduler might place one of them on a core on which an emulator spins.
///
/// # Errors
/// If a namespace cannot be entered or a socket operation fails.
pub fn one_way(
    path: Path<'_>,
    frame_len: u32,
    per_second: u64,
    count: u64,
    link_delay: Duration,
    core: Option<usize>,
) -> Result<OneWay, TrafficError> {
    let receiver = receiver_of(path)?;
    stamped::stamp_arrivals(&receiver)?;
    enlarge_receive_buffer(&receiver);
    let read = |done: &AtomicBool| {
        core.map(host::pin);
        receive(&receiver, done, count, link_delay + GRACE)
    };
    let send = |socket: &UdpSocket| {
        core.map(host::pin);
        Ok(send_stamped(socket, frame_len, per_second, count))
    };
    let (sent, arrivals) = exchange(path, &receiver, read, send)?;
    let mut times_ns: Vec<i64> = arrivals.iter().map(|(_, time)| *time).collect();
    times_ns.sort_unstable();
    Ok(OneWay {
        times_ns,
        arrivals,
        sent,
    })
}

fn send_stamped(socket: &UdpSocket, frame_len: u32, per_second: u64, count: u64) -> u64 {
    let mut payload = vec![0u8; payload_len(frame_len).max(STAMP_LEN)];
    let mut pace = Pace::new(per_second);
    let mut sent = 0;
    for number in 0..count {
        pace.wait();
        put_number(&mut payload, 0, number as i64);
        put_number(&mut payload, 1, realtime_ns());
        sent += u64::from(socket.send(&payload).is_ok());
    }
    sent
}

fn receive(
    socket: &UdpSocket,
    done: &AtomicBool,
    count: u64,
    timeout: Duration,
) -> Result<Vec<(u64, i64)>, TrafficError> {
    let poll = Some(Duration::from_millis(50));
    socket.set_read_timeout(poll).map_err(during("wait"))?;
    let mut arrivals = Vec::with_capacity(count as usize);
    let mut buffer = vec![0u8; 65_536];
    let mut last = Instant::now();
    while (arrivals.len() as u64) < count {
        let Ok(datagram) = stamped::receive(socket, &mut buffer) else {
            if done.load(Ordering::Acquire) && last.elapsed() > timeout {
                break;
            }
            continue;
        };
        last = Instant::now();
        let payload = &buffer[..datagram.len];
        if let (Some(number), Some(sent)) = (number_at(payload, 0), number_at(payload, 1)) {
            arrivals.push((number as u64, datagram.arrival - sent));
        }
    }
    Ok(arrivals)
}

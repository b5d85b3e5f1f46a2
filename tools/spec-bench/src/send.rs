//! `send`: frames/s into a veth pair, sent by bare sockets and by Longwire's ports.
//!
//! Rounds interleave all senders, because the machine is shared. Only frames counted by the peer
//! count as sent.

use std::time::{Duration, Instant};

use clap::Args;
use longwire::Error;
use longwire::bench::harness::{in_turn, median};
use longwire::bench::testbed::Testbed;
use longwire_engine::Nanos;
use longwire_io::net::link_stats;
use longwire_io::port::bare::{BarePacket, BareXdp};
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry::{self, Port};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_traffic::sockets::Path;
use serde::Serialize;

use crate::program::{Measurement, cpu_of_thread, failed};

/// Options of `send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// Frame lengths in bytes
    #[arg(long, value_name = "BYTES")]
    #[arg(value_delimiter = ',', default_value = "64,1514")]
    pub size: Vec<u32>,
    /// Duration per sender and round
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub time: Nanos,
    /// Interleaved rounds over all senders
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub rounds: usize,
}

/// Interface name in both namespaces of the testbed.
const INTERFACE: &str = "eth0";
/// Number of frames that the egress stage passes to a port per batch, and maximum number that an
/// AF_XDP sender passes to the kernel per call.
const BURST: usize = longwire_runtime::stage::BURST;
const LARGE_BURST: usize = 512;

/// A way to send frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMethod {
    Send,
    SendMany,
    BareXdp,
    /// A port of this kind, with this number of frames per batch.
    Port(&'static str, usize),
}

const SENDERS: [SendMethod; 7] = [
    SendMethod::Send,
    SendMethod::SendMany,
    SendMethod::BareXdp,
    SendMethod::Port("packet", BURST),
    SendMethod::Port("packet", LARGE_BURST),
    SendMethod::Port("xdp", BURST),
    SendMethod::Port("xdp", LARGE_BURST),
];

/// Index of the bare AF_XDP sender.
const BASE: usize = 2;

impl SendMethod {
    fn name(self) -> String {
        match self {
            SendMethod::Send => "send alone".to_owned(),
            SendMethod::SendMany => "sendmmsg alone".to_owned(),
            SendMethod::BareXdp => "AF_XDP alone".to_owned(),
            SendMethod::Port(kind, burst) => format!("{kind}: by {burst}"),
        }
    }
}

/// A sender's results in one round.
#[derive(Debug)]
pub struct SendRound {
    pub mpps: f64,
    cpu_ns: f64,
    /// Frames counted by the sender, but not by the peer.
    missing: i64,
}

/// A row: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct SendRow {
    size: u32,
    sender: String,
    mpps: f64,
    /// CPU time per frame of the sender and the kernel, including the peer's share.
    cpu_ns: f64,
    /// Ratio to the bare AF_XDP sender in the same round.
    ratio_to_bare_xdp: f64,
    /// Ratio of CPU times, which does not depend on the load of other programs.
    ratio_by_cpu: f64,
    /// Maximum over all rounds of frames counted by the sender, but not by the peer; must be 0.
    missing_max: i64,
}

impl Measurement for SendArgs {
    type Found = Vec<SendRow>;

    const ABOUT: &'static str = "Frames into a veth pair at full speed, counted by the peer; \
                                 medians of interleaved rounds.\nAlone: only the system call. \
                                 Ports: bursts copied from memory.";

    fn quick(&self) -> SendArgs {
        SendArgs {
            size: vec![64],
            time: Nanos::from_millis(20),
            rounds: 1,
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<SendRow>, Error> {
        let testbed = Testbed::bare()?;
        let path = testbed.path();
        let time = Duration::from_nanos(self.time.as_nanos());
        let mut rows = Vec::new();
        for size in &self.size {
            let frame = frame(*size);
            let found = in_turn(self.rounds, &SENDERS, |_, sender| {
                one(&path, *sender, &frame, time)
            })?;
            for (sender, rounds) in SENDERS.iter().zip(&found) {
                let ratio = |of: fn(&SendRound, &SendRound) -> f64| {
                    median(
                        rounds
                            .iter()
                            .zip(&found[BASE])
                            .map(|(own, base)| of(own, base)),
                    )
                };
                rows.push(SendRow {
                    size: *size,
                    sender: sender.name(),
                    mpps: median(rounds.iter().map(|round| round.mpps)),
                    cpu_ns: median(rounds.iter().map(|round| round.cpu_ns)),
                    ratio_to_bare_xdp: ratio(|own, base| own.mpps / base.mpps),
                    ratio_by_cpu: ratio(|own, base| base.cpu_ns / own.cpu_ns),
                    missing_max: rounds.iter().map(|round| round.missing).max().unwrap_or(0),
                });
            }
        }
        Ok(rows)
    }
}

/// Returns a frame with an experimental EtherType; the network stack of the peer counts and
/// discards it.
pub fn frame(size: u32) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5];
    bytes.resize(size.max(14) as usize, 0xa5);
    bytes
}

/// Sends for `time` with one method.
///
/// # Errors
/// If the sender fails.
pub fn one(
    path: &Path<'_>,
    sender: SendMethod,
    frame: &[u8],
    time: Duration,
) -> Result<SendRound, Error> {
    let far = path.to.namespace;
    let counted = || far.run(|| link_stats(INTERFACE).map(|stats| stats.rx_packets));
    let before = counted()??;
    let sent = path
        .from
        .namespace
        .run(|| send(sender, frame, time))?
        .map_err(failed)?;
    let received = counted()?? - before;
    Ok(SendRound {
        mpps: received as f64 / sent.wall.as_secs_f64() / 1e6,
        cpu_ns: sent.cpu.as_nanos() as f64 / received.max(1) as f64,
        missing: sent.frames.cast_signed() - received.cast_signed(),
    })
}

/// The sender's own counts in a round.
struct SendCounts {
    frames: u64,
    wall: Duration,
    cpu: Duration,
}

fn send(sender: SendMethod, frame: &[u8], time: Duration) -> Result<SendCounts, PortError> {
    let failed = |source| PortError::Failed {
        port: sender.name(),
        action: "sending",
        source,
    };
    match sender {
        SendMethod::Send => {
            let socket = BarePacket::open(INTERFACE, frame)?;
            // Send as many frames per batch as other methods send per call.
            let some = || (0..64).try_fold(0, |sum, _| socket.send_one().map(|sent| sum + sent));
            flood(time, || some().map_err(failed))
        }
        SendMethod::SendMany => {
            let socket = BarePacket::open(INTERFACE, frame)?;
            flood(time, || socket.send_many().map_err(failed))
        }
        SendMethod::BareXdp => {
            let mut socket = BareXdp::open(INTERFACE, frame)?;
            flood(time, || socket.send(LARGE_BURST as u32).map_err(failed))
        }
        SendMethod::Port(kind, burst) => {
            let options = OpenOptions {
                purpose: Purpose::Send,
                ..OpenOptions::default()
            };
            let mut port = registry::open(&format!("{kind}:{INTERFACE}"), &options)?;
            flood(time, || push_burst(&mut port, frame, burst))
        }
    }
}

/// Sends a burst like the egress stage.
fn push_burst(port: &mut Port, frame: &[u8], burst: usize) -> Result<usize, PortError> {
    for _ in 0..burst {
        if port.tx.push(TxFrame::whole(frame, Nanos::ZERO)) != PushResult::Taken {
            break;
        }
    }
    port.tx.flush()
}

/// Sends bursts for `time`.
fn flood(
    time: Duration,
    mut burst: impl FnMut() -> Result<usize, PortError>,
) -> Result<SendCounts, PortError> {
    let (start, used) = (Instant::now(), cpu_of_thread());
    let mut frames = 0;
    while start.elapsed() < time {
        frames += burst()? as u64;
    }
    Ok(SendCounts {
        frames,
        wall: start.elapsed(),
        cpu: cpu_of_thread().saturating_sub(used),
    })
}

//! `bench send`: frames a second into a veth pair, by sockets with nothing
//! around them and by Longwire's ports.
//!
//! Everything takes turns in the same run, several rounds of it, for the
//! machine is shared. Frames count as sent when the peer's counter has them.

use std::time::{Duration, Instant};

use clap::Args;
use longwire_engine::Nanos;
use longwire_io::net::link_stats;
use longwire_io::port::bare::{BarePacket, BareXdp};
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry::{self, Port};
use longwire_io::{Outgoing, PortError, Pushed, TxPort};
use serde::Serialize;

use longwire::Error;
use longwire::bench::testbed::Testbed;
use longwire::table::Table;
use longwire_traffic::sockets::Path;

/// What `bench send` takes.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// Frame lengths in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,1514"
    )]
    pub size: Vec<u32>,
    /// How long each sender sends in each round
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub time: Nanos,
    /// How often all of them take turns
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub rounds: usize,
}

impl SendArgs {
    pub(super) fn quickened(&self, quick: bool) -> SendArgs {
        match quick {
            false => self.clone(),
            true => SendArgs {
                size: vec![64],
                time: Nanos::from_millis(20),
                rounds: 1,
            },
        }
    }
}

/// The interface in either namespace of the testbed.
const INTERFACE: &str = "eth0";
/// Frames that the egress stage gives a port at a time, and as many as an
/// AF_XDP sender can give the kernel in one call.
const BURST: usize = longwire_runtime::stage::BURST;
const LARGE_BURST: usize = 512;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Send,
    SendMany,
    BareXdp,
    /// A port, by its kind, given so many frames at a time.
    Port(&'static str, usize),
}

const SENDERS: [Sender; 7] = [
    Sender::Send,
    Sender::SendMany,
    Sender::BareXdp,
    Sender::Port("packet", BURST),
    Sender::Port("packet", LARGE_BURST),
    Sender::Port("xdp", BURST),
    Sender::Port("xdp", LARGE_BURST),
];

impl Sender {
    fn name(self) -> String {
        match self {
            Sender::Send => "send alone".to_owned(),
            Sender::SendMany => "sendmmsg alone".to_owned(),
            Sender::BareXdp => "AF_XDP alone".to_owned(),
            Sender::Port(kind, burst) => format!("{kind}: by {burst}"),
        }
    }
}

/// What one sender did in one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    mpps: f64,
    cpu_ns: f64,
    /// Against the bare AF_XDP sender of the same round.
    ratio: f64,
    ratio_by_cpu: f64,
    /// Sent by its own account, and not counted by the peer.
    missing: i64,
}

/// One row: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    size: u32,
    sender: String,
    mpps: f64,
    /// Processor time of sender and kernel a frame, the peer's part included.
    cpu_ns: f64,
    ratio_to_bare_xdp: f64,
    /// The same by processor time, which does not suffer from other programs.
    ratio_by_cpu: f64,
    /// Frames that left by the sender's account and are not in the peer's, at
    /// the most in a round. Must be none.
    missing_max: i64,
}

pub(super) fn measure(args: &SendArgs) -> Result<Vec<Row>, Error> {
    let testbed = Testbed::bare()?;
    let path = testbed.path();
    let time = Duration::from_nanos(args.time.as_nanos());
    let mut rows = Vec::new();
    for size in &args.size {
        let frame = frame(*size);
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); SENDERS.len()];
        for _ in 0..args.rounds.max(1) {
            for (round, rounds) in all_in_turn(&path, &frame, time)?
                .into_iter()
                .zip(&mut rounds)
            {
                rounds.push(round);
            }
        }
        for (sender, rounds) in SENDERS.iter().zip(&rounds) {
            rows.push(Row {
                size: *size,
                sender: sender.name(),
                mpps: median(rounds, |round| round.mpps),
                cpu_ns: median(rounds, |round| round.cpu_ns),
                ratio_to_bare_xdp: median(rounds, |round| round.ratio),
                ratio_by_cpu: median(rounds, |round| round.ratio_by_cpu),
                missing_max: rounds.iter().map(|round| round.missing).max().unwrap_or(0),
            });
        }
    }
    Ok(rows)
}

/// A frame of an experimental type, which the peer's network stack counts
/// and throws away.
fn frame(size: u32) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5];
    bytes.resize(size.max(14) as usize, 0xa5);
    bytes
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// One round of all senders.
fn all_in_turn(path: &Path<'_>, frame: &[u8], time: Duration) -> Result<Vec<Round>, Error> {
    let rounds: Result<Vec<Round>, Error> = SENDERS
        .iter()
        .map(|sender| one(path, *sender, frame, time))
        .collect();
    let mut rounds = rounds?;
    let bare = SENDERS.iter().position(|sender| *sender == Sender::BareXdp);
    if let Some(base) = bare.map(|bare| rounds[bare]) {
        for round in &mut rounds {
            round.ratio = round.mpps / base.mpps;
            round.ratio_by_cpu = base.cpu_ns / round.cpu_ns;
        }
    }
    Ok(rounds)
}

fn one(path: &Path<'_>, sender: Sender, frame: &[u8], time: Duration) -> Result<Round, Error> {
    let far = path.to.namespace;
    let counted = || far.run(|| link_stats(INTERFACE).map(|stats| stats.rx_packets));
    let before = counted()??;
    let sent = path
        .from
        .namespace
        .run(|| send(sender, frame, time))?
        .map_err(|error| Error::Failed(error.to_string()))?;
    let received = counted()?? - before;
    Ok(Round {
        mpps: received as f64 / sent.wall.as_secs_f64() / 1e6,
        cpu_ns: sent.cpu.as_nanos() as f64 / received.max(1) as f64,
        ratio: 1.0,
        ratio_by_cpu: 1.0,
        missing: sent.frames.cast_signed() - received.cast_signed(),
    })
}

/// What a sender did by its own account.
struct Sent {
    frames: u64,
    wall: Duration,
    cpu: Duration,
}

fn send(sender: Sender, frame: &[u8], time: Duration) -> Result<Sent, PortError> {
    let failed = |source| PortError::Failed {
        port: sender.name(),
        action: "sending",
        source,
    };
    match sender {
        Sender::Send => {
            let socket = BarePacket::open(INTERFACE, frame)?;
            // As many in a turn as the others send in one call.
            let some = || (0..64).try_fold(0, |sum, _| socket.send_one().map(|sent| sum + sent));
            flood(time, || some().map_err(failed))
        }
        Sender::SendMany => {
            let socket = BarePacket::open(INTERFACE, frame)?;
            flood(time, || socket.send_many().map_err(failed))
        }
        Sender::BareXdp => {
            let mut socket = BareXdp::open(INTERFACE, frame)?;
            flood(time, || socket.send(LARGE_BURST as u32).map_err(failed))
        }
        Sender::Port(kind, burst) => {
            let options = OpenOptions {
                purpose: Purpose::Send,
                ..OpenOptions::default()
            };
            let mut port = registry::open(&format!("{kind}:{INTERFACE}"), &options)?;
            flood(time, || push_burst(&mut port, frame, burst))
        }
    }
}

/// What the egress stage does with a burst.
fn push_burst(port: &mut Port, frame: &[u8], burst: usize) -> Result<usize, PortError> {
    for _ in 0..burst {
        if port.tx.push(Outgoing::whole(frame, Nanos::ZERO)) != Pushed::Taken {
            break;
        }
    }
    port.tx.flush()
}

/// Sends for `time`, burst after burst.
fn flood(
    time: Duration,
    mut burst: impl FnMut() -> Result<usize, PortError>,
) -> Result<Sent, PortError> {
    let (start, used) = (Instant::now(), cpu_time());
    let mut frames = 0;
    while start.elapsed() < time {
        frames += burst()? as u64;
    }
    Ok(Sent {
        frames,
        wall: start.elapsed(),
        cpu: cpu_time().saturating_sub(used),
    })
}

/// What the calling thread has used of a processor: unlike wall time it does
/// not grow when other programs want the processor too.
pub(super) fn cpu_time() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    // Linux has this clock, always.
    nix::time::clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

pub(super) fn print(rows: &[Row]) {
    println!(
        "Frames into a veth pair as fast as they go, counted by the peer; medians of rounds in"
    );
    println!(
        "which all take turns. Alone: the system call and nothing else. Ports: so many frames at"
    );
    println!("a time, copied from memory; the egress stage gives them 64.");
    let mut table = Table::new(&[
        "size",
        "sender",
        "Mpps",
        "CPU ns/frame",
        "of AF_XDP alone",
        "by CPU",
        "missing",
    ]);
    for row in rows {
        table.row(vec![
            row.size.to_string(),
            row.sender.clone(),
            format!("{:.3}", row.mpps),
            format!("{:.0}", row.cpu_ns),
            format!("{:.3}", row.ratio_to_bare_xdp),
            format!("{:.3}", row.ratio_by_cpu),
            row.missing_max.to_string(),
        ]);
    }
    table.print();
}

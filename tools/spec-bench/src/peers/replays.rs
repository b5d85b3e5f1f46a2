//! Replays: timing errors and top speed against tcpreplay.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire::Error;
use longwire::bench::testbed::Testbed;
use longwire_io::net::link_stats;
use nix::sys::signal::Signal;

use super::comparison::{Contender, Reading};
use crate::program::{BenchProgram, failed, path};
use crate::replay::ReplayArgs;
use crate::replay::senders::{INTERFACE, ReplaySender};
use crate::replay::traces::{Trace, Workload};
use crate::send::{self, SendMethod};

/// Replays of one round.
pub struct Replays<'a> {
    pub tcpreplay: PathBuf,
    /// A trace with gaps of 70 us, for the timing errors.
    pub even: Trace,
    /// A longer trace of the same frames, for the top speed.
    pub long: Trace,
    pub port: &'a str,
    /// Duration of the witness at top speed.
    pub time: Duration,
}

impl<'a> Replays<'a> {
    /// Writes the traces into a directory.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(
        tcpreplay: PathBuf,
        packets: u64,
        directory: &Path,
        port: &'a str,
        time: Duration,
    ) -> Result<Replays<'a>, Error> {
        let folder = directory.join("even");
        std::fs::create_dir_all(&folder)?;
        Ok(Replays {
            tcpreplay,
            even: Trace::write(Workload::Even70us, packets, &folder)?,
            long: Trace::write(Workload::Even70us, packets * LONGER, directory)?,
            port,
            time,
        })
    }

    /// Measures one contender. The witness is `longwire replay --wait spin` for timing errors, and
    /// `sendmmsg` alone for the top speed.
    ///
    /// # Errors
    /// If a program fails.
    pub fn measure(&self, contender: Contender) -> Result<Vec<Reading>, Error> {
        let sender = match contender {
            Contender::Witness => ReplaySender::LongwireSpin,
            Contender::Longwire => ReplaySender::Longwire,
            Contender::Peer(_) => ReplaySender::Tcpreplay,
        };
        let args = ReplayArgs {
            workload: Vec::new(),
            stress: Vec::new(),
            sender: Vec::new(),
            packets: self.even.packets,
            replay_options: None,
            tcpreplay: self.tcpreplay.clone(),
            directory: None,
        };
        let replayed = sender.replay(&self.even, &args, self.port)?;
        let timing = &replayed.received["trace"]["timing"];
        let error = |name: &str| timing["gap_error_us"][name].as_f64().unwrap_or(f64::NAN);
        let drift = timing["drift"]["ppm"].as_f64().unwrap_or(f64::NAN).abs();
        let cpu = 100.0 * replayed.cpu_s / replayed.took_s;
        Ok(vec![
            Reading::less("gaps of 70 us: error, median", "us", error("p50")),
            Reading::less("gaps of 70 us: error, p99", "us", error("p99")),
            Reading::less("gaps of 70 us: drift", "ppm", drift),
            Reading::less("gaps of 70 us: CPU", "%", cpu),
            Reading::more("60 B at top speed", "Mpps", self.top_speed(contender)?),
        ])
    }

    /// Returns the top speed in millions of packets per second.
    fn top_speed(&self, contender: Contender) -> Result<f64, Error> {
        let testbed = Testbed::bare()?;
        let mut command = match contender {
            Contender::Witness => {
                let sent = send::one(
                    &testbed.path(),
                    SendMethod::SendMany,
                    &send::frame(60),
                    self.time,
                )?;
                return Ok(sent.mpps);
            }
            Contender::Longwire => {
                let mut command = Command::new(path()?);
                command.arg("replay").arg(&self.long.path);
                command.args(["--to", &format!("{}:{INTERFACE}", self.port)]);
                command.args(["--topspeed", "--quiet"]);
                command
            }
            Contender::Peer(_) => {
                let mut command = Command::new(&self.tcpreplay);
                command.args(["--topspeed", "--preload-pcap", "-q", "-i", INTERFACE]);
                command.arg(&self.long.path);
                command
            }
        };
        let name = contender.name();
        command.stdin(Stdio::null());
        let near = testbed.path().from.namespace;
        let mut sender = BenchProgram::start(name, Some(near), &mut command, "")?;
        let far = testbed.path().to.namespace;
        let marks = far.run(|| passage(self.long.packets, &mut sender))?;
        let (from, to) =
            marks?.ok_or_else(|| failed(format!("{name} sent too few packets at top speed")))?;
        sender.signal(Signal::SIGTERM);
        sender.wait()?;
        Ok(speed(from, to))
    }
}

/// Length of the trace for the top speed, in lengths of the other one.
const LONGER: u64 = 20;

/// Interval between readings of the receiver's counter.
const INTERVAL: Duration = Duration::from_micros(500);

/// Time and counter of the receiving device.
type Mark = (Instant, u64);

/// Returns the last mark before 20 % of the packets and the first at 90 %, without the program's
/// start and end; `None` if the program ends before.
fn passage(packets: u64, sender: &mut BenchProgram) -> Result<Option<(Mark, Mark)>, Error> {
    let mut first = (Instant::now(), 0);
    loop {
        // The program may end between this check and the reading.
        let has_ended = sender.has_ended()?;
        let received = link_stats(INTERFACE)?.rx_packets;
        let mark = (Instant::now(), received);
        if received >= packets / 10 * 9 {
            return Ok(Some((first, mark)));
        }
        if has_ended {
            return Ok(None);
        }
        if received < packets / 5 {
            first = mark;
        }
        std::thread::sleep(INTERVAL);
    }
}

fn speed((start, before): Mark, (end, after): Mark) -> f64 {
    (after - before) as f64 / (end - start).as_secs_f64() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_counts_only_between_the_marks() {
        let start = Instant::now();
        let end = start + Duration::from_millis(500);
        assert!((speed((start, 200_000), (end, 700_000)) - 1.0).abs() < 1e-9);
    }
}

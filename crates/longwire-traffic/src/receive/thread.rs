//! The receiving thread.
//!
//! The thread must not disturb the measurement. The kernel timestamps frames on arrival, so the
//! time of reading does not matter: the thread sleeps, and never requests wakeups, which would cost
//! the sender time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::port::offload::finish_checksum;
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::{AnyRx, RxFrame, registry};
use longwire_io::{PortError, ReceiveResult, RxPort};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::record::Epoch;
use longwire_runtime::sent::SentFrames;
use longwire_runtime::{RunReport, host};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::account::Account;
use super::live::LiveComparison;
use super::report::{ReceiveReport, Unseen};
use super::witness::{Witness, stolen_s};
use super::{ReceiveConfig, ReceiveError};

/// Frames per receive call.
const BURST: usize = 1024;

/// Maximum number of receive calls per wakeup.
const BURSTS_MAX: usize = 16;

/// Sleep between reads while frames arrive; the ring holds 20 ms at 500,000 frames/s.
const REST: Duration = Duration::from_millis(2);

/// Sleep between reads while idle.
const REST_IDLE: Duration = Duration::from_millis(10);

/// Time without frames after which the port counts as idle.
const QUIET: Duration = Duration::from_millis(500);

/// Interval between reads of the port's loss counters.
const ASK: Duration = Duration::from_millis(250);

/// Size of the receive ring in bytes: larger than that of a forwarding port, smaller than a CPU
/// cache.
const RING_BYTES: usize = 16 << 20;

/// Returns the options for a receiving port: no offloads, so that frames have their wire size, and
/// a large ring.
pub fn open_options() -> OpenOptions {
    OpenOptions {
        offloads: false,
        ring_bytes: Some(RING_BYTES),
        purpose: Purpose::Receive,
        ..OpenOptions::default()
    }
}

/// A running receiver.
pub struct Receiver {
    name: String,
    notes: Vec<String>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<f64>>,
    witness: Option<Witness>,
    stolen_before: Option<f64>,
}

struct Shared {
    stop: AtomicBool,
    account: Mutex<Account>,
}

impl Shared {
    fn account(&self) -> MutexGuard<'_, Account> {
        // Statistics remain readable after a panic.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    /// Opens a port with [`open_options`] in the calling thread's network namespace, and starts
    /// receiving. Compares arrivals with the frames that this process has `sent`
    /// ([`longwire_runtime::sent`]), if given.
    ///
    /// # Errors
    /// If the port, the trace or the capture cannot be opened.
    pub fn open(
        port: &str,
        config: ReceiveConfig,
        sent: Option<SentFrames>,
    ) -> Result<Receiver, ReceiveError> {
        let port = registry::open(port, &open_options())?;
        let (core, idle, witness) = (config.core, config.idle, config.witness);
        let mut account = Account::open(config, sharp_epoch())?;
        account.live = sent.map(LiveComparison::new);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            account: Mutex::new(account),
        });
        let worker = Worker {
            // Keep the sending half: the port restores the interface when both halves are dropped.
            _tx: port.tx,
            port: port.rx,
            shared: Arc::clone(&shared),
            idle: idle.map(|idle| Duration::from_nanos(idle.as_nanos())),
            scratch: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("longwire-receive".to_owned())
            .spawn(move || {
                host::give_up_rights();
                if let Some(core) = core {
                    // Best effort.
                    let _ = host::pin(core);
                }
                worker.run()
            })
            .map_err(ReceiveError::Thread)?;
        let witness = witness.then(|| Witness::start(core)).transpose();
        Ok(Receiver {
            name: port.name,
            notes: port.notes,
            shared,
            thread: Some(thread),
            witness: witness.map_err(ReceiveError::Thread)?,
            stolen_before: stolen_s(),
        })
    }

    /// Returns notes about the port.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the number of frames received.
    pub fn packets(&self) -> u64 {
        self.shared.account().packets
    }

    /// Whether the receiver has ended: enough frames, idle for long enough, or a failed port.
    pub fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the current report.
    pub fn snapshot(&self) -> ReceiveReport {
        let mut report = self.shared.account().report();
        report.port.clone_from(&self.name);
        report.notes.extend(self.notes.iter().cloned());
        report.witness = self.witness.as_ref().map(Witness::seen);
        let stolen = |before: f64| Some((stolen_s()? - before).max(0.0));
        report.stolen_s = self.stolen_before.and_then(stolen);
        report
    }

    /// Receives pending frames, stops, and returns the report.
    pub fn stop(mut self) -> ReceiveReport {
        let cpu_s = self.end();
        let witness = self.witness.take().map(Witness::stop);
        let mut report = self.snapshot();
        report.witness = witness;
        report.cpu_s = cpu_s;
        report
    }

    /// Waits for frames in flight, then stops: once all frames sent by `run` have arrived, after
    /// `time`, or when `stop` is set.
    pub fn settle(self, run: &RunReport, time: Nanos, stop: &AtomicBool) -> ReceiveReport {
        const LOOK: Duration = Duration::from_millis(5);
        let sent: u64 = run.links.iter().map(|link| link.traffic.packets_out).sum();
        let until = Instant::now() + Duration::from_nanos(time.as_nanos());
        while self.packets() < sent && Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        self.stop()
    }

    fn end(&mut self) -> f64 {
        self.shared.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return 0.0;
        };
        thread.join().unwrap_or_else(|_| {
            let error = "the receiver thread ended unexpectedly";
            self.shared.account().fail(error.to_owned());
            0.0
        })
    }
}

impl Drop for Receiver {
    /// Stops the receiver, discarding its report.
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads both clocks as simultaneously as possible: returns the tightest of several readings,
/// because preemption may separate them.
fn sharp_epoch() -> Epoch {
    let read = || {
        let before = monotonic_now();
        let mut epoch = Epoch::now();
        let after = monotonic_now();
        let width = after.saturating_sub(before);
        epoch.monotonic = before.saturating_add(Nanos::from_nanos(width.as_nanos() / 2));
        (width, epoch)
    };
    let readings = std::iter::repeat_with(read).take(16);
    let closest = readings.min_by_key(|(width, _)| *width);
    closest.map_or_else(Epoch::now, |(_, epoch)| epoch)
}

struct Worker {
    port: AnyRx,
    _tx: longwire_io::port::AnyTx,
    shared: Arc<Shared>,
    idle: Option<Duration>,
    /// Buffer for frames whose checksum must be completed.
    scratch: Vec<u8>,
}

impl Worker {
    /// Receives until stopped and returns the CPU time in seconds.
    fn run(mut self) -> f64 {
        let (mut active, mut asked) = (Instant::now(), Instant::now());
        loop {
            // Load the flag before receiving, so that all frames before the stop are received.
            let stopping = self.shared.stop.load(Ordering::Acquire);
            match self.take_waiting() {
                Ok(received) if received.end => break,
                Ok(received) if received.frames > 0 => active = Instant::now(),
                Ok(_) => {}
                Err(error) => {
                    self.shared.account().fail(error.to_string());
                    break;
                }
            }
            let quiet = active.elapsed();
            if stopping || self.is_over(quiet) {
                break;
            }
            if asked.elapsed() >= ASK {
                asked = Instant::now();
                self.ask_losses();
            }
            std::thread::sleep(if quiet < QUIET { REST } else { REST_IDLE });
        }
        self.ask_losses();
        self.shared.account().finish();
        let usage = getrusage(UsageWho::RUSAGE_THREAD);
        let time = usage.map(|usage| usage.user_time() + usage.system_time());
        time.map_or(0.0, |time| time.num_microseconds() as f64 / 1e6)
    }

    /// Whether enough frames have arrived, or the port has been idle long enough.
    fn is_over(&self, quiet: Duration) -> bool {
        let account = self.shared.account();
        let silent = self.idle.is_some_and(|idle| quiet >= idle);
        account.is_complete() || silent && account.packets > 0
    }

    /// Receives pending frames, at most [`BURSTS_MAX`] bursts of [`BURST`] frames.
    fn take_waiting(&mut self) -> Result<ReceiveResult, PortError> {
        let mut all = ReceiveResult::default();
        for _ in 0..BURSTS_MAX {
            let mut account = self.shared.account();
            let scratch = &mut self.scratch;
            let received = self.port.receive(monotonic_now(), BURST, &mut |arrived| {
                take(&mut account, scratch, &arrived);
            })?;
            account.rest();
            all.frames += received.frames;
            all.end = received.end;
            if received.end || received.frames < BURST || account.is_complete() {
                break;
            }
        }
        Ok(all)
    }

    fn ask_losses(&mut self) {
        let losses = self.port.losses();
        self.shared.account().unseen = Unseen {
            ring_full: losses.ring_full,
            too_long: losses.too_long,
            unusable: losses.unusable,
        };
    }
}

#[inline]
fn take(account: &mut Account, scratch: &mut Vec<u8>, arrived: &RxFrame<'_>) {
    let Some(checksum) = arrived.offload.checksum else {
        account.frame(arrived.bytes, arrived.wire_len, arrived.arrival);
        return;
    };
    scratch.clear();
    scratch.extend_from_slice(arrived.bytes);
    finish_checksum(scratch, checksum);
    account.frame(scratch, arrived.wire_len, arrived.arrival);
}

//! Supervises the commands: how they end, signals sent to Longwire, and an orderly shutdown.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use longwire_io::rights;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::error::EnvironmentError;

/// Grace period between SIGTERM and SIGKILL for peer commands.
const PEER_GRACE: Duration = Duration::from_secs(2);

/// An event in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The near command ended, which ends the run.
    CommandEnded(ExitStatus),
    /// A command on another host ended, before or after the near command; with the host's index (1
    /// for far).
    PeerEnded(usize, ExitStatus),
    /// Longwire received a stop signal. A running near command received it too; the run then
    /// continues until the command ends.
    StopRequested(Signal),
}

/// Longwire's signals, read from a descriptor.
#[derive(Clone, Debug)]
pub struct Signals {
    descriptor: Arc<SignalFd>,
}

impl Signals {
    /// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD in the calling thread and in all threads
    /// and processes that it starts later, and opens a descriptor for them.
    pub fn take() -> Result<Signals, EnvironmentError> {
        let failed = |error: nix::Error| EnvironmentError::system("handle signals", error);
        let set = Signals::set();
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&set, flags).map_err(failed)?;
        Ok(Signals {
            descriptor: Arc::new(descriptor),
        })
    }

    /// Returns the set of Longwire's signals. Commands start with them unblocked.
    pub fn set() -> SigSet {
        let signals = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGCHLD,
        ];
        signals.into_iter().collect()
    }

    /// Waits for a signal. Also returns whether a process sent it, as opposed to the terminal,
    /// which signals every foreground process.
    fn next(&self, timeout: Duration) -> Option<(Signal, bool)> {
        let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        // Round up, so that waits below a millisecond are not zero.
        let milliseconds = timeout.as_micros().div_ceil(1000);
        let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut polled, timeout);
        self.read()
    }

    /// Reads a pending signal.
    fn read(&self) -> Option<(Signal, bool)> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
        // Codes above SI_USER come from the kernel.
        Some((signal, info.ssi_code <= libc::SI_USER))
    }
}

/// A thread that receives stop signals while the main thread is busy and no command runs. Ends on
/// drop.
#[derive(Debug)]
pub struct StopWatch {
    /// Closed to wake the thread.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl StopWatch {
    pub(crate) fn start(
        signals: Signals,
        handle: impl Fn(Signal) + Send + 'static,
    ) -> io::Result<StopWatch> {
        let (end, ended) = UnixStream::pair()?;
        let thread = Builder::new().name("longwire-signals".to_owned());
        let thread = thread.spawn(move || {
            // Failing to drop privileges does not affect the run.
            let _ = rights::give_up(&[]);
            while !wait_for_end(&signals, &ended) {
                match signals.read() {
                    None | Some((Signal::SIGCHLD, _)) => {}
                    Some((signal, _)) => handle(signal),
                }
            }
        })?;
        Ok(StopWatch {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for a signal or for the other end of `ended` to close. Returns whether it closed without a
/// signal.
fn wait_for_end(signals: &Signals, ended: &UnixStream) -> bool {
    let mut polled = [
        PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN),
        PollFd::new(ended.as_fd(), PollFlags::POLLIN),
    ];
    let waited = poll(&mut polled, PollTimeout::NONE);
    let [signal, end] = polled.map(|polled| polled.any().unwrap_or(false));
    waited.is_ok() && end && !signal
}

/// Supervised commands: the one in near and those on other hosts.
#[derive(Debug)]
pub struct Children {
    signals: Signals,
    command: Option<Child>,
    /// Commands on other hosts, by host index.
    peers: Vec<(usize, Child)>,
    stops_sent: u32,
    terminal: Option<Pid>,
}

impl Children {
    pub(crate) fn new(signals: Signals) -> Children {
        let stdin = io::stdin();
        let foreground = stdin
            .is_terminal()
            .then(|| tcgetpgrp(&stdin).ok())
            .flatten()
            .filter(|&group| group == getpgrp());
        Children {
            signals,
            command: None,
            peers: Vec::new(),
            stops_sent: 0,
            terminal: foreground,
        }
    }

    /// Sets `stop` when a stop signal arrives, until the returned value is dropped. Meanwhile,
    /// [`Children::next`] does not return stop signals.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn watch_for_stop(&self, stop: &Arc<AtomicBool>) -> io::Result<StopWatch> {
        let stop = Arc::clone(stop);
        StopWatch::start(self.signals.clone(), move |_| {
            stop.store(true, Ordering::SeqCst);
        })
    }

    /// Supervises the near command.
    pub(crate) fn set_command(&mut self, child: Child) {
        self.command = Some(child);
    }

    /// Supervises a command on another host.
    pub(crate) fn add_peer(&mut self, host: usize, child: Child) {
        self.peers.push((host, child));
    }

    /// Waits at most `timeout` for an event.
    ///
    /// The first signal that a process sends to Longwire is passed on to the command; the second
    /// kills it. Terminal signals (Ctrl-C) reach the command directly, and an interactive shell may
    /// ignore them.
    pub fn next(&mut self, timeout: Duration) -> Option<Event> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = reap(&mut self.command) {
                self.take_terminal_back();
                return Some(Event::CommandEnded(status));
            }
            if let Some((host, status)) = self.reap_peer() {
                return Some(Event::PeerEnded(host, status));
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.signals.next(left) {
                Some((Signal::SIGCHLD, _)) => {}
                Some((signal, sent)) => {
                    self.pass_on(signal, sent);
                    return Some(Event::StopRequested(signal));
                }
                None if Instant::now() >= end => return None,
                None => {}
            }
        }
    }

    fn pass_on(&mut self, signal: Signal, sent: bool) {
        let Some(command) = &self.command else { return };
        if !sent {
            return;
        }
        self.stops_sent += 1;
        let signal = if self.stops_sent > 1 {
            Signal::SIGKILL
        } else {
            signal
        };
        let _ = kill(pid_of(command), signal);
    }

    /// Asks the near command to end.
    pub fn stop_command(&mut self) {
        self.signal_command(Signal::SIGTERM);
        // A stopped process handles signals only after SIGCONT.
        self.signal_command(Signal::SIGCONT);
    }

    /// Kills the near command.
    pub fn kill_command(&mut self) {
        self.signal_command(Signal::SIGKILL);
    }

    fn signal_command(&self, signal: Signal) {
        if let Some(command) = &self.command {
            let _ = kill(pid_of(command), signal);
        }
    }

    /// Returns whether the near command is running.
    pub fn command_runs(&self) -> bool {
        self.command.is_some()
    }

    /// Returns whether a command on another host is running.
    pub fn peer_runs(&self) -> bool {
        !self.peers.is_empty()
    }

    /// Removes a peer that has ended.
    fn reap_peer(&mut self) -> Option<(usize, ExitStatus)> {
        let mut ended = None;
        self.peers.retain_mut(|(host, child)| {
            if ended.is_none() {
                ended = child
                    .try_wait()
                    .ok()
                    .flatten()
                    .map(|status| (*host, status));
                return ended.is_none();
            }
            true
        });
        ended
    }

    /// Ends all commands: near immediately, peers' process groups with SIGTERM, then with SIGKILL
    /// after 2 s.
    pub fn end_all(&mut self) {
        if let Some(mut command) = self.command.take() {
            let _ = command.kill();
            let _ = command.wait();
            self.take_terminal_back();
        }
        let groups: Vec<Pid> = self.peers.iter().map(|(_, child)| pid_of(child)).collect();
        for group in &groups {
            let _ = killpg(*group, Signal::SIGTERM);
            let _ = killpg(*group, Signal::SIGCONT);
        }
        let end = Instant::now() + PEER_GRACE;
        while self.peer_runs() && Instant::now() < end {
            if self.reap_peer().is_none() {
                sleep(Duration::from_millis(2));
            }
        }
        // Kill processes that ignored SIGTERM, including those in groups whose leader has ended.
        for group in groups {
            let _ = killpg(group, Signal::SIGKILL);
        }
        for (_, mut peer) in self.peers.drain(..) {
            let _ = peer.wait();
        }
    }

    /// Makes this process group the terminal's foreground group again. A killed shell with job
    /// control does not restore it.
    fn take_terminal_back(&self) {
        let Some(group) = self.terminal else { return };
        let stdin = io::stdin();
        if tcgetpgrp(&stdin) == Ok(group) {
            return;
        }
        // Block SIGTTOU, which would otherwise stop this process.
        let mut block = SigSet::empty();
        block.add(Signal::SIGTTOU);
        let mut before = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&block), Some(&mut before));
        let _ = tcsetpgrp(&stdin, group);
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Removes the child if it has ended.
fn reap(child: &mut Option<Child>) -> Option<ExitStatus> {
    let status = child.as_mut()?.try_wait().ok().flatten()?;
    *child = None;
    Some(status)
}

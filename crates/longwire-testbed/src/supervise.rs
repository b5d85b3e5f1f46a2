//! Watching over the commands: their ends, the signals that reach
//! Longwire, and an orderly close.

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

/// Time between SIGTERM and SIGKILL for the commands of peers.
const PEER_GRACE: Duration = Duration::from_secs(2);

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command in near ended; this is what the run was for.
    CommandEnded(ExitStatus),
    /// The command of another host ended, before or after: its place among the hosts, 1 is far.
    PeerEnded(usize, ExitStatus),
    /// Longwire received a signal to stop. A command in near received it too,
    /// and the run goes on until the command ends.
    StopRequested(Signal),
}

/// The signals of Longwire itself, read from a descriptor.
#[derive(Clone, Debug)]
pub struct Signals {
    descriptor: Arc<SignalFd>,
}

impl Signals {
    /// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD into its own hands,
    /// for the calling thread and all that it starts from now on.
    pub fn take() -> Result<Signals, EnvironmentError> {
        let failed = |error: nix::Error| EnvironmentError::system("take over the signals", error);
        let set = Signals::set();
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&set, flags).map_err(failed)?;
        Ok(Signals {
            descriptor: Arc::new(descriptor),
        })
    }

    /// The signals that are taken. Commands are started without this.
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

    /// Waits for a signal, and says whether a process sent it (rather than
    /// the terminal, which sends it to every process in the foreground).
    fn next(&self, timeout: Duration) -> Option<(Signal, bool)> {
        let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        // Rounded up, so that a wait of less than a millisecond is a wait.
        let milliseconds = timeout.as_micros().div_ceil(1000);
        let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut polled, timeout);
        self.read()
    }

    /// Reads a signal that has arrived.
    fn read(&self) -> Option<(Signal, bool)> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
        // The kernel's own codes are positive, those of processes are not.
        Some((signal, info.ssi_code <= libc::SI_USER))
    }
}

/// A thread that handles signals to stop, while the main thread is busy and no
/// command runs. Dropping it ends it.
#[derive(Debug)]
pub struct StopWatch {
    /// Closing it wakes the thread.
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
            // A run that keeps its rights is as good a run.
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

/// Waits for a signal or for the other end of `ended` to close; returns
/// whether it has closed and no signal has arrived.
fn wait_for_end(signals: &Signals, ended: &UnixStream) -> bool {
    let mut polled = [
        PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN),
        PollFd::new(ended.as_fd(), PollFlags::POLLIN),
    ];
    let waited = poll(&mut polled, PollTimeout::NONE);
    let [signal, end] = polled.map(|polled| polled.any().unwrap_or(false));
    waited.is_ok() && end && !signal
}

/// The commands that run, and what became of them.
#[derive(Debug)]
pub struct Children {
    signals: Signals,
    command: Option<Child>,
    /// The commands of other hosts, with the places of their hosts.
    peers: Vec<(usize, Child)>,
    stops_sent: u32,
    terminal: Option<Pid>,
}

impl Children {
    /// Watches over no command yet.
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

    /// Starts to turn signals to stop into a flag. Until it is dropped, the
    /// signals are not returned by [`Children::next`].
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn watch_for_stop(&self, stop: &Arc<AtomicBool>) -> io::Result<StopWatch> {
        let stop = Arc::clone(stop);
        StopWatch::start(self.signals.clone(), move |_| {
            stop.store(true, Ordering::SeqCst);
        })
    }

    /// Watches over the command in near.
    pub(crate) fn set_command(&mut self, child: Child) {
        self.command = Some(child);
    }

    /// Watches over the command of another host.
    pub(crate) fn add_peer(&mut self, host: usize, child: Child) {
        self.peers.push((host, child));
    }

    /// Waits for something to happen, but no longer than `timeout`.
    ///
    /// A first signal that a process sends to Longwire is passed on to the
    /// command; a second ends the command with SIGKILL. The terminal's own
    /// (Ctrl-C) reach the command without our help, and what it does about
    /// them is its own affair: an interactive shell goes on.
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

    /// Asks the command in near to end.
    pub fn stop_command(&mut self) {
        self.signal_command(Signal::SIGTERM);
        // A stopped process handles no signal before it goes on.
        self.signal_command(Signal::SIGCONT);
    }

    /// Ends the command in near.
    pub fn kill_command(&mut self) {
        self.signal_command(Signal::SIGKILL);
    }

    fn signal_command(&self, signal: Signal) {
        if let Some(command) = &self.command {
            let _ = kill(pid_of(command), signal);
        }
    }

    /// Returns whether the command in near runs.
    pub fn command_runs(&self) -> bool {
        self.command.is_some()
    }

    /// Returns whether the command of another host runs.
    pub fn peer_runs(&self) -> bool {
        !self.peers.is_empty()
    }

    /// Takes out a peer that has ended.
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

    /// Ends what still runs: SIGTERM to the process groups of peers, SIGKILL
    /// after 2 s, and to the command at once.
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
        // Those that ignored the first, also in the groups of leaders that ended.
        for group in groups {
            let _ = killpg(group, Signal::SIGKILL);
        }
        for (_, mut peer) in self.peers.drain(..) {
            let _ = peer.wait();
        }
    }

    /// A shell with job control makes itself the terminal's foreground; one
    /// that was killed has not given that back.
    fn take_terminal_back(&self) {
        let Some(group) = self.terminal else { return };
        let stdin = io::stdin();
        if tcgetpgrp(&stdin) == Ok(group) {
            return;
        }
        // Without this the terminal would stop us for the attempt.
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

/// Takes the child out when it has ended.
fn reap(child: &mut Option<Child>) -> Option<ExitStatus> {
    let status = child.as_mut()?.try_wait().ok().flatten()?;
    *child = None;
    Some(status)
}

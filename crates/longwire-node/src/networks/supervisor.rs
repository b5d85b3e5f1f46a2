//! Supervises a network's process.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longwire_client::node::{NetworkSpec, NetworkState, NetworkView};
use longwire_client::{Address, Client};
use longwire_control::responses::problem_body;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Notify;
use super::files::NetworkFiles;
use super::request::NetworkRequest;

/// A function that returns the command for running a network. The process ends with the thread that
/// starts it.
pub type NetworkCommand = Arc<dyn Fn(&NetworkFiles, &NetworkRun) -> Command + Send + Sync>;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct NetworkRun {
    /// Host of the topology, run by this machine.
    pub host: Option<String>,
    /// Whether the network's files include a key.
    pub has_key: bool,
    /// Seed of the random streams.
    pub seed: Option<u64>,
}

/// Polling interval for the process.
const POLL_PERIOD: Duration = Duration::from_millis(20);
/// Interval between checks for a missing target.
const RETRY: Duration = Duration::from_millis(500);
/// Initial restart delay after a failure; each further failure doubles it.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// Duration of a run after which the restart delay is reset.
const STABLE: Duration = Duration::from_secs(10);
/// Time limit for a process to end and write its report.
const ENDING: Duration = Duration::from_secs(8);
/// Time limit for the response that proves that the network is running.
const ANSWER: Duration = Duration::from_millis(300);

/// Supervises a network's process on a separate thread.
pub(super) struct Supervisor {
    pub request: NetworkRequest,
    files: NetworkFiles,
    command: NetworkCommand,
    notify: Notify,
    view: Mutex<NetworkView>,
    stop: AtomicBool,
}

impl Supervisor {
    pub fn new(
        name: &str,
        request: NetworkRequest,
        files: NetworkFiles,
        command: NetworkCommand,
        notify: Notify,
    ) -> Supervisor {
        let view = NetworkView {
            name: name.to_owned(),
            state: NetworkState::Starting,
            reason: None,
            pid: None,
            since_unix: None,
            restarts: 0,
            spec: NetworkSpec {
                key: None,
                ..request.spec.clone()
            },
            warnings: request.warnings.iter().cloned().map(problem_body).collect(),
        };
        Supervisor {
            request,
            files,
            command,
            notify,
            view: Mutex::new(view),
            stop: AtomicBool::new(false),
        }
    }

    pub fn view(&self) -> MutexGuard<'_, NetworkView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, sentence: String) {
        let name = self.view().name.clone();
        (self.notify)(&name, sentence);
    }

    /// Asks the supervisor to end the process, then itself.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Supervises the network until stopped.
    pub fn run(&self) {
        let mut backoff = BACKOFF_MIN;
        while !self.stops() {
            if let Some(reason) = self.request.missing() {
                self.wait(&reason, RETRY);
                continue;
            }
            let started = Instant::now();
            let ended = self.run_once();
            if self.stops() {
                break;
            }
            if started.elapsed() > STABLE {
                backoff = BACKOFF_MIN;
            }
            self.wait(&ended, backoff);
            backoff = (2 * backoff).min(BACKOFF_MAX);
        }
    }

    /// Records the reason why the network is not running, and pauses.
    fn wait(&self, reason: &str, pause: Duration) {
        let is_news = {
            let mut view = self.view();
            let is_news = view.reason.as_deref() != Some(reason);
            view.state = NetworkState::Waiting;
            view.reason = Some(reason.to_owned());
            is_news
        };
        if is_news {
            self.notify(format!("waiting: {reason}"));
        }
        let began = Instant::now();
        while !self.stops() && began.elapsed() < pause {
            std::thread::sleep(POLL_PERIOD);
        }
    }

    /// Runs the process once; returns the reason for its end.
    fn run_once(&self) -> String {
        let mut child = match self.start() {
            Ok(child) => child,
            Err(error) => return format!("cannot start its process: {error}"),
        };
        let ended = self.watch(&mut child);
        let last = self.files.last_message();
        let last = last.map_or(String::new(), |line| format!(": {line}"));
        let mut view = self.view();
        view.state = NetworkState::Waiting;
        view.pid = None;
        view.since_unix = None;
        view.restarts += 1;
        format!("{ended}{last}")
    }

    fn start(&self) -> std::io::Result<Child> {
        self.files.settle(&self.request)?;
        let spec = &self.request.spec;
        let run = NetworkRun {
            host: spec.host.clone(),
            has_key: spec.key.is_some(),
            seed: spec.seed,
        };
        let mut command = (self.command)(&self.files, &run);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(self.files.create_log()?);
        let child = command.spawn()?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut view = self.view();
        view.state = NetworkState::Starting;
        view.reason = None;
        view.pid = Some(child.id());
        view.since_unix = Some(since.unwrap_or_default().as_secs());
        Ok(child)
    }

    /// Waits for the process to end, or ends it after a stop; returns the reason for its end.
    fn watch(&self, child: &mut Child) -> String {
        let mut asked: Option<Instant> = None;
        let mut runs = false;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return "its run ended".to_owned(),
                Ok(Some(status)) => return format!("its run failed ({status})"),
                Err(error) => return format!("cannot wait for its process: {error}"),
                Ok(None) => {}
            }
            if self.stops() {
                if asked.is_none() {
                    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
                }
                if asked.get_or_insert_with(Instant::now).elapsed() > ENDING {
                    let _ = child.kill();
                }
            } else if !runs && self.answers() {
                runs = true;
                let mut view = self.view();
                view.state = NetworkState::Running;
                view.reason = None;
                drop(view);
                self.notify("runs".to_owned());
            } else if !runs {
                self.view().reason = self.files.last_message();
            }
            std::thread::sleep(POLL_PERIOD);
        }
    }

    /// Returns whether the run answers a request, which it does only while the network is running.
    fn answers(&self) -> bool {
        let client = Client::new(Address::Unix(self.files.socket()), None);
        client.is_ok_and(|mut client| {
            client.set_time_limit(ANSWER);
            client.get("/v1").is_ok()
        })
    }
}

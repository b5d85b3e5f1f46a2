//! Programs that run during a test, and captures that they write.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, capture};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Ran, ran};

/// Timeout of steps that are instant on an idle machine: only a hang exceeds it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running program, killed on drop.
pub struct RunningProgram(Option<Child>);

impl RunningProgram {
    /// Starts a program in a namespace.
    pub fn start(namespace: &NetNamespace, command: &mut Command) -> RunningProgram {
        let child = namespace.run(|| command.stdin(Stdio::null()).spawn());
        let child = child.expect("the namespace is entered");
        RunningProgram(Some(child.unwrap_or_else(|error| {
            panic!("{:?} does not start: {error}", command.get_program())
        })))
    }

    /// Wraps a started program.
    pub fn of(child: Child) -> RunningProgram {
        RunningProgram(Some(child))
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it has not been waited for")
    }

    pub fn signal(&self, signal: Signal) {
        let id = self.0.as_ref().expect("it has not been waited for").id();
        kill(Pid::from_raw(id as i32), signal).expect("it runs");
    }

    /// Waits for the program to end and returns its result.
    pub fn end(mut self) -> Ran {
        let start = Instant::now();
        while self.child().try_wait().expect("a child").is_none() {
            if start.elapsed() > TIMEOUT {
                let _ = self.child().kill();
                panic!("it does not end: {:?}", ran(self.output()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        ran(self.output())
    }

    fn output(&mut self) -> Output {
        let child = self.0.take().expect("it has not been waited for");
        child.wait_with_output().expect("a child")
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A running dumpcap, which, unlike tcpdump, does not change its user: a user namespace
/// does not allow that.
pub struct Capture {
    running: RunningProgram,
    file: String,
}

impl Capture {
    /// Captures the frames of an interface in this namespace.
    pub fn start(dir: &Folder, name: &str, namespace: &NetNamespace, options: &[&str]) -> Capture {
        let file = dir.file(name);
        let mut command = Command::new("dumpcap");
        command
            .args(["-q", "-P", "-B", "32", "-w", &file])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut running = RunningProgram::start(namespace, &mut command);
        // tshark prints the file's name once it captures.
        wait_for_word(&mut running, "File:");
        Capture { running, file }
    }

    /// Waits until the capture holds at least `frames` frames and no more arrive for a
    /// moment; returns the file.
    pub fn with_frames(self, frames: usize) -> String {
        const MOMENT: Duration = Duration::from_millis(300);
        let start = Instant::now();
        let mut last = (0, start);
        while start.elapsed() < TIMEOUT {
            let held = records(&self.file).len();
            if held != last.0 {
                last = (held, Instant::now());
            }
            if held >= frames && last.1.elapsed() > MOMENT {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.running.signal(Signal::SIGINT);
        self.running.end();
        self.file
    }
}

/// Waits until a program writes a word to stderr. Later output is discarded, but the
/// pipe stays open.
pub fn wait_for_word(running: &mut RunningProgram, word: &str) {
    let stderr = running.child().stderr.take().expect("a pipe");
    let (tell, response) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    let mut said = String::new();
    while !said.contains(word) {
        match response.recv_timeout(TIMEOUT) {
            Ok(line) => said += &line,
            Err(error) => panic!("no '{word}': {error}; it said: {said}"),
        }
    }
}

/// Returns tshark's output for the matching frames of a file.
pub fn tshark(file: &str, filter: &str) -> String {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", file, "-Y", filter]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(["-o", "sctp.checksum:CRC 32c"]);
    let said = ran(command.output().expect("tshark starts"));
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout
}

/// Returns the complete records of a little-endian pcap file; empty if it has no header
/// yet.
pub fn records(file: &str) -> Vec<Vec<u8>> {
    let records = capture::records(&std::fs::read(file).unwrap_or_default());
    records.into_iter().map(|(_, bytes)| bytes).collect()
}

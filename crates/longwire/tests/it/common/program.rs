//! Runs programs in tests: command lines, results and captures.

use std::fmt::{Debug, Display};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, words};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{read, records};

/// Timeout of steps that are instant on an idle machine; only a hang exceeds it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds, at most [`TIMEOUT`].
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()).ok_or(()));
}

/// Waits at most [`TIMEOUT`] for a result; on failure, shows the last error.
#[track_caller]
pub fn wait_for<T, E: Debug>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) => assert!(start.elapsed() < TIMEOUT, "{what}: {error:?}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Parses a line into a command with empty input. The word `longwire` is the program under test.
pub fn command(line: impl AsRef<str>) -> Command {
    let own = env!("CARGO_BIN_EXE_longwire");
    let words = words(line.as_ref()).into_iter();
    let mut words = words.map(|word| if word == "longwire" { own } else { word });
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).stdin(Stdio::null());
    command
}

/// Returns the variable `PATH` with the program under test.
pub fn path_with_program() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_longwire"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{folder}:{path}")
}

/// Runs a command line to completion.
pub fn run(line: impl AsRef<str>) -> Ran {
    Ran::of(&mut command(line))
}

/// Runs a command line in a namespace to completion.
pub fn run_in(namespace: &NetNamespace, line: impl AsRef<str>) -> Ran {
    let line = line.as_ref();
    let ran = namespace.run(|| run(line));
    ran.expect("the namespace is entered")
}

/// Runs `longwire` with a line of arguments.
pub fn longwire(line: impl AsRef<str>) -> Ran {
    run(format!("longwire {}", line.as_ref()))
}

/// Runs `longwire`, which must succeed, and parses the JSON that it prints.
#[track_caller]
pub fn json_of(line: impl AsRef<str>) -> serde_json::Value {
    longwire(line).well().json()
}

/// Result of a finished program.
#[derive(Debug)]
pub struct Ran {
    /// Command line, for messages.
    #[allow(unused, reason = "a failure shows it")]
    command: String,
    pub code: i32,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Ran {
        match command.output() {
            Ok(output) => Ran::new(format!("{command:?}"), &output),
            Err(error) => panic!("{command:?} does not start: {error}"),
        }
    }

    fn new(command: String, output: &Output) -> Ran {
        Ran {
            command,
            code: output.status.code().unwrap_or(-1),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub fn well(self) -> Ran {
        self.exits(0)
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts that stderr contains a text.
    #[track_caller]
    pub fn says(self, text: impl AsRef<str>) -> Ran {
        let text = text.as_ref();
        assert!(
            self.stderr.contains(text),
            "no '{text}' on stderr: {self:?}"
        );
        self
    }

    /// Asserts that stdout contains a text.
    #[track_caller]
    pub fn prints(self, text: impl AsRef<str>) -> Ran {
        let text = text.as_ref();
        assert!(
            self.stdout.contains(text),
            "no '{text}' on stdout: {self:?}"
        );
        self
    }

    /// Parses the output of `--json`.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Parses the report on stderr, for commands that leave stdout to another program.
    #[track_caller]
    pub fn json_on_stderr(&self) -> serde_json::Value {
        let begin = self.stderr.find('{').unwrap_or(0);
        let report = serde_json::from_str(&self.stderr[begin..]);
        report.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Pings an address; returns the minimum RTT in milliseconds, or `None` without a reply.
pub fn ping(namespace: &NetNamespace, options: &str, address: impl Display) -> Option<f64> {
    let ran = run_in(namespace, format!("ping -q {options} {address}"));
    let times = ran.stdout.split_once("min/avg/max/mdev = ")?.1;
    times.split('/').next()?.parse().ok()
}

/// A running program, killed on drop.
pub struct RunningProgram {
    child: Option<Child>,
    command: String,
}

impl RunningProgram {
    pub fn spawn(command: &mut Command) -> RunningProgram {
        let child = command.spawn();
        RunningProgram {
            child: Some(
                child.unwrap_or_else(|error| panic!("{command:?} does not start: {error}")),
            ),
            command: format!("{command:?}"),
        }
    }

    /// Starts a command in a namespace.
    pub fn start(namespace: &NetNamespace, command: &mut Command) -> RunningProgram {
        let started = namespace.run(|| RunningProgram::spawn(command));
        started.expect("the namespace is entered")
    }

    pub fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it has not been waited for")
    }

    pub fn id(&self) -> u32 {
        let child = self.child.as_ref();
        child.expect("it has not been waited for").id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().cast_signed()), signal).expect("it runs");
    }

    /// Waits until stderr contains the text `word`. Discards later output, but keeps the pipe open.
    #[track_caller]
    pub fn ready(mut self, word: &str) -> RunningProgram {
        let stderr = self.child().stderr.take().expect("a pipe");
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
        self
    }

    /// Waits at most [`TIMEOUT`] for the program to end; returns its result.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        let start = Instant::now();
        while self.child().try_wait().expect("a child").is_none() {
            if start.elapsed() > TIMEOUT {
                let _ = self.child().kill();
                panic!("it does not end: {:?}", self.result());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.result()
    }

    fn result(&mut self) -> Ran {
        let child = self.child.take().expect("it has not been waited for");
        let output = child.wait_with_output().expect("a child");
        Ran::new(std::mem::take(&mut self.command), &output)
    }

    /// Ends the program by a signal.
    #[track_caller]
    pub fn end_by(self, signal: Signal) -> Ran {
        self.signal(signal);
        self.end()
    }

    /// Stops the program as Ctrl-C does; it must succeed.
    #[track_caller]
    pub fn stop(self) -> Ran {
        self.end_by(Signal::SIGINT).well()
    }

    pub fn kill(self) {
        let _ = self.end_by(Signal::SIGKILL);
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Parses a line into a command with piped outputs.
pub fn piped(line: impl AsRef<str>) -> Command {
    let mut command = command(line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Parses a line into a command without outputs.
pub fn quiet(line: impl AsRef<str>) -> Command {
    let mut command = command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts a command line with piped outputs.
pub fn start(line: impl AsRef<str>) -> RunningProgram {
    RunningProgram::spawn(&mut piped(line))
}

/// Like [`start`], in a namespace.
pub fn start_in(namespace: &NetNamespace, line: impl AsRef<str>) -> RunningProgram {
    RunningProgram::start(namespace, &mut piped(line))
}

/// A running dumpcap. Unlike tcpdump, dumpcap does not change its user, which a user namespace does
/// not allow.
pub struct Capture {
    running: RunningProgram,
    file: String,
}

impl Capture {
    /// Captures the frames of an interface in this namespace.
    pub fn start(dir: &Folder, name: &str, namespace: &NetNamespace, options: &str) -> Capture {
        let file = dir.file(name);
        let mut command = command(format!("dumpcap -q -P -B 32 -w {file} {options}"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        // dumpcap prints the file name once it is capturing.
        let running = RunningProgram::start(namespace, &mut command).ready("File:");
        Capture { running, file }
    }

    /// Waits until the capture has at least `frames` frames and no more arrive for a while; returns
    /// the file.
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
        let _ = self.running.end_by(Signal::SIGINT);
        self.file
    }
}

/// Returns tshark's output for the matching frames of a file.
pub fn tshark(file: &str, filter: &str) -> String {
    let checks = ["ip", "tcp", "udp"].map(|name| format!("-o {name}.check_checksum:TRUE"));
    let checks = format!("{} -o 'sctp.checksum:CRC 32c'", checks.join(" "));
    run(format!("tshark -n -r {file} -Y '{filter}' {checks}"))
        .well()
        .stdout
}

/// Starts a program in a namespace, with its output discarded; it is killed on drop.
pub fn background(namespace: &NetNamespace, line: &str) -> RunningProgram {
    RunningProgram::start(namespace, &mut quiet(line))
}

/// Runs a command that must succeed in a namespace; returns its stdout.
pub fn change(namespace: &NetNamespace, line: impl AsRef<str>) -> String {
    run_in(namespace, line).well().stdout
}

/// Returns a field of `/proc/PID/status`, such as `VmRSS`.
pub fn status_of(process: u32, name: &str) -> String {
    field(&read(format!("/proc/{process}/status")), name)
}

/// Returns a field of a status file.
pub fn field(status: &str, name: &str) -> String {
    let mut fields = status.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(found, _)| *found == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// Returns a memory size of a process in KiB.
pub fn memory_of(process: u32, field: &str) -> u64 {
    let size = status_of(process, field);
    let number = size.strip_suffix(" kB").and_then(|size| size.parse().ok());
    number.unwrap_or_else(|| panic!("{field}: '{size}'"))
}

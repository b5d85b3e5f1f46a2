//! The peer's output, sent to stderr with a prefix on each line, or to a file. It never reaches the
//! command's stdout.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum bytes per line; longer lines are split.
const LINE_MAX: usize = 16 << 10;
/// Bytes per read.
const CHUNK: usize = 8 << 10;
/// Time limit for the relay to print buffered output.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Number of reads after which a request is carried out even if output continues.
const READS_BEFORE_REQUEST: u32 = 64;

/// Destination of the peer's output.
#[derive(Debug, Default)]
pub enum PeerOutput {
    /// Longwire's stderr, with a prefix on each line: `peer: ` for the peer. After the peer is
    /// asked to stop, its stderr is discarded, because programs ended by SIGTERM often report an
    /// error.
    #[default]
    Prefixed,
    /// A file that receives the output complete and unchanged.
    File(File),
}

/// Stdout and stderr of the peer's command.
#[derive(Debug)]
pub struct PeerStreams {
    /// Stdout of the command.
    pub stdout: Stdio,
    /// Stderr of the command.
    pub stderr: Stdio,
}

impl PeerOutput {
    /// Opens the streams for a peer, and the relay that prints them if needed.
    ///
    /// # Errors
    ///
    /// If a pipe or a thread cannot be created.
    pub fn open(self, prefix: &str) -> io::Result<(PeerStreams, Option<Relay>)> {
        match self {
            PeerOutput::File(file) => {
                let streams = PeerStreams {
                    stdout: file.try_clone()?.into(),
                    stderr: file.into(),
                };
                Ok((streams, None))
            }
            PeerOutput::Prefixed => {
                let (stdout_reader, stdout) = io::pipe()?;
                let (stderr_reader, stderr) = io::pipe()?;
                let relay = Relay::start(prefix, stdout_reader, stderr_reader)?;
                let streams = PeerStreams {
                    stdout: stdout.into(),
                    stderr: stderr.into(),
                };
                Ok((streams, Some(relay)))
            }
        }
    }
}

/// A thread that copies the peer's output to stderr.
#[derive(Debug)]
pub struct Relay {
    /// Control pipe: a byte makes the relay discard stderr from then on; closing it ends the relay.
    requests: Option<PipeWriter>,
    /// Confirms each request; disconnected at the end.
    confirmed: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(prefix: &str, stdout: PipeReader, stderr: PipeReader) -> io::Result<Relay> {
        let (asked, requests) = io::pipe()?;
        let (confirm, confirmed) = channel();
        let streams = [stdout, stderr].map(|pipe| Lines::new(prefix, pipe));
        let thread = std::thread::Builder::new()
            .name("longwire-peer".into())
            .spawn(move || copy(streams, asked, &confirm))?;
        Ok(Relay {
            requests: Some(requests),
            confirmed,
            thread: Some(thread),
        })
    }

    /// Prints the peer's output so far, and discards its stderr from now on.
    pub fn discard_stderr(&mut self) {
        if let Some(requests) = &mut self.requests
            && requests.write_all(&[1]).is_ok()
        {
            let _ = self.confirmed.recv_timeout(TIMEOUT);
        }
    }

    /// Prints the remaining output. Call after the peer has ended.
    pub fn finish(&mut self) {
        self.requests = None;
        while self.confirmed.recv_timeout(TIMEOUT).is_ok() {}
        // A blocked reader of stderr must not block this process forever.
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A peer stream, split into lines.
struct Lines {
    pipe: Option<PipeReader>,
    /// The prefix, then the incomplete current line.
    line: Vec<u8>,
    /// Length of the prefix.
    prefix: usize,
    discarded: bool,
}

impl Lines {
    fn new(prefix: &str, pipe: PipeReader) -> Lines {
        Lines {
            pipe: Some(pipe),
            line: prefix.as_bytes().to_vec(),
            prefix: prefix.len(),
            discarded: false,
        }
    }

    /// Reads available output and prints complete lines.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut bytes = [0; CHUNK];
        match pipe.read(&mut bytes) {
            Ok(0) => self.end(),
            Ok(length) => bytes[..length].iter().for_each(|&byte| self.take(byte)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.end(),
        }
    }

    fn take(&mut self, byte: u8) {
        self.line.push(byte);
        if byte == b'\n' || self.line.len() >= LINE_MAX {
            self.print();
        }
    }

    /// Prints the line with a single write, because other programs write to the same terminal.
    fn print(&mut self) {
        if self.line.last() != Some(&b'\n') {
            self.line.push(b'\n');
        }
        if !self.discarded {
            let _ = io::stderr().write_all(&self.line);
        }
        self.line.truncate(self.prefix);
    }

    fn end(&mut self) {
        self.pipe = None;
        self.flush();
    }

    /// Prints the start of an unfinished line.
    fn flush(&mut self) {
        if self.line.len() > self.prefix {
            self.print();
        }
    }
}

/// Runs the relay's thread until both streams have ended or the end is requested.
fn copy(mut streams: [Lines; 2], mut asked: PipeReader, confirm: &Sender<()>) {
    let mut reads = 0;
    while streams.iter().any(|stream| stream.pipe.is_some()) {
        let (readable, requested) = wait(&streams, &asked);
        for (stream, readable) in streams.iter_mut().zip(readable) {
            if readable {
                stream.read();
            }
        }
        reads += 1;
        // Before handling a request, print output written earlier.
        let output = readable.contains(&true) && reads < READS_BEFORE_REQUEST;
        if !requested {
            reads = 0;
        } else if !output {
            reads = 0;
            streams.iter_mut().for_each(Lines::flush);
            if !matches!(asked.read(&mut [0]), Ok(1)) {
                return;
            }
            streams[1].discarded = true;
            let _ = confirm.send(());
        }
    }
}

/// Waits until a stream has output or ends, or a request arrives.
fn wait(streams: &[Lines; 2], asked: &PipeReader) -> ([bool; 2], bool) {
    let pipes = streams.iter().map(|stream| stream.pipe.as_ref());
    let open: Vec<&PipeReader> = pipes.clone().flatten().chain([asked]).collect();
    let polled = open
        .iter()
        .map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
    let mut polled: Vec<PollFd<'_>> = polled.collect();
    if poll(&mut polled, PollTimeout::NONE).is_err() {
        return ([false; 2], false);
    }
    let mut ready = polled.iter().map(|polled| polled.any() == Some(true));
    let mut readable = [false; 2];
    for (readable, pipe) in readable.iter_mut().zip(pipes) {
        *readable = pipe.is_some() && ready.next() == Some(true);
    }
    (readable, ready.next() == Some(true))
}

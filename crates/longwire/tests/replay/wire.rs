//! Veth pairs to replay over, what arrives at their other ends, and captures
//! as files.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetNamespace, sysctl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Dir, Ran, ran};

/// How long something may take that takes no time on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Devices `near0`, `near1`… with `far0`, `far1`… behind them, in two
/// namespaces. The kernel's own stack says nothing on them.
pub struct Wire {
    pub near: NetNamespace,
    pub far: NetNamespace,
}

/// `None` with a word, but in CI a failure.
pub fn skip<T>(why: impl std::fmt::Display) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

/// Whether a program is there that a test cannot do without.
pub fn have(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").output();
    let missing = |error| skip::<()>(format!("{program}: {error}"));
    asked.map_or_else(|error| missing(error).is_some(), |_| true)
}

impl Wire {
    pub fn new(pairs: usize, mtu: u32) -> Option<Wire> {
        let namespace = || NetNamespace::new().map_or_else(skip, Some);
        let wire = Wire {
            near: namespace()?,
            far: namespace()?,
        };
        let ready = wire.near.run(|| {
            for number in 0..pairs {
                wire.pair(number, mtu)?;
            }
            Ok::<(), net::NetError>(())
        });
        ready.expect("it is entered").expect("pairs are made");
        Some(wire)
    }

    fn pair(&self, number: usize, mtu: u32) -> Result<(), net::NetError> {
        let (near, far) = (format!("near{number}"), format!("far{number}"));
        let end = |name, namespace| End {
            name,
            namespace,
            mtu: Some(mtu),
            ..End::default()
        };
        veth::create(&VethConfig {
            a: end(&near, None),
            b: end(&far, Some(&self.far)),
        })?;
        sysctl::set("ipv6/conf/all/disable_ipv6", "1")?;
        net::link_up(&near)?;
        let up = self.far.run(|| {
            sysctl::set("ipv6/conf/all/disable_ipv6", "1")?;
            net::link_up(&far)
        });
        up.expect("it is entered")
    }

    /// `longwire` with these arguments, where the near ends are.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(arguments);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.near.run(|| self.command(arguments).output());
        ran(output.expect("it is entered").expect("it starts"))
    }

    /// Starts it, for something to happen meanwhile.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let child = self.near.run(|| {
            let mut command = self.command(arguments);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn()
        });
        Running(child.expect("it is entered").expect("it starts"))
    }

    /// How many frames have come to a far end.
    pub fn arrived(&self, number: usize) -> u64 {
        let stats = self
            .far
            .run(|| net::link_stats(&format!("far{number}")))
            .expect("it is entered");
        stats.expect("it is there").rx_packets
    }

    /// Waits until so many have come, and no more.
    pub fn expect_arrived(&self, number: usize, frames: u64) {
        let start = Instant::now();
        while self.arrived(number) < frames && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.arrived(number), frames);
    }
}

/// A program that runs.
pub struct Running(Child);

impl Running {
    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.0.id() as i32);
        kill(id, signal).expect("it runs");
    }

    /// Its end, which must come by itself.
    pub fn end(mut self) -> Ran {
        let start = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            if start.elapsed() > PATIENCE {
                let _ = self.0.kill();
                let output = self.0.wait_with_output().expect("a child");
                panic!("it does not end: {:?}", ran(output));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let output: Output = self.0.wait_with_output().expect("a child");
        ran(output)
    }
}

/// dumpcap at work: tcpdump's library, without its change of user, which a
/// user namespace does not allow.
pub struct Capture {
    running: Running,
    file: String,
}

impl Capture {
    /// Captures what an interface of this namespace sees.
    pub fn start(dir: &Dir, name: &str, namespace: &NetNamespace, options: &[&str]) -> Capture {
        let file = dir.file(name);
        let child = namespace.run(|| {
            Command::new("dumpcap")
                .args(["-q", "-P", "-B", "32", "-w", &file])
                .args(options)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
        });
        let mut child = child.expect("it is entered").expect("dumpcap starts");
        let stderr = child.stderr.take().expect("a pipe");
        let mut said = String::new();
        let mut lines = BufReader::new(stderr);
        // It says where it writes once it captures.
        while !said.contains("File:") {
            let read = lines.read_line(&mut said).expect("text");
            assert!(read > 0, "dumpcap: {said}");
        }
        // It has a few more words, and must not meet a closed pipe.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Capture {
            running: Running(child),
            file,
        }
    }

    /// Waits until it holds at least so many frames, and for a moment no more
    /// come; returns the file.
    pub fn with_frames(self, frames: usize) -> String {
        const MOMENT: Duration = Duration::from_millis(300);
        let start = Instant::now();
        let mut last = (0, start);
        while start.elapsed() < PATIENCE {
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

/// No checksum is left to the hardware on this device, and no segment: what
/// is captured on it is what a wire would carry.
pub fn finish_frames(device: &str) {
    const LEFT_TO_HARDWARE: [&str; 6] = [
        "tx-checksum-ip-generic",
        "tx-checksum-sctp",
        "tx-generic-segmentation",
        "tx-tcp-segmentation",
        "tx-tcp6-segmentation",
        "rx-gro",
    ];
    let off = LEFT_TO_HARDWARE.map(|feature| (feature, false));
    let ethtool = Ethtool::open().expect("ethtool's calls");
    ethtool.set_features(device, off).expect("settings");
}

/// The bytes of all whole records in a little-endian pcap file; of none where
/// it has no header yet.
pub fn records(file: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let mut records = Vec::new();
    let mut rest = bytes.get(24..).unwrap_or_default();
    while rest.len() >= 16 {
        let len = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        let Some(record) = rest.get(16..16 + len) else {
            break;
        };
        records.push(record.to_vec());
        rest = &rest[16 + len..];
    }
    records
}

/// A pcap file with nanosecond stamps: each frame at its time after the
/// beginning, in nanoseconds.
pub fn pcap_of(link_type: u32, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, link_type] {
        bytes.extend(word.to_le_bytes());
    }
    for (time, frame) in frames {
        let stamp = crate::common::EPOCH + time;
        let (seconds, nanos) = (stamp / 1_000_000_000, stamp % 1_000_000_000);
        let len = frame.len() as u32;
        for word in [seconds as u32, nanos as u32, len, len] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

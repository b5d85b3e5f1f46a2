//! Veth pairs to replay over, and captures as files.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_testbed::support::namespace;

use crate::common::process::{PATIENCE, RunningProgram};
use crate::common::{Ran, ran};

/// Devices `near0`, `near1`… joined to `far0`, `far1`…, in two namespaces. The
/// kernel's own stack sends no frames on them.
pub struct Wire {
    pub near: NetNamespace,
    pub far: NetNamespace,
}

impl Wire {
    pub fn new(pairs: usize, mtu: u32) -> Option<Wire> {
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

    /// Returns `longwire` with these arguments, in the namespace of the near
    /// ends.
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
    pub fn start(&self, arguments: &[&str]) -> RunningProgram {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        RunningProgram::start(&self.near, &mut command)
    }

    /// Returns the number of frames that arrived at a far end.
    pub fn arrived(&self, number: usize) -> u64 {
        let stats = self
            .far
            .run(|| net::link_stats(&format!("far{number}")))
            .expect("it is entered");
        stats.expect("it is there").rx_packets
    }

    /// Waits until exactly `frames` frames have arrived.
    pub fn expect_arrived(&self, number: usize, frames: u64) {
        let start = Instant::now();
        while self.arrived(number) < frames && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.arrived(number), frames);
    }
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

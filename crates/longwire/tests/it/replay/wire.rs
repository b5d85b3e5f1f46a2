//! Veth pairs for replays, and captures as files.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::veth::End;
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_testbed::support::{capture, device, namespace, wire};

use crate::common::EPOCH;
use crate::common::process::{RunningProgram, TIMEOUT};

/// Devices `near0`, `near1`… joined to `far0`, `far1`…, in two namespaces. The kernel's
/// network stack sends no frames on them.
pub struct Wire {
    pub near: NetNamespace,
    pub far: NetNamespace,
}

impl Wire {
    pub fn new(pairs: usize, mtu: u32) -> Option<Wire> {
        let site = Wire {
            near: namespace()?,
            far: namespace()?,
        };
        for namespace in [&site.near, &site.far] {
            let silent = namespace.run(|| sysctl::set("ipv6/conf/all/disable_ipv6", "1"));
            silent.expect("it is entered").expect("a setting");
        }
        for number in 0..pairs {
            site.pair(number, mtu).expect("pairs are made");
        }
        Some(site)
    }

    fn pair(&self, number: usize, mtu: u32) -> Result<(), net::NetError> {
        let (near, far) = (format!("near{number}"), format!("far{number}"));
        let end = |name, namespace| End {
            mtu: Some(mtu),
            ..device(name, Some(namespace))
        };
        wire(end(&near, &self.near), end(&far, &self.far))
    }

    /// Starts `longwire` with these arguments at the near ends and returns at once.
    pub fn start(&self, arguments: &[&str]) -> RunningProgram {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(arguments);
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
        while self.arrived(number) < frames && start.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.arrived(number), frames);
    }
}

/// Returns a pcap file with nanosecond timestamps; each frame's time is relative to the
/// start.
pub fn pcap_of(link_type: u32, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let frames = frames.iter().map(|(time, frame)| (EPOCH + time, frame));
    capture::pcap(link_type, frames)
}

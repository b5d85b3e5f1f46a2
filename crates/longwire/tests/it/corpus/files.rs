//! Inputs of the corpus: a capture of mixed traffic, traces and networks.

use crate::common::{EPOCH, write};
use longwire_testbed::support::Folder;
use longwire_testbed::support::capture::pcap;
use longwire_testbed::support::frames::sum;

/// Number of frames in the capture.
const FRAMES: u64 = 600;

/// One in this many frames arrives in the same nanosecond as its predecessor.
const SIMULTANEOUS: u64 = 11;

/// A linear congruential generator (Knuth's MMIX constants), so that the corpus does not depend on
/// the program's random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        const INCREMENT: u64 = 1_442_695_040_888_963_407;
        self.0 = self.0.wrapping_mul(FACTOR).wrapping_add(INCREMENT);
        (self.0 >> 33) % bound
    }
}

/// Returns an Ethernet frame of `len` bytes with UDP or TCP over IPv4 or IPv6.
fn frame(numbers: &mut Numbers, len: usize) -> Vec<u8> {
    const TOS: [u8; 6] = [0, 1, 2, 0xb8, 0xc1, 0x22];
    let (flow, tos) = (numbers.below(4) as u8, TOS[numbers.below(6) as usize]);
    let protocol = if flow % 2 == 0 { 17 } else { 6 };
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let ip_len = len - 14;
    if numbers.below(5) == 0 {
        bytes.extend([0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 0, 0]);
        bytes.extend(((ip_len - 40) as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, flow]);
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, flow]);
    } else {
        let start = bytes.len() + 2;
        bytes.extend([8, 0, 0x45, tos]);
        bytes.extend((ip_len as u16).to_be_bytes());
        bytes.extend([0, flow, 0, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, 0, 1 + flow, 10, 0, 1, 1 + flow]);
        let checksum = !sum(&[&bytes[start..]]);
        bytes[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes.extend([0x10, flow, 0, 80]);
    bytes.extend(((len - bytes.len()) as u16 + 4).to_be_bytes());
    while bytes.len() < len {
        bytes.push(numbers.below(256) as u8);
    }
    bytes
}

/// Returns a capture of bursts separated by gaps of 0.4 s, with a mean rate of about 12 Mbit/s.
pub fn capture(seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut time = 0;
    let frames = (0..FRAMES).map(|number| {
        if number % SIMULTANEOUS != 0 {
            let gap = if numbers.below(20) == 0 {
                8_000_000
            } else {
                500_000
            };
            time += numbers.below(gap);
        }
        let len = [74, 214, 590, 1_514][numbers.below(4) as usize];
        (EPOCH + time, frame(&mut numbers, len))
    });
    pcap(1, frames)
}

/// Files and their contents; cases refer to them as `FILE.x`.
const FILES: [(&str, &str); 8] = [
    ("table", "time_s,rate_mbps\n0,10\n0.1,2\n0.2,6\n0.3,6\n"),
    ("mahimahi", "1\n1\n2\n4\n9\n9\n10\n17\n"),
    (
        "cellreplay",
        "0 20 0 1 3 5 9\n100 24 0 2 2 7\n200 18 0 0 4\n",
    ),
    ("losses", "0010 1000 0000 1\n"),
    (
        "losstable",
        "time_s,loss_percent\n0,0\n0.1,10\n0.2,2\n0.3,2\n",
    ),
    ("samples", "10\n12.5\n11\n30\n15.25\n"),
    ("delays", "time_s,delay_ms\n0,10\n0.1,40\n0.2,12\n0.3,12\n"),
    ("dist", "-8192 -4096 0 4096 8192 16384\n"),
];

const NETWORKS: [(&str, &str); 4] = [
    ("PAIR", include_str!("pair.toml")),
    ("CHAIN", include_str!("chain.toml")),
    ("SWITCH", include_str!("switch.toml")),
    ("SCENARIO", include_str!("scenario.toml")),
];

/// Writes the inputs of all cases.
pub fn write_all(dir: &Folder) {
    write(dir.file("in.pcap"), capture(1));
    write(dir.file("back.pcap"), capture(2));
    for (name, text) in FILES {
        write(dir.file(&format!("FILE.{name}")), text);
    }
    // Each line is a value and its cumulative probability.
    write(dir.file("FILE.cdf"), "10 0\n12 0.5\n30 0.9\n50 1\n");
    for (name, text) in NETWORKS {
        write(dir.file(&format!("{name}.toml")), text);
    }
}

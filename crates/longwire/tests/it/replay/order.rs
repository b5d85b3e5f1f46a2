//! Order of arrivals at two devices.

use std::os::fd::{AsRawFd, OwnedFd};

use longwire_testbed::support::{Folder, words};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket, sockopt,
};

use crate::common::write;
use crate::replay::frames::{TimedFrames, number_of, numbered};
use crate::replay::wire::{Wire, pcap_of};

/// As many as fit a socket's buffer.
const FRAMES: u32 = 400;

/// Opens a socket that receives from all far ends in one queue.
fn socket_of_all(wire: &Wire) -> OwnedFd {
    let opened = wire.far.run(|| {
        let (family, raw, flags) = (AddressFamily::Packet, SockType::Raw, SockFlag::empty());
        let socket = socket(family, raw, flags, SockProtocol::EthAll)?;
        setsockopt(&socket, sockopt::RcvBuf, &(8 << 20))?;
        nix::Result::Ok(socket)
    });
    opened.expect("it is entered").expect("a socket")
}

/// Returns the numbers of the frames queued at a socket.
fn numbers(socket: &OwnedFd) -> Vec<u32> {
    let mut bytes = [0; 2_048];
    let mut numbers = Vec::new();
    while let Ok(len) = recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
        numbers.push(number_of(&bytes[..len]));
    }
    numbers
}

/// Writes a trace of numbered frames, of which even ones are from the client; returns
/// its path.
fn trace(
    dir: &Folder,
    name: &str,
    frames: impl Iterator<Item = u32>,
    time: fn(u64) -> u64,
) -> String {
    let frames = frames.map(|n| (time(n.into()), numbered(n % 2 == 0, n)));
    let file = dir.file(name);
    write(&file, &pcap_of(1, &frames.collect::<TimedFrames>()));
    file
}

#[test]
fn frames_arrive_at_two_devices_in_the_traces_order() {
    let Some(wire) = Wire::new(2, 1_500) else {
        return;
    };
    let dir = Folder::new();
    let every_50us = |n| n * 50_000;
    let both = trace(&dir, "both.pcap", 0..FRAMES, every_50us);
    let equal = trace(&dir, "equal.pcap", 0..FRAMES, |n| n / 2 * 500_000);
    let client = trace(&dir, "client.pcap", (0..FRAMES).step_by(2), every_50us);
    let server = trace(&dir, "server.pcap", (1..FRAMES).step_by(2), every_50us);
    let socket = socket_of_all(&wire);
    let split: &[&str] = &["--split", "port"];
    let cases: [(&[&str], &[&str], &str); 8] = [
        (&[&both], split, "--topspeed"),
        (&[&both], split, "--rate 50kpps"),
        (&[&both], split, ""),
        (&[&both], split, "--delay 1ms --queue codel"),
        (&[&equal], split, ""),
        (&[&client, &server], &[], "--topspeed"),
        (&[&client, &server], &[], "--rate 50kpps"),
        (&[&client, &server], &[], ""),
    ];
    for (number, (traces, split, pace)) in (1..).zip(cases) {
        let to = ["--to", "near0", "--to", "near1", "--json"];
        let ran = wire.run(&[&["replay"], traces, split, &words(pace), &to].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        for end in 0..2 {
            wire.expect_arrived(end, number * u64::from(FRAMES) / 2);
        }
        let arrived = numbers(&socket);
        assert_eq!(arrived.len() as u32, FRAMES, "{traces:?} {pace}");
        let behind = arrived.windows(2).filter(|two| two[1] < two[0]).count();
        assert_eq!(behind, 0, "{traces:?} {pace}");
    }
}

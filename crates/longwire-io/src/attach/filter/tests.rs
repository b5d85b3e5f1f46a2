//! Compares compiled filters with `Filter::matches` on random frames.

use std::os::fd::{AsFd, OwnedFd};

use longwire_packet::filter::Filter;
use longwire_testbed::support::Draws;

use super::facts::CONTEXT;
use super::select;
use crate::bpf::instruction::{Assembler, EXIT, Instruction, call, move_number, move_register};
use crate::bpf::{ProgramKind, load_program, run_program};

/// Filters, separated by semicolons.
const FILTERS: &str = "\
    ip; ip6; arp; rarp; icmp; icmp6; tcp; udp; sctp; ip proto 17; ip6 proto 6; proto 44; \
    ether proto 0x88cc; vlan; vlan 7; vlan and vlan 9; vlan and vlan and vlan; \
    vlan 7 and udp port 53; host 10.0.0.1; src host 10.0.0.2; dst net 10.0.0.0/24; \
    net 10.0.0.0/31; src net 10.0.0.0/7 and dst net 0.0.0.0/0; src and dst net 10.0.0.0/24; \
    net fd00::/8; src host fd00::1; dst net fd00::/65; arp host 10.0.0.1; \
    arp src host 10.0.0.2; ip host 10.0.0.1; port 53; udp port 53; tcp dst port 443; \
    src port 53; portrange 50-500; src and dst port 53; not udp port 53; \
    udp port 53 or tcp port 443; (udp or tcp) and not port 53; ether src 2:0:0:0:0:1; \
    ether host 2:0:0:0:0:2; ether broadcast; ether multicast; ip multicast; ip6 multicast; \
    less 60; greater 100; len = 64; len - 14 > 40; ttl < 64; ttl 255; dscp ef; dscp 0; ecn ce; \
    ecn != 0; flag syn; flag ack; not flag syn; fragment; not fragment and udp; \
    tcp[13] & 2 != 0; tcp[tcpflags] = 2; ip[6:2] & 0x1fff = 0; ip[2:2] > 60; ip6[6] = 44; \
    udp[0:2] = 53; ip[(ip[0] & 15) << 2] > 50; ip[ip[1] + 3] / ip[8] > 0; ip[8] % ip[9] = 1; \
    ip[0] << ip[1] > 100; tcp[(tcp[12] >> 4) * 4 : 4] > 7; ether[12:2] = 0x8100; \
    ether[11:4] & 0xff > 3; ether[14:4] > 0x00070000; bytes 10 000081; vlan.id == 7; \
    tcp.port in {53, 443}; arp.opcode == 1 or ip.addr == 10.0.0.0/8";

/// Loads a program that pushes `tag` and then returns 1 for matching frames.
fn compiled(filter: &Filter, tag: Option<(u16, u16)>) -> OwnedFd {
    /// `bpf_skb_vlan_push`.
    const VLAN_PUSH: i32 = 18;
    let mut program = Assembler::default();
    let [yes, no] = [(); 2].map(|()| program.label());
    program.put(move_register(CONTEXT, 1));
    if let Some((kind, tag)) = tag {
        program.put_all([
            move_register(1, CONTEXT),
            move_number(2, kind.to_be().into()),
            move_number(3, tag.into()),
            call(VLAN_PUSH),
        ]);
    }
    select(&mut program, filter.root(), yes, no).expect("it can be compiled");
    for (label, result) in [(yes, 1), (no, 0)] {
        program.place(label);
        program.put_all([move_number(0, result), EXIT]);
    }
    load(&program.finish().expect("short jumps"))
}

fn load(instructions: &[Instruction]) -> OwnedFd {
    load_program(ProgramKind::Tcx, "oracle", instructions).expect("the kernel accepts it")
}

fn word(frame: &mut Vec<u8>, value: u64) {
    frame.extend((value as u16).to_be_bytes());
}

fn four(draws: &mut Draws) -> [u8; 4] {
    draws.pick(&[
        [10, 0, 0, 1],
        [10, 0, 0, 2],
        [10, 0, 1, 1],
        [224, 0, 0, 1],
        [192, 0, 2, 1],
    ])
}

fn six(draws: &mut Draws) -> [u8; 16] {
    let mut address = [0; 16];
    address[0] = draws.pick(&[0xfd, 0xff, 0x20]);
    address[8] = draws.pick(&[0, 0x80]);
    address[15] = 1 + draws.below(2) as u8;
    address
}

/// Appends an IP payload: ports or a TCP-like header.
fn transport(frame: &mut Vec<u8>, draws: &mut Draws) {
    for _ in 0..2 {
        word(frame, draws.pick(&[53, 443, 80, 5_000, 65_535]));
    }
    frame.extend((0..draws.below(40)).map(|_| draws.below(256) as u8));
}

const PROTOCOLS: [u8; 8] = [6, 17, 132, 1, 58, 33, 136, 50];

fn v4(frame: &mut Vec<u8>, draws: &mut Draws) {
    let words = draws.pick(&[5, 5, 5, 6, 15, 3]);
    let version = draws.pick(&[4, 4, 4, 4, 5]);
    frame.extend([version << 4 | words, draws.pick(&[0, 184, 3, 1, 20])]);
    word(frame, draws.below(200));
    word(frame, 1);
    word(frame, draws.pick(&[0, 0, 0x4000, 0x2000, 0x2005, 5]));
    let ttl = draws.pick(&[1, 64, 255, 0]);
    frame.extend([ttl, draws.pick(&PROTOCOLS), 0, 0]);
    frame.extend(four(draws));
    frame.extend(four(draws));
    let options = usize::from(words).saturating_sub(5) * 4;
    frame.extend(vec![1; options]);
    transport(frame, draws);
}

fn v6(frame: &mut Vec<u8>, draws: &mut Draws) {
    let class = draws.pick(&[0_u8, 184, 3, 2]);
    let version = draws.pick(&[6, 6, 6, 6, 4]);
    frame.extend([version << 4 | class >> 4, class << 4, 0, 0, 0, 60]);
    let extensions = draws.pick(&[0, 0, 1, 2, 3, 8, 9, 10]);
    let mut kinds = Vec::new();
    for _ in 0..extensions {
        kinds.push(draws.pick(&[0, 43, 44, 51, 60]));
    }
    kinds.push(draws.pick(&PROTOCOLS));
    frame.extend([kinds[0], draws.pick(&[1, 64, 255])]);
    frame.extend(six(draws));
    frame.extend(six(draws));
    for pair in kinds.windows(2) {
        let (kind, next) = (pair[0], pair[1]);
        let units = draws.below(3) as u8;
        let len = match kind {
            44 => 8,
            51 => (usize::from(units) + 2) * 4,
            _ => (usize::from(units) + 1) * 8,
        };
        let mut header = vec![0; len];
        header[0] = next;
        header[1] = units;
        if kind == 44 {
            let piece = draws.pick(&[0_u16, 1, 8, 9, 6]);
            header[2..4].copy_from_slice(&piece.to_be_bytes());
        }
        frame.extend(header);
    }
    transport(frame, draws);
}

fn frame(draws: &mut Draws) -> Vec<u8> {
    let mut frame = Vec::new();
    for _ in 0..2 {
        frame.extend(draws.pick(&[[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [1; 6]]));
    }
    for _ in 0..draws.pick(&[0, 0, 0, 1, 1, 2, 3, 4, 5]) {
        word(&mut frame, draws.pick(&[0x8100, 0x8100, 0x88a8, 0x9100]));
        word(&mut frame, draws.pick(&[7, 9, 0, 0xe007, 0x1009]));
    }
    match draws.below(8) {
        0 => {
            word(&mut frame, draws.pick(&[0x0806, 0x8035]));
            frame.extend([0, 1, 8, 0, 6, 4, 0, 1 + draws.below(2) as u8]);
            for _ in 0..2 {
                frame.extend([2, 0, 0, 0, 0, 1]);
                frame.extend(four(draws));
            }
        }
        1 => {
            word(&mut frame, 0x88cc);
            frame.extend(vec![3; 1 + draws.below(50) as usize]);
        }
        2..5 => {
            word(&mut frame, 0x0800);
            v4(&mut frame, draws);
        }
        _ => {
            word(&mut frame, 0x86dd);
            v6(&mut frame, draws);
        }
    }
    if draws.below(3) == 0 {
        // A kernel test run needs a header and at least one byte.
        frame.truncate(15 + draws.below(frame.len() as u64 - 14) as usize);
    }
    frame
}

/// Splits off the outermost tag, as the kernel does on reception for these two types.
fn untagged(frame: &[u8]) -> Option<((u16, u16), Vec<u8>)> {
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    if frame.len() < 19 || ![0x8100, 0x88a8].contains(&word(12)) {
        return None;
    }
    Some(((word(12), word(14)), [&frame[..12], &frame[16..]].concat()))
}

/// Runs a program; `None` if the kernel rejects the frame, as newer kernels do for truncated IP
/// headers.
fn trial(program: &OwnedFd, frame: &[u8]) -> Option<bool> {
    match run_program(program.as_fd(), frame, 0) {
        Ok(result) => Some(result == 1),
        Err(error) => {
            assert!(frame.len() < 14 + 40, "{error}: {frame:02x?}");
            None
        }
    }
}

#[test]
fn the_kernel_and_the_filter_agree() {
    if !nix::unistd::geteuid().is_root() {
        return longwire_testbed::support::skip("needs root, to load BPF programs").unwrap_or(());
    }
    let mut draws = Draws(16);
    let (mut compared, mut matched, mut beside) = (0, 0, 0);
    for text in FILTERS.split(';').map(str::trim) {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        for filter in [filter.mirrored(), filter] {
            let plain = compiled(&filter, None);
            let mut of_tag = Vec::new();
            for _ in 0..150 {
                let frame = frame(&mut draws);
                let expected = filter.matches(&frame, frame.len() as u32);
                if let Some(found) = trial(&plain, &frame) {
                    assert_eq!(found, expected, "{text}: {frame:02x?}");
                    compared += 1;
                    matched += u64::from(expected);
                }
                let Some((tag, rest)) = untagged(&frame) else {
                    continue;
                };
                let known = of_tag.iter().position(|(known, _)| *known == tag);
                let known = known.unwrap_or_else(|| {
                    of_tag.push((tag, compiled(&filter, Some(tag))));
                    of_tag.len() - 1
                });
                if let Some(found) = trial(&of_tag[known].1, &rest) {
                    assert_eq!(found, expected, "{text}, tag beside: {frame:02x?}");
                    beside += 1;
                }
            }
        }
    }
    assert!(compared > 20_000 && beside > 5_000, "{compared}, {beside}");
    let some = compared / 10..compared * 9 / 10;
    assert!(some.contains(&matched), "{matched}");
}

#[test]
fn filters_beyond_the_kernel_are_refused() {
    for text in ["ether[ip[0]] = 1", "ether[len - 1] = 1"] {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut program = Assembler::default();
        let [yes, no] = [(); 2].map(|()| program.label());
        assert_eq!(select(&mut program, filter.root(), yes, no), None, "{text}");
    }
}

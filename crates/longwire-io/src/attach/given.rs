//! Delivers frames to an interface and counts the frames that the kernel drops there.
//!
//! `bpf_redirect` returns no result: the kernel drops the frame later if the interface is down or
//! gone. `bpf_clone_redirect` sends a copy synchronously and returns the result, so the programs
//! clone the frame and drop the original.
//!
//! [`Watch`] detects that an interface has left the namespace in which a link was attached.
//! Programs stay at an interface that moves to another namespace, and would drop all its frames
//! there. A descriptor would keep the interface's namespace alive, so the watch queries the kernel
//! from the link's namespace, by namespace id.

use std::sync::{Arc, Mutex};

use super::filter::facts::{CONTEXT, STACK, load};
use crate::bpf::CounterMap;
use crate::bpf::instruction::{
    Alu, Assembler, Compare, EXIT, add_to_memory, call, compute, compute_number, load_byte,
    load_word, move_number, move_register, skip_if_number,
};
use crate::bpf::tcx::Hook;
use crate::net::interface::about;
use crate::net::link::{INFO_FLAGS, INFO_LEN, LinkStats, by_name, stats_of};
use crate::net::netlink::Netlink;
use crate::net::netlink_message::{attribute, number_at};
use crate::net::{NetError, NetNamespace};
use crate::port::PortLosses;
use crate::sync::locked;

/// Flag of `bpf_redirect`: the device receives the frame.
pub(super) const ARRIVE: i32 = 1;
/// Flag of `bpf_redirect`: the device sends the frame.
pub(super) const SEND: i32 = 0;
/// Offset of the frame length in `struct __sk_buff`.
pub(super) const LENGTH: i16 = 0;

/// The helper `bpf_clone_redirect`, from linux/bpf.h.
const CLONE_REDIRECT: i32 = 13;
/// TCX_DROP.
const DROP: i32 = 2;
/// NET_XMIT_DROP from a sending device: its queueing discipline is full.
const QUEUE_FULL: u32 = 1;
/// Largest result that is not an error number: NET_XMIT_CN.
const RESULT_MAX: u32 = 2;
/// Offset of a super-packet's segment size in `struct __sk_buff`.
const GSO_SIZE: i16 = 176;
/// Stack slot for intermediate values.
const SCRATCH: i16 = -8;

/// Index of the counter of frames refused with an error number: the device is gone or down.
const REFUSED: usize = 0;
/// Index of the counter of ambiguous results. On reception, the device is down or the core's
/// backlog is full. On sending, the device is down or a queueing discipline drops the frame.
const UNCLEAR: usize = 1;

/// Wire frames that the kernel drops at one hook of an interface.
#[derive(Debug)]
pub(super) struct GivenFrames {
    hook: Hook,
    counters: CounterMap<2>,
    judged: Mutex<JudgedFrames>,
}

/// Drops by cause.
#[derive(Debug, Default)]
struct JudgedFrames {
    /// Number of ambiguous drops already attributed.
    unclear: u64,
    /// Last reading of the interface's counter of dropped outgoing frames.
    tx_dropped: Option<u64>,
    /// Drops counted by the interface but not yet by the frame counter, which is read first.
    unmatched: u64,
    losses: PortLosses,
}

impl GivenFrames {
    /// Returns zeroed counters for frames delivered to an interface's ingress or egress.
    ///
    /// # Errors
    /// Missing CAP_BPF.
    pub fn new(hook: Hook) -> std::io::Result<GivenFrames> {
        Ok(GivenFrames {
            hook,
            counters: CounterMap::new()?,
            judged: Mutex::default(),
        })
    }

    /// Like [`GivenFrames::new`], shared by a port and its attachment.
    ///
    /// # Errors
    /// Missing CAP_BPF.
    pub fn shared(hook: Hook) -> std::io::Result<Arc<GivenFrames>> {
        GivenFrames::new(hook).map(Arc::new)
    }

    /// Appends instructions that deliver the frame to an interface and end the program. Register 6
    /// holds the context.
    pub fn give(&self, program: &mut Assembler, interface: u32) {
        let [done, count] = [(); 2].map(|()| program.label());
        let flags = match self.hook {
            Hook::Ingress => ARRIVE,
            Hook::Egress => SEND,
        };
        program.put_all([
            move_register(1, CONTEXT),
            move_number(2, interface.cast_signed()),
            move_number(3, flags),
            call(CLONE_REDIRECT),
        ]);
        program.jump(skip_if_number(Compare::Equal, 0, 0), done);
        if self.hook == Hook::Egress {
            program.jump(skip_if_number(Compare::Equal, 0, QUEUE_FULL), done);
        }
        program.put(move_register(7, 0));
        count_wire_frames(program);
        program.put_all(self.counters.load(1, REFUSED));
        program.jump(skip_if_number(Compare::Above, 7, RESULT_MAX), count);
        program.put_all(self.counters.load(1, UNCLEAR));
        program.place(count);
        program.put(add_to_memory(1, 8, 0));
        program.place(done);
        program.put_all([move_number(0, DROP), EXIT]);
    }

    /// Attributes the kernel's drops at an interface to causes. Returns whether the interface is
    /// still in its namespace.
    pub fn judge_all(all: &[Arc<GivenFrames>], watch: &Watch) -> bool {
        let unclear: Vec<u64> = all.iter().map(|given| given.unclear()).collect();
        let state = watch.look();
        for (given, unclear) in all.iter().zip(unclear) {
            given.judge(unclear, state);
        }
        !matches!(state, InterfaceState::Gone)
    }

    /// Returns the number of ambiguous drops.
    fn unclear(&self) -> u64 {
        self.counters.get()[UNCLEAR]
    }

    /// Attributes new ambiguous drops to causes by the interface's state. `unclear` is their total
    /// number, read before `state`.
    fn judge(&self, unclear: u64, state: InterfaceState) {
        let mut judged = locked(&self.judged);
        let new = unclear.saturating_sub(judged.unclear);
        let losses = &mut judged.losses;
        match (state, self.hook) {
            (InterfaceState::Unknown, _) => return,
            (InterfaceState::Gone, _) => losses.no_carrier += new,
            (InterfaceState::There { is_up: true, .. }, Hook::Ingress) => {
                losses.send_failed += new;
            }
            (InterfaceState::There { is_up: false, .. }, Hook::Ingress) => {
                losses.no_carrier += new;
            }
            (InterfaceState::There { stats, .. }, Hook::Egress) => {
                // This counter excludes drops by queueing disciplines.
                let before = judged.tx_dropped.replace(stats.tx_dropped);
                let before = before.unwrap_or(stats.tx_dropped);
                let dropped = stats.tx_dropped.saturating_sub(before);
                let lost = new.min(dropped + judged.unmatched);
                judged.unmatched = (dropped + judged.unmatched - lost).min(dropped);
                judged.losses.no_carrier += lost;
            }
        }
        judged.unclear += new;
    }

    /// Returns the frames dropped by the kernel since the start.
    pub fn losses(&self) -> PortLosses {
        let refused = self.counters.get()[REFUSED];
        let judged = locked(&self.judged);
        PortLosses {
            no_carrier: judged.losses.no_carrier + refused,
            ..judged.losses
        }
    }
}

/// Appends instructions that leave the number of wire frames in register 8. The number is computed
/// from a super-packet's lengths, because packet sockets leave `gso_segs` at 0. Clobbers registers
/// 0 to 5 and 9.
fn count_wire_frames(program: &mut Assembler) {
    /// Offset of the IP header after an Ethernet header, and offset of the IPv6 payload.
    const IP: i32 = 14;
    const V6_END: i32 = IP + 40;
    const UDP: u32 = 17;
    let [one, v4, protocol, udp, sum, done] = [(); 6].map(|()| program.label());
    program.put(load_word(9, CONTEXT, GSO_SIZE));
    program.jump(skip_if_number(Compare::Equal, 9, 0), one);
    program.put(move_number(2, IP));
    load(program, SCRATCH, 1, one);
    program.put_all([
        load_byte(8, STACK, SCRATCH),
        move_register(2, 8),
        compute_number(Alu::Right, 2, 4),
        compute_number(Alu::And, 8, 15),
        compute_number(Alu::Multiply, 8, 4),
        compute_number(Alu::Add, 8, IP.cast_unsigned()),
    ]);
    program.jump(skip_if_number(Compare::Equal, 2, 4), v4);
    program.put_all([move_number(8, V6_END), move_number(2, IP + 6)]);
    program.go(protocol);
    program.place(v4);
    program.put(move_number(2, IP + 9));
    program.place(protocol);
    load(program, SCRATCH, 1, one);
    program.put(load_byte(2, STACK, SCRATCH));
    program.jump(skip_if_number(Compare::Equal, 2, UDP), udp);
    // Load the TCP data offset.
    program.put_all([move_register(2, 8), compute_number(Alu::Add, 2, 12)]);
    load(program, SCRATCH, 1, one);
    program.put_all([
        load_byte(2, STACK, SCRATCH),
        compute_number(Alu::Right, 2, 4),
        compute_number(Alu::Multiply, 2, 4),
        compute(Alu::Add, 8, 2),
    ]);
    program.go(sum);
    program.place(udp);
    program.put(compute_number(Alu::Add, 8, 8));
    program.place(sum);
    program.put_all([
        load_word(2, CONTEXT, LENGTH),
        compute(Alu::Subtract, 2, 8),
        compute(Alu::Add, 2, 9),
        compute_number(Alu::Subtract, 2, 1),
        compute(Alu::Divide, 2, 9),
        move_register(8, 2),
    ]);
    program.go(done);
    program.place(one);
    program.put(move_number(8, 1));
    program.place(done);
}

/// `IFLA_LINK_NETNSID`: the namespace of a veth device's peer.
const PEER_NAMESPACE: u16 = 37;

/// Queries an interface from the link's namespace.
#[derive(Debug)]
pub(super) struct Watch {
    /// A socket in the link's namespace.
    netlink: Mutex<Netlink>,
    /// Id of the interface's namespace, as seen from the link's.
    namespace: u32,
    /// The interface's index.
    index: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum InterfaceState {
    There {
        is_up: bool,
        stats: LinkStats,
    },
    /// Deleted, or moved to another namespace.
    Gone,
    /// The kernel did not answer.
    Unknown,
}

impl Watch {
    /// Watches an interface. `device` is a hub device whose peer is in the interface's namespace.
    pub(super) fn new(hub: &NetNamespace, device: &str, index: u32) -> Result<Watch, NetError> {
        let failed = |source| NetError::refused("look up", format!("device '{device}'"), source);
        hub.run(|| {
            let mut netlink = Netlink::route().map_err(failed)?;
            let found = netlink.get(by_name(libc::RTM_GETLINK, device), |payload| {
                number_at(attribute(payload.get(INFO_LEN..)?, PEER_NAMESPACE)?, 0)
            });
            let namespace = found.map_err(failed)?.ok_or_else(|| NetError::NoDevice {
                name: device.to_owned(),
            })?;
            Ok(Watch {
                netlink: Mutex::new(netlink),
                namespace,
                index,
            })
        })?
    }

    /// Queries the interface.
    pub(super) fn look(&self) -> InterfaceState {
        let request = about(self.index, Some(self.namespace));
        let mut netlink = locked(&self.netlink);
        let found = netlink.get(request, |payload| {
            let flags = number_at(payload, INFO_FLAGS).unwrap_or(0);
            InterfaceState::There {
                is_up: flags & libc::IFF_UP.cast_unsigned() != 0,
                stats: stats_of(payload).unwrap_or_default(),
            }
        });
        found.unwrap_or_else(|error| match error.source.raw_os_error() {
            // The device or namespace no longer exists.
            Some(libc::ENODEV | libc::EINVAL) => InterfaceState::Gone,
            _ => InterfaceState::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    use crate::bpf::{ProgramKind, load_program, run_program};
    use crate::net::LinkStats;

    /// Returns counters; `None` without the rights to create them.
    fn given(hook: Hook) -> Option<GivenFrames> {
        match GivenFrames::new(hook) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => None,
            given => Some(given.expect("counters")),
        }
    }

    /// Delivers a frame to a nonexistent interface and returns the refused count; `None` without
    /// the rights.
    fn refused(frame: &[u8], gso_size: u32) -> Option<u64> {
        const NO_DEVICE: u32 = 0x7fff_fff0;
        let given = given(Hook::Egress)?;
        let mut program = Assembler::default();
        program.put(move_register(CONTEXT, 1));
        given.give(&mut program, NO_DEVICE);
        let program = program.finish().expect("it is short");
        let program = load_program(ProgramKind::Tcx, "given", &program).expect("it is loaded");
        let result = run_program(program.as_fd(), frame, gso_size).expect("it runs");
        assert_eq!(result, DROP.cast_unsigned());
        assert_eq!(given.unclear(), 0);
        Some(given.losses().no_carrier)
    }

    fn packet(protocol: u8, payload: usize) -> Vec<u8> {
        let header = if protocol == 6 { 32 } else { 8 };
        let mut frame = vec![0; 14 + 20 + header + payload];
        (frame[12], frame[14], frame[23]) = (8, 0x45, protocol);
        frame[34 + 12] = if protocol == 6 { 0x80 } else { 0 };
        frame
    }

    #[test]
    fn a_frame_for_an_interface_that_is_gone_counts_as_its_wire_frames() {
        for (protocol, payload, segment, expected) in [
            (17, 100, 0, 1),
            (17, 3_600, 1_200, 3),
            (17, 3_601, 1_200, 4),
            (6, 3_600, 1_200, 3),
            (6, 3_599, 1_200, 3),
            (6, 3_601, 1_200, 4),
            (6, 1, 1_200, 1),
        ] {
            let Some(found) = refused(&packet(protocol, payload), segment) else {
                return eprintln!("not run: no rights");
            };
            assert_eq!(found, expected, "{protocol}: {payload}");
        }
    }

    #[test]
    fn the_state_of_the_interface_determines_the_cause() {
        let (Some(received), Some(sent)) = (given(Hook::Ingress), given(Hook::Egress)) else {
            return eprintln!("not run: no rights");
        };
        let there = |is_up, tx_dropped| InterfaceState::There {
            is_up,
            stats: LinkStats {
                tx_dropped,
                ..LinkStats::default()
            },
        };
        let lost = |given: &GivenFrames| (given.losses().no_carrier, given.losses().send_failed);
        received.judge(3, there(true, 0));
        assert_eq!(lost(&received), (0, 3), "the core's backlog was full");
        received.judge(3, InterfaceState::Unknown);
        received.judge(5, there(false, 0));
        received.judge(9, InterfaceState::Gone);
        assert_eq!(lost(&received), (6, 3));

        sent.judge(0, there(true, 70));
        sent.judge(40, there(true, 70));
        assert_eq!(lost(&sent), (0, 0), "a queueing discipline dropped them");
        sent.judge(45, there(false, 76));
        assert_eq!(lost(&sent), (5, 0));
        sent.judge(46, there(false, 76));
        assert_eq!(lost(&sent), (6, 0), "dropped between both readings");
        sent.judge(47, there(false, 76));
        assert_eq!(lost(&sent), (6, 0), "a drop accounts for one frame");
        sent.judge(48, InterfaceState::Gone);
        assert_eq!(lost(&sent), (7, 0));
    }
}

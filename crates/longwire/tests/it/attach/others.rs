//! Other programs at the same interface, similar to those of container networks.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use longwire_io::bpf::instruction::{
    Assembler, Compare, EXIT, Instruction, call, load_word, move_number, move_register,
    skip_if_number, store_word,
};
use longwire_io::bpf::tcx::{self, Hook, Position, run_count};
use longwire_io::bpf::{Link, ProgramKind, enable_stats, load_program};
use longwire_io::net::link::{link_index, link_stats};
use longwire_io::net::{NetNamespace, veth};
use longwire_testbed::support::{have, within};

use super::{DEVICE, Joined, name_of, set_up};
use crate::common::count;
use crate::common::program::change;

/// TCX_NEXT and TCX_DROP.
const NEXT: i32 = -1;
const DROP: i32 = 2;
/// Offsets in `struct __sk_buff`.
const LENGTH: i16 = 0;
const MARK: i16 = 8;
const PROTOCOL: i16 = 16;

/// A program at an interface that does not belong to Longwire.
struct Other {
    program: OwnedFd,
    _link: Link,
}

impl Other {
    /// Attaches the program before all existing ones.
    fn attach(
        namespace: &NetNamespace,
        device: &str,
        hook: Hook,
        name: &str,
        instructions: &[Instruction],
    ) -> Other {
        let program = load_program(ProgramKind::Tcx, name, instructions).expect("accepted");
        let link = within(namespace, || {
            let index = link_index(device).expect("a device");
            let found = tcx::programs(index, hook)?;
            tcx::attach(
                program.as_fd(),
                index,
                hook,
                Position::First,
                found.revision,
            )
        });
        Other {
            _link: link,
            program,
        }
    }

    fn runs(&self) -> u64 {
        run_count(self.program.as_fd()).expect("a count")
    }
}

fn order(namespace: &NetNamespace, hook: Hook) -> Vec<String> {
    let programs = || tcx::programs(link_index(DEVICE).expect("a device"), hook);
    within(namespace, programs).names
}

/// Marks frames with identities, like Cilium.
fn marking() -> Vec<Instruction> {
    vec![
        move_number(2, 0x0f00),
        store_word(1, 2, MARK),
        move_number(0, NEXT),
        EXIT,
    ]
}

/// Drops frames of one length.
fn dropping(length: u32) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let other = program.label();
    program.put(load_word(2, 1, LENGTH));
    program.jump(skip_if_number(Compare::Unequal, 2, length), other);
    program.put_all([move_number(0, DROP), EXIT]);
    program.place(other);
    program.put_all([move_number(0, NEXT), EXIT]);
    program.finish().expect("a program")
}

#[test]
fn other_programs_stay_and_see_each_frame_once() {
    let Some(joined) = Joined::new() else { return };
    let _counting = enable_stats().expect("root may count");
    let put = |hook, name, program: &[Instruction]| {
        Other::attach(&joined.near, DEVICE, hook, name, program)
    };
    // 819 bytes: 777 of payload and 42 of headers.
    let dropper = put(Hook::Egress, "other_drop", &dropping(819));
    let marker = put(Hook::Egress, "other_mark", &marking());
    let receiver = put(Hook::Ingress, "other_in", &marking());
    let before = ["other_mark", "other_drop"];
    assert_eq!(order(&joined.near, Hook::Egress), before);
    joined.assert_round_trip(0.0);

    let attached = joined.attach(&name_of("others"), "--delay 20ms");
    let with_link = ["longwireOff0000", "other_mark", "other_drop"];
    assert_eq!(order(&joined.near, Hook::Egress), with_link);
    assert_eq!(
        order(&joined.near, Hook::Ingress),
        ["longwireIff0000", "other_in"]
    );
    let counts = || [&marker, &dropper, &receiver].map(Other::runs);
    let sent = || within(&joined.near, || link_stats(DEVICE)).tx_packets;
    let (start, sent_before) = (counts(), sent());
    joined.assert_round_trip(40.0);
    let (near, far) = joined.sockets(9_999);
    for length in [777, 100].into_iter().cycle().take(40) {
        let sent = near.send_to(&vec![1; length], (joined.far_address, 9_999));
        assert_eq!(sent.ok(), Some(length));
    }
    // The link counts a frame on arrival, which may be after the next ping starts.
    for _ in 0..20 {
        assert_eq!(far.recv(&mut [0; 1000]).ok(), Some(100));
    }
    joined.assert_round_trip(40.0);
    let report = attached.detach();
    let (end, sent_after) = (counts(), sent());
    let [up, down] = [0, 1].map(|link: usize| count(&report["links"][link]["packets_out"]));
    let ran = [0, 1, 2].map(|at| end[at] - start[at]);
    assert_eq!(ran, [up, up, down], "each frame once, after the link");
    assert_eq!(sent_after - sent_before, up - 20, "twenty are dropped");
    assert_eq!(order(&joined.near, Hook::Egress), before);
    assert_eq!(order(&joined.near, Hook::Ingress), ["other_in"]);
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn classic_filters_stay_and_delays_do_not_multiply() {
    let Some(joined) = Joined::new() else { return };
    let tc = |line: &str| change(&joined.near, format!("tc {line}"));
    tc("qdisc add dev eth0 clsact");
    for hook in ["ingress", "egress"] {
        // The classic BPF program matches every frame.
        let program = "bytecode '1,6 0 0 4294967295'";
        tc(&format!(
            "filter add dev eth0 {hook} bpf {program} flowid 1:1"
        ));
    }
    let filters = || ["ingress", "egress"].map(|hook| tc(&format!("filter show dev eth0 {hook}")));
    let before = filters();
    assert!(before[0].contains("bytecode"), "{before:?}");
    let attached = joined.attach(&name_of("classic"), "--delay 20ms");
    joined.assert_round_trip(40.0);
    assert_eq!(filters(), before);
    attached.detach();
    assert_eq!(filters(), before);
    joined.assert_round_trip(0.0);
}

/// Redirects IPv4 with a helper, like Cilium's host routing; other frames pass.
fn redirecting(helper: i32, arguments: &[i32]) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let other = program.label();
    program.put_all([move_register(6, 1), load_word(2, 1, PROTOCOL)]);
    let ipv4 = u32::from(0x0800_u16.to_be());
    program.jump(skip_if_number(Compare::Unequal, 2, ipv4), other);
    for (register, value) in (1..).zip(arguments) {
        program.put(move_number(register, *value));
    }
    program.put_all([call(helper), EXIT]);
    program.place(other);
    program.put_all([move_number(0, NEXT), EXIT]);
    program.finish().expect("a program")
}

#[test]
fn a_pod_behind_redirects_of_the_host_has_the_delay_that_is_asked_for() {
    /// `bpf_redirect_neigh` and `bpf_redirect_peer`.
    const REDIRECT_NEIGH: i32 = 152;
    const REDIRECT_PEER: i32 = 155;
    if !super::may_attach() || !have("ping") {
        return;
    }
    let [pod, host, far] = [(); 3].map(|()| NetNamespace::new().expect("a namespace"));
    // Cilium rewrites Ethernet addresses; in this test, the pod instead shares the address of the
    // host's device.
    let mac = Some([2, 0, 0, 0, 0, 0x10]);
    let end = |name, namespace, mac| veth::End {
        name,
        namespace: Some(namespace),
        mac,
        ..veth::End::default()
    };
    for (a, b) in [
        (end(DEVICE, &pod, mac), end("lxc", &host, None)),
        (end("up", &host, mac), end(DEVICE, &far, None)),
    ] {
        veth::create(&veth::VethConfig { a, b }).expect("a pair");
    }
    let address = |third: u8, last: u8| IpAddr::from([10, 88, third, last]);
    set_up(&pod, DEVICE, address(1, 2));
    set_up(&host, "lxc", address(1, 1));
    set_up(&host, "up", address(2, 1));
    set_up(&far, DEVICE, address(2, 2));
    change(&pod, "ip route add 10.88.2.0/24 via 10.88.1.1");
    change(&far, "ip route add 10.88.1.0/24 via 10.88.2.1");
    let index = |device: &str| within(&host, || link_index(device)).cast_signed();
    let out = redirecting(REDIRECT_NEIGH, &[index("up"), 0, 0, 0]);
    let back = redirecting(REDIRECT_PEER, &[index("lxc"), 0]);
    let _out = Other::attach(&host, "lxc", Hook::Ingress, "cil_from_pod", &out);
    let _back = Other::attach(&host, "up", Hook::Ingress, "cil_to_pod", &back);
    let pod = Joined::of(pod, far, address(2, 2));
    pod.assert_round_trip(0.0);
    let attached = pod.attach(&name_of("pod"), "--delay 100ms");
    pod.assert_round_trip(200.0);
    attached.detach();
    pod.assert_round_trip(0.0);
    pod.assert_clean();
}

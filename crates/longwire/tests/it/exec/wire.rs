//! The link behaves like a wire: it carries only the user's frames.

use crate::common::have;
use crate::common::program::{Ran, tshark};
use crate::common::site::{OUTSIDE, host_with_outside};
use crate::exec::User;
use longwire_testbed::support::skip;

/// Asserts that the capture at each end contains exactly these frames: `echoes` requests and the
/// same number of replies.
fn assert_echoes_only(user: &User, echoes: usize) {
    for end in ["in", "out"] {
        let frames = tshark(&user.dir.file(&format!("p.{end}.pcapng")), "frame");
        for kind in ["Echo (ping) request", "Echo (ping) reply"] {
            assert_eq!(frames.matches(kind).count(), echoes, "{end}: {frames}");
        }
        assert_eq!(frames.lines().count(), 2 * echoes, "{end}: {frames}");
    }
}

/// Asserts that each end sees two pings per address family and no other frames.
fn carries_pings_only(user: &User, port: &str) {
    // No address resolution delays the first ping. After its last request, ping waits for one
    // interval, which is longer than a busy machine stalls.
    let pings = "ping -4 -c 2 -i 0.6 far && ping -6 -c 2 -i 0.6 far";
    let options = format!("--delay 20ms --port {port} --capture p");
    let ended = user.exec(format!("{options} -- sh -c '{pings}'"));
    if port == "tap" && ended.stderr.contains("/dev/net/tun") {
        // Root must have access; for other users, it depends on the machine.
        if user.is_root() {
            skip::<()>(&ended.stderr);
        }
        return;
    }
    let ended = ended.well();
    assert_eq!(ended.stdout.matches("2 received").count(), 2, "{ended:?}");
    assert_echoes_only(user, 4);
}

#[test]
fn only_the_users_frames_cross() {
    for user in User::with(["tshark", "ping"]) {
        carries_pings_only(&user, "packet");
        // An XDP program needs privileges in the initial user namespace.
        if user.is_root() {
            carries_pings_only(&user, "xdp");
        }
        carries_pings_only(&user, "tap");
    }
}

#[test]
fn nothing_times_out_before_a_long_queue() {
    // 250 kB at 400 kbit/s: the last datagram waits for 5 s.
    let send = "python3 -c 'import os, socket\n\
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for i in range(250): s.sendto(bytes(1000), (os.environ[\"LONGWIRE_FAR\"], 9))'; \
                sleep 6";
    for user in User::with(["python3"]) {
        user.write("send.sh", send);
        user.exec("--rate 400kbit --queue 1000p --log r.csv -- sh send.sh")
            .well();
        // Select the datagrams, which have 1,042 bytes with headers: on a busy machine, the
        // kernel's late multicast reports also appear.
        let log = user.read("r.csv");
        let datagrams = log.lines().filter(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            fields[1] == "link.up" && fields[3] == "1042" && fields[4] == "deliver"
        });
        assert_eq!(datagrams.count(), 250, "{log}");
    }
}

#[test]
fn only_the_users_frames_cross_to_the_uplink() {
    if !nix::unistd::geteuid().is_root() || !have("tshark") {
        return;
    }
    let Some([host, _outside]) = host_with_outside() else {
        return;
    };
    let user = User::new(None);
    let line = format!("--uplink --delay 20ms --capture p -- ping -c 3 -i 0.2 {OUTSIDE}");
    let ran = host.run(|| Ran::of(&mut user.exec_command(line)));
    ran.expect("it is entered").well().prints("3 received");
    assert_echoes_only(&user, 3);
}

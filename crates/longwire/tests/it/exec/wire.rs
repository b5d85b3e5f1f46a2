//! The link is a wire: it carries only the user's frames.

use crate::common::have;
use crate::exec::{User, well};
use longwire_testbed::support::{device, namespace, skip, wire, words};

/// Returns the frames of a capture, one tshark line each.
fn frames(user: &User, file: &str) -> Vec<String> {
    let file = user.dir.file(file);
    let text = crate::common::process::tshark(&file, "frame");
    text.lines().map(str::to_owned).collect()
}

/// Asserts that each end sees two pings of each family, and no other frames.
fn carries_pings_only(user: &User, port: &str) {
    // There is no address resolution, which would delay the first ping. After its last
    // request, ping waits one interval: longer than a busy machine stalls.
    let pings = "ping -4 -c 2 -i 0.6 far && ping -6 -c 2 -i 0.6 far";
    let arguments = ["--delay", "20ms", "--port", port, "--capture", "p"];
    let ended = user.exec(&[&arguments[..], &["--", "sh", "-c", pings]].concat());
    if port == "tap" && ended.stderr.contains("/dev/net/tun") {
        // Root must be allowed; for other users it depends on the machine.
        if user.is_root() {
            skip::<()>(&ended.stderr);
        }
        return;
    }
    let ended = well(ended);
    assert_eq!(ended.stdout.matches("2 received").count(), 2, "{ended:?}");
    for end in ["in", "out"] {
        let frames = frames(user, &format!("p.{end}.pcapng"));
        for kind in ["Echo (ping) request", "Echo (ping) reply"] {
            let own = |frame: &&String| frame.contains(kind);
            assert_eq!(frames.iter().filter(own).count(), 4, "{frames:#?}");
        }
        assert_eq!(frames.len(), 8, "{end}: {frames:#?}");
    }
}

#[test]
fn only_the_users_frames_cross() {
    if !have("tshark") {
        return;
    }
    for user in User::all() {
        carries_pings_only(&user, "packet");
        // An XDP program needs rights outside of a user namespace.
        if user.is_root() {
            carries_pings_only(&user, "xdp");
        }
        carries_pings_only(&user, "tap");
    }
}

#[test]
fn a_round_trip_longer_than_address_resolution_waits() {
    for user in User::all() {
        let ping = words("-q --delay 2s -- ping -c 2 -W 10 far");
        let ended = well(user.exec(&ping));
        assert!(ended.stdout.contains("2 received"), "{ended:?}");
    }
}

#[test]
fn nothing_times_out_before_a_long_queue() {
    // 250 kB at 400 kbit/s: the last datagram waits for 5 s.
    let send = "python3 -c 'import os, socket\n\
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for i in range(250): s.sendto(bytes(1000), (os.environ[\"LONGWIRE_FAR\"], 9))'; \
                sleep 6";
    if !have("python3") {
        return;
    }
    for user in User::all() {
        let link = ["--rate", "400kbit", "--queue", "1000p", "--log", "r.csv"];
        well(user.exec(&[&link[..], &["--", "sh", "-c", send]].concat()));
        // Each datagram has 1,042 bytes with headers. On a busy machine, late multicast
        // reports of the kernel appear too.
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
    use std::net::IpAddr;

    use longwire_io::net::{addr_add, link_up};

    if !nix::unistd::geteuid().is_root() || !have("tshark") {
        return;
    }
    let (Some(host), Some(outside)) = (namespace(), namespace()) else {
        return;
    };
    let configure = |device, last| {
        link_up("lo")?;
        addr_add(device, IpAddr::from([198, 51, 100, last]), 24)
    };
    let join = || wire(device("wan", None), device("eth0", Some(&outside)));
    host.run(|| join().and_then(|()| configure("wan", 1)))
        .expect("it is entered")
        .expect("a host");
    outside
        .run(|| configure("eth0", 2))
        .expect("it is entered")
        .expect("an outside");
    let user = User::new(None);
    let own = ["--uplink", "--delay", "20ms", "--capture", "p", "--"];
    let ping = ["ping", "-c", "3", "-i", "0.2", "198.51.100.2"];
    let mut command = user.exec_command(&[&own[..], &ping].concat());
    let output = host.run(|| command.output()).expect("it is entered");
    let ended = well(crate::common::ran(output.expect("it starts")));
    assert!(ended.stdout.contains("3 received"), "{ended:?}");
    for file in ["p.in.pcapng", "p.out.pcapng"] {
        let frames = frames(&user, file);
        for kind in ["Echo (ping) request", "Echo (ping) reply"] {
            let own = |frame: &&String| frame.contains(kind);
            assert_eq!(frames.iter().filter(own).count(), 3, "{frames:#?}");
        }
        assert_eq!(frames.len(), 6, "{frames:#?}");
    }
}

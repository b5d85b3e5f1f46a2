//! Strict priority by VLAN tag, which the kernel stores separately from the frame on
//! its way to the link.
//!
//! Needs namespaces and python3. Without them, this test passes without running, except
//! in CI.

use crate::common::recording::{FrameTimes, passed};
use crate::common::{have, longwire};
use longwire_testbed::support::{Folder, words};

fn possible(stderr: &str, code: i32) -> bool {
    let impossible = code == 1 && stderr.contains("namespace");
    assert!(!impossible || std::env::var_os("CI").is_none(), "{stderr}");
    !impossible
}

/// Sends frames of the priorities 1, none, 5 and 7, in this order, each with its own
/// length. The last have a service tag around a tag of another priority.
const TAGGED: &str = r#"
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for tag, length in ("81002005", 1000), ("", 800), ("8100a000", 600), ("88a8e00781002005", 500):
    frame = bytes.fromhex("020000000009" "020000000001" + tag + "88b5").ljust(length)
    for _ in range(20):
        s.send(frame)
"#;

#[test]
fn the_priority_of_a_vlan_tag_decides() {
    if !have("python3") {
        return;
    }
    for port in ["packet", "tap", "xdp"] {
        let dir = Folder::new();
        let (log, script) = (dir.file("log.csv"), dir.file("send.py"));
        std::fs::write(&script, TAGGED).expect("a script");
        // 80 frames of at most 20 ms each: all arrive before the second leaves, unless
        // the sender stalls that long.
        let link = "exec -q --rate 400kbit --queue priority:pcp --seed 3";
        let arguments = [
            &words(link)[..],
            &["--port", port, "--log", &log, "--"],
            &["sh", "-c", &format!("python3 {script} && sleep 3")],
        ];
        let ran = longwire(&arguments.concat());
        if !possible(&ran.stderr, ran.code) || ran.stderr.contains("/dev/net/tun") {
            println!("skipped: {}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut frames = passed(&log, "link.up");
        frames.retain(|frame| [1_000, 800, 600, 500].contains(&frame.len));
        assert_eq!(frames.len(), 80, "{port}");
        assert_in_order_of_priority(port, &frames, [1_000, 800, 600, 500]);
    }
}

/// Asserts that no frame was served while one of a later length waited, except the one
/// in service at its arrival, and that waiting frames of lower priority were overtaken.
fn assert_in_order_of_priority(port: &str, frames: &[FrameTimes], lengths: [u32; 4]) {
    let rank = |frame: &FrameTimes| lengths.iter().position(|len| *len == frame.len);
    let departure = |frame: &FrameTimes| frame.arrival + frame.time;
    // 400 kbit/s: 20 us per byte.
    let began = |frame: &FrameTimes| departure(frame) - i64::from(frame.len) * 20_000;
    let mut overtaken = 0;
    for high in frames {
        for low in frames.iter().filter(|low| rank(low) < rank(high)) {
            let waited = began(low) > high.arrival && began(low) < began(high);
            assert!(!waited, "{port}: {low:?} before {high:?}");
            // Frames of a lower rank are sent first; frames read together have the same
            // timestamp.
            overtaken += usize::from(low.arrival <= high.arrival && began(low) > began(high));
        }
    }
    // A frame takes at least 10 ms: at most `served` frames left while others still
    // arrived, and each of them is overtaken by none of 60. The other pairs of 2,400
    // are reordered.
    let arrivals = frames.iter().map(|frame| frame.arrival);
    let span = arrivals.clone().max().unwrap_or(0) - arrivals.min().unwrap_or(0);
    let served = 2 + span / 10_000_000;
    assert!(
        overtaken as i64 >= 2_400 - 60 * served,
        "{port}: {overtaken}, arrivals within {span} ns"
    );
}

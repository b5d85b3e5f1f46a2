//! The queue panel of lossy links.

use super::form::{BLUE, coordinates};
use super::svg;
use crate::common::{EPOCH, longwire, pcap, write};
use longwire_testbed::support::Folder;

/// Loss on the medium happens after the queue, so it does not change the queue.
#[test]
fn a_frame_lost_first_leaves_the_queue_like_any_other() {
    const MS: u64 = 1_000_000;
    let dir = Folder::new();
    let (capture, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    // Apart and in a burst: of 118 bytes and of 1,000.
    for (name, times) in [("apart", [0, 500, 1_000, 1_500]), ("burst", [0, 0, 0, 400])] {
        for length in [118, 1_000] {
            let frames = times.map(|at| (EPOCH + at * MS, length));
            write(&capture, &pcap(&frames));
            let queue = |loss: &[&str]| {
                let log = dir.file("run.csv");
                let link = ["--rate", "1mbit", "--delay", "5ms", "--log", &log];
                let ran = longwire(&[&["simulate", &capture, &out][..], &link, loss].concat());
                assert_eq!(ran.code, 0, "{ran:?}");
                let figure = svg(&dir, &[&log, "--panel", "queue"]);
                coordinates(&figure, BLUE)
            };
            let whole = queue(&[]);
            assert!(whole.len() > 8, "{whole:?}");
            for lost in ["list:packets=1", "list:packets=1-2", "list:packets=1-3"] {
                assert_eq!(queue(&["--loss", lost]), whole, "{name}, {length}, {lost}");
            }
        }
    }
}

//! Plugins in threaded runs between captures.

use longwire_engine::Nanos;
use longwire_runtime::{Faults, Placement, RunConfig};

use longwire_testbed::support::Folder;

use crate::common::{run, write_input};
use crate::plugins::tools::{example, parse, probe};

fn with(faults: &Faults, placement: Placement) -> RunConfig {
    RunConfig {
        placement,
        faults: faults.clone(),
        ..RunConfig::default()
    }
}

#[test]
fn a_fault_ends_the_run_with_its_message() {
    for (option, managed) in [("loss", false), ("delay", true), ("rewrite", true)] {
        for placement in [Placement::Together, Placement::PerStage] {
            let folder = Folder::new();
            // The input lasts 20 s, unless the fault at the 51st frame ends the run.
            write_input(&folder.file("in.pcap"), 20_000, Nanos::from_millis(1));
            let text = format!("plugin:{},after=50,fault=hook", probe());
            let faults = Faults::new();
            let queue = if managed {
                " queue=codel:limit=100p"
            } else {
                ""
            };
            let config = parse(&format!("{option}={text}{queue}"), &faults).unwrap();
            let (report, _) = run(&folder, config, with(&faults, placement));
            let error = report.error.unwrap_or_default();
            assert!(error.starts_with("plugin "), "{option}: {error}");
            assert!(error.ends_with("no more of this"), "{option}: {error}");
            let frames = report.links[0].traffic.packets_in;
            assert!((51..10_000).contains(&frames), "{option}: {frames} frames");
        }
    }
}

#[test]
fn slots_count_from_the_links_beginning() {
    // Slots count from the link's start, regardless of the clock: frames leave in the first 2 ms of
    // each 10 ms.
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 400, Nanos::from_micros(700));
    let text = format!(
        "plugin:{},rate=1gbit,period=10ms,slot=2ms",
        example("tdm.c")
    );
    let faults = Faults::new();
    let config = parse(&format!("rate={text} queue=unlimited"), &faults).unwrap();
    let (report, frames) = run(&folder, config, with(&faults, Placement::Together));
    assert_eq!(report.error, None);
    assert_eq!(frames.len(), 400);
    let bursts = frames
        .windows(2)
        .filter(|pair| pair[1].1 - pair[0].1 > 7_000_000);
    // 280 ms contain 28 slots. Frames in a slot are at most one frame gap apart.
    assert!((26..=28).contains(&bursts.count()));
}

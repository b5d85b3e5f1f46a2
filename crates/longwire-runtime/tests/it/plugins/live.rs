//! Plugins in threaded runs between captures.

use longwire_engine::Nanos;
use longwire_runtime::{Faults, Placement, RunConfig};

use longwire_testbed::support::Folder;

use crate::common::{run, write_input};
use crate::plugins::tools::parse;

#[test]
fn a_fault_ends_the_run_with_its_message() {
    let managed = " queue=codel:limit=100p";
    for (option, queue) in [("loss", ""), ("delay", managed), ("rewrite", managed)] {
        for placement in [Placement::Together, Placement::PerStage] {
            let folder = Folder::new();
            // The input lasts 20 s, unless the fault at the 51st frame ends the run.
            write_input(&folder.file("in.pcap"), 20_000, Nanos::from_millis(1));
            let faults = Faults::new();
            let line = format!("{option}=plugin:probe,after=50,fault=hook{queue}");
            let link = parse(&line, &faults).unwrap();
            let config = RunConfig {
                placement,
                faults,
                ..RunConfig::default()
            };
            let (report, _) = run(&folder, link, config);
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
    let faults = Faults::new();
    let line = "rate=plugin:tdm,rate=1gbit,period=10ms,slot=2ms queue=unlimited";
    let link = parse(line, &faults).unwrap();
    let config = RunConfig {
        placement: Placement::Together,
        faults,
        ..RunConfig::default()
    };
    let (report, frames) = run(&folder, link, config);
    assert_eq!(report.error, None);
    assert_eq!(frames.len(), 400);
    let bursts = frames
        .windows(2)
        .filter(|pair| pair[1].1 - pair[0].1 > 7_000_000);
    // 280 ms contain 28 slots. Frames in a slot are at most one frame gap apart.
    assert!((26..=28).contains(&bursts.count()));
}

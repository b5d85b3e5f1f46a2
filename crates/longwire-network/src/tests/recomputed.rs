//! Recomputes a live run with changes from its recorded frames and its report. All verdicts must be
//! equal.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_engine::{FrameMeta, LinkId, Verdict};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::FileAccess;
use longwire_runtime::deciding::Simulation;
use longwire_runtime::record::Event;

use super::*;
use crate::{ChangeRecord, Scenario};
use recorder::keeper;

#[path = "../../../longwire-runtime/tests/it/common/recorder.rs"]
#[allow(dead_code, reason = "the runtime's tests read all of it")]
mod recorder;

/// A link between two ports, changed by the test.
const LINK: &str = "[[link]]\nname = \"wire\"\nmatch = \"src=10.0.0.1\"\nrate = \"80mbit\"\n";
const CHANGES: usize = 200;

/// Verdicts on a frame and its copies, by link and frame number.
type Verdicts = BTreeMap<(LinkId, u64), Vec<Verdict>>;

/// Returns the verdicts in a recording.
fn verdicts(events: Vec<Event>) -> Verdicts {
    let mut verdicts = Verdicts::new();
    for event in events {
        if let Event::Decided {
            link,
            frame,
            verdict,
        } = event
        {
            verdicts.entry((link, frame)).or_default().push(verdict);
        }
    }
    verdicts
}

/// Recomputes a run and returns the verdicts.
fn recompute(
    text: &str,
    (seed, epoch): (u64, Nanos),
    entered: &[(PortIndex, Nanos, Vec<u8>)],
) -> Verdicts {
    let topology = Topology::parse("net.toml", text, std::path::Path::new(""));
    let network = Numbered::new(topology.expect("a good file"));
    let loader = FileLoader::reporting_to(&Faults::new());
    let parts = network.parts(&loader).expect("parts");
    let (recorder, kept) = keeper(true);
    let simulation = Simulation::new(&["a", "b"], parts, seed, epoch, Some(recorder));
    let mut simulation = simulation.expect("it starts");
    let mut scenario = Scenario::new(&network.topology().timeline);
    while let Some(command) = scenario.next_due(Nanos::MAX) {
        let prepared = network
            .plan(&command, &loader, &channel().0)
            .expect("a plan");
        for (at, work) in prepared.operations {
            simulation.order(at, work);
        }
    }
    let mut leave = |_: longwire_runtime::deciding::OutputFrame<'_>| Ok::<_, Infallible>(());
    for (port, arrival, bytes) in entered {
        let meta = FrameMeta::new(*arrival, bytes.len() as u32);
        let Ok(()) = simulation.frame(*port, meta, bytes, &mut leave);
    }
    let Ok(()) = simulation.advance(Nanos::MAX, &mut leave);
    assert_eq!(simulation.stop().error, None);
    verdicts(kept.take().events)
}

/// Returns a topology whose scenario consists of a report's changes.
fn file_with<'a>(made: impl IntoIterator<Item = &'a ChangeRecord>) -> String {
    let mut text = format!("{PORTS}{LINK}");
    for done in made {
        let change: Value = serde_json::to_value(&done.change).expect("JSON");
        let options = change["set"]["wire.up"].as_object().expect("options");
        let options: Vec<String> = options
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        text += &format!(
            "[[at]]\ntime = \"{}ns\"\nset = {{ \"wire.up\" = {{ {} }} }}\n",
            done.at_ns,
            options.join(", ")
        );
    }
    text
}

#[test]
fn a_run_with_changes_made_at_once_is_recomputed_from_its_report() {
    let folder = Folder::new();
    let trace = folder.path().join("trace");
    let opportunities: String = (0..500)
        .map(|nth| format!("{}\n", nth * 3 / 2 + 1))
        .collect();
    std::fs::write(&trace, opportunities).expect("a file");
    let trace = format!("mahimahi:{}", trace.display());

    let (recorder, kept) = keeper(true);
    let Site {
        running,
        controller,
        into: [mut into, _back],
        mut out,
    } = Site::recorded(LINK, Some(recorder));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                send(&mut into, 1);
                out[1]
                    .receive(Nanos::ZERO, 64, &mut |_| {})
                    .expect("a cable");
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        for nth in 0..CHANGES {
            let options = match nth % 4 {
                0 => json!({ "rate": trace.clone() }),
                1 => json!({ "delay": format!("{}us", 100 + nth) }),
                2 => json!({ "rate": format!("{}mbit", 20 + nth), "loss": "2%" }),
                _ => json!({ "duplicate": format!("{}%", nth % 9), "queue": "fq-codel" }),
            };
            let body = json!({ "set": { "wire.up": options } });
            let changed = controller.change(&body, &FileAccess::Any);
            let changed = changed.unwrap_or_else(|problems| panic!("{body}: {problems:?}"));
            let made = controller.changes().made;
            assert_eq!(made.len(), nth + 1);
            assert_eq!(made[nth].at_ns, changed.at_ns, "of the reply");
        }
        over.store(true, Ordering::Relaxed);
    });
    let made = controller.changes().made;
    let start = (controller.seed(), controller.clock_time(Nanos::ZERO));
    let report = running.stop();
    assert_eq!((report.error, report.counts.unrecorded), (None, 0));
    let recorded = kept.take();
    let text = file_with(&made);
    let again = recompute(&text, start, &recorded.entered);
    let live = verdicts(recorded.events);
    assert!(live.len() > CHANGES, "{}", live.len());
    let differing = live.iter().filter(|(frame, live)| {
        // The run may have ended between two copies of a frame.
        let offline = again.get(*frame).map(Vec::as_slice).unwrap_or_default();
        !offline.starts_with(live)
    });
    let differing = differing.count();
    assert_eq!(differing, 0, "of {} rows", live.len());
}

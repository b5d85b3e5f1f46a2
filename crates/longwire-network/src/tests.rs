//! Changes a running network while frames cross it. Needs no privileges, because the ports are
//! pipes in memory.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::mem::{PipeRx, PipeTx, pipe};
use longwire_io::port::{AnyRx, AnyTx, Port};
use longwire_io::{PushResult, RxPort, TxFrame, TxPort};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::{
    Faults, FileAccess, FileLoader, NetworkPlan, Recorder, RunConfig, RunningNetwork, WaitMode,
    start,
};
use longwire_testbed::support::{FileOption, Folder, rows};
use serde_json::{Value, json};

mod recomputed;

use super::*;
use longwire_topology::{State, Topology};

/// A network between two ports. The test holds the far ends of the ports.
struct Site {
    running: RunningNetwork,
    controller: Controller,
    into: [PipeTx; 2],
    out: [PipeRx; 2],
}

const PORTS: &str = "[ports]\na = \"packet:a\"\nb = \"packet:b\"\n";

impl Site {
    fn new(text: &str) -> Site {
        Site::recorded(text, None)
    }

    fn recorded(text: &str, recorder: Option<Box<dyn Recorder>>) -> Site {
        let text = format!("{PORTS}{text}");
        let topology = Topology::parse("net.toml", &text, std::path::Path::new(""));
        let network = Numbered::new(topology.expect("a good file"));
        let cable = || pipe(Bytes(1 << 20)).expect("memory");
        let ends = [0, 1].map(|_| {
            let ((into, rx), (tx, out)) = (cable(), cable());
            let (rx, tx) = (AnyRx::Pipe(Box::new(rx)), AnyTx::Pipe(Box::new(tx)));
            (Port::with_halves("pipe", rx, tx), into, out)
        });
        let [(a, into_a, out_a), (b, into_b, out_b)] = ends;
        let faults = Faults::new();
        let parts = network.parts(&FileLoader::reporting_to(&faults));
        let ports = vec![("a".to_owned(), a), ("b".to_owned(), b)];
        let config = RunConfig {
            realtime: false,
            // A pipe does not wake threads, so spin.
            wait: WaitMode::Spin,
            tolerance: Nanos::from_secs(10),
            ..RunConfig::default()
        };
        let plan = NetworkPlan::changeable(ports, parts.expect("parts"));
        let running = start(plan, config, recorder).expect("it starts");
        let handle = running.handle().expect("it can be changed").clone();
        let loader = FileLoader::reporting_to(&faults);
        let controller = Controller::new(network, handle, loader, channel());
        Site {
            running,
            controller,
            into: [into_a, into_b],
            out: [out_a, out_b],
        }
    }

    /// Sends a frame from 10.0.0.`station` into the first port.
    fn send(&mut self, station: u8) {
        send(&mut self.into[0], station);
    }

    /// Returns the station of the second port's next frame; `None` on timeout.
    fn next(&mut self, timeout: Duration) -> Option<u8> {
        let began = Instant::now();
        let mut found = None;
        while found.is_none() && began.elapsed() < timeout {
            let take = &mut |arrived: longwire_io::RxFrame<'_>| found = Some(arrived.bytes[29]);
            self.out[1].receive(Nanos::ZERO, 1, take).expect("a cable");
            std::thread::sleep(Duration::from_micros(200));
        }
        found
    }

    /// Returns the delay of a station's frames: the minimum of three, which excludes preemption.
    fn takes(&mut self, station: u8) -> Duration {
        let times = [0; 3].map(|_| {
            // Read the clock before sending, because this thread may be preempted afterwards.
            let sent = Instant::now();
            self.send(station);
            let found = self.next(TIMEOUT).expect("it arrives");
            assert_eq!(found, station);
            sent.elapsed()
        });
        times.into_iter().min().expect("three")
    }

    /// Asserts that at least one of a station's frames takes less than `than`. On a busy machine,
    /// most frames may take longer.
    fn takes_less(&mut self, station: u8, than: Duration) {
        assert!((0..20).any(|_| self.takes(station) < than), "{station}");
    }

    fn link(&self, name: &str) -> LinkView {
        self.controller.link(name).expect("it is there")
    }

    /// Returns the number of frames that entered a link in direction up.
    fn packets_in(&self, link: &str) -> u64 {
        self.link(link).up.counted.totals.traffic.packets_in
    }

    fn change(&self, body: &Value) -> ChangeResult {
        let changed = self.controller.change(body, &FileAccess::Any);
        changed.unwrap_or_else(|problems| panic!("{body}: {problems:?}"))
    }

    /// Returns the fields and reasons of a refusal. Asserts that `check` refuses in the same way,
    /// and that nothing has changed.
    fn refused(&self, body: &Value) -> Vec<(String, String)> {
        let before = self.seen();
        let looked = self.controller.check(body, &FileAccess::Any);
        let problems = self.controller.change(body, &FileAccess::Any);
        let problems = problems.expect_err("refused");
        assert_eq!(looked.expect_err("refused"), problems);
        assert_eq!(self.seen(), before, "{body}");
        let told = problems.into_iter();
        told.map(|problem| (problem.field, problem.reason))
            .collect()
    }

    fn seen(&self) -> String {
        let links = self.controller.links("*", None, usize::MAX);
        let rules = self.controller.rules(0, usize::MAX);
        let paths = self.controller.paths();
        serde_json::to_string(&(links, rules, paths)).expect("JSON")
    }
}

/// Sends a frame from 10.0.0.`station`.
fn send(into: &mut PipeTx, station: u8) {
    let mut bytes = [0; 60];
    (bytes[0], bytes[6], bytes[11]) = (2, 2, station);
    (bytes[12], bytes[14], bytes[17]) = (8, 0x45, 46);
    (bytes[22], bytes[23]) = (64, 17);
    bytes[26..30].copy_from_slice(&[10, 0, 0, station]);
    bytes[30..34].copy_from_slice(&[10, 0, 1, 1]);
    let pushed = into.push(TxFrame::whole(&bytes, monotonic_now()));
    assert_eq!(pushed, PushResult::Taken);
    into.flush().expect("it is a cable");
}

const TIMEOUT: Duration = Duration::from_secs(10);

const NETWORK: &str = r#"
[templates.slow]
delay = "60ms"

[[link]]
name = "first"
match = "src=10.0.0.1"
rate = "100mbit"
delay = "20ms"

[[link]]
name = "second"
match = "src=10.0.0.2"
delay = "1ms"

[[link]]
name = "core"

[[path]]
name = "long"
via = ["second", "core"]
match = "src=10.0.0.3"
"#;

const MS: Duration = Duration::from_millis(1);

#[test]
fn links_are_added_changed_and_removed_under_traffic() {
    let mut site = Site::new(NETWORK);
    assert!(site.takes(1) >= 20 * MS);
    // This frame crosses no link.
    site.takes_less(9, 20 * MS);
    let changed = site.change(&json!({
        "add": { "link": [{ "name": "new", "template": "slow", "match": "src=10.0.0.9" }] },
    }));
    assert_eq!((changed.added, changed.removed), (1, 0));
    assert!(site.takes(9) >= 60 * MS);
    let view = site.link("new");
    assert_eq!(view.up.counted.totals.traffic.packets_in, 3);
    assert_eq!(view.up.options["delay"], "60ms");
    assert_eq!(view.matchers, ["src=10.0.0.9", "dst=10.0.0.9"]);
    site.change(&json!({ "set": { "ne*.up": { "delay": "30ms" } } }));
    assert!(site.takes(9) >= 30 * MS);
    site.takes_less(9, 60 * MS);

    // Frames in flight are delivered, although their link is removed.
    site.change(&json!({ "set": { "new": { "delay": "150ms" } } }));
    let before = site.packets_in("new");
    let sent = Instant::now();
    site.send(9);
    while site.packets_in("new") == before {
        std::thread::sleep(MS);
    }
    let changed = site.change(&json!({ "remove": ["new"] }));
    assert_eq!(changed.removed, 1);
    assert!(site.controller.link("new").is_none());
    let of_first = site.packets_in("first");
    site.send(1);
    while site.packets_in("first") == of_first {
        std::thread::sleep(MS);
    }
    // Upper bound of the time between the arrivals, which preemption only increases.
    let between = sent.elapsed();
    let arrived = [0; 2].map(|_| site.next(TIMEOUT).expect("it arrives"));
    if between < 130 * MS {
        assert_eq!(arrived, [1, 9], "the frame in flight keeps its release");
    } else {
        assert!(arrived == [1, 9] || arrived == [9, 1], "{arrived:?}");
    }
    site.takes_less(9, 30 * MS);

    // The name is available again, and the core has dropped the old link.
    site.controller.tidy();
    let added = json!({ "name": "new", "delay": "40ms", "match": "src=10.0.0.9" });
    site.change(&json!({ "add": { "link": [added] } }));
    assert!(site.takes(9) >= 40 * MS);
    let stopped = site.running.stop();
    let report = site
        .controller
        .look(|network| NetworkReport::new(stopped, network));
    assert!(report.run.error.is_none(), "{:?}", report.run.error);
    let rows = report.run.links.iter().filter(|row| row.name == "new.up");
    let rows: Vec<_> = rows
        .map(|row| (row.removed, row.traffic.packets_in))
        .collect();
    assert_eq!(rows, [(true, before + 1), (false, 3)]);
}

#[test]
fn a_change_is_made_at_its_time_and_seen_then() {
    let mut site = Site::new(NETWORK);
    let changed = site.change(&json!({ "in": "2s", "off": ["second"], "set": {
        "first": { "loss": ["100%"] } } }));
    let at = Nanos::from_nanos(changed.at_ns);
    assert_eq!(site.link("second").up.state, State::On);
    site.takes(2);
    while site.controller.elapsed() <= at.saturating_add(Nanos::from_millis(10)) {
        std::thread::sleep(MS);
    }
    let second = site.link("second");
    let states = [second.up.state, second.down.expect("both").state];
    assert_eq!(states, [State::Off; 2]);
    let first = site.link("first");
    assert_eq!(Value::Object(first.up.options)["loss"], json!(["100%"]));
    assert_eq!(site.controller.links("first", None, 9)[0].up.queue, None);
    assert!(first.up.queue.is_some());
    site.send(2);
    site.send(1);
    assert_eq!(site.next(200 * MS), None);
    let changes = site.controller.changes();
    let done = &changes.made;
    assert_eq!((done.len(), changes.forgotten), (1, 0));
    assert_eq!(
        (done[0].by, done[0].links, done[0].at_ns),
        (Origin::Control, 2, at.as_nanos())
    );

    // A class's frames move to another link and back.
    site.change(&json!({ "on": ["*"], "set": { "first": { "loss": "none" } } }));
    site.change(&json!({ "move": { "second": "first" } }));
    assert!(site.takes(2) >= 20 * MS);
    let moved = site.link("second").moved_to;
    assert_eq!(moved.as_deref(), Some("first"));
    site.change(&json!({ "move": { "second": "second" } }));
    site.takes_less(2, 20 * MS);

    // Frames on a paused link wait.
    site.change(&json!({ "pause": ["second.up"] }));
    site.send(2);
    assert_eq!(site.next(100 * MS), None);
    let queue = site.link("second").up.queue.expect("one");
    assert_eq!(queue.packets, 1);
    site.change(&json!({ "on": ["second"] }));
    assert_eq!(site.next(TIMEOUT).expect("it arrives"), 2);
}

/// Invalid changes, with the field and a part of the reason.
const REFUSED: &str = r#"
    [] | | not a JSON object
    {} | | empty change
    { "sett": {} } | sett | unknown key 'sett'
    { "set": { "first": null } } | set.first | null
    { "set": { "first": { "rate": "fast" } } } | set.first.rate | fast
    { "set": { "first": { "delay": "9ms" }, "second": { "delay": "-1" } } } | set.second.delay | -1
    { "set": { "none*": { "rate": "1mbit" } } } | set.none* | no link
    { "off": ["first"], "at": "soon" } | at | soon
    { "on": ["fir*"], "off": ["first.up"] } | off | also listed under 'on'
    { "off": ["first"], "at": "1s", "in": "1s" } | in | both at and in
    { "remove": ["second"] } | remove | path 'long' crosses
    { "remove": ["nobody"] } | remove | no link or path
    { "remove": ["first"], "in": "1s" } | at | adding or removing links and paths cannot be scheduled
    { "move": { "first": "nowhere" } } | move | nowhere
    { "move": { "core": "first" } } | move | no matcher
    { "add": { "link": [{ "name": "x", "match": "src=10.9.9.9" }, { "name": "first" }] } } | link.name | used twice
    { "add": { "link": [{ "name": "x", "match": "src=300.0.0.1" }] } } | link.match | 300.0.0.1
    { "add": { "link": [{ "name": "x", "match": "any" }] }, "off": ["y"] } | off | no link named 'y'
"#;

#[test]
fn refusals_name_the_field_and_change_nothing() {
    let site = Site::new(NETWORK);
    for [body, field, reason] in rows(REFUSED) {
        let told = site.refused(&serde_json::from_str(body).expect(body));
        let mut fields = told.iter();
        let fits = fields.any(|(at, why)| at == field && why.contains(reason));
        assert!(fits, "{body}: {told:?}");
    }
    site.change(&json!({ "move": { "second": "first" } }));
    let told = site.refused(&json!({ "remove": ["first"] }));
    assert!(told[0].1.contains("take 'first'"), "{told:?}");
    // One change can remove all of them.
    site.change(&json!({ "remove": ["first", "second", "long", "core"] }));
    assert_eq!(site.controller.link_count(), 0);
    assert_eq!(site.controller.rules(0, 9).len(), 0);
    assert_eq!(site.controller.paths().len(), 0);
}

#[test]
fn a_look_at_a_change_leaves_no_trace() {
    let site = Site::new(NETWORK);
    let before = site.seen();
    let body = json!({ "add": { "link": [{ "name": "x{n}", "count": 2000, "between": ["10.3.0.0/20"] }],
        "path": [{ "name": "p", "via": ["x1", "core"], "match": "src=10.4.0.1" }] },
        "set": { "x*": { "rate": "1mbit" } } });
    let looked = site
        .controller
        .check(&body, &FileAccess::Any)
        .expect("it is right");
    assert_eq!((looked.added, looked.links), (2001, 2000));
    assert_eq!(site.seen(), before);
    // Apply the change twice, and remove everything in between.
    for _ in 0..2 {
        let changed = site.change(&body);
        assert_eq!((changed.added, changed.links), (2001, 2000));
        assert_eq!(site.controller.totals("x*").0, 4000);
        assert_eq!(site.controller.links("x*", Some("x998"), 10).len(), 1);
        let rules = site.controller.rules(0, usize::MAX);
        assert_eq!(rules.len(), 6 + 4002);
        assert_eq!(rules.last().expect("some").leads_to, "p.down");
        site.change(&json!({ "remove": ["x*", "p"] }));
        site.controller.tidy();
        assert_eq!(site.seen(), before);
    }
}

#[test]
fn null_restores_the_default_of_an_option() {
    let site = Site::new(NETWORK);
    site.change(&json!({ "add": { "link": [{
        "name": "x", "match": "src=10.9.0.1", "rate": "8mbit", "delay": "50ms",
    }] } }));
    let link = || site.link("x").up;
    let before = link();
    let limit = |of: &DirectionView| {
        of.queue
            .map(|queue| (queue.packets_limit, queue.bytes_limit))
    };
    assert!(!before.options.contains_key("queue"));
    site.change(&json!({ "set": { "x": { "queue": "7p", "loss": "1%", "order": "reorder" } } }));
    let changed = link();
    assert_eq!(limit(&changed), Some((Some(7), None)));
    assert_eq!(changed.options["queue"], "7p");
    let body = json!({ "set": { "x": { "queue": null, "loss": null, "order": null } } });
    site.change(&body);
    let after = link();
    assert_eq!(
        (&after.options, limit(&after)),
        (&before.options, limit(&before))
    );
    // The default queue limit follows the new rate.
    site.change(&json!({ "set": { "x": { "rate": "80mbit" } } }));
    assert!(limit(&link()) > limit(&before), "{:?}", link().queue);
    let last = site.controller.changes().made;
    let sent = |done: &ChangeRecord| serde_json::to_value(&done.change).ok();
    let resets = last.iter().find(|done| sent(done) == Some(body.clone()));
    let said = resets.map(|done| done.change.to_string());
    assert_eq!(said.as_deref(), Some("set x loss= order= queue="));
}

/// File options are refused before any file access if the client may not name files, or if a
/// service receives a relative path.
#[test]
fn changes_name_no_files_that_they_may_not() {
    const REASON: &str = "not from here";
    let folder = Folder::new();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let fifo = fifo.display().to_string();
    let site = Site::new("[[link]]\nname = \"x\"\n");
    let nothing = FileAccess::Nothing(REASON);
    let cases = [
        (&nothing, fifo.as_str(), REASON),
        (&nothing, "Cargo.toml", REASON),
        (&nothing, "/etc/shadow", REASON),
        (&FileAccess::Absolute, "Cargo.toml", "a relative path"),
        (&FileAccess::Absolute, "../network", "a relative path"),
    ];
    let options = FileOption::all().into_iter();
    for option in options.filter(|option| option.option != "preset") {
        for (access, path, reason) in cases {
            let text = option.text(path, folder.path());
            let body = json!({ "set": { "x": { option.option: text } } });
            for refused in [
                site.controller.check(&body, access),
                site.controller.change(&body, access),
            ] {
                let refused = refused.expect_err("refused");
                assert!(refused[0].reason.contains(reason), "{text}: {refused:?}");
            }
        }
    }
    for (access, path, reason) in cases {
        let body = json!({ "add": { "link": [{ "csv": path }] } });
        let refused = site.controller.change(&body, access).expect_err("refused");
        assert!(refused[0].reason.contains(reason), "{path}: {refused:?}");
    }
}

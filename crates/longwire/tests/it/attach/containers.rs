//! Links at containerd and runc containers.

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;
use serde_json::Value;

use super::{Attached, Links, name_of};
use crate::common::containerd::{Container, DEVICE, Engine, image, join};
use crate::common::number;
use crate::common::program::{Ran, command, eventually, piped};
use crate::common::recording::{assert_both_delay, delivered};
use crate::common::site::assert_no_attachment;

const NEAR: &str = "10.88.0.1";
const FAR: &str = "10.88.0.2";
const SLEEP: &str = "sleep 1000";
/// Command that serves files over HTTP, and iperf3.
const SERVE: &str = "sh -c 'httpd -p 80 -h /www; exec iperf3 -s'";

/// Two joined containers; links are attached to near.
struct Pair<'a> {
    engine: &'a Engine,
    near: Container<'a>,
    far: Container<'a>,
    links: Links,
}

impl Pair<'_> {
    fn new<'a>(engine: &'a Engine, near: Container<'a>) -> Pair<'a> {
        let far = engine.run(&format!("far-of-{}", near.id), "", SERVE);
        join([(&near, NEAR), (&far, FAR)]);
        Pair {
            engine,
            near,
            far,
            links: Links::default(),
        }
    }

    /// Attaches a link to near, addressed by its container name.
    fn attach(&self, options: &str) -> Attached {
        let (id, name) = (&self.near.id, name_of(&self.near.id));
        let target = format!("--container containerd:{id} --interface {DEVICE}");
        let mut command = piped(format!(
            "longwire attach {target} --name {name} --json {options}"
        ));
        command.env("CONTAINERD_ADDRESS", self.engine.socket());
        self.links.attach(&name, &mut command)
    }

    #[track_caller]
    fn assert_round_trip(&self, delays: f64) {
        let near: NetNamespace = self.near.namespace();
        self.links.assert_crossed(&near, FAR, delays);
    }

    /// Like [`Pair::assert_round_trip`], from far.
    #[track_caller]
    fn assert_round_trip_back(&self, delays: f64) {
        self.links
            .assert_crossed(&self.far.namespace(), NEAR, delays);
    }

    /// Fetches a file over the link, and asserts that it is intact.
    #[track_caller]
    fn assert_fetched(&self) {
        let fetched = self
            .near
            .bytes(&format!("curl -sS --fail http://{FAR}/data"));
        assert!(fetched == image::data(), "bytes differ from those served");
    }
}

#[test]
fn containers_have_the_link_that_is_attached() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let pair = Pair::new(&engine, engine.run("near", "", SLEEP));
    pair.assert_round_trip(0.0);
    pair.assert_fetched();

    let attached = pair.attach("--delay 40ms");
    pair.assert_round_trip(80.0);
    pair.assert_round_trip_back(80.0);
    pair.assert_fetched();

    attached.set("delay=5ms rate=20mbit loss=0.1%");
    pair.assert_round_trip(10.0);
    pair.assert_fetched();
    for direction in ["", "-R"] {
        let output = pair
            .near
            .bytes(&format!("iperf3 -c {FAR} -J -t 3 {direction}"));
        let result: Value = serde_json::from_slice(&output).expect("JSON");
        let rate = number(&result["end"]["sum_received"]["bits_per_second"]) / 1e6;
        // On a busy machine, TCP does not saturate the link; the link's rate is the upper limit.
        assert!(rate > 0.0 && rate < 20.0, "{rate} Mbit/s of 20");
    }
    let report = attached.detach();
    assert_eq!(report["error"], Value::Null, "{report}");
    pair.assert_round_trip(0.0);
    assert_no_attachment(&pair.near.namespace());

    releases_are_those_of_the_link(&pair);
    a_pause_loses_nothing(&pair);
    a_restart_ends_the_run(&pair);
}

/// Asserts from the log that departures are spaced by the rate, and that delays match the model.
fn releases_are_those_of_the_link(pair: &Pair<'_>) {
    const NANOS_PER_BYTE: i64 = 400;
    let dir = Folder::new();
    let log = dir.file("log.csv");
    let attached = pair.attach(&format!("--delay 20ms --log {log}"));
    pair.assert_round_trip(40.0);
    attached.detach();
    let directions = assert_both_delay(&log, 4, 20);

    let attached = pair.attach(&format!("--rate 20mbit --log {log}"));
    pair.near.bytes(&format!("iperf3 -c {FAR} -t 2"));
    attached.detach();
    let frames = delivered(&log, &directions[1]);
    let mut queued = 0;
    for pair in frames.windows(2) {
        let [previous, frame] = pair else { continue };
        let released = previous.arrival + previous.delay;
        let service = i64::from(frame.len) * NANOS_PER_BYTE;
        let apart = frame.arrival + frame.delay - released;
        assert!(apart >= service, "{apart} ns: {frame:?}");
        if frame.arrival < released {
            assert_eq!(apart, service, "{frame:?}");
            queued += 1;
        }
    }
    assert!(queued > 100, "{queued} of {} frames", frames.len());
}

/// Pauses a container during a download, then resumes it.
fn a_pause_loses_nothing(pair: &Pair<'_>) {
    let near = &pair.near;
    let attached = pair.attach("--delay 10ms --rate 1mbit");
    // The download lasts half a minute at this rate, well beyond the pause.
    let mut download = near.spawn(&format!("curl -sS --fail -o /tmp/data http://{FAR}/data"));
    eventually("nothing arrives", || {
        near.exec("sh -c '[ -s /tmp/data ]'").code == 0
    });
    let frozen = near.freeze();
    attached.set("rate=100mbit");
    // The kernel replies for the paused container; the reply crosses the link.
    let trip = super::pings(&pair.far.namespace(), NEAR);
    assert!(trip > Some(19.9), "{trip:?} ms");
    let over = download.child().try_wait().expect("a child");
    assert_eq!(over, None, "a paused program ends nothing");
    drop(frozen);
    download.end().well();
    let received = near.bytes("cat /tmp/data");
    assert!(received == image::data(), "bytes differ from those served");
    pair.assert_round_trip(20.0);

    // Links can be attached to and detached from a paused container.
    let frozen = near.freeze();
    let report = attached.detach();
    assert_eq!(report["error"], Value::Null, "{report}");
    let again = pair.attach("--delay 15ms");
    pair.assert_round_trip_back(30.0);
    again.detach();
    drop(frozen);
    assert_no_attachment(&near.namespace());
}

/// A run ends with its container's network. After a restart, the container has a new network,
/// without a link until one is attached.
fn a_restart_ends_the_run(pair: &Pair<'_>) {
    let attached = pair.attach("--delay 10ms");
    pair.assert_round_trip(20.0);
    pair.near.kill();
    attached.ends_without_interface();
    pair.near.task("delete");
    pair.near.task("start --detach");
    join([(&pair.near, NEAR), (&pair.far, FAR)]);
    pair.assert_round_trip(0.0);
    let attached = pair.attach("--delay 15ms");
    pair.assert_round_trip(30.0);
    attached.detach();
    assert_no_attachment(&pair.near.namespace());
}

#[test]
fn out_of_memory_is_the_containers_alone() {
    let Some(engine) = Engine::start() else {
        return;
    };
    // Input without newlines makes `tail` buffer everything in memory.
    let eat = "sh -c 'busybox mkfifo /tmp/go; read go < /tmp/go; exec tail /dev/zero'";
    let pair = Pair::new(&engine, engine.run("eater", "--memory-limit 33554432", eat));
    let attached = pair.attach("--delay 20ms");
    pair.assert_round_trip(40.0);
    // One process is killed; its container keeps running. The first process only waits: if it
    // needed memory before the killed process has ended, the kernel might kill it too.
    pair.near.exec("tail /dev/zero").exits(137);
    assert_eq!(pair.near.state(), "RUNNING");
    pair.assert_round_trip(40.0);
    pair.assert_fetched();
    // The container's first process is killed.
    pair.near.bytes("sh -c 'echo > /tmp/go'");
    pair.near.wait_for("STOPPED");
    attached.ends_without_interface();
    engine
        .ctr(format!("tasks delete {}", pair.near.id))
        .says("exit code 137");
}

#[test]
fn a_container_in_the_network_of_the_machine_is_refused() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let host = engine.run("host", "--net-host", SLEEP);
    let mut command = command(format!(
        "longwire attach --container {} --delay 1ms",
        host.id
    ));
    command.env("CONTAINERD_ADDRESS", engine.socket());
    Ran::of(&mut command).exits(2).says("--host-network");
}

//! Links of containerd and runc containers.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::link_names;

use super::{Attached, name_of, started};
use crate::common::containerd::{Container, DEVICE, Engine, image, join};
use crate::common::process::TIMEOUT;

const NEAR: &str = "10.88.0.1";
const FAR: &str = "10.88.0.2";
const SLEEP: &[&str] = &["sleep", "1000"];
/// Serves files and iperf3.
const SERVE: &[&str] = &["sh", "-c", "httpd -p 80 -h /www; exec iperf3 -s"];

/// Attaches a link to a container by its name.
fn attach(engine: &Engine, container: &Container<'_>, options: &[&str]) -> Attached {
    let name = name_of(&container.id);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let target = format!("containerd:{}", container.id);
    command.args(["attach", "--container", &target, "--interface", DEVICE]);
    command.args(["--name", &name, "--json"]).args(options);
    command.env("CONTAINERD_ADDRESS", engine.socket());
    started(command, &name)
}

/// Asserts that no device of an attachment remains in a container.
#[track_caller]
fn assert_clean(container: &Container<'_>) {
    let namespace = container.namespace();
    let end = Instant::now() + TIMEOUT;
    loop {
        let names = namespace.run(link_names).expect("entered").expect("names");
        if names.iter().all(|name| !name.starts_with("lw-")) {
            return;
        }
        assert!(Instant::now() < end, "devices are left: {names:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Fetches a file over the link, and asserts that it is intact.
#[track_caller]
fn assert_fetched(container: &Container<'_>) {
    let url = format!("http://{FAR}/data");
    let fetched = container.bytes(&["curl", "-sS", "--fail", &url]);
    assert!(fetched == image::data(), "other bytes than are served");
}

#[test]
fn containers_have_the_link_that_is_attached() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let near = engine.run("near", &[], SLEEP);
    let far = engine.run("far", &[], SERVE);
    join([(&near, NEAR), (&far, FAR)]);
    near.assert_round_trip(FAR, 0.0);
    assert_fetched(&near);

    let attached = attach(&engine, &near, &["--delay", "40ms"]);
    near.assert_round_trip(FAR, 80.0);
    far.assert_round_trip(NEAR, 80.0);
    assert_fetched(&near);

    attached.set(&["delay=5ms", "rate=20mbit", "loss=0.1%"]);
    near.assert_round_trip(FAR, 10.0);
    assert_fetched(&near);
    let options = ["iperf3", "-c", FAR, "-J", "-t", "3"];
    for direction in [&options[..], &[&options[..], &["-R"]].concat()] {
        let output = near.bytes(direction);
        let result: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
        let rate = result["end"]["sum_received"]["bits_per_second"].as_f64();
        let rate = rate.unwrap_or_else(|| panic!("{result}")) / 1e6;
        // On a busy machine, TCP does not fill the link; its rate is the limit.
        assert!(rate > 0.0 && rate < 20.0, "{rate} Mbit/s of 20");
    }
    let report = attached.detach();
    assert_eq!(report["error"], serde_json::Value::Null, "{report}");
    near.assert_round_trip(FAR, 0.0);
    assert_clean(&near);

    a_pause_loses_nothing(&engine, &near, &far);
    a_restart_ends_the_run(&engine, &near, &far);
}

/// A container is paused during a download, and resumes.
fn a_pause_loses_nothing(engine: &Engine, near: &Container<'_>, far: &Container<'_>) {
    let attached = attach(engine, near, &["--delay", "10ms", "--rate", "1mbit"]);
    let url = format!("http://{FAR}/data");
    // Half a minute at this rate: longer than until the pause.
    let script = format!("curl -sS --fail -o /tmp/data {url}");
    let mut download = near.spawn(&["sh", "-c", &script]);
    let begin = Instant::now();
    while near.exec(&["sh", "-c", "[ -s /tmp/data ]"]).code != 0 {
        assert!(begin.elapsed() < TIMEOUT, "nothing arrives");
    }
    let frozen = near.freeze();
    attached.set(&["rate=100mbit"]);
    // The kernel replies on its behalf, over the link.
    far.assert_round_trip(NEAR, 20.0);
    let over = download.child().try_wait().expect("a child");
    assert_eq!(over, None, "a paused program ends nothing");
    drop(frozen);
    let ended = download.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let received = near.bytes(&["cat", "/tmp/data"]);
    assert!(received == image::data(), "other bytes than are served");
    near.assert_round_trip(FAR, 20.0);

    // A link can be attached to and detached from a paused container.
    let frozen = near.freeze();
    let report = attached.detach();
    assert_eq!(report["error"], serde_json::Value::Null, "{report}");
    let again = attach(engine, near, &["--delay", "15ms"]);
    far.assert_round_trip(NEAR, 30.0);
    let _ = again.detach();
    drop(frozen);
    assert_clean(near);
}

/// A container and its network end, and so does the run. After a restart, it has
/// another network, without a link until one is attached.
fn a_restart_ends_the_run(engine: &Engine, near: &Container<'_>, far: &Container<'_>) {
    let attached = attach(engine, near, &["--delay", "10ms"]);
    near.assert_round_trip(FAR, 20.0);
    near.kill();
    let ran = attached.program.end();
    assert!(ran.stdout.contains("is gone"), "{ran:?}");
    near.task(&["delete"]);
    near.task(&["start", "--detach"]);
    join([(near, NEAR), (far, FAR)]);
    near.assert_round_trip(FAR, 0.0);
    let attached = attach(engine, near, &["--delay", "15ms"]);
    near.assert_round_trip(FAR, 30.0);
    let _ = attached.detach();
    assert_clean(near);
}

#[test]
fn out_of_memory_is_the_containers_alone() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let limit = ["--memory-limit", "33554432"];
    // Without newlines, `tail` keeps all of its input in memory.
    let eat = "until [ -e /tmp/go ]; do sleep 0.05; done; exec tail /dev/zero";
    let near = engine.run("eater", &limit, &["sh", "-c", eat]);
    let far = engine.run("server", &[], SERVE);
    join([(&near, NEAR), (&far, FAR)]);
    let attached = attach(&engine, &near, &["--delay", "20ms"]);
    near.assert_round_trip(FAR, 40.0);
    // A process is killed, and its container continues.
    let killed = near.exec(&["tail", "/dev/zero"]);
    assert_eq!(killed.code, 137, "{killed:?}");
    assert_eq!(near.state(), "RUNNING");
    near.assert_round_trip(FAR, 40.0);
    assert_fetched(&near);
    // The first process is killed.
    near.bytes(&["touch", "/tmp/go"]);
    near.wait_for("STOPPED");
    let ran = attached.program.end();
    assert!(ran.stdout.contains("is gone"), "{ran:?}");
    let deleted = engine.ctr(&["tasks", "delete", &near.id]);
    assert!(deleted.stderr.contains("exit code 137"), "{deleted:?}");
}

#[test]
fn a_container_in_the_network_of_the_machine_is_refused() {
    let Some(engine) = Engine::start() else {
        return;
    };
    let host = engine.run("host", &["--net-host"], SLEEP);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["attach", "--container", &host.id, "--delay", "1ms"]);
    command.env("CONTAINERD_ADDRESS", engine.socket());
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let ran = crate::common::ran(output);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("--host-network"), "{ran:?}");
}

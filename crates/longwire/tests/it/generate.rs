//! `generate` through the program: frames sent, reports on probes, and a profile
//! against a known device.
//!
//! Tests between devices need namespaces. Without permission to create them, they pass
//! without running, except in CI.

use crate::common::wire::{inside, wired};
use crate::common::{Ran, frames, longwire};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, rows, words};
use serde_json::Value;

/// Returns a namespace with two devices joined by a veth pair.
fn pair() -> Option<NetNamespace> {
    wired(&[("near", "far")])
}

/// Runs `generate` from one device to the other.
fn between(namespace: &NetNamespace, arguments: &[&str]) -> Ran {
    let ports = ["generate", "--to", "packet:near", "--receive", "packet:far"];
    inside(namespace, &[&ports, arguments].concat())
}

#[test]
fn frames_have_the_requested_headers() {
    let dir = Folder::new();
    let out = dir.file("out.pcap");
    let to = format!("pcap:out={out}");
    let ran = longwire(&[
        "generate", "--to", &to, "--rate", "10kpps", "--count", "240", "--sizes", "imix", "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let frames = frames(&out);
    assert_eq!(frames.len(), 240);
    // Twenty rounds of the mix, with exact timestamps.
    let of = |size| frames.iter().filter(|(_, len)| *len == size).count();
    assert_eq!((of(60), of(590), of(1_514)), (140, 80, 20));
    assert!(
        frames
            .windows(2)
            .all(|pair| pair[1].0 - pair[0].0 == 100_000)
    );
    assert_eq!(ran.json()["links"][0]["packets_out"], 240);
}

#[test]
fn a_capture_is_made_in_virtual_time_and_is_the_same_each_time() {
    let dir = Folder::new();
    let make = |name: &str| {
        let out = dir.file(name);
        let to = format!("pcap:{out}");
        // A day of traffic.
        let pace = words("--rate 1pps --arrivals poisson --time 86400s");
        let link = ["--delay", "20ms", "--loss", "1%"];
        let arguments = [&["generate", "--to", &to, "--json"], &pace[..], &link].concat();
        let ran = longwire(&arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        let link = &ran.json()["links"][0];
        assert_eq!(link["name"], "out");
        let sent = link["packets_out"].as_u64().expect("a count") as usize;
        assert!((80_000..90_000).contains(&sent), "{link}");
        assert_eq!(frames(&out).len(), sent);
        std::fs::read(&out).expect("the capture")
    };
    assert!(make("one.pcap") == make("two.pcap"), "the files differ");
}

#[test]
fn the_log_has_the_name_of_the_report() {
    let dir = Folder::new();
    let (to, log) = (
        format!("pcap:{}", dir.file("out.pcap")),
        dir.file("log.csv"),
    );
    let ran = longwire(&[
        "generate", "--to", &to, "--rate", "1kpps", "--count", "3", "--log", &log, "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(&log).expect("a log");
    let mut lines = text.lines();
    let mut columns = lines.next().expect("a header").split(',');
    let link = columns.position(|name| name == "link").expect("a column");
    let names: Vec<_> = lines.map(|line| line.split(',').nth(link)).collect();
    assert_eq!(names, [Some("out"); 3], "{text}");
    assert_eq!(ran.json()["links"][0]["name"], "out");
}

#[test]
fn a_rate_that_may_be_a_slip_is_warned_of() {
    let dir = Folder::new();
    let file = dir.file("out.pcap");
    let generate = |rate: &str| {
        let to = format!("pcap:{file}");
        longwire(&["generate", "--to", &to, "--rate", rate, "--count", "3"])
    };
    let slip = generate("10Mbps");
    assert_eq!(slip.code, 0, "{slip:?}");
    assert!(slip.stderr.contains("--rate: 10Mbps is 80mbit"), "{slip:?}");
    assert!(!generate("10mbit").stderr.contains("warning"));
}

#[test]
fn a_capture_needs_an_end_and_times() {
    let dir = Folder::new();
    let to = format!("pcap:{}", dir.file("out.pcap"));
    for [arguments, said] in rows(
        "
        --to OUT --rate 1kpps | --time or --count
        --to OUT --topspeed --count 5 | use --rate
        --to OUT --rate 1kpps --count 5 --receive lo | --receive needs a port, not a capture
        --to pcap:in=a.pcap --rate 1kpps --count 5 | reads no capture
        ",
    ) {
        let arguments = arguments.replace("OUT", &to);
        let ran = longwire(&[&["generate"], &words(&arguments)[..]].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:?}");
    }
}

#[test]
fn probes_are_all_found_again() {
    let Some(namespace) = pair() else { return };
    let arguments = words("--rate 5kpps --time 500ms --flows 50 --json");
    let ran = between(&namespace, &arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let received = &ran.json()["received"];
    assert_eq!(
        (&received["sent"], &received["received"]),
        (&2_500.into(), &2_500.into())
    );
    assert_eq!(received["reordered"], 0);
    assert!(received["delay_us"]["p50"].as_f64() > Some(0.0));
}

#[test]
fn requirements_read_the_receiver() {
    let Some(namespace) = pair() else { return };
    let traffic = ["--rate", "5kpps", "--count", "100", "--json"];
    // The last frame of a hundred is lost: only the sender knows that it existed.
    for (loss, required, code) in [
        ("none", "received.lost=0,received.streams=1", 0),
        ("nth:100", "received.lost=0", 3),
        ("nth:1", "received.lost=0", 3),
    ] {
        let options = ["--loss", loss, "--require", required];
        let ran = between(&namespace, &[&traffic[..], &options].concat());
        assert_eq!(ran.code, code, "{loss}: {ran:?}");
    }
}

/// Whether a trial is void because the machine stalled the generator or the receiver.
fn is_stall(reason: &Value) -> bool {
    let reason = reason.as_str().unwrap_or_default();
    let causes = ["the generator", "the receiver", "could not send"];
    causes.iter().any(|cause| reason.starts_with(cause))
}

/// The device is a link of 20 Mbit/s in the same process, which decides by frames' due
/// times: it passes half of 40 Mbit/s, plus ten frames in a trial of 1 s (0.6 %).
#[test]
fn throughput_between_devices_is_the_links() {
    let Some(namespace) = pair() else { return };
    let test = words(
        "--link-rate 20mbit --framing ethernet --queue 10p --tolerance 10s --rate 40mbit \
         --profile rfc2544 --frame-sizes 1518 --tests throughput --trial 1s --resolution 2% \
         --min-throughput 40% --json",
    );
    let ran = between(&namespace, &test);
    let json = ran.json();
    let found = &json["rfc2544"]["sizes"][0]["throughput"];
    let share = found["share"].as_f64().unwrap_or(0.0);
    assert!(share <= 0.52, "{json}");
    if found["limit"] == "device" {
        assert!(share >= 0.47, "{json}");
    } else {
        assert!(is_stall(&found["reason"]), "{json}");
    }
    let passed = share >= 0.4;
    assert_eq!(json["rfc2544"]["passed"], passed, "{json}");
    assert_eq!(ran.code, if passed { 0 } else { 3 }, "{json}");
}

#[test]
fn a_service_below_its_rate_ends_with_3() {
    let Some(namespace) = pair() else { return };
    let ran = between(
        &namespace,
        &words(
            "--profile y1564 --cir 20mbit --sizes 1514 --trial 300ms --link-rate 10mbit \
                 --queue 10p --max-delay 10s --max-jitter 10s --json",
        ),
    );
    assert_eq!(ran.code, 3, "{ran:?}");
    let json = ran.json();
    let steps = json["y1564"]["services"][0]["steps"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(
        steps.len(),
        4,
        "no performance test of a service that fails"
    );
    assert_eq!(steps[3]["passed"], false);
    assert!(steps[3]["loss"].as_f64() > Some(0.4), "{json}");
}

/// Two services over a link of 20 Mbit/s in the same process: each fits alone, but 24
/// Mbit/s do not.
#[test]
fn services_share_a_line() {
    let Some(namespace) = pair() else { return };
    let arguments = words(
        "--profile y1564 --service one:cir=12mbit,sizes=1000 --service \
             two:cir=12mbit,sizes=500,vlan=7:5,dscp=46 --trial 300ms --performance-time 1s \
             --link-rate 20mbit --framing bytes:overhead=4 --queue 10p --max-delay 10s \
             --max-jitter 10s --tolerance 10s --json",
    );
    let ran = between(&namespace, &arguments);
    let json = ran.json();
    assert_eq!(ran.code, 3, "{json}");
    let services = json["y1564"]["services"].as_array().expect("services");
    let steps = |service: &Value| service["steps"].as_array().expect("steps").clone();
    let steps: Vec<Vec<Value>> = services.iter().map(steps).collect();
    let mut void = steps.iter().flatten().filter(|step| step["void"] == true);
    if let Some(step) = void.next() {
        assert!(is_stall(&step["reasons"][0]), "{step}");
        return;
    }
    let last = steps.iter().map(|steps| &steps[4]);
    let out: f64 = last
        .filter_map(|step| step["received_bits_per_s"].as_f64())
        .sum();
    // Besides the rate, the queue's content at the end of 1 s: 0.4 %.
    assert!((out / 20e6 - 1.0).abs() < 0.01, "{out}: {json}");
}

#[test]
fn invalid_options_are_refused() {
    for [arguments, said] in rows(
        "
        --to null | no rate; give --rate
        --to null --rate 10mb | rates are in
        --to null --rate 1mpps --topspeed | cannot be used
        --to null --to null --rate 1mpps | one port
        --to null --rate 1mpps --sizes 59 | the minimum is 60
        --to null --rate 1mpps --sizes big | --sizes
        --to null --rate 1mpps --arrivals late | --arrivals
        --to null --rate 1mpps --rate-framing atm | needs --rate in bits
        --to null --topspeed --link-rate 1gbit | a link needs; use --rate
        --to null --rate 1mpps --profile rfc2544 | --receive
        --to null --receive null --profile y1564 | --cir
        ",
    ) {
        let ran = longwire(&[&["generate"], &words(arguments)[..]].concat());
        assert_eq!(ran.code, 2, "{arguments}: {ran:?}");
        assert!(ran.stderr.contains(said), "{arguments}: {}", ran.stderr);
    }
}

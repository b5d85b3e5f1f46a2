//! `generate` end to end: frames sent, probe reports, and a profile of a known device.
//!
//! Tests between devices are skipped without permission to create namespaces, except in CI.

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{Ran, longwire, run_in};
use crate::common::site::wired;
use crate::common::{assert_refused, count, frames, list, number, read};

/// Returns a namespace with two devices joined by a veth pair.
fn pair() -> Option<NetNamespace> {
    wired(&[("near", "far")])
}

/// Runs `generate` from one device to the other.
fn between(namespace: &NetNamespace, options: &str) -> Ran {
    let ports = "--to packet:near --receive packet:far --json";
    run_in(namespace, format!("longwire generate {ports} {options}"))
}

#[test]
fn frames_have_the_requested_headers() {
    let dir = Folder::new();
    let (out, log) = (dir.file("out.pcap"), dir.file("log.csv"));
    let pace = "--rate 10kpps --count 240 --sizes imix --json";
    let ran = longwire(format!("generate --to pcap:out={out} {pace} --log {log}")).well();
    let frames = frames(&out);
    assert_eq!(frames.len(), 240);
    // The capture has twenty rounds of the mix, with exact timestamps.
    let of = |size| frames.iter().filter(|(_, len)| *len == size).count();
    assert_eq!((of(60), of(590), of(1_514)), (140, 80, 20));
    let mut gaps = frames.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.all(|gap| gap == 100_000));
    let report = ran.json();
    assert_eq!(report["links"][0]["packets_out"], 240);
    // The log and the report use the same link name.
    assert_eq!(report["links"][0]["name"], "out");
    let text = read(&log);
    let mut lines = text.lines();
    let mut columns = lines.next().expect("a header").split(',');
    let link = columns.position(|name| name == "link").expect("a column");
    let names: Vec<_> = lines.map(|line| line.split(',').nth(link)).collect();
    assert_eq!(names, [Some("out"); 240], "{text}");
}

#[test]
fn a_capture_is_made_in_virtual_time_and_is_the_same_each_time() {
    let dir = Folder::new();
    let make = |name: &str| {
        let out = dir.file(name);
        // A day of traffic, in virtual time.
        let pace = "--rate 1pps --arrivals poisson --time 86400s --delay 20ms --loss 1%";
        let ran = longwire(format!("generate --to pcap:{out} --json {pace}")).well();
        let sent = count(&ran.json()["links"][0]["packets_out"]) as usize;
        assert!((80_000..90_000).contains(&sent), "{sent}");
        assert_eq!(frames(&out).len(), sent);
        std::fs::read(&out).expect("the capture")
    };
    assert!(make("one.pcap") == make("two.pcap"), "the files differ");
}

#[test]
fn probes_are_all_found_again() {
    let Some(namespace) = pair() else { return };
    let ran = between(&namespace, "--rate 5kpps --time 500ms --flows 50").well();
    let received = &ran.json()["received"];
    for (name, expected) in [("sent", 2_500), ("received", 2_500), ("reordered", 0)] {
        assert_eq!(received[name], expected, "{name}: {received}");
    }
    assert!(number(&received["delay_us"]["p50"]) > 0.0);
}

#[test]
fn requirements_read_the_receiver() {
    let Some(namespace) = pair() else { return };
    // The link drops the last of a hundred frames, which only the sender can report.
    for (loss, required, code) in [
        ("none", "received.lost=0,received.streams=1", 0),
        ("nth:100", "received.lost=0", 3),
        ("nth:1", "received.lost=0", 3),
    ] {
        let options = format!("--rate 5kpps --count 100 --loss {loss} --require {required}");
        between(&namespace, &options).exits(code);
    }
}

/// Returns whether a trial is void because the machine stalled the generator or the receiver.
fn is_stall(reason: &Value) -> bool {
    let reason = reason.as_str().unwrap_or_default();
    let causes = ["the generator", "the receiver", "could not send"];
    causes.iter().any(|cause| reason.starts_with(cause))
}

/// The device is a 20 Mbit/s link in the same process, which decides by the frames' due times. It
/// passes half of 40 Mbit/s, plus the ten frames of its queue, which are 0.6 % of a 1 s trial.
#[test]
fn throughput_between_devices_is_the_links() {
    let Some(namespace) = pair() else { return };
    let ran = between(
        &namespace,
        "--link-rate 20mbit --framing ethernet --queue 10p --tolerance 10s --rate 40mbit \
         --profile rfc2544 --frame-sizes 1518 --tests throughput --trial 1s --resolution 2% \
         --min-throughput 40%",
    );
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
    ran.exits(if passed { 0 } else { 3 });
}

#[test]
fn a_service_below_its_rate_ends_with_3() {
    let Some(namespace) = pair() else { return };
    let ran = between(
        &namespace,
        "--profile y1564 --cir 20mbit --sizes 1514 --trial 300ms --link-rate 10mbit \
         --queue 10p --max-delay 10s --max-jitter 10s",
    );
    let json = ran.exits(3).json();
    let steps = list(&json["y1564"]["services"][0]["steps"]);
    assert_eq!(
        steps.len(),
        4,
        "no performance test of a service that fails"
    );
    assert_eq!(steps[3]["passed"], false);
    assert!(number(&steps[3]["loss"]) > 0.4, "{json}");
}

/// Two services over a 20 Mbit/s link in the same process: each fits alone, but not both together
/// (24 Mbit/s).
#[test]
fn services_share_a_line() {
    let Some(namespace) = pair() else { return };
    let ran = between(
        &namespace,
        "--profile y1564 --service one:cir=12mbit,sizes=1000 \
         --service two:cir=12mbit,sizes=500,vlan=7:5,dscp=46 --trial 300ms --performance-time 1s \
         --link-rate 20mbit --framing bytes:overhead=4 --queue 10p --max-delay 10s \
         --max-jitter 10s --tolerance 10s",
    );
    let json = ran.exits(3).json();
    let services = list(&json["y1564"]["services"]).iter();
    let steps: Vec<&Vec<Value>> = services.map(|service| list(&service["steps"])).collect();
    let mut all = steps.iter().copied().flatten();
    if let Some(step) = all.find(|step| step["void"] == true) {
        assert!(is_stall(&step["reasons"][0]), "{step}");
        return;
    }
    let last = steps.iter().map(|steps| &steps[4]["received_bits_per_s"]);
    let out: f64 = last.filter_map(Value::as_f64).sum();
    // Frames still in the queue after 1 s add 0.4 % to the rate.
    assert!((out / 20e6 - 1.0).abs() < 0.01, "{out}: {json}");
}

#[test]
fn invalid_options_are_refused() {
    let dir = Folder::new();
    let to = format!("--to pcap:{}", dir.file("out.pcap"));
    assert_refused(&format!(
        "
        generate --to null | 2 | no rate; give --rate
        generate --to null --rate 10mb | 2 | rates are in
        generate --to null --rate 1mpps --topspeed | 2 | cannot be used
        generate --to null --to null --rate 1mpps | 2 | one port
        generate --to null --rate 1mpps --sizes 59 | 2 | the minimum is 60
        generate --to null --rate 1mpps --sizes big | 2 | --sizes
        generate --to null --rate 1mpps --arrivals late | 2 | --arrivals
        generate --to null --rate 1mpps --rate-framing atm | 2 | needs --rate in bits
        generate --to null --topspeed --link-rate 1gbit | 2 | a link needs; use --rate
        generate --to null --rate 1mpps --profile rfc2544 | 2 | --receive
        generate --to null --receive null --profile y1564 | 2 | --cir
        generate {to} --rate 1kpps | 2 | --time or --count
        generate {to} --topspeed --count 5 | 2 | use --rate
        generate {to} --rate 1kpps --count 5 --receive lo | 2 | --receive needs a port, not a capture
        generate --to pcap:in=a.pcap --rate 1kpps --count 5 | 2 | cannot read a capture
        "
    ));
}

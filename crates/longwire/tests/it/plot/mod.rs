//! `plot` end to end: the figure of a log, and errors for logs that cannot be drawn.

mod cells;
mod distribution;
mod form;
mod one_run;
mod queue;
mod refused;

use crate::common::{longwire, write};
use form::{BLUE, Scale, check_form, coordinates};
use longwire_capture::log::{Fate, LogWriter, Name, Row};
use longwire_testbed::support::{Folder, words};

const MS: i64 = 1_000_000;

/// The start of these tests' logs.
const BEGIN: i64 = crate::common::EPOCH as i64;

/// Returns a frame that arrived `at_ms` milliseconds after the start, with a delay of
/// 20 ms.
fn row(frame: u64, link: &str, at_ms: i64) -> Row {
    let arrival_ns = BEGIN + at_ms * MS;
    Row {
        frame,
        link: Name::from(link),
        arrival_ns,
        length: 1_000,
        verdict: Fate::Deliver,
        departure_ns: Some(arrival_ns + MS),
        release_ns: Some(arrival_ns + 20 * MS),
        reason: None,
        ecn_marked: false,
        corrupted: false,
        copy: 0,
        queue_packets: (frame % 10) as u32,
        queue_bytes: frame % 10 * 1_000,
    }
}

fn dropped(row: Row) -> Row {
    Row {
        verdict: Fate::Drop,
        departure_ns: None,
        release_ns: None,
        reason: Some(Name::from("queue_full")),
        ..row
    }
}

/// Returns frames of two links. Up: one per millisecond for a second, of which 300 to
/// 302 and 700 are lost. Down: every tenth of them.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for number in 0..1_000 {
        let up = row(number, "up", number as i64);
        rows.push(match number {
            300..=302 | 700 => dropped(up),
            _ => up,
        });
        if number % 10 == 0 {
            rows.push(row(number / 10, "down", number as i64));
        }
    }
    rows
}

fn log(dir: &Folder, name: &str, rows: &[Row]) -> String {
    let path = dir.file(name);
    let mut log = LogWriter::create(&path).unwrap_or_else(|error| panic!("{error}"));
    for row in rows {
        log.write(row).unwrap_or_else(|error| panic!("{error}"));
    }
    log.finish().unwrap_or_else(|error| panic!("{error}"));
    path
}

/// Draws an SVG of a log, checks its form, and returns it.
fn svg(dir: &Folder, arguments: &[&str]) -> String {
    let out = dir.file("out.svg");
    let ran = longwire(&[&["plot", "-o", &out], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(out).unwrap_or_else(|error| panic!("{error}"));
    check_form(&text);
    text
}

#[test]
fn a_figure_shows_the_content_of_the_log() {
    let dir = Folder::new();
    let rows = rows();
    for name in ["run.csv", "run.parquet"] {
        let svg = svg(&dir, &[&log(&dir, name, &rows)]);
        for label in [
            name,
            "up",
            "down",
            "Throughput",
            "Throughput (Mbit/s)",
            "Queue",
            "Queue (packets)",
            "One-way delay",
            "One-way delay (ms)",
            "Delay distribution",
            "Frames (%)",
            "Loss runs",
            "Frames lost in a row",
            "Time since the first frame (s)",
            "up: median 20 ms, p99 20 ms, max 20 ms",
            "up: 4 of 1,000 lost (0.4%), longest run 3",
            "down: 0 of 100 lost (0%), longest run 0",
            "drops",
        ] {
            assert!(svg.contains(&format!(">{label}</text>")), "{name}: {label}");
        }
        assert!(svg.contains("bins of 5 ms"), "{svg}");
    }
}

#[test]
fn pictures_are_the_same_every_time_and_for_both_formats_of_a_log() {
    let dir = Folder::new();
    let rows = rows();
    let inputs = [log(&dir, "run.csv", &rows), log(&dir, "run.parquet", &rows)];
    for picture in ["a.svg", "a.png"] {
        let mut seen = Vec::new();
        for input in inputs.iter().chain(&inputs) {
            let out = dir.file(picture);
            let ran = longwire(&["plot", input, "-o", &out, "--title", "the same"]);
            assert_eq!(ran.code, 0, "{ran:?}");
            seen.push(std::fs::read(out).unwrap_or_default());
        }
        assert!(seen.windows(2).all(|two| two[0] == two[1]), "{picture}");
    }
}

#[test]
fn a_png_has_the_size_asked_for_and_ink_on_it() {
    let dir = Folder::new();
    let input = log(&dir, "run.parquet", &rows());
    let out = dir.file("out.png");
    let size = ["--width", "600", "--height", "900", "--scale", "3"];
    let ran = longwire(&[&["plot", &input, "-o", &out][..], &size].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let picture = std::fs::read(&out).unwrap_or_default();
    let picture = tiny_skia::Pixmap::decode_png(&picture);
    let picture = picture.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((picture.width(), picture.height()), (1_800, 2_700));
    let of = |colour: (u8, u8, u8)| {
        let pixels = picture.pixels().iter();
        let pixels = pixels.filter(|pixel| (pixel.red(), pixel.green(), pixel.blue()) == colour);
        pixels.count() as f64 / picture.pixels().len() as f64
    };
    assert!(of((255, 255, 255)) > 0.7, "paper: {}", of((255, 255, 255)));
    assert!(of((0x00, 0x72, 0xb2)) > 0.001, "the first link");
    assert!(of((0xd5, 0x5e, 0x00)) > 0.001, "the second link");
    assert!(of((0x22, 0x22, 0x22)) > 0.001, "letters");
}

#[test]
fn one_extreme_among_very_many_frames_is_drawn() {
    let dir = Folder::new();
    // 200,000 frames of 20 ms, one of 200 ms, and one of 2 ms.
    let rows = (0..200_000u64).map(|number| {
        let row = row(number, "up", 0);
        let arrival_ns = BEGIN + number as i64 * 10_000;
        let delay = match number {
            123_456 => 200 * MS,
            150_000 => 2 * MS,
            _ => 20 * MS,
        };
        Row {
            arrival_ns,
            departure_ns: Some(arrival_ns),
            release_ns: Some(arrival_ns + delay),
            ..row
        }
    });
    let input = log(&dir, "run.parquet", &rows.collect::<Vec<_>>());
    let svg = svg(&dir, &[&input, "--panel", "delay"]);
    assert!(svg.contains("shaded: minimum to maximum"));
    let points = coordinates(&svg, BLUE);
    let scale = Scale::of(&svg, 200.0);
    // The colour also occurs in the legend, above the panel.
    let drawn: Vec<f64> = points
        .iter()
        .map(|(_, y)| *y)
        .filter(|y| *y > scale.place(200.0) - 1.0)
        .collect();
    let highest = drawn.iter().copied().fold(f64::MAX, f64::min);
    let lowest = drawn.iter().copied().fold(f64::MIN, f64::max);
    let (highest, lowest) = (scale.value(highest), scale.value(lowest));
    assert!((highest - 200.0).abs() < 0.2, "{highest}");
    assert!((lowest - 2.0).abs() < 0.2, "{lowest}");
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}

#[test]
fn throughput_is_bytes_a_bin() {
    let dir = Folder::new();
    // 1,000 bytes per millisecond are 8 Mbit/s, for half a second.
    let rows: Vec<Row> = (0..500).map(|n| row(n, "up", n as i64)).collect();
    let input = log(&dir, "run.csv", &rows);
    let svg = svg(
        &dir,
        &words(&format!(
            "{input} --panel throughput --bin 100ms --until 500ms"
        )),
    );
    assert!(svg.contains("bins of 100 ms"));
    let scale = Scale::of(&svg, 8.0);
    let rate = |y: f64| scale.value(y);
    let line = svg
        .lines()
        .find(|line| line.contains(BLUE) && line.contains("dasharray"));
    let offered = coordinates(line.unwrap_or_default(), BLUE);
    let inner = &offered[1..offered.len() - 1];
    assert!(
        inner.iter().all(|(_, y)| (rate(*y) - 8.0).abs() < 0.05),
        "{offered:?}"
    );
    let line = svg
        .lines()
        .find(|line| line.contains(BLUE) && line.contains("width=\"1.6\""));
    let delivered = coordinates(line.unwrap_or_default(), BLUE);
    // No frame leaves in the first 20 ms.
    assert!((rate(delivered[1].1) - 6.4).abs() < 0.05, "{delivered:?}");
}

#[test]
fn a_window_is_cut_out_of_every_panel() {
    let dir = Folder::new();
    let input = log(&dir, "run.csv", &rows());
    let svg = svg(&dir, &[&input, "--from", "200ms", "--until", "400ms"]);
    assert!(
        svg.contains("up: 3 of 200 lost (1.5%), longest run 3"),
        "{svg}"
    );
    assert!(svg.contains("down: 0 of 20 lost"), "{svg}");
    assert!(svg.contains(">200</text>") && svg.contains(">400</text>"));
    assert!(svg.contains("Time since the first frame (ms)"));
}

#[test]
fn inputs_are_distinguished_and_texts_are_escaped() {
    let dir = Folder::new();
    let rows = rows();
    let inputs = [log(&dir, "a & b.csv", &rows), log(&dir, "<c>.csv", &rows)];
    let title = "\"1\" < '2' & 3\u{1}";
    let svg = svg(&dir, &[&inputs[0], &inputs[1], "--title", title]);
    for label in [
        "a &amp; b up",
        "a &amp; b down",
        "&lt;c&gt; up",
        "&quot;1&quot; &lt; &#39;2&#39; &amp; 3\u{fffd}",
    ] {
        assert!(svg.contains(&format!(">{label}</text>")), "{label}");
    }
    for colour in [BLUE, "#d55e00", "#009e73", "#cc79a7"] {
        assert!(svg.contains(colour), "{colour}");
    }
}

const REPORT: &str = r#"{"seed": 1, "duration_s": 2.5, "links": [
  {"name": "up", "packets_in": 12345, "packets_out": 12000, "bytes_in": 1,
   "drops": {"queue_full": 300, "loss": 45, "mtu": 0}, "artifacts": {"late": 7},
   "lateness_us": {"p50": 1.5, "p99": 20.0, "p999": 90.0, "max": 1250.0, "mean": 3.0}},
  {"name": "down", "packets_in": 10, "packets_out": 10,
   "drops": {}, "artifacts": {}, "lateness_us": {"p50": 0, "p99": 0, "p999": 0, "max": 0}}]}"#;

#[test]
fn a_networks_report_is_drawn_in_both_of_its_forms() {
    let dir = Folder::new();
    for (file, drops) in [
        ("named.json", r#"{"loss": 45, "mtu": 0}"#),
        ("numbered.json", "[0, 45]"),
    ] {
        let text = format!(
            r#"{{"seed": 1, "ports": [
              {{"name": "far", "packets_in": 0, "packets_out": 55, "artifacts": {{"late": 7}},
               "lateness_us": {{"p50": 1.5, "p99": 20.0, "p999": 90.0, "max": 1250.0}}}}],
             "links": [
              {{"name": "link.up", "packets_in": 100, "packets_out": 55, "drops": {drops},
               "dropped": {{"loss": 45}}, "late": 7}},
              {{"name": "idle.up", "packets_in": 0, "packets_out": 0, "drops": {drops},
               "dropped": {{}}}}]}}"#
        );
        let input = dir.file(file);
        write(&input, text.as_bytes());
        let drawn = svg(&dir, &[&input]);
        for label in [
            "loss",
            "45",
            "link.up",
            "far",
            "Lateness",
            "1.25 ms",
            "artifacts",
        ] {
            assert!(
                drawn.contains(&format!(">{label}</text>")),
                "{file}: {label}"
            );
        }
        assert!(!drawn.contains(">idle.up<"), "{file}");
    }
}

#[test]
fn a_report_is_drawn_by_what_it_holds() {
    let dir = Folder::new();
    let input = dir.file("run.json");
    write(&input, REPORT.as_bytes());
    let drawn = svg(&dir, &[&input]);
    for label in [
        "Drops by reason",
        "queue full",
        "300",
        "45",
        "12,345",
        "Lateness",
        "p99.9",
        "1.25 ms",
        "1.5 µs",
        "0 ns",
        "artifacts",
        "7",
    ] {
        assert!(drawn.contains(&format!(">{label}</text>")), "{label}");
    }
    assert!(
        !drawn.contains(">mtu<"),
        "what never happened takes no room"
    );
    // A log and a report yield the panels of both.
    let log = log(&dir, "run.csv", &rows());
    let both = svg(&dir, &[&log, &input]);
    for heading in ["Throughput", "Loss runs", "Lateness", "Drops by reason"] {
        assert!(both.contains(&format!(">{heading}</text>")), "{heading}");
    }
}

#[test]
fn changes_of_the_report_are_marked_in_the_panels_of_its_log() {
    let dir = Folder::new();
    let report = dir.file("run.json");
    let made = |at: i64| format!(r#"{{"at_ns": {}, "by": "scenario", "links": 1}}"#, at * MS);
    let (early, late) = (made(250), made(5_000));
    const LINK: &str = r#"{"name": "up", "packets_in": 1, "packets_out": 1, "lateness_us": null}"#;
    let text = format!(
        r#"{{"links": [{LINK}], "epoch_ns": {BEGIN}, "changes": {{"made": [{early}, {late}]}}}}"#
    );
    write(&report, text.as_bytes());
    let log = log(&dir, "run.csv", &rows());
    let panels = ["--panel", "throughput,queue,delay"];
    let count = |inputs: &[&str]| {
        let figure = svg(&dir, &[inputs, &panels].concat());
        assert!(
            !figure.contains(">run.json up<"),
            "no line is of the report"
        );
        figure.matches("stroke-dasharray=\"3 3\"").count()
    };
    // The second change is after the last frame.
    assert_eq!(count(&[&log, &report]), 3);
    assert_eq!(count(&[&log]), 0);
}

#[test]
fn the_report_that_simulate_writes_is_one() {
    let dir = Folder::new();
    let (capture, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    let frames: Vec<_> = (0..50).map(|n| (crate::common::EPOCH + n, 1_000)).collect();
    write(&capture, &crate::common::pcap(&frames));
    let report = dir.file("report.json");
    let link = ["--rate", "1mbit", "--queue", "20p", "--report", &report];
    let ran = longwire(&[&["simulate", &capture, &out][..], &link].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let svg = svg(&dir, &[&report]);
    assert!(svg.contains(">queue full</text>"), "{svg}");
    assert!(svg.contains("no lateness"), "virtual time has no lateness");
}

#[test]
fn the_figure_is_described() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.svg"));
    let plot = ["plot", &input, "-o", &out, "--panel", "queue,delay"];
    let ran = longwire(&plot);
    assert!(
        ran.stdout
            .contains("queue, delay of up (1,000 frames), down (100 frames)"),
        "{ran:?}"
    );
    let json = longwire(&[&plot[..], &["--json"]].concat()).json();
    assert_eq!(json["panels"][1], "delay");
    assert_eq!(json["links"][0]["frames"], 1_000);
    let quiet = longwire(&[&plot[..], &["--quiet"]].concat());
    assert_eq!(quiet.stdout, "");
}

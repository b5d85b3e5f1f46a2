//! `plot` end to end: the figure of a log, and errors for logs that cannot be drawn.

mod cells;
mod distribution;
mod form;
mod one_run;
mod refused;

use longwire_capture::log::{Fate, LogWriter, Name, Row};
use longwire_testbed::support::Folder;

use crate::common::program::{Ran, command, longwire};
use crate::common::{EPOCH, pcap, read, write};
use form::{BLUE, RED, Scale, assert_labels, check_form, coordinates, labels};

const MS: i64 = crate::common::MS as i64;

/// Start time of the tests' logs.
const BEGIN: i64 = EPOCH as i64;

/// Returns a frame that arrived `at_ms` milliseconds after the start, with a delay of 20 ms.
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

/// Returns frames of two links. Up has a frame per millisecond for one second; frames 300 to 302
/// and 700 are lost. Down has every tenth of these frames.
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
    log_since(dir, name, None, rows)
}

/// Writes the log of a run that began at this time.
fn log_since(dir: &Folder, name: &str, epoch: Option<i64>, rows: &[Row]) -> String {
    let path = dir.file(name);
    let mut log = LogWriter::create(&path).expect("a log");
    epoch.into_iter().for_each(|epoch| log.set_epoch(epoch));
    for row in rows {
        log.write(row).expect("room");
    }
    log.finish().expect("room");
    path
}

/// Draws an SVG with a line of arguments, checks its form, and returns it.
fn svg(dir: &Folder, arguments: &str) -> String {
    let out = dir.file("out.svg");
    longwire(format!("plot -o {out} {arguments}")).well();
    let text = read(&out);
    check_form(&text);
    text
}

#[test]
fn a_figure_shows_the_content_of_the_log() {
    let dir = Folder::new();
    for name in ["run.csv", "run.parquet"] {
        let svg = svg(&dir, &log(&dir, name, &rows()));
        assert_labels(
            &svg,
            "up | down | Throughput | Throughput (Mbit/s) | Queue | Queue (packets) | One-way delay
             | One-way delay (ms) | Delay distribution | Frames (%) | Loss runs
             | Frames lost in a row | Time since the first frame (s) | drops
             | up: median 20 ms, p99 20 ms, max 20 ms
             | up: 4 of 1,000 lost (0.4%), longest run 3
             | down: 0 of 100 lost (0%), longest run 0",
        );
        assert_labels(&svg, name);
        assert!(svg.contains("bins of 5 ms"), "{svg}");
    }
}

#[test]
fn pictures_are_the_same_every_time_and_for_both_formats_of_a_log() {
    let dir = Folder::new();
    let inputs = ["run.csv", "run.parquet"].map(|name| log(&dir, name, &rows()));
    for picture in ["a.svg", "a.png"] {
        let out = dir.file(picture);
        let seen = inputs.iter().chain(&inputs).map(|input| {
            longwire(format!("plot {input} -o {out} --title 'the same'")).well();
            std::fs::read(&out).expect("a picture")
        });
        let seen: Vec<_> = seen.collect();
        assert!(seen.windows(2).all(|two| two[0] == two[1]), "{picture}");
    }
}

#[test]
fn a_png_has_the_size_asked_for_and_ink_on_it() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.parquet", &rows()), dir.file("out.png"));
    longwire(format!(
        "plot {input} -o {out} --width 600 --height 900 --scale 3"
    ))
    .well();
    let picture = std::fs::read(&out).expect("a picture");
    let picture = tiny_skia::Pixmap::decode_png(&picture).expect("a PNG");
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
fn throughput_is_bytes_a_bin() {
    let dir = Folder::new();
    // 1,000 bytes per millisecond are 8 Mbit/s, for half a second.
    let rows: Vec<Row> = (0..500).map(|n| row(n, "up", n as i64)).collect();
    let input = log(&dir, "run.csv", &rows);
    let svg = svg(
        &dir,
        &format!("{input} --panel throughput --bin 100ms --until 500ms"),
    );
    assert!(svg.contains("bins of 100 ms"));
    let scale = Scale::of(&svg, 8.0);
    let rate = |y: f64| scale.value(y);
    let line = |stroke| {
        svg.lines()
            .find(|line| line.contains(BLUE) && line.contains(stroke))
    };
    let curve = |stroke| coordinates(line(stroke).unwrap_or_default(), BLUE);
    let offered = curve("dasharray");
    let mut inner = offered[1..offered.len() - 1].iter();
    assert!(
        inner.all(|(_, y)| (rate(*y) - 8.0).abs() < 0.05),
        "{offered:?}"
    );
    // No frame is delivered in the first 20 ms.
    let delivered = curve("width=\"1.6\"");
    assert!((rate(delivered[1].1) - 6.4).abs() < 0.05, "{delivered:?}");
}

#[test]
fn a_window_is_cut_out_of_every_panel() {
    let dir = Folder::new();
    let input = log(&dir, "run.csv", &rows());
    let svg = svg(&dir, &format!("{input} --from 200ms --until 400ms"));
    let lost = "up: 3 of 200 lost (1.5%), longest run 3";
    assert_labels(
        &svg,
        &format!("{lost} | 200 | 400 | Time since the first frame (ms)"),
    );
    assert!(svg.contains("down: 0 of 20 lost"), "{svg}");
}

#[test]
fn inputs_are_distinguished_and_texts_are_escaped() {
    let dir = Folder::new();
    let [one, two] = ["a & b.csv", "<c>.csv"].map(|name| log(&dir, name, &rows()));
    let out = dir.file("out.svg");
    let mut plot = command(format!("longwire plot '{one}' '{two}' -o {out}"));
    Ran::of(plot.args(["--title", "\"1\" < '2' & 3\u{1}"])).well();
    let svg = read(&out);
    check_form(&svg);
    let title = "&quot;1&quot; &lt; &#39;2&#39; &amp; 3\u{fffd}";
    assert_labels(
        &svg,
        &format!("a &amp; b up | a &amp; b down | &lt;c&gt; up | {title}"),
    );
    for colour in [BLUE, RED, "#009e73", "#cc79a7"] {
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
        write(&input, &text);
        let drawn = svg(&dir, &input);
        assert_labels(
            &drawn,
            "loss | 45 | link.up | far | Lateness | 1.25 ms | artifacts",
        );
        assert_eq!(labels(&drawn, "idle.up"), 0, "{file}");
    }
}

#[test]
fn a_report_is_drawn_by_what_it_holds() {
    let dir = Folder::new();
    let input = dir.file("run.json");
    write(&input, REPORT);
    let drawn = svg(&dir, &input);
    assert_labels(
        &drawn,
        "Drops by reason | queue full | 300 | 45 | 12,345 | Lateness | p99.9 | 1.25 ms | 1.5 µs
         | 0 ns | artifacts | 7",
    );
    assert_eq!(labels(&drawn, "mtu"), 0, "zero counts take no room");
    // A log and a report together yield the panels of both.
    let log = log(&dir, "run.csv", &rows());
    let both = svg(&dir, &format!("{log} {input}"));
    assert_labels(&both, "Throughput | Loss runs | Lateness | Drops by reason");
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
    write(&report, &text);
    let log = log(&dir, "run.csv", &rows());
    let count = |inputs: &str| {
        let figure = svg(&dir, &format!("{inputs} --panel throughput,queue,delay"));
        assert_eq!(
            labels(&figure, "run.json up"),
            0,
            "no line is of the report"
        );
        figure.matches("stroke-dasharray=\"3 3\"").count()
    };
    // The second change comes after the last frame.
    assert_eq!(count(&format!("{log} {report}")), 3);
    assert_eq!(count(&log), 0);
}

#[test]
fn a_report_of_a_simulation_is_drawn() {
    let dir = Folder::new();
    let [capture, out, report] = ["in.pcap", "out.pcap", "r.json"].map(|name| dir.file(name));
    let frames: Vec<_> = (0..50).map(|n| (EPOCH + n, 1_000)).collect();
    write(&capture, pcap(&frames));
    let link = "--rate 1mbit --queue 20p";
    longwire(format!("simulate {capture} {out} {link} --report {report}")).well();
    let svg = svg(&dir, &report);
    assert_labels(&svg, "queue full");
    assert!(svg.contains("no lateness"), "virtual time has no lateness");
}

#[test]
fn the_figure_is_described() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.svg"));
    let plot = format!("plot {input} -o {out} --panel queue,delay");
    longwire(&plot).prints("queue, delay of up (1,000 frames), down (100 frames)");
    let json = longwire(format!("{plot} --json")).json();
    assert_eq!(json["panels"][1], "delay");
    assert_eq!(json["links"][0]["frames"], 1_000);
    assert_eq!(longwire(format!("{plot} --quiet")).stdout, "");
    let hostile = log(&dir, "hostile.csv", &[row(0, "u\x1b[31mp", 1)]);
    let ran = longwire(format!("plot {hostile} -o {out}")).well();
    assert!(ran.stdout.contains("u\\u{1b}[31mp"), "{ran:?}");
    assert!(!ran.stdout.contains('\x1b'), "{ran:?}");
}

use super::*;
use crate::gather::Selection;
use crate::gather::fixture;
use longwire_capture::log::{Fate, Name, Row};
use serde_json::json;

const HOSTILE: &str = "</script><img src=x onerror=\"alert(1)\">'&";

fn row(link: &str, frame: u64, arrival: i64) -> Row {
    Row {
        release_ns: Some(arrival + 21_000_000),
        ..fixture::row(link, frame, arrival, Some(arrival + 1_000_000))
    }
}

/// Returns a log in which each link carries 10 Mbit/s for 2 s and loses one in a hundred frames.
fn log(links: &[&str]) -> RunGatherer {
    let mut log = RunGatherer::new(Selection::default());
    for frame in 0..2_000 {
        for link in links {
            let mut row = row(link, frame, 5_000_000_000 + frame as i64 * 1_000_000);
            if frame % 100 == 99 {
                row.verdict = Fate::Drop;
                row.reason = Some(Name::from("loss"));
                row.departure_ns = None;
                row.release_ns = None;
            }
            log.add(&row);
        }
    }
    log
}

fn report() -> RunDocument {
    let report = json!({
        "seed": 77,
        "epoch_ns": 5_000_000_000u64,
        "duration_s": 2.0,
        "links": [{
            "name": "up",
            "config": {"rate": "10mbit", "delay": "20ms", "loss": "none"},
            "packets_in": 123_456, "packets_out": 123_400,
            "bytes_in": 7_654_321, "bytes_out": 7_654_000,
            "drops": {"queue_full": 0, "loss": 56},
            "artifacts": {"late": 7, "memory": 0},
            "lateness_us": {"p50": 1.5, "p99": 42.25, "p999": 50.0, "max": 61.0, "mean": 2.0, "stddev": 3.0},
            "lateness_histogram_us": [[2, 123_000], [50, 400], [null, 3]],
            "queue_packets_max": 83,
        }],
        "pauses": {"count": 3, "max_us": 150.0, "total_us": 320.0},
        "changes": {"made": [{"at_ns": 1_000_000_000u64, "by": "scenario", "links": 1,
            "change": {"set": {"up": {"rate": "4mbit"}}}}], "forgotten": 0},
        "verdict": {"grade": "not-faithful", "line": "not faithful: up 7 late", "hints": ["a hint"]},
        "command": ["longwire", "exec", "--loss", "a b", "--", "ping", "far"],
        "version": "9.8.7",
    });
    serde_json::from_value(report).expect("a report")
}

fn page(log: Option<RunGatherer>, report: Option<RunDocument>) -> String {
    render(PageInput {
        title: None,
        log,
        report,
    })
}

#[test]
fn the_numbers_are_those_of_the_report() {
    let html = page(Some(log(&["up"])), Some(report()));
    for text in [
        "<h1>ping far through Longwire</h1>",
        "<td>123,456</td><td>123,400</td><td>56</td>",
        "<td>7,654,321</td><td>7,654,000</td>",
        "<td>83</td><td>loss 56</td>",
        "<td>1.5 µs</td><td>42.2 µs</td><td>50 µs</td><td>61 µs</td>",
        "<th scope=\"row\">≤ 2 µs</th><td>123,000</td>",
        "<th scope=\"row\">more</th><td>3</td>",
        "seed 77",
        "Longwire 9.8.7",
        "longwire exec --loss &#39;a b&#39; -- ping far",
        "<p class=\"verdict bad\"><b>Not faithful: up 7 late</b>",
        "<td>1 s</td><td>scenario</td><td>set up: rate 4mbit</td>",
        "1970-01-01 00:00:05 UTC",
        "<td>3</td><td>150 µs</td><td>320 µs</td>",
        "The configured rate was 10 Mbit/s.",
        "median 21 ms, p99 21 ms, maximum 21 ms",
    ] {
        assert!(html.contains(text), "{text}\n{html}");
    }
    // Options without effect are omitted.
    assert!(!html.contains("<td>none</td>"));
}

#[test]
fn each_part_alone_makes_a_page_that_names_what_is_missing() {
    let html = page(Some(log(&["up", "down"])), None);
    assert!(html.contains("missing without a report"));
    let counts = "<td>2,000</td><td>1,980</td><td>20</td>";
    assert!(html.contains(counts), "{html}");
    let html = page(None, Some(report()));
    assert!(html.contains("No charts over time") && !html.contains("class=\"frame\""));
    let html = page(None, None);
    assert!(html.contains("missing without a report") && html.contains("No charts over time"));
}

#[test]
fn hostile_names_stay_texts_and_nothing_is_loaded() {
    let mut report = report();
    report.links[0].name = HOSTILE.to_owned();
    report.command = ["longwire", HOSTILE].map(str::to_owned).to_vec();
    report.notes = vec![HOSTILE.to_owned()];
    report.error = Some(HOSTILE.to_owned());
    let changes = report.changes.as_mut().expect("it has changes");
    changes.made[0].by = HOSTILE.to_owned();
    changes.made[0].change = json!({ HOSTILE: {HOSTILE: {HOSTILE: HOSTILE}} });
    report.links[0].config = serde_json::Map::from_iter([(HOSTILE.to_owned(), json!([HOSTILE]))]);
    let mut log = log(&[HOSTILE]);
    let mut lost = row(HOSTILE, 2_000, 8_000_000_000);
    lost.verdict = Fate::Drop;
    lost.reason = Some(Name::from(HOSTILE));
    log.add(&lost);
    let html = page(Some(log), Some(report));
    assert!(!html.contains("<img"), "{html}");
    let safe = "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&#39;&amp;";
    assert!(html.contains(safe));
    // The script of the page, and the data of each chart.
    let data = html.matches("<script type=\"application/json\">").count();
    assert_eq!(html.matches("</script>").count(), 1 + data);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let elsewhere = html.replace(&html::escaped(HOSTILE), "");
        let elsewhere = elsewhere.replace("http://www.w3.org/2000/svg", "");
        let elsewhere = elsewhere.replace("src=x", "");
        assert!(!elsewhere.contains(outside), "{outside}");
    }
}

/// The largest page: eight links with a different value in every bin.
#[test]
fn the_size_is_bounded() {
    let names: Vec<String> = (0..12).map(|index| format!("link{index}.up")).collect();
    let mut log = RunGatherer::new(Selection::default());
    let mut random = 1u64;
    for frame in 0..40_000 {
        for name in &names {
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            random = random.wrapping_add(1);
            let mut row = row(name, frame, frame as i64 * 1_000_003);
            row.release_ns = row.release_ns.map(|at| at + (random >> 40) as i64);
            row.queue_packets = (random >> 44) as u32 % 1_000;
            log.add(&row);
        }
    }
    let html = page(Some(log), None);
    assert_eq!(html.matches("<section class=\"link\">").count(), LINKS_MAX);
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert!(html.contains("Charts of 8 of 12 directions"));
}

/// Chart data matches the log: 10 Mbit/s in every whole step.
#[test]
fn the_data_of_charts_are_those_of_the_log() {
    let html = page(Some(log(&["up"])), None);
    let mut parts = html.split("<script type=\"application/json\">");
    let data = parts.nth(1).expect("a chart");
    let data = data.split("</script>").next().expect("its end");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let unit = data["unit"].as_f64().expect("a number");
    let line = |name: &str| {
        let mut lines = data["lines"].as_array().expect("lines").iter();
        let line = lines.find(|line| line["n"] == name).expect("the line");
        let values = line["v"].as_array().expect("values").iter();
        let values = values.filter_map(|value| Some(value.as_f64()? * unit));
        values.collect::<Vec<f64>>()
    };
    let is_near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-3;
    let step = data["step"].as_f64().expect("a number");
    for (name, expected) in [("offered", 2_500_000.0), ("delivered", 2_475_000.0)] {
        let bytes: f64 = line(name).iter().map(|rate| rate * step / 8e9).sum();
        assert!(is_near(bytes, expected), "{name}: {bytes}");
    }
    let rates = line("configured rate");
    assert!(rates.iter().all(|rate| is_near(*rate, 1e7)), "{rates:?}");
}

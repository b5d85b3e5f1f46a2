//! Pages about runs: `report`, and `--report FILE.html` of live commands.

use std::process::Stdio;

use serde_json::Value;

use crate::common::process::eventually;
use crate::common::{longwire, write};
use crate::exec::{User, well};
use longwire_testbed::support::{Folder, skip};

/// Formats a number as pages do: `1,234,567`.
fn grouped(number: &Value) -> String {
    let digits = number.as_u64().expect("a number").to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Asserts that a page has the common parts and loads nothing.
fn check_page(html: &str) {
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert!(html.contains("default-src 'none'"));
    let inside = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=\"", "<link", "@import", "url("] {
        assert!(!inside.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf "));
    assert!(html.len() < 1_000_000, "{}", html.len());
    for element in [
        "table", "section", "figure", "details", "svg", "script", "p", "g",
    ] {
        let opened = html.matches(&format!("<{element}>")).count()
            + html.matches(&format!("<{element} ")).count();
        assert_eq!(
            opened,
            html.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
}

/// Simulates a capture with loss; returns the log and the report.
fn simulated(dir: &Folder, format: &str, seed: &str) -> (String, String) {
    let (trace, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    let to = format!("pcap:{trace}");
    let ran = longwire(&[
        "generate", "-q", "--to", &to, "--rate", "2kpps", "--count", "3000",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let (log, report) = (dir.file(&format!("run.{format}")), dir.file("run.json"));
    let link = [
        "--rate", "5mbit", "--delay", "20ms", "--loss", "1%", "--seed", seed,
    ];
    let files = [&trace, &out, "--log", &log, "--report", &report];
    let ran = longwire(&[&["simulate", "-q"], &files[..], &link[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    (log, report)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_page_has_the_numbers_of_the_report_and_of_either_log() {
    let dir = Folder::new();
    let page = dir.file("run.html");
    for format in ["parquet", "csv"] {
        let (log, report) = simulated(&dir, format, "7");
        let ran = longwire(&["report", &report, &log, "-o", &page]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let html = read(&page);
        check_page(&html);
        let report: Value = serde_json::from_str(&read(&report)).expect("JSON");
        let link = &report["links"][0];
        for (cell, field) in [
            ("td", "packets_in"),
            ("td", "packets_out"),
            ("td", "bytes_out"),
        ] {
            let number = grouped(&link[field]);
            assert!(
                html.contains(&format!("<{cell}>{number}</{cell}>")),
                "{field}"
            );
        }
        let loss = grouped(&link["drops"]["loss"]);
        assert!(
            loss != "0" && html.contains(&format!("loss {loss}")),
            "{loss}"
        );
        let line = report["verdict"]["line"].as_str().expect("a verdict");
        // The page begins it with a capital letter.
        assert!(html.contains(&line[1..]), "{line}");
        assert!(
            html.contains("--seed 7") && html.contains("seed 7"),
            "{html}"
        );
        assert!(html.contains("The configured rate was 5 Mbit/s."), "{html}");
        assert_eq!(html.matches("class=\"frame\"").count(), 4);
        // The log alone yields the same counts.
        let ran = longwire(&["report", &log, "-o", &page]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let alone = read(&page);
        check_page(&alone);
        let row = |html: &str| {
            html.split("<th scope=\"row\">link.up</th>")
                .nth(1)
                .map(|rest| {
                    rest.split("<td>")
                        .skip(1)
                        .take(6)
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
        };
        assert!(alone.contains("missing without a report"));
        let (with, without) = (row(&html).expect("a row"), row(&alone).expect("a row"));
        assert_eq!(with, without);
    }
}

#[test]
fn unusable_page_inputs_are_refused() {
    let dir = Folder::new();
    let (log, report) = simulated(&dir, "parquet", "1");
    let page = dir.file("run.html");
    let other = dir.file("other.json");
    let mut later: Value = serde_json::from_str(&read(&report)).expect("JSON");
    later["epoch_ns"] = (later["epoch_ns"].as_u64().expect("a time") + 60_000_000_000).into();
    write(&other, later.to_string().as_bytes());
    let empty = dir.file("empty.json");
    write(&empty, b"{}");
    for (arguments, code, expected) in [
        (vec![&*log, "-o", "x.svg"], 2, "must end in .html"),
        (vec![&log, &other, "-o", &page], 1, "are of different runs"),
        (vec![&log, &log, "-o", &page], 1, "a second log"),
        (vec![&report, &report, "-o", &page], 1, "a second report"),
        (vec![&empty, "-o", &page], 1, "has no links"),
        (
            vec![&log, "-o", &page, "--link", "adsl*"],
            1,
            "no link matches --link adsl*",
        ),
        (
            vec![&log, "-o", &page, "--direction", "down"],
            1,
            "--direction down",
        ),
        (
            vec![&log, "-o", &page, "--direction", "left"],
            2,
            "possible values: up, down",
        ),
        (vec!["no.parquet", "-o", &page], 1, "no.parquet"),
    ] {
        let ran = longwire(&[&["report"], &arguments[..]].concat());
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?} {ran:?}");
    }
    assert!(!std::path::Path::new(&page).exists());
    let received = longwire(&["receive", "pcap:in.pcap", "--report", &page]);
    assert_eq!(received.code, 2, "{received:?}");
    assert!(received.stderr.contains("JSON only"), "{received:?}");
}

/// As with the JSON: frames differ between processes, so the numbers are compared with
/// those on the page itself and with the traffic.
#[test]
fn a_run_writes_its_page_and_nothing_else() {
    for user in User::all() {
        let line = "$LONGWIRE exec -q --delay 5ms --rate 10mbit --report 'a b.html' \
                    -- ping -q -c 40 -i 0.01 far; ls -A";
        let ended = well(user.shell(line));
        let files: Vec<&str> = ended.stdout.lines().collect();
        assert!(files.contains(&"a b.html"), "{ended:?}");
        assert!(
            !files
                .iter()
                .any(|name| name.contains("parquet") || name.contains("tmp"))
        );
        let html = user.read("a b.html");
        check_page(&html);
        assert!(
            html.contains("--report &#39;a b.html&#39; -- ping -q -c 40"),
            "{html}"
        );
        assert_eq!(html.matches("<section class=\"link\">").count(), 2);
        // Echo requests in one direction, replies in the other.
        let count = html
            .split("<th scope=\"row\">link.up</th><td>")
            .nth(1)
            .expect("its row");
        let count: u64 = count
            .split('<')
            .next()
            .expect("a cell")
            .parse()
            .expect("a number");
        assert!((40..80).contains(&count), "{count}");
        assert!(html.contains("Lateness of near") && html.contains("Lateness of far"));
    }
}

#[test]
fn a_changed_network_marks_its_changes() {
    for user in User::all() {
        let scenario = "[[at]]\ntime = \"1.2s\"\nset = { \"link.up\" = { rate = \"1mbit\" } }\n";
        write(&user.dir.file("s.toml"), scenario.as_bytes());
        let line = "$LONGWIRE exec -q --rate 10mbit --scenario s.toml --report n.html \
                    -- ping -q -c 200 -i 0.01 -s 1000 far";
        well(user.shell(line));
        let html = user.read("n.html");
        check_page(&html);
        assert!(html.contains("<td>1.2 s</td><td>scenario</td><td>set link.up: rate 1mbit</td>"));
        assert!(html.contains("class=\"mark\""));
        let options = "<th scope=\"row\">rate</th><td>10mbit</td><td>10mbit</td>";
        assert!(html.contains(options), "those at the start: {html}");
        let between = "The configured rate was between 1 Mbit/s and 10 Mbit/s.";
        assert!(html.contains(between), "{html}");
        // A network's lateness is measured at its ports.
        assert!(html.contains("Lateness of near") && html.contains("Lateness of far"));
    }
}

/// After SIGKILL, the user's directory and the temporary one are unchanged.
#[test]
fn a_killed_run_leaves_no_file() {
    for user in User::all() {
        let before = names(user.dir.path());
        let temporary = Folder::new();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(temporary.path(), mode).expect("its own directory");
        let arguments = ["--report", "k.html", "--", "ping", "-i", "0.01", "far"];
        let mut command = user.exec_command(&arguments);
        command.env("TMPDIR", temporary.path());
        let output = std::fs::File::create(temporary.file("out")).expect("a file");
        command.stdout(output).stderr(Stdio::null());
        let mut running = command.spawn().expect("it starts");
        // Ping prints as soon as frames cross the link.
        let out = temporary.file("out");
        eventually("no frames", || read(&out).lines().count() >= 10);
        running.kill().expect("it runs");
        running.wait().expect("it ends");
        assert_eq!(names(user.dir.path()), before);
        assert_eq!(names(temporary.path()), ["out"]);
    }
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    let names = entries.map(|entry| entry.expect("a name").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Drags over the first chart, moves the pointer over it, then presses the key that
/// resets the view; after each, stores the second chart's view and the tooltip in the
/// document.
const DRAG: &str = r##"<script>
window.onerror = (message) => { document.body.dataset.error = message; };
const frame = document.querySelector("#c0-0");
const box = frame.getBoundingClientRect();
const point = (name, share) => frame.dispatchEvent(new PointerEvent(name, {
    clientX: box.left + box.width * share, clientY: box.top + 80, button: 0, pointerId: 1,
    pointerType: "touch", bubbles: true }));
const view = () => document.querySelector("#c0-1 .plot").getAttribute("viewBox");
const kept = document.body.dataset;
kept.before = view();
for (const [name, share] of [["down", .25], ["move", .35], ["move", .5], ["up", .5], ["move", .6]]) {
    point("pointer" + name, share);
}
kept.zoomed = view();
kept.tip = document.querySelector(".tip").textContent;
kept.ticks = [...frame.querySelectorAll(".tx text")].map((text) => text.textContent).join(" ");
frame.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
kept.after = view();
kept.tables = document.querySelectorAll("figure.chart details table").length;
kept.charts = document.querySelectorAll("figure.chart").length;
</script></body>"##;

#[test]
fn charts_zoom_in_a_browser() {
    let dir = Folder::new();
    let (log, report) = simulated(&dir, "parquet", "7");
    let page = dir.file("run.html");
    let ran = longwire(&["report", &report, &log, "-o", &page]);
    assert_eq!(ran.code, 0, "{ran:?}");
    write(&page, read(&page).replace("</body>", DRAG).as_bytes());
    let mut browser = std::process::Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1000,900",
    ]);
    browser.arg(format!("--user-data-dir={}", dir.file("profile")));
    browser.args([
        "--virtual-time-budget=2000",
        "--dump-dom",
        &format!("file://{page}"),
    ]);
    let Ok(output) = browser.output() else {
        return skip("chromium is not installed").unwrap_or(());
    };
    let document = String::from_utf8_lossy(&output.stdout);
    let body = document
        .split("<body")
        .nth(1)
        .and_then(|rest| rest.split('>').next());
    let body = body.unwrap_or_else(|| panic!("no page: {output:?}"));
    let kept = |name: &str| {
        let value = body.split(&format!("data-{name}=\"")).nth(1);
        value
            .and_then(|value| value.split('"').next())
            .unwrap_or_else(|| panic!("{name}: {body}"))
    };
    assert!(!body.contains("data-error"), "{body}");
    let numbers = |name: &str| -> Vec<f64> {
        kept(name)
            .split(' ')
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let (before, zoomed) = (numbers("before"), numbers("zoomed"));
    // A quarter of the picture's width, of which the plot covers 826 of 900.
    let share = zoomed[2] / before[2];
    assert!(
        (share - 0.25 * 900.0 / 826.0).abs() < 0.01,
        "{before:?} {zoomed:?}"
    );
    assert!(zoomed[0] > before[0], "{zoomed:?}");
    let after = numbers("after");
    assert!(
        (after[2] / before[2] - 1.0).abs() < 1e-6 && after[0] == 0.0,
        "{after:?}"
    );
    let tip = kept("tip");
    // 2,000 frames/s of 60 bytes, within a step plus or minus one frame.
    let delivered = tip.split("delivered: ").nth(1);
    let delivered = delivered.and_then(|rest| rest.split(' ').next());
    let delivered: f64 = delivered
        .and_then(|rate| rate.parse().ok())
        .expect("a number");
    assert!(
        (850.0..1_050.0).contains(&delivered) && tip.contains("kbit/s"),
        "{tip}"
    );
    assert!(!kept("ticks").contains("-0"), "{body}");
    assert_eq!(kept("tables"), kept("charts"));
}

//! HTML pages for runs: `report`, and `--report FILE.html` of live commands.

use std::process::{Command, Stdio};

use longwire_testbed::support::{Folder, skip};
use serde_json::Value;

use crate::common::program::{RunningProgram, eventually, longwire};
use crate::common::{assert_refused, read, read_json, set_mode, write};
use crate::exec::User;

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

/// Asserts that a page has the common parts and loads no external resources.
fn check_page(html: &str) {
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert!(html.contains("default-src 'none'"));
    let inside = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=\"", "<link", "@import", "url("] {
        assert!(!inside.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf "));
    assert!(html.len() < 1_000_000, "{}", html.len());
    for element in "table section figure details svg script p g".split(' ') {
        let count = |tag: String| html.matches(&tag).count();
        let opened = count(format!("<{element}>")) + count(format!("<{element} "));
        assert_eq!(opened, count(format!("</{element}>")), "{element}");
    }
}

/// Simulates a capture with loss; returns the log and the report.
fn simulated(dir: &Folder, format: &str, seed: &str) -> (String, String) {
    let (trace, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    longwire(format!(
        "generate -q --to pcap:{trace} --rate 2kpps --count 3000"
    ))
    .well();
    let (log, report) = (dir.file(&format!("run.{format}")), dir.file("run.json"));
    let link = format!("--rate 5mbit --delay 20ms --loss 1% --seed {seed}");
    let files = format!("{trace} {out} --log {log} --report {report}");
    longwire(format!("simulate -q {files} {link}")).well();
    (log, report)
}

/// Renders the page for these inputs.
fn page_of(dir: &Folder, inputs: &str) -> String {
    let page = dir.file("run.html");
    longwire(format!("report {inputs} -o {page}")).well();
    let html = read(&page);
    check_page(&html);
    html
}

/// Cells of a link's row, in addition to its name.
const CELLS: usize = 10;

/// Returns the cells of direction up in the table of counts.
fn link_cells(html: &str) -> Vec<&str> {
    let row = html.split("<th scope=\"row\">link.up</th>").nth(1);
    let row = row.and_then(|row| row.split("</tr>").next());
    let cells = row.expect("a row").split("<td>").skip(1);
    let cells: Vec<&str> = cells
        .map(|cell| cell.strip_suffix("</td>").unwrap_or(cell))
        .collect();
    assert_eq!(cells.len(), CELLS, "{cells:?}");
    cells
}

#[test]
fn the_page_has_the_numbers_of_the_report_and_of_either_log() {
    let dir = Folder::new();
    for format in ["parquet", "csv"] {
        let (log, report) = simulated(&dir, format, "7");
        let html = page_of(&dir, &format!("{report} {log}"));
        let report = read_json(&report);
        // The page capitalises the first letter of the verdict.
        let line = report["verdict"]["line"].as_str().expect("a verdict");
        let rate = "The configured rate was 5 Mbit/s.";
        for text in [&line[1..], "--seed 7", "seed 7", rate] {
            assert!(html.contains(text), "{text}");
        }
        assert_eq!(html.matches("class=\"frame\"").count(), 4);
        let cells = link_cells(&html);
        let link = &report["links"][0];
        let fields = [(0, "packets_in"), (1, "packets_out"), (5, "bytes_out")];
        for (at, field) in fields {
            assert_eq!(cells[at], grouped(&link[field]), "{field}: {cells:?}");
        }
        let loss = grouped(&link["drops"]["loss"]);
        assert_ne!(loss, "0");
        let reasons = &cells[CELLS - 1];
        assert!(reasons.contains(&format!("loss {loss}")), "{reasons}");
        // The log alone yields the same counts.
        let alone = page_of(&dir, &log);
        assert_eq!(cells[..6], link_cells(&alone)[..6]);
        assert!(alone.contains("missing without a report"));
    }
}

#[test]
fn unusable_page_inputs_are_refused() {
    let dir = Folder::new();
    let (log, report) = simulated(&dir, "parquet", "1");
    let [page, other, empty] = ["run.html", "other.json", "empty.json"].map(|name| dir.file(name));
    let mut later = read_json(&report);
    later["epoch_ns"] = (later["epoch_ns"].as_u64().expect("a time") + 60_000_000_000).into();
    write(&other, later.to_string());
    write(&empty, "{}");
    assert_refused(&format!(
        "
        report {log} -o x.svg | 2 | must end in .html
        report {log} {other} -o {page} | 1 | are from different runs
        report {log} {log} -o {page} | 1 | a second log
        report {report} {report} -o {page} | 1 | a second report
        report {empty} -o {page} | 1 | has no links
        report {log} -o {page} --link adsl* | 1 | no link matches --link adsl*
        report {log} -o {page} --direction down | 1 | --direction down
        report {log} -o {page} --direction left | 2 | possible values: up, down
        report no.parquet -o {page} | 1 | no.parquet
        "
    ));
    assert!(!std::path::Path::new(&page).exists());
}

/// Frames differ between processes, so another run's JSON report cannot serve as reference.
/// Compares the page's numbers with each other and with the traffic.
#[test]
fn a_run_writes_its_page_and_nothing_else() {
    for user in User::with(["ping"]) {
        let line = "$LONGWIRE exec -q --delay 5ms --rate 10mbit --report 'a b.html' \
                    -- ping -q -c 40 -i 0.01 far; ls -A";
        let ended = user.shell(line).well();
        let files: Vec<&str> = ended.stdout.lines().collect();
        assert!(files.contains(&"a b.html"), "{ended:?}");
        let is_left = |name: &&str| name.contains("parquet") || name.contains("tmp");
        assert!(!files.iter().any(is_left), "{ended:?}");
        let html = user.read("a b.html");
        check_page(&html);
        let command = "--report &#39;a b.html&#39; -- ping -q -c 40";
        assert!(html.contains(command), "{html}");
        assert_eq!(html.matches("<section class=\"link\">").count(), 2);
        // Direction up carries the echo requests, down the replies.
        let row = html.split("<th scope=\"row\">link.up</th><td>").nth(1);
        let count = row.and_then(|row| row.split('<').next()?.parse::<u64>().ok());
        let count = count.expect("a number");
        assert!((40..80).contains(&count), "{count}");
        assert!(html.contains("Lateness of near") && html.contains("Lateness of far"));
    }
}

#[test]
fn a_changed_network_marks_its_changes() {
    for user in User::with(["ping"]) {
        let scenario = "[[at]]\ntime = \"1.2s\"\nset = { \"link.up\" = { rate = \"1mbit\" } }\n";
        write(user.dir.file("s.toml"), scenario);
        let options = "-q --rate 10mbit --scenario s.toml --report n.html";
        user.exec(format!("{options} -- ping -q -c 200 -i 0.01 -s 1000 far"))
            .well();
        let html = user.read("n.html");
        check_page(&html);
        for text in [
            "<td>1.2 s</td><td>scenario</td><td>set link.up: rate 1mbit</td>",
            "class=\"mark\"",
            // The page shows the options at the start.
            "<th scope=\"row\">rate</th><td>10mbit</td><td>10mbit</td>",
            "The configured rate was between 1 Mbit/s and 10 Mbit/s.",
            // A network's lateness is measured at its ports.
            "Lateness of near",
            "Lateness of far",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
    }
}

/// After SIGKILL, the user's directory and the temporary directory are unchanged.
#[test]
fn a_killed_run_leaves_no_file() {
    for user in User::with(["ping"]) {
        let before = names(user.dir.path());
        let temporary = Folder::new();
        set_mode(temporary.path(), 0o1777);
        let mut command = user.exec_command("--report k.html -- ping -i 0.01 far");
        command.env("TMPDIR", temporary.path());
        let out = temporary.file("out");
        command
            .stdout(std::fs::File::create(&out).expect("a file"))
            .stderr(Stdio::null());
        let running = RunningProgram::spawn(&mut command);
        // ping prints a line per reply, so frames cross the link by then.
        eventually("no frames", || read(&out).lines().count() >= 10);
        running.kill();
        assert_eq!(names(user.dir.path()), before);
        assert_eq!(names(temporary.path()), ["out"]);
    }
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    let names = entries.map(|entry| entry.expect("a name").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Drags over the first chart, moves the pointer over it, then presses the key that resets the
/// view. After each step, stores the second chart's view and the tooltip in the document.
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
    let html = page_of(&dir, &format!("{report} {log}"));
    let page = dir.file("run.html");
    write(&page, html.replace("</body>", DRAG));
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1000,900",
    ]);
    browser.arg(format!("--user-data-dir={}", dir.file("profile")));
    browser.args(["--virtual-time-budget=2000", "--dump-dom"]);
    let Ok(output) = browser.arg(format!("file://{page}")).output() else {
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
        let value = value.and_then(|value| value.split('"').next());
        value.unwrap_or_else(|| panic!("{name}: {body}"))
    };
    assert!(!body.contains("data-error"), "{body}");
    let numbers = |name: &str| -> Vec<f64> {
        let numbers = kept(name).split(' ');
        numbers
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let (before, zoomed, after) = (numbers("before"), numbers("zoomed"), numbers("after"));
    // The drag covered a quarter of the picture's width, of which the plot occupies 826 of 900.
    let share = zoomed[2] / before[2];
    assert!(
        (share - 0.25 * 900.0 / 826.0).abs() < 0.01,
        "{before:?} {zoomed:?}"
    );
    assert!(zoomed[0] > before[0], "{zoomed:?}");
    assert!(
        (after[2] / before[2] - 1.0).abs() < 1e-6 && after[0] == 0.0,
        "{after:?}"
    );
    // 2,000 frames/s of 60 bytes, give or take one frame per step.
    let tip = kept("tip");
    let delivered = tip.split("delivered: ").nth(1);
    let delivered = delivered.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    let right = (850.0..1_050.0).contains(&delivered.expect("a number"));
    assert!(right && tip.contains("kbit/s"), "{tip}");
    assert!(!kept("ticks").contains("-0"), "{body}");
    assert_eq!(kept("tables"), kept("charts"));
}

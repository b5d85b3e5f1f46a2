//! Every pair of options of `run A B` and of `exec`: either both take effect, or they are refused
//! because of the ports or the kernel.
//!
//! `exec` needs namespaces. Its test is skipped without permission to create them, except in CI.

use std::sync::Mutex;

use longwire_capture::CaptureReader;
use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{Ran, command};
use crate::common::{EPOCH, MS, captured, pcap, write, write_private};
use crate::exec::User;

/// Number of frames that arrive within the first 20 ms of the captures.
const FRAMES: usize = 20;

/// Result of a run with some options.
struct Run {
    dir: Folder,
    ran: Ran,
    /// The command, and the given options with their values.
    given: String,
}

impl Run {
    fn has(&self, option: &str) -> bool {
        self.given.split(' ').any(|word| word == option)
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.text_of("r.json")).unwrap_or_default()
    }

    fn text_of(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.file(file)).unwrap_or_default()
    }

    /// Returns the number of frames in a capture.
    fn frames(&self, file: &str) -> usize {
        captured(&self.dir.file(file)).len()
    }

    fn says(&self, text: &str) -> bool {
        self.ran.stderr.contains(text)
    }

    fn notes(&self) -> String {
        self.report()["notes"].to_string()
    }
}

/// An option with its value, and a check that a run shows its effect.
type Choice = (&'static str, fn(&Run) -> bool);

/// Options with the same effect in both commands.
const COMMON: &[Choice] = &[
    // A one-way run has a single direction, and a link that cannot change has no shards.
    ("--shards 2", |run| {
        let changes = ["--view", "--control", "--scenario", "--carrier"];
        let shown = if changes.iter().any(|option| run.has(option)) {
            "2 shards on"
        } else {
            "--shards has no effect"
        };
        run.has("--one-way") || run.says(shown)
    }),
    ("--view", |run| run.says("http://127.0.0.1:")),
    ("--log l.csv", |run| {
        run.text_of("l.csv").contains(",link.up,")
    }),
    ("--require up.packets_in>=1000000", |run| {
        run.says("not met: up.packets_in")
    }),
    ("--seed 77", |run| run.report()["seed"] == 77),
];

/// Options of `run A B`. [`FRAMES`] frames arrive at A; with `--time`, one more arrives much later.
const OF_RUN: &[Choice] = &[
    ("--one-way", |run| {
        run.report()["links"].as_array().map(Vec::len) == Some(1)
    }),
    ("--scenario s.toml", |run| {
        run.frames("b.pcap") == FRAMES / 2
    }),
    ("--control tcp:127.0.0.1:0 --control-token-file t", |run| {
        run.says("tcp:127.0.0.1:")
    }),
    ("--capture c", |run| {
        let ways = if run.has("--one-way") { 1 } else { 2 };
        run.frames("c.in.pcapng") == ways * FRAMES && run.frames("c.out.pcapng") >= FRAMES / 2
    }),
    // Without `--time`, the run would wait an hour for the last frame.
    ("--time 300ms", |run| run.report()["error"].is_null()),
    ("--carrier", |_| unreachable!("a capture has no carrier")),
    ("--gap-frames 10gbit", |_| {
        unreachable!("a capture has no wire")
    }),
];

/// Options of `exec`, whose command is a ping.
const OF_EXEC: &[Choice] = &[
    ("--scenario s.toml", |run| {
        let report = run.report();
        report["changes"]["made"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    }),
    ("--control x.sock", |run| run.ran.stdout.contains("x.sock")),
    ("--capture c", |run| {
        run.frames("c.in.pcapng") >= 2 && run.frames("c.out.pcapng") >= 2
    }),
    ("--time 1s", |run| {
        run.notes().contains("stopped after 1s (--time)")
    }),
    // In this test, only a scenario turns the carrier off.
    ("--carrier", |run| {
        !run.has("--scenario") || run.notes().contains("port far: carrier lost 1")
    }),
];

/// Options that this test's runs always refuse, with the reason in the message.
const REFUSED_BY_RUN: &[(&str, &str)] = &[
    ("--gap-frames", "a capture has no wire"),
    ("--carrier", "no interface at the other end"),
];

/// Number of concurrent runs; runs spend most of their time waiting.
const AT_ONCE: usize = 8;

/// Runs a command with every pair; each run must show the effects of both.
#[track_caller]
fn assert_composed(of_command: &[Choice], run: impl Fn(&str) -> Run + Sync) {
    let choices: Vec<&Choice> = COMMON.iter().chain(of_command).collect();
    let choices = &choices;
    let pairs = (0..choices.len()).flat_map(|a| (0..a).map(move |b| [choices[a], choices[b]]));
    let (pairs, wrong) = (Mutex::new(pairs), Mutex::new(Vec::new()));
    let next = || pairs.lock().expect("no panic").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(pair) = next() {
                    let words = pair.map(|choice| choice.0).join(" ");
                    let found = faults(&run(&words), &pair);
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let wrong: Vec<String> = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the failures of a run with two options.
fn faults(run: &Run, pair: &[&Choice; 2]) -> Option<String> {
    let of = |what: &str| {
        let output = (&run.ran.stdout, &run.ran.stderr);
        Some(format!(
            "{:?}: {what}: {} {output:?}",
            run.given, run.ran.code
        ))
    };
    let mut reasons = REFUSED_BY_RUN
        .iter()
        .filter(|(option, _)| run.has(option) && !run.has("exec"));
    if let Some((option, reason)) = reasons.clone().next() {
        let has_reason = reasons.any(|(_, reason)| run.says(reason));
        let is_refused = [1, 2].contains(&run.ran.code) && has_reason;
        return (!is_refused).then(|| of(&format!("{option} is not refused for '{reason}'")))?;
    }
    let code = if run.has("--require") { 3 } else { 0 };
    if run.ran.code != code {
        return of("the exit code is wrong");
    }
    let hidden = pair.iter().find(|choice| !(choice.1)(run));
    hidden.and_then(|choice| of(&format!("{} has no effect", choice.0)))
}

/// Writes the files named by options.
fn prepare(dir: &Folder, scenario: &str) {
    write(dir.file("s.toml"), scenario);
    write_private(&dir.file("t"), "0123456789abcdef0123456789abcdef\n");
}

#[test]
fn options_of_a_run_compose() {
    assert_composed(OF_RUN, |words| {
        let dir = Folder::new();
        prepare(
            &dir,
            "[[at]]\ntime = \"0s\"\nset = { \"link.up\" = { loss = \"nth:2\" } }\n",
        );
        let mut arrivals: Vec<_> = (0..FRAMES as u64).map(|n| (EPOCH + n * MS, 100)).collect();
        write(dir.file("back.pcap"), pcap(&arrivals));
        if words.contains("--time") {
            arrivals.push((EPOCH + 3_600_000 * MS, 100));
        }
        write(dir.file("in.pcap"), pcap(&arrivals));
        let (a, b) = ("pcap:in=in.pcap,out=a.pcap", "pcap:in=back.pcap,out=b.pcap");
        let own = "--delay 5ms --report r.json -v";
        let mut command = command(format!("longwire run {a} {b} {own} {words}"));
        let ran = Ran::of(command.current_dir(dir.path()));
        let given = format!("run {words}");
        Run { dir, ran, given }
    });
}

#[test]
fn options_of_exec_compose() {
    if User::with(["ping"]).is_empty() {
        return;
    }
    assert_composed(OF_EXEC, |words| {
        let user = User::new(None);
        // The changes are far enough apart that even a busy machine applies them separately.
        let scenario = "[[at]]\ntime = \"50ms\"\noff = \"link.up\"\n\
                        [[at]]\ntime = \"2s\"\non = \"link.up\"\n";
        prepare(&user.dir, scenario);
        let line = if words.contains("--time") {
            "echo $LONGWIRE_CONTROL; ping -c 1 far; exec sleep 60"
        } else {
            "echo $LONGWIRE_CONTROL; sleep 0.3; ping -c 1 -i 0.2 -w 20 far"
        };
        let own = "--delay 1ms --report r.json -v";
        let ran = user.exec(format!("{own} {words} -- sh -c '{line}'"));
        let (dir, given) = (user.dir, format!("exec {words}"));
        Run { dir, ran, given }
    });
}

#[test]
fn snaplen_truncates_captured_frames_only() {
    let dir = Folder::new();
    write(dir.file("in.pcap"), pcap(&[(EPOCH, 100), (EPOCH + MS, 40)]));
    let run = |options: &str| {
        let ports = "pcap:in=in.pcap pcap:out=out.pcap --one-way";
        let mut command = command(format!("longwire run {ports} {options}"));
        Ran::of(command.current_dir(dir.path()))
    };
    let ran = run("--capture c --snaplen 60");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lengths = |file: &str| {
        let mut reader = CaptureReader::open(&dir.file(file)).expect("a capture");
        let mut lengths = Vec::new();
        while let Some(record) = reader.next().expect("a good record") {
            lengths.push((record.bytes.len(), record.wire_len));
        }
        lengths
    };
    for file in ["c.in.pcapng", "c.out.pcapng"] {
        assert_eq!(lengths(file), [(60, 100), (40, 40)], "{file}");
    }
    assert_eq!(lengths("out.pcap"), [(100, 100), (40, 40)]);
    // A truncated frame keeps its wire length when it is recorded again.
    let ports = "pcap:in=c.in.pcapng pcap:out=again.pcap --one-way --capture d";
    let mut again = command(format!("longwire run {ports}"));
    assert_eq!(Ran::of(again.current_dir(dir.path())).code, 0);
    for file in ["d.in.pcapng", "d.out.pcapng"] {
        assert_eq!(lengths(file), [(60, 100), (40, 40)], "{file}");
    }
    let refused = run("--snaplen 60");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--capture"), "{}", refused.stderr);
}

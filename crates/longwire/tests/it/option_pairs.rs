//! Every pair of options of `run A B` and of `exec`: either both take effect, or they are refused
//! because of the ports or the kernel.
//!
//! `exec` needs namespaces. Its test is skipped without permission to create them, except in CI.

use std::sync::Mutex;

use longwire_capture::CaptureReader;
use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{Ran, command};
use crate::common::{EPOCH, MS, pcap, write};
use crate::exec::User;

/// Number of frames that arrive within the first 20 ms of the captures.
const FRAMES: usize = 20;

/// Result of a run with some options.
struct Run {
    dir: Folder,
    ran: Ran,
    /// Names of the given options.
    given: Vec<&'static str>,
}

impl Run {
    fn has(&self, option: &str) -> bool {
        self.given.contains(&option)
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.text_of("r.json")).unwrap_or_default()
    }

    fn text_of(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.file(file)).unwrap_or_default()
    }

    /// Returns the number of frames in a capture.
    fn frames(&self, file: &str) -> usize {
        let Ok(mut reader) = CaptureReader::open(&self.dir.file(file)) else {
            return 0;
        };
        std::iter::from_fn(|| reader.next().ok().flatten().map(|_| ())).count()
    }

    fn notes(&self) -> String {
        self.report()["notes"].to_string()
    }
}

/// An option with its value, and a check that a run shows its effect.
struct Choice {
    name: &'static str,
    words: &'static str,
    shows: fn(&Run) -> bool,
}

/// Options with the same effect in both commands.
const COMMON: &[Choice] = &[
    Choice {
        name: "--shards",
        words: "--shards 2",
        // A single link cannot be sharded.
        shows: |run| run.has("--one-way") || run.ran.stderr.contains("2 shards on"),
    },
    Choice {
        name: "--view",
        words: "--view",
        shows: |run| run.ran.stderr.contains("http://127.0.0.1:"),
    },
    Choice {
        name: "--log",
        words: "--log l.csv",
        shows: |run| run.text_of("l.csv").contains(",link.up,"),
    },
    Choice {
        name: "--require",
        words: "--require up.packets_in>=1000000",
        shows: |run| run.ran.stderr.contains("not met: up.packets_in"),
    },
    Choice {
        name: "--seed",
        words: "--seed 77",
        shows: |run| run.report()["seed"] == 77,
    },
];

/// Options of `run A B`. [`FRAMES`] frames arrive at A; with `--time`, one more arrives much later.
const OF_RUN: &[Choice] = &[
    Choice {
        name: "--one-way",
        words: "--one-way",
        shows: |run| {
            run.report()["links"]
                .as_array()
                .is_some_and(|all| all.len() == 1)
        },
    },
    Choice {
        name: "--scenario",
        words: "--scenario s.toml",
        shows: |run| run.frames("b.pcap") == FRAMES / 2,
    },
    Choice {
        name: "--control",
        words: "--control tcp:127.0.0.1:0 --control-token-file t",
        shows: |run| run.ran.stderr.contains("tcp:127.0.0.1:"),
    },
    Choice {
        name: "--capture",
        words: "--capture c",
        shows: |run| {
            let both_ways = if run.has("--one-way") {
                FRAMES
            } else {
                2 * FRAMES
            };
            run.frames("c.in.pcapng") == both_ways && run.frames("c.out.pcapng") >= FRAMES / 2
        },
    },
    Choice {
        name: "--time",
        words: "--time 300ms",
        // Without `--time`, the run would wait an hour for the last frame.
        shows: |run| run.report()["error"].is_null(),
    },
    Choice {
        name: "--carrier",
        words: "--carrier",
        shows: |_| unreachable!("a capture has no carrier"),
    },
    Choice {
        name: "--gap-frames",
        words: "--gap-frames 10gbit",
        shows: |_| unreachable!("a capture has no wire"),
    },
];

/// Options of `exec`, whose command is a ping.
const OF_EXEC: &[Choice] = &[
    Choice {
        name: "--scenario",
        words: "--scenario s.toml",
        shows: |run| {
            run.report()["changes"]["made"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        },
    },
    Choice {
        name: "--control",
        words: "--control x.sock",
        shows: |run| run.ran.stdout.contains("x.sock"),
    },
    Choice {
        name: "--capture",
        words: "--capture c",
        shows: |run| run.frames("c.in.pcapng") >= 2 && run.frames("c.out.pcapng") >= 2,
    },
    Choice {
        name: "--time",
        words: "--time 1s",
        shows: |run| run.notes().contains("stopped after 1s (--time)"),
    },
    Choice {
        name: "--carrier",
        words: "--carrier",
        // In this test, only a scenario turns the carrier off.
        shows: |run| !run.has("--scenario") || run.notes().contains("port far: carrier lost 1"),
    },
];

/// Options that this test's runs always refuse, with the reason in the message.
const REFUSED_BY_RUN: &[(&str, &str)] = &[
    ("--gap-frames", "a capture has no wire"),
    ("--carrier", "no interface at the other end"),
];

/// Number of concurrent runs; runs spend most of their time waiting.
const AT_ONCE: usize = 8;

/// Runs every pair and returns the failures.
fn all_pairs(choices: &[&Choice], run: impl Fn(&[&Choice]) -> Run + Sync) -> Vec<String> {
    let pairs = (0..choices.len()).flat_map(|a| (0..a).map(move |b| [choices[a], choices[b]]));
    let (pairs, wrong) = (Mutex::new(pairs), Mutex::new(Vec::new()));
    let next = || pairs.lock().expect("no panic").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(pair) = next() {
                    let found = faults(&run(&pair), &pair);
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    wrong.into_inner().expect("no panic")
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
        let has_reason = reasons.any(|(_, reason)| run.ran.stderr.contains(reason));
        let is_refused = [1, 2].contains(&run.ran.code) && has_reason;
        return (!is_refused).then(|| of(&format!("{option} is not refused for '{reason}'")))?;
    }
    let code = if run.has("--require") { 3 } else { 0 };
    if run.ran.code != code {
        return of("the exit code is wrong");
    }
    let hidden = pair.iter().find(|choice| !(choice.shows)(run));
    hidden.and_then(|choice| of(&format!("{} has no effect", choice.name)))
}

fn words_of(pair: &[&Choice]) -> String {
    let words: Vec<&str> = pair.iter().map(|choice| choice.words).collect();
    words.join(" ")
}

/// Writes the files named by options.
fn prepare(dir: &Folder, scenario: &str) {
    use std::os::unix::fs::PermissionsExt;
    write(&dir.file("s.toml"), scenario);
    write(&dir.file("t"), b"0123456789abcdef0123456789abcdef\n");
    let own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.file("t"), own).expect("its own file");
}

#[test]
fn options_of_a_run_compose() {
    let choices: Vec<&Choice> = COMMON.iter().chain(OF_RUN).collect();
    let wrong = all_pairs(&choices, |pair| {
        let dir = Folder::new();
        let given: Vec<&str> = pair.iter().map(|choice| choice.name).collect();
        prepare(
            &dir,
            "[[at]]\ntime = \"0s\"\nset = { \"link.up\" = { loss = \"nth:2\" } }\n",
        );
        let mut arrivals: Vec<_> = (0..FRAMES as u64).map(|n| (EPOCH + n * MS, 100)).collect();
        write(&dir.file("back.pcap"), pcap(&arrivals));
        if given.contains(&"--time") {
            arrivals.push((EPOCH + 3_600_000 * MS, 100));
        }
        write(&dir.file("in.pcap"), pcap(&arrivals));
        let (a, b) = ("pcap:in=in.pcap,out=a.pcap", "pcap:in=back.pcap,out=b.pcap");
        let own = "--delay 5ms --report r.json -v";
        let mut command = command(format!("longwire run {a} {b} {own} {}", words_of(pair)));
        let ran = Ran::of(command.current_dir(dir.path()));
        Run { dir, ran, given }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn options_of_exec_compose() {
    if User::all().is_empty() {
        return;
    }
    let choices: Vec<&Choice> = COMMON.iter().chain(OF_EXEC).collect();
    let wrong = all_pairs(&choices, |pair| {
        let user = User::new(None);
        let given = ["exec"].into_iter();
        let given: Vec<&str> = given.chain(pair.iter().map(|choice| choice.name)).collect();
        // Long enough that even a busy machine does not apply both changes together.
        let scenario = "[[at]]\ntime = \"50ms\"\noff = \"link.up\"\n\
                        [[at]]\ntime = \"2s\"\non = \"link.up\"\n";
        prepare(&user.dir, scenario);
        let line = if given.contains(&"--time") {
            "echo $LONGWIRE_CONTROL; ping -c 1 far; exec sleep 60"
        } else {
            "echo $LONGWIRE_CONTROL; sleep 0.3; ping -c 1 -i 0.2 -w 20 far"
        };
        let own = "--delay 1ms --report r.json -v";
        let ran = user.exec(format!("{own} {} -- sh -c '{line}'", words_of(pair)));
        Run {
            dir: user.dir,
            ran,
            given,
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

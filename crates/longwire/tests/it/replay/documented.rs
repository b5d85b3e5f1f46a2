//! The commands of docs/replay.md, run in a shell.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;

use crate::common::program::{Capture, Ran, RunningProgram, path_with_program, piped};
use crate::common::{MS, have, list, number, records, write};
use crate::replay::wire::{Wire, numbered_of, pcap_of};

const PAGE: &str = include_str!("../../../../../docs/replay.md");

/// Returns the commands of the first five tasks, with their task numbers.
fn documented() -> Vec<(usize, String)> {
    let block = PAGE.split("```").nth(1).unwrap_or_default();
    let mut task = 0;
    let mut commands = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("# ") {
            Some(title) => {
                let number = title.split('.').next();
                task = number.map_or(0, |number| number.parse().unwrap_or(0));
            }
            None if line.starts_with("longwire ") => commands.push((task, line.to_owned())),
            None => {}
        }
    }
    commands
}

/// Returns queries and responses at these times in milliseconds; the server is outside the client's
/// networks.
fn trace(times: &[u64]) -> Vec<u8> {
    let server = Ipv4Addr::new(198, 51, 100, 2);
    let frames = times.iter().zip(0..);
    pcap_of(
        1,
        frames.map(|(at, n)| (at * MS, numbered_of(server, n % 2 == 0, n))),
    )
}

/// Runs a line in the namespace of the near ends; interrupts it if it hangs.
fn shell(wire: &Wire, dir: &Folder, line: &str) -> Ran {
    let line = line.replace("eth1", "near0").replace("eth2", "near1");
    let mut shell: Command = piped("sh -c");
    shell
        .arg(format!("exec {line} --json"))
        .env("PATH", path_with_program());
    let shell = RunningProgram::start(&wire.near, shell.current_dir(dir.path()));
    if line.contains("--loop 0") {
        std::thread::sleep(Duration::from_millis(800));
        shell.signal(Signal::SIGINT);
    }
    shell.end().well()
}

fn packets_out(link: &serde_json::Value) -> u64 {
    crate::common::count(&link["packets_out"])
}

#[test]
fn the_five_tasks_do_what_the_page_says() {
    let Some(wire) = Wire::new(2).filter(|_| have("dumpcap")) else {
        return;
    };
    let dir = Folder::new();
    let commands = documented();
    let tasks: Vec<usize> = commands.iter().map(|(task, _)| *task).collect();
    assert_eq!(tasks, [1, 2, 2, 3, 4, 5]);
    write(dir.file("both.pcap"), trace(&[0, 1, 2, 3, 4]));
    for (index, (task, line)) in commands.into_iter().enumerate() {
        // The last task selects a part of a longer trace.
        let times: &[u64] = match index {
            5 => &[0, 9_999, 10_000, 10_020, 20_000],
            _ => &[0, 1, 2, 3, 4],
        };
        write(dir.file("trace.pcap"), trace(times));
        let before = [0, 1].map(|port| wire.arrived(port));
        let name = format!("{index}.pcap");
        let capture = Capture::start(&dir, &name, &wire.far, "-i far0");
        let report = shell(&wire, &dir, &line).json();
        let out = |link: usize| list(&report["links"]).get(link).map_or(0, packets_out);
        let came = [0, 1].map(|port| wire.arrived(port) - before[port]);
        assert_eq!(came, [out(0), out(1)], "{line}");
        match index {
            0 | 4 => assert_eq!(came, [5, 0], "{line}"),
            1 => assert_eq!(came, [500, 0], "{line}"),
            2 => assert!(came[0] > 1_000, "{line}: {came:?}"),
            3 => assert_eq!(came, [3, 2], "{line}"),
            _ => {
                assert_eq!(came, [2, 0], "{line}");
                let lasted = number(&report["duration_s"]);
                assert!(lasted >= 0.04, "at half the speed: {lasted}");
            }
        }
        let arrived = records(&capture.with_frames(came[0].min(5) as usize));
        let rewritten = arrived.iter().all(|frame| {
            frame[..6] == [2, 0, 0, 0, 0, 1] && frame.windows(2).any(|at| at == [192, 168])
        });
        assert_eq!(rewritten, task == 4, "{line}");
    }
}

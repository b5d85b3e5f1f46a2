//! Wrong usage: each case gets one message with cause, place and remedy, exit
//! code 2, and leaves no files.

use std::process::{Command, Stdio};

use crate::common::process::RunningProgram;
use crate::common::{EPOCH, Ran, longwire, pcap, write};
use longwire_testbed::support::Folder;

/// Every command that takes link options, with its other arguments.
const LINK_COMMANDS: [&[&str]; 3] = [
    &["exec"],
    &["run", "packet:nowhere0", "packet:nowhere1"],
    &["simulate", "in.pcap", "out.pcap"],
];

/// Runs each link command with `arguments` and checks that each refuses them
/// with a message that holds all of `words`.
fn refused(arguments: &[&str], words: &[&str]) {
    for command in LINK_COMMANDS {
        let all: Vec<&str> = command.iter().chain(arguments).copied().collect();
        let ran = longwire(&all);
        assert_eq!(ran.code, 2, "{all:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{all:?}: {ran:?}");
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{all:?}: {ran:?}");
        for word in words {
            assert!(
                ran.stderr.contains(word),
                "{all:?}: no '{word}' in {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn units_are_never_guessed() {
    refused(&["--delay", "20"], &["--delay", "'20' has no unit", "20ms"]);
    refused(&["--rate", "10"], &["--rate", "no unit", "10mbit"]);
    refused(&["--loss", "1"], &["--loss", "1%"]);
    refused(&["--queue", "100"], &["--queue", "100p"]);
    refused(
        &["--delay", "10minutes"],
        &["--delay", "unknown unit 'minutes'", "min"],
    );
    refused(
        &["--rate", "10mbs"],
        &["--rate", "unknown unit 'mbs'", "mbit"],
    );
}

#[test]
fn negative_and_absurd_numbers_are_refused_with_the_bound() {
    refused(&["--delay", "-5ms"], &["--delay", "negative"]);
    refused(&["--rate", "-1mbit"], &["--rate", "negative"]);
    refused(&["--loss", "-1%"], &["--loss", "negative"]);
    refused(&["--loss", "101%"], &["--loss", "100%"]);
    refused(&["--delay", "25h"], &["--delay", "24h"]);
    refused(&["--rate", "11tbit"], &["--rate", "10tbit"]);
    refused(&["--rate", "0mbit"], &["--rate", "zero"]);
    refused(
        &["--delay", "nan"],
        &["--delay", "unknown delay model 'nan'"],
    );
    refused(&["--queue", "0p"], &["--queue", "1p"]);
    refused(&["--mtu", "-1"], &["--mtu", "negative"]);
    refused(&["--mtu", "10"], &["--mtu", "68 to 65535"]);
    refused(&["--seed", "-1"], &["--seed"]);
    refused(&["--delay", "0.3ns"], &["--delay", "1ns"]);
}

#[test]
fn unknown_models_and_parameters_come_with_the_known_ones() {
    refused(
        &["--delay", "gauss:mean=5ms"],
        &["unknown delay model 'gauss'", "constant, uniform, normal"],
    );
    refused(
        &["--delay", "uniform:low=5ms"],
        &["uniform has no parameter 'low'", "min, max"],
    );
    refused(
        &["--delay", "normla:mean=5ms,stddev=1ms"],
        &["unknown delay model 'normla'; did you mean 'normal'?"],
    );
    refused(
        &["--delay", "uniform:mni=5ms,max=6ms"],
        &["uniform has no parameter 'mni'; did you mean 'min'?"],
    );
    refused(
        &["--rate", "tdm:rate=1mbit,period=2ms,slot=1ms,partial=hwole"],
        &["is none of", "did you mean 'whole'?"],
    );
    refused(
        &["--preset", "lt"],
        &["unknown preset 'lt'; did you mean 'lte'?"],
    );
    refused(&["--delay", "uniform:min=5ms"], &["'max' must be given"]);
    refused(&["--order", "random"], &["in-order, reorder"]);
    refused(&["--loss", "packet:rate=1%,at=end"], &["medium, entry"]);
}

#[test]
fn options_of_one_direction_are_named_as_they_were_written() {
    for command in [&LINK_COMMANDS[0], &LINK_COMMANDS[1]] {
        let all: Vec<&str> = command
            .iter()
            .chain(&["--down-delay", "20"])
            .copied()
            .collect();
        let ran = longwire(&all);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("--down-delay"), "{ran:?}");
    }
    let ran = longwire(&["simulate", "in.pcap", "out.pcap", "--up-delay", "20ms"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--up-delay"), "{ran:?}");
}

#[test]
fn unknown_options_and_missing_values_are_reported() {
    refused(&["--dealy", "20ms"], &["--dealy", "--delay"]);
    refused(&["--delay", "--loss"], &["--delay", "value is missing"]);
    refused(&["--delay"], &["--delay"]);
    refused(
        &["--delay", "1ms", "--delay", "2ms"],
        &["--delay", "multiple times"],
    );
    refused(
        &["--require", "latency<5us"],
        &["--require", "lateness.p99"],
    );
    refused(
        &["--require", "artifacts=0,up.latenes.p99<5us"],
        &["--require", "did you mean 'lateness.p99'?"],
    );
    refused(
        &["--require", "artifacts"],
        &["--require", "compares nothing"],
    );
    for command in [&LINK_COMMANDS[0], &LINK_COMMANDS[1]] {
        let all: Vec<&str> = command.iter().chain(&["--memory", "64"]).copied().collect();
        let ran = longwire(&all);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("64kb"), "{ran:?}");
    }
}

#[test]
fn slips_are_refused() {
    refused(&["--delay", "20ms,"], &["--delay", "a comma with nothing"]);
    refused(&["--queue", "1b"], &["--queue", "holds no frame"]);
    refused(
        &["--framing", "bytes:overhead=-5000"],
        &["--framing", "-64..65535"],
    );
}

/// Permitted values that are probably not intended cause a warning at the
/// start, and in the report.
#[test]
fn doubtful_values_are_warned_of() {
    let dir = Folder::new();
    let (capture, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&capture, &pcap(&[(EPOCH, 100)]));
    let doubtful = ["--rate", "10Mbps", "--queue", "codel:target=200ms"];
    let simulate = ["simulate", &capture, &out];
    let ran = longwire(&[&simulate[..], &doubtful].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    for warning in [
        "rate: 10Mbps is 80mbit",
        "write 10mbit if bits are meant",
        "warning: ",
        "queue: target=200ms is above interval=100ms",
    ] {
        assert!(ran.stderr.contains(warning), "no '{warning}' in {ran:?}");
    }
    let json = longwire(&[&simulate[..], &doubtful, &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let notes = report["notes"].to_string();
    assert!(notes.contains("10Mbps is 80mbit"), "{notes}");

    let file = dir.file("net.toml");
    let network = "[ports]\na = \"null\"\nb = \"null\"\n[[link]]\nname = \"x\"\n\
                   match = \"in-port=a\"\nrate = \"10Mbps\"\n";
    write(&file, network.as_bytes());
    let ran = longwire(&["check", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("10Mbps is 80mbit"), "{ran:?}");
}

#[test]
fn captures_that_are_missing_or_no_captures_are_named() {
    let dir = Folder::new();
    let (missing, out) = (dir.file("missing.pcap"), dir.file("out.pcap"));
    let ran = longwire(&["simulate", &missing, &out]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains(&missing) && ran.stderr.contains("No such file"),
        "{ran:?}"
    );
    assert!(
        !dir.path().join("out.pcap").exists(),
        "an output for nothing"
    );

    let text = dir.file("text.pcap");
    write(&text, b"this is no capture");
    let ran = longwire(&["simulate", &text, &out]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("neither pcap nor pcapng"), "{ran:?}");

    let empty = dir.file("empty.pcap");
    write(&empty, b"");
    let ran = longwire(&["simulate", &empty, &out]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("empty"), "{ran:?}");
}

#[test]
fn outputs_that_would_destroy_something_are_refused() {
    let dir = Folder::new();
    let capture = dir.file("in.pcap");
    write(&capture, &pcap(&[(EPOCH, 100)]));
    let before = std::fs::read(&capture).unwrap_or_default();
    let ran = longwire(&["simulate", &capture, &capture]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("same file"), "{ran:?}");
    // The same file by another name.
    let link = dir.path().join("link.pcap");
    assert!(std::os::unix::fs::symlink(&capture, &link).is_ok());
    let ran = longwire(&["simulate", &capture, &link.to_string_lossy()]);
    assert_eq!(ran.code, 2);
    assert_eq!(std::fs::read(&capture).unwrap_or_default(), before);

    let ran = longwire(&["simulate", &capture, &dir.file("out.txt")]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(".pcapng"), "{ran:?}");
    let ran = longwire(&["simulate", &capture, "-", "--json"]);
    // The capture has stdout, and the report stderr.
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.stderr.find("{\n").map(|at| &ran.stderr[at..]);
    let report: serde_json::Value =
        serde_json::from_str(report.expect("a report")).expect("it is JSON");
    assert!(report["links"].is_array(), "{report}");
    let ran = longwire(&["simulate", &capture, &dir.file("no/such/dir.pcap")]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("No such file"), "{ran:?}");
}

#[test]
fn unknown_commands_models_and_shells_come_with_the_known_ones() {
    let ran = longwire(&["simulat"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("simulate"), "{ran:?}");
    for (arguments, close) in [
        (["models", "dely"], "did you mean 'delay'?"),
        (["models", "Exponental"], "did you mean 'exponential'?"),
        (["preset", "lt"], "did you mean 'lte'?"),
    ] {
        let ran = longwire(&arguments);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(close), "{ran:?}");
    }
    let ran = longwire(&["run", "packt:nowhere0", "packet:nowhere1"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean 'packet'?"), "{ran:?}");
    let ran = longwire(&["models", "gauss"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("exponential"), "{ran:?}");
    let ran = longwire(&["completions", "tcsh"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("zsh"), "{ran:?}");
    assert_eq!(longwire(&[]).code, 2);
    assert_eq!(longwire(&["bench"]).code, 2);
}

#[test]
fn ports_that_cannot_be_are_named_with_what_would_do() {
    let ran = longwire(&["run", "packet:nowhere0", "packet:nowhere1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("nowhere0"), "{ran:?}");
    let ran = longwire(&["run", "carrier-pigeon:x", "packet:lo"]);
    assert!(ran.code == 1 || ran.code == 2, "{ran:?}");
    assert!(ran.stderr.contains("packet:"), "{ran:?}");
    let ran = longwire(&["exec", "--peer", "true"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("CMD"), "{ran:?}");
}

/// The program must not wait for a writer that may never open the FIFO.
#[test]
fn a_fifo_is_refused_at_once() {
    let dir = Folder::new();
    let fifo = |name: &str| {
        let path = dir.file(name);
        nix::unistd::mkfifo(path.as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        path
    };
    let [plain, csv, toml, out] = ["fifo", "log.csv", "net.toml", "out.pcap"].map(fifo);
    let [input, output] = ["in.pcap", "other.pcap"].map(|name| dir.file(name));
    write(&input, &pcap(&[(EPOCH, 60), (EPOCH + 1_000, 60)]));
    let simulate = ["simulate", &input, &output, "--delay", "1ms"];
    let commands: [&[&str]; 10] = [
        &[&simulate[..], &["--report", &plain]].concat(),
        &[&simulate[..], &["--log", &csv]].concat(),
        &["simulate", &input, &out, "--delay", "1ms"],
        &[
            "generate",
            "--to",
            &format!("pcap:{out}"),
            "--rate",
            "1kpps",
            "--count",
            "9",
        ],
        &["exec", "--delay", "1ms", "--report", &plain, "--", "true"],
        &["exec", "--scenario", &plain, "--", "true"],
        &["check", &toml],
        &["import", &plain],
        &["plot", &plain, "-o", "x.svg"],
        &[
            "ctl",
            "--control",
            "tcp:127.0.0.1:9",
            "--token-file",
            &plain,
            "status",
        ],
    ];
    for command in commands {
        let ended = ends(command);
        assert_ne!(ended.code, 0, "{command:?}: {ended:?}");
        assert!(ended.stderr.contains("FIFO"), "{command:?}: {ended:?}");
    }
}

/// Runs the program until it ends by itself.
fn ends(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    RunningProgram::of(command.spawn().expect("it starts")).end()
}

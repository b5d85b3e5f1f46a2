//! Usage errors: each case prints one message with cause, place and remedy, exits with
//! code 2 and leaves no files.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::process::RunningProgram;
use crate::common::{EPOCH, Ran, longwire, pcap, write};
use longwire_testbed::support::{Folder, rows, words};

/// Every command that takes link options, with its other arguments.
const LINK_COMMANDS: [&[&str]; 3] = [
    &["exec"],
    &["run", "packet:nowhere0", "packet:nowhere1"],
    &["simulate", "in.pcap", "out.pcap"],
];

/// Checks that each link command refuses the arguments of each row, with a message that
/// contains all words of the row, separated by semicolons.
fn refused(table: &str) {
    for [arguments, said] in rows(table) {
        for command in LINK_COMMANDS {
            let all = [command, &words(arguments)].concat();
            let ran = longwire(&all);
            assert_eq!(ran.code, 2, "{all:?}: {ran:?}");
            assert!(ran.stdout.is_empty(), "{all:?}: {ran:?}");
            assert_eq!(ran.stderr.matches("error:").count(), 1, "{all:?}: {ran:?}");
            for word in said.split("; ") {
                assert!(ran.stderr.contains(word), "{all:?}: no '{word}' in {ran:?}");
            }
        }
    }
}

/// Runs the command of each row, in which capitalised words are files, and checks exit
/// code and message.
fn refused_with(table: &str, files: &[(&str, &str)]) {
    for [line, code, said] in rows(table) {
        let file = |word| files.iter().find(|(name, _)| *name == word);
        let line = words(line).into_iter();
        let line: Vec<&str> = line
            .map(|word| file(word).map_or(word, |(_, path)| path))
            .collect();
        let ran = longwire(&line);
        assert_eq!(ran.code.to_string(), code, "{line:?}: {ran:?}");
        for word in said.split("; ") {
            let word = file(word).map_or(word, |(_, path)| path);
            assert!(
                ran.stderr.contains(word),
                "{line:?}: no '{word}' in {ran:?}"
            );
        }
    }
}

#[test]
fn units_are_never_guessed() {
    refused(
        "
        --delay 20 | --delay; '20' has no unit; 20ms
        --rate 10 | --rate; no unit; 10mbit
        --loss 1 | --loss; 1%
        --loss 0.01 | --loss; '0.01' has no unit: 1% (a share of 0.01) or 0.01%
        --loss gilbert-elliott:p=0.001 | 0.1% (a share of 0.001) or 0.001%
        --queue 100 | --queue; 100p
        --delay 10minutes | --delay; unknown unit 'minutes'; min
        --rate 10mbs | --rate; unknown unit 'mbs'; mbit
        ",
    );
}

#[test]
fn negative_and_absurd_numbers_are_refused_with_the_bound() {
    refused(
        "
        --delay -5ms | --delay; negative
        --rate -1mbit | --rate; negative
        --loss -1% | --loss; negative
        --loss 101% | --loss; 100%
        --delay 25h | --delay; 24h
        --rate 11tbit | --rate; 10tbit
        --rate 0mbit | --rate; zero
        --delay nan | --delay; unknown delay model 'nan'
        --queue 0p | --queue; 1p
        --mtu -1 | --mtu; negative
        --mtu 10 | --mtu; 68..65535
        --seed -1 | --seed
        --delay 0.3ns | --delay; 1ns
        ",
    );
}

#[test]
fn unknown_models_and_parameters_list_the_known_ones() {
    refused(
        "
        --delay gauss:mean=5ms | unknown delay model 'gauss'; constant, uniform, normal
        --delay uniform:low=5ms | uniform has no parameter 'low'; min, max
        --delay normla:mean=5ms,stddev=1ms | unknown delay model 'normla'; did you mean 'normal'?
        --delay uniform:mni=5ms,max=6ms | uniform has no parameter 'mni'; did you mean 'min'?
        --rate tdm:rate=1mbit,period=2ms,slot=1ms,partial=hwole | is none of; did you mean 'whole'?
        --preset lt | unknown preset 'lt'; did you mean 'lte'?
        --delay uniform:min=5ms | 'max' must be given
        --order random | in-order, reorder
        --loss packet:rate=1%,at=end | medium, entry
        ",
    );
}

#[test]
fn options_of_one_direction_are_named_as_they_were_written() {
    refused_with(
        "
        exec --down-delay 20 | 2 | --down-delay
        run packet:nowhere0 packet:nowhere1 --down-delay 20 | 2 | --down-delay
        simulate in.pcap out.pcap --up-delay 20ms | 2 | --up-delay
        ",
        &[],
    );
}

#[test]
fn unknown_options_and_missing_values_are_reported() {
    refused(
        "
        --dealy 20ms | --dealy; --delay
        --delay --loss | --delay; value is missing
        --delay | --delay
        --delay 1ms --delay 2ms | --delay; multiple times
        --require latency<5us | --require; lateness.p99
        --require artifacts=0,up.latenes.p99<5us | --require; did you mean 'lateness.p99'
        --require artifacts | --require; is not a comparison
        ",
    );
    refused_with(
        "
        exec --memory 64 | 2 | 64kb
        run packet:nowhere0 packet:nowhere1 --memory 64 | 2 | 64kb
        ",
        &[],
    );
}

#[test]
fn slips_are_refused() {
    refused(
        "
        --delay 20ms, | --delay; a comma with nothing
        --queue 1b | --queue; holds no frame
        --framing bytes:overhead=-5000 | --framing; -64..65535
        ",
    );
}

/// Valid but suspicious values cause a warning at the start and in the report.
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
    // One link per direction, a single warning, even with --quiet.
    let out_too = format!("pcap:{out}");
    for line in [
        &["simulate", &capture, &out, "--rate", "10mbps"][..],
        &[
            "generate", "--to", &out_too, "--rate", "10mbps", "--count", "1",
        ],
        &["replay", &capture, "--to", &out_too, "--rate", "10mbps"],
        &["run", "null", "null", "--time", "1ms", "--rate", "10mbps"],
    ] {
        for more in [&[][..], &["-q"]] {
            let ran = longwire(&[line, more].concat());
            assert_eq!(ran.code, 0, "{line:?}: {ran:?}");
            let said = "10mbps is 80mbit: mbps is bytes per second, as in tc; write 10mbit if";
            assert_eq!(ran.stderr.matches(said).count(), 1, "{line:?}: {ran:?}");
            assert_eq!(ran.stderr.matches("warning:").count(), 1, "{ran:?}");
        }
        let report = longwire(&[line, &["--json"]].concat());
        assert_eq!(report.stderr, "", "{line:?}");
        let notes = report.json()["notes"].to_string();
        assert!(notes.contains("10mbps is 80mbit"), "{line:?}: {notes}");
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
    let [missing, text, empty, out] =
        ["missing.pcap", "text.pcap", "empty.pcap", "out.pcap"].map(|name| dir.file(name));
    write(&text, b"this is no capture");
    write(&empty, b"");
    let files = [
        ("MISSING", missing.as_str()),
        ("TEXT", &text),
        ("EMPTY", &empty),
        ("OUT", &out),
    ];
    refused_with("simulate MISSING OUT | 1 | MISSING; No such file", &files);
    assert!(!Path::new(&out).exists(), "an output for nothing");
    refused_with(
        "
        simulate TEXT OUT | 1 | neither pcap nor pcapng
        simulate EMPTY OUT | 1 | empty
        ",
        &files,
    );
}

#[test]
fn reports_in_place_of_what_is_read_or_written_are_refused() {
    let dir = Folder::new();
    let capture = dir.file("in.pcap");
    write(&capture, &pcap(&[(EPOCH, 100)]));
    let before = std::fs::read(&capture).unwrap_or_default();
    let link = dir.path().join("link.pcap");
    assert!(std::os::unix::fs::symlink(&capture, &link).is_ok());
    let (out, log) = (dir.file("out.pcap"), dir.file("log.csv"));
    let to_capture = format!("pcap:{out}");
    let both = format!("pcap:in={capture},out={out}");
    for arguments in [
        &["simulate", &capture, &out, "--report", &capture][..],
        &[
            "simulate",
            &capture,
            &out,
            "--report",
            &link.to_string_lossy(),
        ],
        &["simulate", &capture, &out, "--report", &out],
        &["simulate", &capture, &out, "--log", &log, "--report", &log],
        &["replay", &capture, "--to", "null", "--report", &capture],
        &[
            "generate",
            "--to",
            &to_capture,
            "--count",
            "1",
            "--report",
            &out,
        ],
        &["run", "null", "null", "--log", &log, "--report", &log],
        &["run", &both, "null", "--report", &out],
        &[
            "receive",
            &to_capture,
            "--against",
            &capture,
            "--report",
            &capture,
        ],
    ] {
        let ran = longwire(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("is also an input or output"), "{ran:?}");
        assert_eq!(std::fs::read(&capture).unwrap_or_default(), before);
        assert!(!Path::new(&out).exists() && !Path::new(&log).exists());
    }
}

#[test]
fn outputs_that_would_destroy_something_are_refused() {
    let dir = Folder::new();
    let capture = dir.file("in.pcap");
    write(&capture, &pcap(&[(EPOCH, 100)]));
    let before = std::fs::read(&capture).unwrap_or_default();
    let ran = longwire(&["simulate", &capture, &capture]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is also IN"), "{ran:?}");
    // The same file under another name.
    let link = dir.path().join("link.pcap");
    assert!(std::os::unix::fs::symlink(&capture, &link).is_ok());
    let ran = longwire(&["simulate", &capture, &link.to_string_lossy()]);
    assert_eq!(ran.code, 2);
    assert_eq!(std::fs::read(&capture).unwrap_or_default(), before);

    let ran = longwire(&["simulate", &capture, &dir.file("out.txt")]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(".pcapng"), "{ran:?}");
    let ran = longwire(&["simulate", &capture, "-", "--json"]);
    // Stdout belongs to the capture, so the report is on stderr.
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
fn unknown_commands_models_and_shells_list_the_known_ones() {
    refused_with(
        "
        simulat | 2 | simulate
        models dely | 2 | did you mean 'delay'?
        models Exponental | 2 | did you mean 'exponential'?
        preset lt | 2 | did you mean 'lte'?
        run packt:nowhere0 packet:nowhere1 | 2 | did you mean 'packet'?
        models gauss | 2 | exponential
        completions tcsh | 2 | zsh
        ",
        &[],
    );
    assert_eq!(longwire(&[]).code, 2);
    assert_eq!(longwire(&["bench"]).code, 2);
}

#[test]
fn impossible_ports_are_refused_with_a_remedy() {
    refused_with(
        "
        run packet:nowhere0 packet:nowhere1 | 1 | nowhere0
        exec --peer true | 2 | CMD
        exec --delay 20ms -- | 2 | no command after --; omit -- to probe the link
        exec --delay 20ms -q -- | 2 | no command after --
        ",
        &[],
    );
    let ran = longwire(&["run", "carrier-pigeon:x", "packet:lo"]);
    assert!(ran.code == 1 || ran.code == 2, "{ran:?}");
    assert!(ran.stderr.contains("packet:"), "{ran:?}");
}

/// The program must not block on a FIFO that may never have a writer.
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
    let generate = format!("generate --to pcap:{out} --rate 1kpps --count 9");
    let status = format!("ctl --control tcp:127.0.0.1:9 --token-file {plain} status");
    let commands: [&[&str]; 10] = [
        &[&simulate[..], &["--report", &plain]].concat(),
        &[&simulate[..], &["--log", &csv]].concat(),
        &["simulate", &input, &out, "--delay", "1ms"],
        &words(&generate),
        &["exec", "--delay", "1ms", "--report", &plain, "--", "true"],
        &["exec", "--scenario", &plain, "--", "true"],
        &["check", &toml],
        &["import", &plain],
        &["plot", &plain, "-o", "x.svg"],
        &words(&status),
    ];
    for command in commands {
        let ended = ends(command);
        assert_ne!(ended.code, 0, "{command:?}: {ended:?}");
        assert!(ended.stderr.contains("FIFO"), "{command:?}: {ended:?}");
    }
}

/// Runs the program to its end.
fn ends(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    RunningProgram::of(command.spawn().expect("it starts")).end()
}

//! Usage errors: each case prints one message with cause, place and remedy, exits with code 2, and
//! leaves no files behind.

use std::io::Write;
use std::path::Path;

use longwire_capture::open;
use longwire_testbed::support::{Folder, rows};

use crate::common::program::{longwire, start};
use crate::common::{EPOCH, assert_refused, pcap, write};

/// Every command that takes link options, with its other arguments.
const LINK_COMMANDS: [&str; 3] = [
    "exec",
    "run packet:nowhere0 packet:nowhere1",
    "simulate in.pcap out.pcap",
];

/// Asserts that each link command refuses the options in each row; see [`assert_refused`].
#[track_caller]
fn refused(table: &str) {
    for [options, texts] in rows(table) {
        for command in LINK_COMMANDS {
            assert_refused(&format!("{command} {options} | 2 | {texts}"));
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
    // A log stores times as i64.
    assert_refused(
        "simulate in.pcap out.pcap --epoch 9223372036854775808 | 2 | --epoch; 0..=92233",
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
        --rate tdm:rate=1mbit,period=2ms,slot=1ms,partial=hwole | is not one of; did you mean 'whole'?
        --preset lt | unknown preset 'lt'; did you mean 'lte'?
        --delay uniform:min=5ms | 'max' is required
        --order random | in-order, reorder
        --loss packet:rate=1%,at=end | medium, entry
        ",
    );
}

#[test]
fn options_of_one_direction_are_named_as_they_were_written() {
    assert_refused(
        "
        exec --down-delay 20 | 2 | --down-delay
        run packet:nowhere0 packet:nowhere1 --down-delay 20 | 2 | --down-delay
        simulate in.pcap out.pcap --up-delay 20ms | 2 | --up-delay
        ",
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
    assert_refused(
        "
        exec --memory 64 | 2 | 64kb
        run packet:nowhere0 packet:nowhere1 --memory 64 | 2 | 64kb
        ",
    );
}

#[test]
fn slips_are_refused() {
    refused(
        "
        --delay 20ms, | --delay; a stray comma
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
    write(&capture, pcap(&[(EPOCH, 100)]));
    let doubtful = format!("simulate {capture} {out} --rate 10Mbps --queue codel:target=200ms");
    let ran = longwire(&doubtful)
        .well()
        .says("rate: 10Mbps is 80mbit")
        .says("warning: ");
    ran.says("write 10mbit for bits")
        .says("queue: target=200ms is above interval=100ms");
    let notes = longwire(format!("{doubtful} --json")).json()["notes"].to_string();
    assert!(notes.contains("10Mbps is 80mbit"), "{notes}");
    // One link per direction but a single warning, even with --quiet.
    for line in [
        format!("simulate {capture} {out} --rate 10mbps"),
        format!("generate --to pcap:{out} --rate 10mbps --count 1"),
        format!("replay {capture} --to pcap:{out} --rate 10mbps"),
        "run null null --time 1ms --rate 10mbps".to_owned(),
    ] {
        for quiet in ["", "-q"] {
            let ran = longwire(format!("{line} {quiet}")).well();
            let said = "10mbps is 80mbit: as in tc, bps means bytes per second; write 10mbit for";
            assert_eq!(ran.stderr.matches(said).count(), 1, "{ran:?}");
            assert_eq!(ran.stderr.matches("warning:").count(), 1, "{ran:?}");
        }
        let report = longwire(format!("{line} --json"));
        assert_eq!(report.stderr, "", "{report:?}");
        let notes = report.json()["notes"].to_string();
        assert!(notes.contains("10mbps is 80mbit"), "{line}: {notes}");
    }

    let file = dir.file("net.toml");
    let network = "[ports]\na = \"null\"\nb = \"null\"\n[[link]]\nname = \"x\"\n\
                   match = \"in-port=a\"\nrate = \"10Mbps\"\n";
    write(&file, network);
    let ran = longwire(format!("check {file}")).well();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("10Mbps is 80mbit"), "{ran:?}");
}

/// Missing inputs, inputs that are not captures, and outputs that name a file in use are refused,
/// and no file changes.
#[test]
fn captures_and_outputs_are_checked_before_anything_is_written() {
    let dir = Folder::new();
    let names = [
        "in.pcap",
        "text.pcap",
        "empty.pcap",
        "missing.pcap",
        "link.pcap",
        "out.pcap",
    ];
    let [capture, text, empty, missing, link, out] = names.map(|name| dir.file(name));
    write(&capture, pcap(&[(EPOCH, 100)]));
    write(&text, "this is no capture");
    write(&empty, "");
    std::os::unix::fs::symlink(&capture, &link).expect("a link");
    let before = std::fs::read(&capture).unwrap_or_default();
    let (log, to, both) = (
        dir.file("log.csv"),
        format!("pcap:{out}"),
        format!("{capture},out={out}"),
    );
    assert_refused(&format!(
        "
        simulate {missing} {out} | 1 | {missing}; No such file
        simulate {text} {out} | 1 | neither pcap nor pcapng
        simulate {empty} {out} | 1 | empty
        simulate {capture} {capture} | 2 | is also IN
        simulate {capture} {link} | 2 | is also IN
        simulate {capture} {out}.txt | 2 | .pcapng
        simulate {capture} {out}/no/such.pcap | 1 | No such file
        simulate {capture} {out} --report {capture} | 2 | is also an input or output
        simulate {capture} {out} --report {link} | 2 | is also an input or output
        simulate {capture} {out} --report {out} | 2 | is also an input or output
        simulate {capture} {out} --log {log} --report {log} | 2 | is also an input or output
        replay {capture} --to null --report {capture} | 2 | is also an input or output
        generate --to {to} --count 1 --report {out} | 2 | is also an input or output
        run null null --log {log} --report {log} | 2 | is also an input or output
        run pcap:in={both} null --report {out} | 2 | is also an input or output
        receive {to} --against {capture} --report {capture} | 2 | is also an input or output
        "
    ));
    assert!(!Path::new(&out).exists() && !Path::new(&log).exists());
    assert_eq!(std::fs::read(&capture).unwrap_or_default(), before);
    // Stdout belongs to the capture, so the report is on stderr.
    let report = longwire(format!("simulate {capture} - --json"))
        .well()
        .json_on_stderr();
    assert!(report["links"].is_array(), "{report}");
}

#[test]
fn unknown_commands_models_and_shells_list_the_known_ones() {
    assert_refused(
        "
        simulat | 2 | simulate
        models dely | 2 | did you mean 'delay'?
        models Exponental | 2 | did you mean 'exponential'?
        preset lt | 2 | did you mean 'lte'?
        run packt:nowhere0 packet:nowhere1 | 2 | did you mean 'packet'?
        models gauss | 2 | exponential
        completions tcsh | 2 | zsh
        ",
    );
    longwire("").exits(2);
    longwire("bench").exits(2);
}

#[test]
fn impossible_ports_are_refused_with_a_remedy() {
    assert_refused(
        "
        run packet:nowhere0 packet:nowhere1 | 1 | nowhere0
        exec --peer true | 2 | CMD
        exec --delay 20ms -- | 2 | no command after --; omit -- to probe the link
        exec --delay 20ms -q -- | 2 | no command after --
        run carrier-pigeon:x packet:lo | 2 | packet:
        ",
    );
}

/// A run must not truncate a file that another run is writing.
#[test]
fn a_file_that_another_run_writes_is_refused_and_unchanged() {
    let dir = Folder::new();
    let [input, out] = ["in.pcap", "out.pcapng"].map(|name| dir.file(name));
    let [csv, parquet] = ["log.csv", "log.parquet"].map(|name| dir.file(name));
    write(&input, pcap(&[(EPOCH, 60), (EPOCH + 1_000, 60)]));
    let written = [&out, &csv, &parquet];
    let writers = written.map(|path| {
        let mut writer = open::to_write(path).expect("writable");
        writer.write_all(b"rows").expect("written");
        writer
    });
    let other = dir.file("other.pcap");
    assert_refused(&format!(
        "
        simulate {input} {out} | 1 | {out}; another run or option is writing this file
        simulate {input} {other} --log {csv} | 1 | {csv}; another run or option is writing this file
        simulate {input} {other} --log {parquet} | 1 | {parquet}; another run or option is writing
        generate --to pcap:{out} --rate 1kpps --count 9 | 1 | {out}; another run or option is writing
        "
    ));
    for path in written {
        assert_eq!(std::fs::read(path).expect("it is there"), b"rows");
    }
    drop(writers);
    longwire(format!("simulate -q {input} {out} --log {csv}")).well();
}

/// The program must not block on a FIFO, which may never have a writer.
#[test]
fn a_fifo_is_refused_at_once() {
    let dir = Folder::new();
    let fifo = |name: &str| {
        let path = dir.file(name);
        nix::unistd::mkfifo(path.as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        path
    };
    let [plain, csv, toml, out] = ["fifo", "log.csv", "net.toml", "out.pcap"].map(fifo);
    let (input, output) = (dir.file("in.pcap"), dir.file("other.pcap"));
    write(&input, pcap(&[(EPOCH, 60), (EPOCH + 1_000, 60)]));
    for line in [
        format!("simulate {input} {output} --delay 1ms --report {plain}"),
        format!("simulate {input} {output} --delay 1ms --log {csv}"),
        format!("simulate {input} {out} --delay 1ms"),
        format!("generate --to pcap:{out} --rate 1kpps --count 9"),
        format!("exec --delay 1ms --report {plain} -- true"),
        format!("exec --scenario {plain} -- true"),
        format!("check {toml}"),
        format!("import {plain}"),
        format!("plot {plain} -o x.svg"),
        format!("ctl --control tcp:127.0.0.1:9 --token-file {plain} status"),
    ] {
        let ended = start(format!("longwire {line}")).end().says("FIFO");
        assert_ne!(ended.code, 0, "{ended:?}");
    }
}

#[test]
fn a_topology_that_is_not_text_is_named() {
    let folder = Folder::new();
    let file = folder.file("net.toml");
    write(&file, b"# caf\xe9\n");
    assert_refused(&format!("check {file} | 2 | {file}; not UTF-8 text"));
}

#[test]
fn control_characters_of_files_are_escaped() {
    let folder = Folder::new();
    let (trace, topology) = (folder.file("trace.csv"), folder.file("net.toml"));
    write(&trace, b"ti\x1b[31mme,x\n1,2\n");
    write(
        &topology,
        b"[[link]]\nname = \"a\"\nrate = \"\\u001b[31m\"\n",
    );
    let delay = format!("simulate {trace} out.pcap --delay trace:{trace}");
    for command in [delay, format!("check {topology}")] {
        let stderr = longwire(&command).stderr;
        assert!(stderr.contains("\\u{1b}[31m"), "{stderr}");
        assert!(!stderr.contains('\x1b'), "{stderr}");
    }
}

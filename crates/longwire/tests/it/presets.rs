//! Presets: printed as options that yield the same link, and combined with other options.

use std::process::Command;

use clap::Parser;
use longwire::cli::{Cli, DuplexArgs};
use longwire_engine::presets::PRESETS;
use longwire_testbed::support::Folder;

use crate::common::program::{Ran, longwire};
use crate::common::{EPOCH, assert_refused, frames, pcap, read, write};

/// Splits a text into words as a shell does.
fn shell_words(text: &str) -> Vec<String> {
    let script = format!("printf '%s\\n' \\\n{text}");
    let ran = Ran::of(Command::new("sh").args(["-c", &script]));
    ran.stdout.lines().map(str::to_owned).collect()
}

fn duplex(words: &[String]) -> DuplexArgs {
    let command = ["longwire".to_owned(), "exec".to_owned()];
    let cli = Cli::try_parse_from(command.iter().chain(words));
    match cli.expect("it is read").command {
        longwire::Command::Exec(args) => args.live.link,
        _ => panic!("exec is exec"),
    }
}

#[test]
fn every_preset_is_shown_as_options_that_read_back() {
    let mut list = longwire("preset").well();
    for preset in &PRESETS {
        list = list.prints(preset.name).prints(preset.summary);
        let mut shown = longwire(format!("preset {}", preset.name)).well();
        for source in preset.sources {
            shown = shown.prints(source);
        }
        shown = shown.prints(preset.assumptions);
        let options = shown.stdout.lines().filter(|line| !line.starts_with('#'));
        let pasted = duplex(&shell_words(&options.collect::<Vec<_>>().join("\n")));
        let specs = pasted.specs().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(specs, preset.options());
        // The name and the printed options yield the same link.
        let named = duplex(&["--preset".to_owned(), preset.name.to_owned()]);
        let configs = |args: &DuplexArgs| {
            let (up, down) = args.links().unwrap_or_else(|error| panic!("{error}"));
            (up.describe(), down.describe())
        };
        assert_eq!(configs(&named), configs(&pasted), "{}", preset.name);
    }
}

/// `docs/presets.md` contains the output of `longwire preset NAME` verbatim.
#[test]
fn the_page_shows_every_preset() {
    let page = read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/presets.md"
    ));
    for preset in &PRESETS {
        let shown = longwire(format!("preset {}", preset.name)).stdout;
        let block = format!("```\n{shown}```\n");
        assert!(page.contains(&block), "docs/presets.md must show: {block}");
    }
}

#[test]
fn presets_are_machine_readable() {
    let all = longwire("preset --json").json();
    assert_eq!(all.as_array().map(Vec::len), Some(PRESETS.len()));
    let lte = longwire("preset lte --json").json();
    assert_eq!(lte["up"]["rate"][0], "3955kbit");
    assert_eq!(lte["down"]["delay"][0], "43.2ms");
    assert!(lte["sources"][0].is_string());
}

#[test]
fn other_options_are_laid_over_a_preset() {
    let args = duplex(&shell_words(
        "--preset lte --down-rate 1mbit --loss 1% --loss ber:1e-9",
    ));
    let (up, down) = args.links().unwrap_or_else(|error| panic!("{error}"));
    let part = |parts: &[(&str, String)], name: &str| {
        let of_name = parts.iter().filter(|(of, _)| *of == name);
        of_name.map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    let (up, down) = (up.describe(), down.describe());
    assert_eq!(part(&up, "rate"), ["3.955mbit"]);
    assert_eq!(part(&down, "rate"), ["1mbit"]);
    assert_eq!(part(&up, "delay"), ["43.2ms"]);
    assert_eq!(part(&up, "loss"), part(&down, "loss"));
    assert_eq!(part(&up, "loss").len(), 2);
}

#[test]
fn simulate_takes_the_direction_that_it_simulates() {
    let dir = Folder::new();
    let (input, output) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&input, pcap(&[(EPOCH, 1_000)]));
    // 8000 bits at 2.43 or 19.73 Mbit/s, plus 300 ms.
    for (direction, nanos) in [("up", 3_292_181), ("down", 405_473)] {
        let preset = format!("--preset geo-satellite --link {direction}");
        longwire(format!("simulate {input} {output} {preset}")).well();
        assert_eq!(
            frames(&output),
            [(EPOCH + 300_000_000 + nanos, 1_000)],
            "{direction}"
        );
    }
}

#[test]
fn a_table_of_phones_is_a_preset() {
    let dir = Folder::new();
    let file = dir.file("profiles.csv");
    let table = "operator,country,rat,signal_quality,download_kbps,upload_kbps,latency_ms_avg,\
                 latency_ms_stdev\ntelia,norway,4G,good,21487.6,15707.7,92.9,43.8\n";
    write(&file, table);
    let shown = longwire(format!("preset errant:file={file},operator=telia,rat=4G"));
    assert_eq!(
        shown.stdout,
        "# queue: tail drop, up 196347b, down 268595b, derived from rate and delay; set --queue \
         to change it\n--up-rate 15.7077mbit \\\n--down-rate 21.4876mbit \\\n--delay \
         46.45ms\n"
    );
    for command in ["preset", "exec --preset"] {
        assert_refused(&format!(
            "
            {command} errant:file={file},operator=none | 2 | no row for none
            {command} errant:file=no/such/file | 2 | no such file
            {command} errant | 2 | 'file' is required
            {command} isdn | 2 | unknown preset 'isdn'; known: dialup, edge
            "
        ));
    }
}

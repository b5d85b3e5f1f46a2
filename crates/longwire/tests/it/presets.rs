//! Presets: printed as options that parse to the same link, and combined with other
//! options.

use std::process::Command;

use crate::common::{EPOCH, frames, longwire, pcap, write};
use clap::Parser;
use longwire::cli::{Cli, DuplexArgs};
use longwire_engine::presets::PRESETS;
use longwire_testbed::support::{Folder, words};

/// Returns the words into which a shell splits a text.
fn shell_words(text: &str) -> Vec<String> {
    let script = format!("printf '%s\\n' \\\n{text}");
    let output = Command::new("sh").args(["-c", &script]).output();
    let output = output.unwrap_or_else(|error| panic!("sh: {error}"));
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.lines().map(str::to_owned).collect()
}

fn duplex(words: &[String]) -> DuplexArgs {
    let command = ["longwire".to_owned(), "exec".to_owned()];
    let cli = Cli::try_parse_from(command.iter().chain(words));
    match cli
        .unwrap_or_else(|error| panic!("{words:?}: {error}"))
        .command
    {
        longwire::Command::Exec(args) => args.live.link,
        _ => panic!("exec is exec"),
    }
}

#[test]
fn every_preset_is_shown_as_options_that_read_back() {
    let list = longwire(&["preset"]).stdout;
    for preset in &PRESETS {
        assert!(
            list.contains(preset.name) && list.contains(preset.summary),
            "{}",
            preset.name
        );
        let shown = longwire(&["preset", preset.name]);
        assert_eq!(shown.code, 0, "{shown:?}");
        for source in preset.sources {
            assert!(shown.stdout.contains(source), "{}: {source}", preset.name);
        }
        assert!(shown.stdout.contains(preset.assumptions), "{}", preset.name);
        let options: Vec<&str> = shown
            .stdout
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        let pasted = duplex(&shell_words(&options.join("\n")));
        let specs = pasted.specs().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(specs, preset.options());
        // The name and the printed options give the same link.
        let named = duplex(&["--preset".to_owned(), preset.name.to_owned()]);
        let configs = |args: &DuplexArgs| {
            let (up, down) = args.links().unwrap_or_else(|error| panic!("{error}"));
            (up.describe(), down.describe())
        };
        assert_eq!(configs(&named), configs(&pasted), "{}", preset.name);
    }
}

/// The page matches the program's output exactly.
#[test]
fn the_page_shows_every_preset() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/presets.md");
    let page = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{error}"));
    for preset in &PRESETS {
        let shown = longwire(&["preset", preset.name]).stdout;
        assert!(
            page.contains(&format!("```\n{shown}```\n")),
            "docs/presets.md must show what `longwire preset {}` does",
            preset.name
        );
    }
}

#[test]
fn presets_are_machine_readable() {
    let all = longwire(&["preset", "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(PRESETS.len()));
    let lte = longwire(&["preset", "lte", "--json"]).json();
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
        of_name
            .map(|(_, text)| text.clone())
            .collect::<Vec<String>>()
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
    write(&input, &pcap(&[(EPOCH, 1_000)]));
    // 8000 bits at 2.43 or 19.73 Mbit/s, plus 300 ms.
    for (direction, nanos) in [("up", 3_292_181), ("down", 405_473)] {
        let ran = longwire(&words(&format!(
            "simulate {input} {output} --preset geo-satellite --link {direction}"
        )));
        assert_eq!(ran.code, 0, "{ran:?}");
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
    write(&file, table.as_bytes());
    let shown = longwire(&[
        "preset",
        &format!("errant:file={file},operator=telia,rat=4G"),
    ]);
    assert_eq!(
        shown.stdout,
        "# queue: tail drop, up 196347b, down 268595b, derived from rate and delay; set --queue \
         to change it\n--up-rate 15.7077mbit \\\n--down-rate 21.4876mbit \\\n--delay \
         46.45ms\n"
    );
    let refused = |preset: &str, part: &str| {
        for command in [&["preset"][..], &["exec", "--preset"]] {
            let ran = longwire(&[command, &[preset]].concat());
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains(part), "{ran:?}");
        }
    };
    refused(
        &format!("errant:file={file},operator=none"),
        "no row for none",
    );
    refused("errant:file=no/such/file", "no such file");
    refused("errant", "'file' must be given");
    refused("isdn", "unknown preset 'isdn'; known: dialup, edge");
}

//! Figures of several runs: labels, cells, many series, and PDF.

use std::process::Command;

use super::{log, rows, svg};
use crate::common::longwire;
use longwire_testbed::support::{Folder, skip};

fn drawn(arguments: &[&str]) {
    let ran = longwire(&[&["plot", "-q"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Returns the positions of a text.
fn places(svg: &str, text: &str) -> Vec<(f64, f64)> {
    let end = format!(">{text}</text>");
    let lines = svg.lines().filter(|line| line.ends_with(&end));
    let of = |line: &str, name: &str| {
        let value = line
            .split(&format!(" {name}=\""))
            .nth(1)?
            .split('"')
            .next()?;
        value.parse().ok()
    };
    lines
        .filter_map(|line| Some((of(line, "x")?, of(line, "y")?)))
        .collect()
}

#[test]
fn cells_form_a_table_with_shared_axes() {
    let dir = Folder::new();
    let files: Vec<String> = (0..4)
        .map(|n| log(&dir, &format!("{n}.csv"), &rows()))
        .collect();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--cell", "cubic/lte,cubic/wifi,reno/lte,reno/wifi"]);
    let figure = svg(&dir, &arguments);
    // Two panels by default. Column names are at the top, row names at the right.
    let (lte, wifi) = (places(&figure, "lte"), places(&figure, "wifi"));
    let (cubic, reno) = (places(&figure, "cubic"), places(&figure, "reno"));
    assert_eq!([lte.len(), wifi.len(), cubic.len(), reno.len()], [2; 4]);
    assert!(lte[0].0 < wifi[0].0 && lte[0].1 == wifi[0].1);
    assert!(cubic[0].0 == reno[0].0 && cubic[0].1 < reno[0].1 && cubic[0].0 > wifi[0].0);
    // The legend names each link once; captions appear once per panel.
    assert_eq!(
        (places(&figure, "up").len(), places(&figure, "down").len()),
        (1, 1)
    );
    assert_eq!(places(&figure, "Throughput (Mbit/s)").len(), 1);
    assert_eq!(places(&figure, "Time since the first frame (s)").len(), 2);
    // Only the first column and the last row have ticks, here those at 0 of each panel:
    // two rows in the first column, two columns in the last row.
    let first = places(&figure, "0");
    let in_line = first.iter().all(|(x, _)| *x == first[0].0);
    assert!(first.len() == 4 && in_line, "{first:?}");
    let times = places(&figure, "0.0");
    assert!(times.len() == 4 && times[0].1 == times[1].1, "{times:?}");
}

#[test]
fn inputs_in_one_cell_are_told_apart_by_labels() {
    let dir = Folder::new();
    let files: Vec<String> = (0..4)
        .map(|n| log(&dir, &format!("{n}.csv"), &rows()))
        .collect();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--cell", "lte,lte,wifi,wifi", "--label", "a,b,a,b"]);
    let figure = svg(
        &dir,
        &[&arguments[..], &["--direction", "up", "--columns", "1"]].concat(),
    );
    assert_eq!(
        (places(&figure, "a").len(), places(&figure, "b").len()),
        (1, 1)
    );
    let (lte, wifi) = (places(&figure, "lte"), places(&figure, "wifi"));
    assert!(lte[0].0 == wifi[0].0 && lte[0].1 < wifi[0].1);
    assert!(figure.contains("#0072b2") && figure.contains("#d55e00"));
    // Down has a different colour, and is not drawn.
    assert!(!figure.contains("#009e73"));
}

#[test]
fn the_rate_in_force_is_a_dotted_line() {
    let dir = Folder::new();
    // 1,000 bytes per millisecond of service: 8 Mbit/s.
    let figure = svg(
        &dir,
        &[
            &log(&dir, "run.csv", &rows()),
            "--panel",
            "throughput",
            "--link",
            "up",
        ],
    );
    let dotted = figure
        .lines()
        .filter(|line| line.contains("stroke-dasharray=\"1.5 2.5\""));
    let scale = super::Scale::of(&figure, 8.0);
    let mut points = 0;
    for line in dotted {
        for (_, y) in super::coordinates(line, "#0072b2") {
            assert!((scale.value(y) - 8.0).abs() < 0.05, "{}", scale.value(y));
            points += 1;
        }
    }
    assert!(points > 100, "{points}");
}

#[test]
fn options_of_cells_that_contradict_are_refused() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.svg"));
    for (options, expected) in [
        (vec!["--cell", "a,b"], "1 inputs, but 2 names"),
        (vec!["--label", "a,b"], "1 inputs, but 2 names"),
        (vec!["--columns", "2"], "--columns needs --cell"),
        (vec!["--cell", "a/b", "--columns", "2"], "ROW/COLUMN"),
        (
            vec!["--cell", "a", "--panel", "loss-runs"],
            "--cell does not support panel loss-runs",
        ),
    ] {
        let ran = longwire(&[&["plot", &input, "-o", &out], &options[..]].concat());
        assert_eq!(ran.code, 2, "{options:?} {ran:?}");
        assert!(ran.stderr.contains(expected), "{options:?} {ran:?}");
    }
}

/// Other programs can read the PDF's texts and picture.
#[test]
fn a_pdf_has_the_texts_and_the_picture() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.pdf"));
    drawn(&[&input, "-o", &out, "--title", "Größe µ & <b>"]);
    let bytes = std::fs::read(&out).expect("it was written");
    assert!(bytes.starts_with(b"%PDF-1.7") && bytes.trim_ascii_end().ends_with(b"%%EOF"));
    let again = dir.file("again.pdf");
    drawn(&[&input, "-o", &again, "--title", "Größe µ & <b>"]);
    assert!(
        bytes == std::fs::read(&again).expect("it was written"),
        "the same every time"
    );
    let Ok(texts) = Command::new("pdftotext").args([&out, "-"]).output() else {
        return skip("needs pdftotext and pdftoppm, of the package poppler-utils").unwrap_or(());
    };
    assert!(
        texts.status.success() && texts.stderr.is_empty(),
        "{texts:?}"
    );
    let texts = String::from_utf8_lossy(&texts.stdout);
    for text in [
        "Größe µ & <b>",
        "Throughput (Mbit/s)",
        "One-way delay",
        "up",
        "drops",
    ] {
        assert!(texts.contains(text), "{text}: {texts}");
    }
    let picture = dir.file("page");
    let ran = Command::new("pdftoppm")
        .args(["-r", "48", &out, &picture])
        .output();
    let ran = ran.expect("it starts");
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let picture = std::fs::read(format!("{picture}-1.ppm")).expect("a picture");
    let count = |colour: [u8; 3]| picture.chunks(3).filter(|pixel| *pixel == colour).count();
    // Mostly paper, with some of the first link's colour.
    let header = picture
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(2);
    let pixels = &picture[header.expect("a header").0 + 1..];
    let blue = pixels.chunks(3).filter(|p| p[2] > 150 && p[0] < 80).count();
    assert!(blue > 50, "{blue}");
    assert!(count([255, 255, 255]) > pixels.len() / 6, "paper");
}

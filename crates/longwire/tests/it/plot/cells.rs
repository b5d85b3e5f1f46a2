//! Figures of several runs: labels, cells, many curves, and PDF output.

use std::process::Command;

use longwire_testbed::support::{Folder, skip};

use super::form::{BLUE, Scale, coordinates};
use super::{log, rows, svg};
use crate::common::assert_refused;
use crate::common::program::longwire;

/// Writes four logs; returns their paths.
fn four_logs(dir: &Folder) -> String {
    let files = [0, 1, 2, 3].map(|n| log(dir, &format!("{n}.csv"), &rows()));
    files.join(" ")
}

/// Returns the SVG coordinates of all labels with this text.
fn places(svg: &str, text: &str) -> Vec<(f64, f64)> {
    let end = format!(">{text}</text>");
    let lines = svg.lines().filter(|line| line.ends_with(&end));
    let of = |line: &str, name: &str| {
        let value = line.split(&format!(" {name}=\"")).nth(1)?;
        value.split('"').next()?.parse().ok()
    };
    let places = lines.filter_map(|line| Some((of(line, "x")?, of(line, "y")?)));
    places.collect()
}

#[test]
fn cells_form_a_table_with_shared_axes() {
    let dir = Folder::new();
    let cells = "--cell cubic/lte,cubic/wifi,reno/lte,reno/wifi";
    let figure = svg(&dir, &format!("{} {cells}", four_logs(&dir)));
    // There are two panels by default. Column names are at the top, row names on the right.
    let (lte, wifi) = (places(&figure, "lte"), places(&figure, "wifi"));
    let (cubic, reno) = (places(&figure, "cubic"), places(&figure, "reno"));
    assert_eq!([lte.len(), wifi.len(), cubic.len(), reno.len()], [2; 4]);
    assert!(lte[0].0 < wifi[0].0 && lte[0].1 == wifi[0].1);
    assert!(cubic[0].0 == reno[0].0 && cubic[0].1 < reno[0].1 && cubic[0].0 > wifi[0].0);
    // The legend names each link once. Rows share a caption, and each column has a time axis.
    assert_eq!(
        ["up", "down"].map(|link| places(&figure, link).len()),
        [1, 1]
    );
    assert_eq!(places(&figure, "Throughput (Mbit/s)").len(), 1);
    assert_eq!(places(&figure, "Time since the first frame (s)").len(), 2);
    // Only the first column and the last row have tick labels: "0" once per panel row in the first
    // column, "0.0" once per column in the last row.
    let first = places(&figure, "0");
    let in_line = first.iter().all(|(x, _)| *x == first[0].0);
    assert!(first.len() == 4 && in_line, "{first:?}");
    let times = places(&figure, "0.0");
    assert!(times.len() == 4 && times[0].1 == times[1].1, "{times:?}");
}

#[test]
fn inputs_in_one_cell_are_told_apart_by_labels() {
    let dir = Folder::new();
    let cells = "--cell lte,lte,wifi,wifi --label a,b,a,b --direction up --columns 1";
    let figure = svg(&dir, &format!("{} {cells}", four_logs(&dir)));
    assert_eq!(["a", "b"].map(|label| places(&figure, label).len()), [1, 1]);
    let (lte, wifi) = (places(&figure, "lte"), places(&figure, "wifi"));
    assert!(lte[0].0 == wifi[0].0 && lte[0].1 < wifi[0].1);
    assert!(figure.contains("#0072b2") && figure.contains("#d55e00"));
    // Direction down has a different colour, and is not drawn.
    assert!(!figure.contains("#009e73"));
}

#[test]
fn the_configured_rate_is_a_dotted_line() {
    let dir = Folder::new();
    // 1,000 bytes are served per millisecond: 8 Mbit/s.
    let input = log(&dir, "run.csv", &rows());
    let figure = svg(&dir, &format!("{input} --panel throughput --link up"));
    let dash = "stroke-dasharray=\"1.5 2.5\"";
    let dotted = figure.lines().filter(|line| line.contains(dash));
    let scale = Scale::of(&figure, 8.0);
    let mut points = 0;
    for line in dotted {
        for (_, y) in coordinates(line, BLUE) {
            assert!((scale.value(y) - 8.0).abs() < 0.05, "{}", scale.value(y));
            points += 1;
        }
    }
    assert!(points > 100, "{points}");
}

#[test]
fn options_of_cells_that_contradict_are_refused() {
    let dir = Folder::new();
    let plot = format!(
        "plot {} -o {}",
        log(&dir, "run.csv", &rows()),
        dir.file("out.svg")
    );
    assert_refused(&format!(
        "
        {plot} --cell a,b | 2 | 1 inputs, but 2 names
        {plot} --label a,b | 2 | 1 inputs, but 2 names
        {plot} --columns 2 | 2 | --columns needs --cell
        {plot} --cell a/b --columns 2 | 2 | ROW/COLUMN
        {plot} --cell a --panel loss-runs | 2 | --cell does not support panel loss-runs
        "
    ));
}

/// Other programs can read the text and the picture in the PDF.
#[test]
fn a_pdf_has_the_texts_and_the_picture() {
    let dir = Folder::new();
    let input = log(&dir, "run.csv", &rows());
    let [out, again] = ["out.pdf", "again.pdf"].map(|name| dir.file(name));
    let [bytes, second] = [&out, &again].map(|file| {
        longwire(format!("plot -q {input} -o {file} --title 'Größe µ & <b>'")).well();
        std::fs::read(file).expect("it was written")
    });
    assert!(bytes.starts_with(b"%PDF-1.7") && bytes.trim_ascii_end().ends_with(b"%%EOF"));
    assert!(bytes == second, "the same every time");
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
    let mut lines = picture
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n');
    let header = lines.nth(2).expect("a header").0 + 1;
    // The picture is mostly background, with some pixels in the first link's colour.
    let pixels = picture[header..].chunks(3);
    let blue = pixels
        .clone()
        .filter(|pixel| pixel[2] > 150 && pixel[0] < 80)
        .count();
    assert!(blue > 50, "{blue}");
    let paper = pixels
        .clone()
        .filter(|pixel| *pixel == [255, 255, 255])
        .count();
    assert!(
        paper > pixels.len() / 2,
        "paper: {paper} of {}",
        pixels.len()
    );
}

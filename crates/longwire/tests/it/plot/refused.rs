//! Inputs and options that `plot` refuses, and its error messages.

use crate::common::{longwire, write};
use crate::plot::{REPORT, log, rows};
use longwire_testbed::support::{self, Folder, words};

/// Runs `plot`; returns the exit code and the error.
fn refused(arguments: &[&str]) -> (i32, String) {
    let ran = longwire(&[&["plot"], arguments].concat());
    assert_eq!(ran.stdout, "");
    (ran.code, ran.stderr)
}

#[test]
fn wrong_usage_is_refused_with_a_remedy() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.svg"));
    let report = dir.file("run.json");
    write(&report, REPORT.as_bytes());
    for [arguments, expected] in support::rows(
        "
        LOG -o out.gif | must end in .svg, .pdf or .png
        LOG | --output
        -o OUT | <INPUT>
        LOG -o OUT --panel wave | delay-cdf
        LOG -o OUT --panel lateness | needs a run's report
        REPORT -o OUT --panel delay | needs a verdict log
        LOG -o OUT --from 1h | is after the last frame, at 1.0
        LOG -o OUT --from 1s --until 1s | must be after
        LOG -o OUT --bin 0s | must be above 0
        LOG -o OUT --bin 1ns | at most 200000 bins
        LOG -o OUT --height 150 | 5 panels, which need
        LOG -o OUT --scale 9 | 1..=4
        ",
    ) {
        let files = [("LOG", &input), ("REPORT", &report), ("OUT", &out)];
        let arguments = files
            .iter()
            .fold(arguments.to_owned(), |arguments, (name, path)| {
                arguments.replace(name, path)
            });
        let (code, said) = refused(&words(&arguments));
        assert_eq!(code, 2, "{arguments}: {said}");
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    let picture = dir.file("in.svg");
    write(&picture, b"");
    let (code, said) = refused(&[&picture, "-o", &picture]);
    assert!(code == 2 && said.contains("is also an INPUT"), "{said}");
    assert!(!std::path::Path::new(&out).exists(), "nothing was written");
}

#[test]
fn the_height_in_the_error_suffices() {
    let dir = Folder::new();
    let (input, out) = (log(&dir, "run.csv", &rows()), dir.file("out.svg"));
    let (_, said) = refused(&[&input, "-o", &out, "--height", "150"]);
    let needed = said
        .split("which need ")
        .nth(1)
        .and_then(|rest| rest.split(';').next());
    let ran = longwire(&["plot", &input, "-o", &out, "--height", needed.unwrap_or("")]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn files_that_cannot_be_drawn_are_named_with_the_reason() {
    let dir = Folder::new();
    let good = log(&dir, "good.parquet", &rows());
    let bytes = std::fs::read(&good).unwrap_or_default();
    let text = std::fs::read_to_string(log(&dir, "good.csv", &rows())).unwrap_or_default();
    let header = text.lines().next().unwrap_or_default();
    let cases: [(&str, &[u8], &str); 8] = [
        (
            "cut.parquet",
            &bytes[..bytes.len() / 2],
            "the end is missing",
        ),
        ("cut.csv", &text.as_bytes()[..text.len() / 2], ": line 5"),
        ("empty.csv", header.as_bytes(), "empty log"),
        ("other.csv", b"time,rate\n1,2\n", "without all of the"),
        ("nothing.csv", b"", "the run was killed before"),
        ("other.json", b"{\"a\": 1}", "missing field `links`"),
        (
            "cut.json",
            &REPORT.as_bytes()[..100],
            "neither a verdict log",
        ),
        ("none.json", b"{\"links\": []}", "has no links"),
    ];
    let out = dir.file("out.png");
    for (name, bytes, expected) in cases {
        let input = dir.file(name);
        write(&input, bytes);
        let (code, said) = refused(&[&good, &input, "-o", &out]);
        assert_eq!(code, 1, "{name}: {said}");
        assert!(
            said.contains(&input) && said.contains(expected),
            "{name}: {said}"
        );
    }
    let (code, said) = refused(&[&dir.file("no.csv"), "-o", &out]);
    assert!(code == 1 && said.contains("no.csv"), "{said}");
    let (code, said) = refused(&[&good, "-o", &out, "--link", "adsl*"]);
    assert!(
        code == 1 && said.contains("no link matches --link adsl*"),
        "{said}"
    );
    let (code, said) = refused(&[&good, "-o", "/no/such/dir/out.svg"]);
    assert!(code == 1 && said.contains("/no/such/dir/out.svg"), "{said}");
    let many: Vec<&str> = [good.as_str()].repeat(17);
    let (code, said) = refused(&[&many[..], &["-o", &out]].concat());
    assert!(code == 1 && said.contains("more than 32 links"), "{said}");
}

//! Inputs and options that `plot` refuses, and its error messages.

use longwire_testbed::support::Folder;

use super::{REPORT, log, rows};
use crate::common::program::longwire;
use crate::common::{assert_refused, read, write};

#[test]
fn wrong_usage_is_refused_with_a_remedy() {
    let dir = Folder::new();
    let input = log(&dir, "run.csv", &rows());
    let [out, report, picture] = ["out.svg", "run.json", "in.svg"].map(|name| dir.file(name));
    write(&report, REPORT);
    write(&picture, "");
    assert_refused(&format!(
        "
        plot {input} -o out.gif | 2 | must end in .svg, .pdf or .png
        plot {input} | 2 | --output
        plot -o {out} | 2 | <INPUT>
        plot {input} -o {out} --panel wave | 2 | delay-cdf
        plot {input} -o {out} --panel lateness | 2 | needs a run's report
        plot {report} -o {out} --panel delay | 2 | needs a verdict log
        plot {input} -o {out} --from 1h | 2 | is after the last frame, at 1.0
        plot {input} -o {out} --from 1s --until 1s | 2 | must be after
        plot {input} -o {out} --bin 0s | 2 | must be above 0
        plot {input} -o {out} --bin 1ns | 2 | at most 200000 bins
        plot {input} -o {out} --height 150 | 2 | 5 panels, which need
        plot {input} -o {out} --scale 9 | 2 | 1..=4
        plot {picture} -o {picture} | 2 | is also an INPUT
        "
    ));
    assert!(!std::path::Path::new(&out).exists(), "nothing was written");
}

#[test]
fn the_height_in_the_error_suffices() {
    let dir = Folder::new();
    let plot = format!(
        "plot {} -o {}",
        log(&dir, "run.csv", &rows()),
        dir.file("out.svg")
    );
    let said = longwire(format!("{plot} --height 150")).stderr;
    let needed = said.split("which need ").nth(1);
    let needed = needed.and_then(|rest| rest.split(';').next()).unwrap_or("");
    longwire(format!("{plot} --height {needed}")).well();
}

#[test]
fn files_that_cannot_be_drawn_are_named_with_the_reason() {
    let dir = Folder::new();
    let good = log(&dir, "good.parquet", &rows());
    let bytes = std::fs::read(&good).expect("a log");
    let text = read(log(&dir, "good.csv", &rows()));
    let header = text.lines().next().unwrap_or_default();
    let cut = "neither a verdict log";
    let cases: [(&str, &[u8], &str); 8] = [
        (
            "cut.parquet",
            &bytes[..bytes.len() / 2],
            "the end of the file is missing",
        ),
        ("cut.csv", &text.as_bytes()[..text.len() / 2], ": line 5"),
        ("empty.csv", header.as_bytes(), "empty log"),
        ("other.csv", b"time,rate\n1,2\n", "missing all columns"),
        ("nothing.csv", b"", "the run was killed before"),
        ("other.json", b"{\"a\": 1}", "missing field `links`"),
        ("cut.json", &REPORT.as_bytes()[..100], cut),
        ("none.json", b"{\"links\": []}", "has no links"),
    ];
    let out = dir.file("out.png");
    for (name, bytes, expected) in cases {
        let input = dir.file(name);
        write(&input, bytes);
        assert_refused(&format!(
            "plot {good} {input} -o {out} | 1 | {input}; {expected}"
        ));
    }
    let many = [good.as_str()].repeat(17).join(" ");
    assert_refused(&format!(
        "
        plot {good}.none -o {out} | 1 | good.parquet.none
        plot {good} -o {out} --link adsl* | 1 | no link matches --link adsl*
        plot {good} -o /no/such/dir/out.svg | 1 | /no/such/dir/out.svg
        plot {many} -o {out} | 1 | more than 32 links
        "
    ));
}

//! Reports to unwritable files, and pictures on a full disk.

use super::unshared_by_root;
use crate::common::wire::{inside, wired};
use crate::common::{Ran, longwire};
use longwire_testbed::support::{Folder, words};

#[test]
fn a_report_that_cannot_be_written_is_known_before_the_run() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let dir = Folder::new();
    let missing = dir.file("no/such.json");
    for words in [
        &["run", "packet:a0", "packet:b0", "--time", "1min"][..],
        &["receive", "packet:a0", "--time", "1min"],
        &words("generate --to a0 --rate 1kpps --time 1min"),
        &["exec"],
    ] {
        let mut words = words.to_vec();
        words.extend(["--report", &missing]);
        let ran = inside(&place, &words);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains(&missing), "{ran:?}");
        assert!(
            ran.stderr.contains("choose a file in an existing"),
            "{ran:?}"
        );
    }
}

#[test]
fn the_report_is_shown_although_its_file_cannot_be_written() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    // Opens, but accepts no byte.
    let run = words("run packet:a0 packet:b0 --time 50ms --report /dev/full");
    for json in [false, true] {
        let mut run = run.clone();
        run.extend(json.then_some("--json"));
        let ran = inside(&place, &run);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            ran.stderr.contains("/dev/full: cannot write the report"),
            "{ran:?}"
        );
        if json {
            assert!(ran.json()["links"].is_array(), "{ran:?}")
        } else {
            assert!(ran.stdout.contains("frames "), "{ran:?}")
        }
    }
    let received = words("receive packet:a0 --time 1ms --report /dev/full");
    let ran = inside(&place, &received);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("0 frames"), "{ran:?}");
}

#[test]
fn the_run_s_own_error_is_kept() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let report = ["--report", "/dev/full"];
    let words = [
        &["run", "packet:a0", "packet:b0", "--time", "20s"],
        &report[..],
    ]
    .concat();
    let removed = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(700));
            place.run(|| longwire_io::net::link_delete("a0"))
        });
        inside(&place, &words)
    });
    assert_eq!(removed.code, 1, "{removed:?}");
    for error in ["packet:a0 is gone", "/dev/full: cannot write"] {
        assert!(removed.stderr.contains(error), "{error}: {removed:?}");
    }
}

/// Runs a script with a small file system mounted at `$2`; `$1` is the program.
fn on_a_small_disk(dir: &Folder, script: &str) -> Option<Ran> {
    let mount = "set -e; mount -t tmpfs -o size=64k none \"$2\"; ";
    let folder = dir.path().to_str().expect("a path of UTF-8");
    unshared_by_root(&["--mount"], &format!("{mount}{script}"), &[folder])
}

#[test]
fn a_picture_on_a_full_disk_leaves_the_one_before() {
    let (dir, disk) = (Folder::new(), Folder::new());
    let log = dir.file("a.csv");
    let capture = dir.file("a.pcap");
    let frames: Vec<_> = (0..2000).map(|number| (number * 1_000_000, 500)).collect();
    crate::common::write(&capture, &crate::common::pcap(&frames));
    let out = dir.file("out.pcap");
    let made = longwire(&["simulate", &capture, &out, "--loss", "10%", "--log", &log]);
    assert_eq!(made.code, 0, "{made:?}");
    let script = format!(
        "echo before > $2/a.png; \"$1\" plot {log} -o $2/a.png --width 8000 2>&1 || true; \
         cat $2/a.png; ls -A $2"
    );
    let Some(ran) = on_a_small_disk(&disk, &script) else {
        return;
    };
    assert!(ran.stdout.contains("cannot write the figure"), "{ran:?}");
    assert!(ran.stdout.ends_with("before\na.png\n"), "{ran:?}");
}

//! System and user files: `/run/longwire`, a missing `/etc/hosts`, reports that cannot be written,
//! and full disks.

use std::time::Duration;

use longwire_io::net::link_delete;
use longwire_testbed::support::{Folder, within};

use super::unshared_by_root;
use crate::common::program::{Ran, longwire, run_in};
use crate::common::site::wired;
use crate::common::{pcap, rows_of, write};

/// Runs a script as root in a mount namespace with an empty `/run`; `$1` is the program.
fn with_empty_run(script: &str) -> Option<Ran> {
    let prelude = "set -e; mount -t tmpfs -o mode=755 none /run; ";
    unshared_by_root(&["--mount", "--net"], &format!("{prelude}{script}"), &[])
}

#[test]
fn exec_and_doctor_leave_the_directory_of_the_user() {
    let script = "mkdir -m 700 /run/longwire; \"$1\" exec -q -- true; stat -c %a /run/longwire; \
                  \"$1\" doctor >/run/doctor 2>&1 || true; stat -c %a /run/longwire";
    let Some(ran) = with_empty_run(script) else {
        return;
    };
    assert_eq!(ran.well().stdout, "700\n700\n");
}

#[test]
fn a_control_socket_creates_the_run_directory_and_no_other() {
    let script = "ip link add name x0 type veth peer name x1; ip link set dev x0 up; ip link set dev x1 up; \
                  cd /; \"$1\" run x0 x1 --time 100ms --control /run/longwire/net.sock >&2; \
                  stat -c '%a %u' /run/longwire; ls /run/longwire";
    let Some(ran) = with_empty_run(script) else {
        return;
    };
    assert_eq!(ran.well().stdout, "755 0\n");
    let other = with_empty_run("\"$1\" run null null --time 100ms --control /run/other/net.sock");
    other
        .expect("it ran before")
        .exits(2)
        .says("mkdir -p /run/other");
}

/// Covers systems without `/etc/hosts`, such as minimal installations.
#[test]
fn names_resolve_without_a_file_of_hosts_and_none_is_left() {
    // -n: root in a user namespace cannot write to /run/mount.
    let script = "set -e; mount -t tmpfs none /mnt; \
                  cp /etc/nsswitch.conf /etc/passwd /etc/group /etc/ld.so.cache /mnt; \
                  mount -n --move /mnt /etc; test ! -e /etc/hosts; \
                  \"$1\" exec --delay 1ms -- getent hosts far near; \
                  test ! -e /etc/hosts && ls /etc | wc -l";
    let Some(ran) = unshared_by_root(&["--mount", "--net"], script, &[]) else {
        return;
    };
    let ran = ran.well();
    let words = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    assert_eq!(words.collect::<Vec<_>>(), ["far", "near", "4"], "{ran:?}");
}

#[test]
fn a_report_that_cannot_be_written_is_known_before_the_run() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let dir = Folder::new();
    let missing = dir.file("no/such.json");
    for line in [
        "run packet:a0 packet:b0 --time 1min",
        "receive packet:a0 --time 1min",
        "generate --to a0 --rate 1kpps --time 1min",
        "exec",
    ] {
        let ran = run_in(&place, format!("longwire {line} --report {missing}")).exits(1);
        ran.says(&missing).says("choose a file in an existing");
    }
}

/// `/dev/full` can be opened, but every write fails.
#[test]
fn the_report_is_shown_although_its_file_cannot_be_written() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let run = "longwire run packet:a0 packet:b0 --time 50ms --report /dev/full";
    let unwritten = "/dev/full: cannot write the report";
    run_in(&place, run)
        .exits(1)
        .says(unwritten)
        .prints("frames ");
    let ran = run_in(&place, format!("{run} --json"))
        .exits(1)
        .says(unwritten);
    assert!(ran.json()["links"].is_array(), "{ran:?}");
    let receive = "longwire receive packet:a0 --time 1ms --report /dev/full";
    run_in(&place, receive).exits(1).prints("0 frames");
}

#[test]
fn the_runs_own_error_is_kept() {
    let Some(place) = wired(&[("a0", "a1"), ("b0", "b1")]) else {
        return;
    };
    let line = "longwire run packet:a0 packet:b0 --time 20s --report /dev/full";
    let removed = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            within(&place, || link_delete("a0"));
        });
        run_in(&place, line)
    });
    removed
        .exits(1)
        .says("packet:a0 is gone")
        .says("/dev/full: cannot write");
}

#[test]
fn a_picture_on_a_full_disk_leaves_the_one_before() {
    let (dir, disk) = (Folder::new(), Folder::new());
    let [log, capture, out] = ["a.csv", "a.pcap", "out.pcap"].map(|name| dir.file(name));
    let frames: Vec<_> = (0..2000).map(|number| (number * 1_000_000, 500)).collect();
    write(&capture, pcap(&frames));
    longwire(format!("simulate {capture} {out} --loss 10% --log {log}")).well();
    // Mount a small file system at `$2`.
    let script = format!(
        "set -e; mount -t tmpfs -o size=64k none \"$2\"; \
         echo before > $2/a.png; \"$1\" plot {log} -o $2/a.png --width 8000 2>&1 || true; \
         cat $2/a.png; ls -A $2"
    );
    let folder = disk.path().to_str().expect("a path of UTF-8");
    let Some(ran) = unshared_by_root(&["--mount"], &script, &[folder]) else {
        return;
    };
    let ran = ran.prints("cannot write the figure");
    assert!(ran.stdout.ends_with("before\na.png\n"), "{ran:?}");
}

#[test]
fn a_log_ends_well_although_the_disk_of_the_captures_is_full() {
    let (dir, disk) = (Folder::new(), Folder::new());
    let [log, capture] = ["a.parquet", "a.pcap"].map(|name| dir.file(name));
    let frames: Vec<_> = (0..1000).map(|number| (number * 100_000, 1_000)).collect();
    write(&capture, pcap(&frames));
    // Mount a small file system at `$2`.
    let script = format!(
        "mount -t tmpfs -o size=256k none \"$2\" && \
         \"$1\" run --one-way pcap:{capture} null --capture \"$2\"/c --log {log} 2>&1 || true"
    );
    let folder = disk.path().to_str().expect("a path of UTF-8");
    let Some(ran) = unshared_by_root(&["--mount"], &script, &[folder]) else {
        return;
    };
    ran.prints("No space left on device");
    assert!(rows_of(&log).len() > 100);
}

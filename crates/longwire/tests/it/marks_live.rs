//! Marks instead of losses in a live run, counted by the receiver's kernel.
//!
//! Needs namespaces and iperf3. Without them, this test passes without running, except
//! in CI.

use crate::common::{have, longwire};
use longwire_testbed::support::{Folder, words};

/// Returns a counter from a table with a row of names and a row of values.
fn in_columns(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(table));
    let (names, values) = (rows.next()?, rows.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = columns.find(|(column, _)| *column == name)?;
    value.parse().ok()
}

/// Returns a counter from a table with a name and a value per row.
fn in_rows(text: &str, name: &str) -> Option<u64> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(name));
    rows.next()?.trim().parse().ok()
}

/// Of datagrams with ECT(0), IPv4 and IPv6, those selected by the model arrive with CE
/// and valid checksums, and none is lost. iperf3's control connection is not marked and
/// passes.
#[test]
fn a_receiver_sees_marks_in_place_of_losses() {
    if !have("iperf3") {
        return;
    }
    for (version, place, queue) in [("-4", "entry", "fq-codel"), ("-6", "medium", "5000p")] {
        let dir = Folder::new();
        let seen = dir.file("seen");
        let tables = "/proc/net/netstat /proc/net/snmp /proc/net/snmp6";
        let peer = format!(
            "sh -c 'iperf3 -s -1 >/dev/null; cat {tables} >{seen}.part; mv {seen}.part {seen}'"
        );
        let loss = format!("packet:rate=25%,at={place},ecn=mark-only");
        // The peer ends with the command, which waits for the counters.
        let send = format!(
            "iperf3 {version} -u -c far -b 4M -l 250 --tos 2 -k 2000 >/dev/null; \
             for i in $(seq 100); do [ -e {seen} ] && exit; sleep 0.1; done"
        );
        let link = format!("--rate 20mbit --delay 1ms --up-queue {queue} --up-loss {loss}");
        let arguments = [
            &words("exec -q --json")[..],
            &words(&link),
            &["--peer", &peer, "--", "sh", "-c", &send],
        ];
        let ran = longwire(&arguments.concat());
        if ran.code == 1 && ran.stderr.contains("namespace") && std::env::var_os("CI").is_none() {
            println!("skipped: no namespaces here");
            return;
        }
        assert_eq!(ran.code, 0, "{ran:?}");
        let seen = std::fs::read_to_string(&seen).expect("the counters");
        let report: serde_json::Value = serde_json::from_str(&ran.stderr).expect("a report");
        let up = &report["links"][0];
        for reason in ["entry_loss", "loss", "queue_full"] {
            assert_eq!(up["drops"][reason], 0, "{up}");
        }
        let (marked, wrong) = match version {
            "-4" => (
                in_columns(&seen, "IpExt: ", "InCEPkts"),
                in_columns(&seen, "Udp: ", "InCsumErrors"),
            ),
            _ => (
                in_rows(&seen, "Ip6InCEPkts"),
                in_rows(&seen, "Udp6InCsumErrors"),
            ),
        };
        assert_eq!(up["ecn_marked"].as_u64(), marked, "{up}");
        assert!(marked > Some(300), "{marked:?} of about 500");
        assert_eq!(wrong, Some(0), "{version}: checksums");
    }
}

//! Outputs of the command and of exec.

use crate::exec::{User, well};

#[test]
fn json_leaves_stdout_to_the_command() {
    for user in User::all() {
        let ended = well(user.exec(&["--json", "--delay", "1ms", "--", "echo", "{}"]));
        assert_eq!(ended.stdout, "{}\n");
        let report: serde_json::Value =
            serde_json::from_str(&ended.stderr).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        assert_eq!(report["links"][0]["config"]["delay"], "1ms");

        // Lines about unmet conditions precede the JSON, which ends stderr.
        let unmet = ["--json", "--require", "packets_in>=1000000", "--", "true"];
        let ended = user.exec(&unmet);
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{ended:?}");
        let json = ended.stderr.find('{').expect("a report");
        assert!(ended.stderr[..json].contains("not met: "), "{ended:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&ended.stderr[json..]).is_ok());

        // Without a command, stdout is available.
        let probed = well(user.exec(&["--json", "--delay", "1ms"]));
        assert!(probed.json()["probe"]["rtt_ms"].as_f64() > Some(0.0));
    }
}

#[test]
fn a_command_is_between_a_line_about_the_link_and_a_short_report() {
    for user in User::all() {
        let words = ["--delay", "1ms", "--rate", "10mbit", "--", "echo", "hello"];
        let ended = well(user.exec(&words));
        assert_eq!(ended.stdout, "hello\n");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let link = "link, each direction: rate 10mbit, queue 125000b (derived), delay 1ms";
        assert_eq!(lines[0], link, "{ended:?}");
        assert!(lines[1].starts_with("frames "), "{ended:?}");
        assert!(lines.len() <= 11, "{ended:?}");
        let quiet = well(user.exec(&[&["-q"], &words[..]].concat()));
        assert_eq!(quiet.stderr, "", "{quiet:?}");
        let verbose = well(user.exec(&[&["-v"], &words[..]].concat()));
        assert!(verbose.stderr.contains("note: placement: "), "{verbose:?}");
        assert!(verbose.stderr.lines().count() > 30, "{verbose:?}");
    }
}

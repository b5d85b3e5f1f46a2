//! `--json` and the command's output.

use crate::exec::{User, well};

#[test]
fn json_leaves_stdout_to_the_command() {
    for user in User::all() {
        let ended = well(user.exec(&["--json", "--delay", "1ms", "--", "echo", "{}"]));
        assert_eq!(ended.stdout, "{}\n");
        let report: serde_json::Value =
            serde_json::from_str(&ended.stderr).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        assert_eq!(report["links"][0]["config"]["delay"], "1ms");

        // Unmet conditions precede it: it is the end of stderr.
        let unmet = ["--json", "--require", "packets_in>=1000000", "--", "true"];
        let ended = user.exec(&unmet);
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{ended:?}");
        let json = ended.stderr.find('{').expect("a report");
        assert!(ended.stderr[..json].contains("not met: "), "{ended:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&ended.stderr[json..]).is_ok());

        // Without a command, stdout is free.
        let probed = well(user.exec(&["--json", "--delay", "1ms"]));
        assert!(probed.json()["probe"]["rtt_ms"].as_f64() > Some(0.0));
    }
}

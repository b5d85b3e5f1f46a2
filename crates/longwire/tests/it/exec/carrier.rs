//! `exec --carrier`: the carrier at both ends when a link is turned off.

use serde_json::Value;

use crate::common::{count, list, named};
use crate::exec::User;

/// Script that waits until `eth0` has lost its carrier `$1` times and regained it, and until the
/// file `$2` exists. Writes the kernel's count of carrier losses to the file `$3`.
const WATCH: &str = "#!/bin/sh\n\
    cd /sys/class/net/eth0; from=$(cat carrier_down_count); cd - >/dev/null\n\
    lost() { echo $(($(cat /sys/class/net/eth0/carrier_down_count) - from)); }\n\
    until [ $(lost) -ge $1 ] && [ x$(cat /sys/class/net/eth0/carrier) = x1 ] && [ -e $2 ]; do\n\
      sleep 0.01\n\
    done\n\
    lost >$3.new; mv $3.new $3\n";

/// Returns the port kinds available to a user: only root may have access to `/dev/net/tun`.
fn kinds(user: &User) -> &'static [&'static str] {
    if user.is_root() {
        &["auto", "tap"]
    } else {
        &["auto"]
    }
}

fn scenario(user: &User, events: &[(&str, &str)]) {
    let event = |(time, action): &(&str, &str)| format!("[[at]]\ntime = \"{time}\"\n{action}\n");
    user.write("s.toml", events.iter().map(event).collect::<String>());
}

/// Returns a port's carrier losses in the report.
fn losses(report: &Value, port: &str) -> u64 {
    let mut notes = list(&report["notes"]).iter().filter_map(Value::as_str);
    let begin = format!("port {port}: carrier lost ");
    let losses = notes.find_map(|note| note.strip_prefix(&begin)?.split(' ').next());
    losses.map_or(0, |losses| losses.parse().expect("a number"))
}

#[test]
fn an_end_loses_its_carrier_while_the_direction_toward_it_is_down() {
    for user in User::all() {
        user.write("watch", WATCH);
        let events = [("2s", "off = 'link'"), ("3s", "on = 'link'")];
        scenario(
            &user,
            &[
                &events[..],
                &[("4s", "off = 'link.up'"), ("5s", "on = 'link.up'")],
            ]
            .concat(),
        );
        for kind in kinds(&user) {
            // The peer never listens, so do not wait for it.
            let line = format!(
                "$LONGWIRE exec --port {kind} --carrier --scenario s.toml --report r.json \
                 --peer 'sh watch 2 watch far' --peer-wait 1ms -- sh -c '\
                 ip monitor link >events & sh watch 1 far near; kill $!; cat events'"
            );
            for end in ["near", "far"] {
                let _ = std::fs::remove_file(user.dir.file(end));
            }
            user.shell(&line).well().prints("NO-CARRIER");
            assert_eq!((&*user.read("near"), &*user.read("far")), ("1\n", "2\n"));
            let report = user.report();
            assert_eq!((losses(&report, "near"), losses(&report, "far")), (1, 2));
        }
    }
}

#[test]
fn frames_in_transit_arrive_before_the_carrier_is_lost() {
    for user in User::with(["ping"]) {
        scenario(&user, &[("1500ms", "off = \"link.up\"")]);
        // Print the kernel's count of received frames at the carrier loss, and again a second
        // later.
        let far = "until [ $(cat /sys/class/net/eth0/carrier) = 0 ]; do sleep 0.01; done; \
                   for n in 1 2; do cat /sys/class/net/eth0/statistics/rx_packets; sleep 1; done";
        user.write("far.sh", far);
        let line = "$LONGWIRE exec --delay 500ms --carrier --scenario s.toml --report r.json \
                    --peer 'sh far.sh >far' --peer-wait 1ms -- sh -c '\
                    ping -q -i 0.2 -c 12 far; sleep 1; true'";
        user.shell(line).well();
        let report = user.report();
        let sent = &named(&report["ports"], "far")["packets_out"];
        assert_eq!(user.read("far"), format!("{sent}\n{sent}\n"), "{report}");
        let up = named(&report["links"], "link.up");
        assert!(count(&up["drops"]["outage"]) >= 3, "{up}");
        assert_eq!(losses(&report, "far"), 1);
    }
}

#[test]
fn both_families_answer_as_soon_as_the_carrier_is_back() {
    for user in User::with(["ping"]) {
        scenario(&user, &[("1s", "off = \"link\""), ("2s", "on = \"link\"")]);
        let line = "until [ $(cat /sys/class/net/eth0/carrier) = 0 ]; do sleep 0.01; done; \
                    until [ $(cat /sys/class/net/eth0/operstate) = up ]; do sleep 0.01; done; \
                    ping -6 -c 1 -W 1 far && ping -4 -c 1 -W 1 far";
        for kind in kinds(&user) {
            let options = format!("--carrier --delay 10ms --scenario s.toml --port {kind}");
            user.exec(format!("{options} -- sh -c '{line}'")).well();
        }
    }
}

#[test]
fn a_connection_survives_an_outage() {
    for user in User::with(["iperf3"]) {
        scenario(&user, &[("1s", "off = \"link\""), ("2s", "on = \"link\"")]);
        let line = "$LONGWIRE exec --rate 10mbit --delay 10ms --carrier --scenario s.toml \
                    --report r.json --peer 'iperf3 -s -1' -- iperf3 -J -t 6 -c far";
        let result = user.shell(line).well().json();
        let last = list(&result["intervals"]).last().expect("intervals");
        assert!(count(&last["sum"]["bytes"]) > 0, "{result}");
        assert_eq!(losses(&user.report(), "far"), 1);
    }
}

/// Events are 20 ms apart; a thread that stalls for longer misses losses.
#[test]
fn a_link_that_flaps_stays_sound() {
    for user in User::with(["iperf3", "ping"]) {
        let again = |action: &str| format!("every = \"40ms\"\ntimes = 100\n{action}");
        let (off, on) = (again("off = \"link\""), again("on = \"link\""));
        scenario(&user, &[("1s", &off), ("1020ms", &on)]);
        let lost = "cat /sys/class/net/eth0/carrier_down_count";
        let line = format!(
            "$LONGWIRE exec --carrier --scenario s.toml --report r.json --peer 'iperf3 -s' -- \
             sh -c '{lost}; iperf3 -t 5 -c far >&2; sleep 1; {lost}; ping -c 3 far >&2'"
        );
        let ended = user.shell(&line).well();
        let counted: Vec<u64> = ended.stdout.lines().flat_map(str::parse).collect();
        let report = user.report();
        assert!(report["error"].is_null(), "{report}");
        let lost = losses(&report, "near");
        assert!(lost <= 100, "{report}");
        // The kernel's count may miss the shortest losses.
        assert!((1..=lost).contains(&(counted[1] - counted[0])), "{ended:?}");
        for (name, to) in [("link.up", "far"), ("link.down", "near")] {
            let link = named(&report["links"], name);
            let outage = link["drops"]["outage"].as_u64().unwrap_or(0);
            let left = count(&link["packets_out"]) + outage;
            assert_eq!(count(&link["packets_in"]), left, "{link}");
            let port = named(&report["ports"], to);
            assert_eq!(port["packets_out"], link["packets_out"], "{report}");
            for artifact in ["refused", "send_failed", "no_carrier"] {
                assert_eq!(port["artifacts"][artifact], 0, "{artifact}: {report}");
            }
        }
    }
}

#[test]
fn a_file_names_the_links_itself() {
    for user in User::all() {
        let file = "[ports]\nnear = \"null\"\nfar = { opens = \"null\", carrier = \"x.up\" }\n\
                    [[link]]\nname = \"x\"\nmatch = \"in-port=near\"\n";
        user.write("n.toml", file);
        let ended = user.exec("--carrier n.toml -- true").exits(2);
        ended.says("carrier = \"link.up\"");
    }
}

#[test]
fn a_port_of_a_file_names_the_links_toward_it() {
    for user in User::all() {
        let file = "[ports]\nnear = \"null\"\nfar = { opens = \"null\", carrier = \"?\" }\n\
                    [[link]]\nname = \"a\"\nmatch = \"proto=icmp,in-port=near\"\n\
                    [[link]]\nname = \"b\"\nmatch = \"in-port=near\"\n\
                    [[at]]\ntime = \"1s\"\noff = \"a\"\n\
                    [[at]]\ntime = \"3s\"\noff = \"b.up\"\n\
                    [[at]]\ntime = \"4s\"\non = \"?\"\n";
        user.write("n.toml", file);
        user.write("watch", WATCH);
        let run = |losses: u32| {
            for end in ["near", "far", "over"] {
                let _ = std::fs::remove_file(user.dir.file(end));
            }
            // Read the counts after the last event.
            let line = format!(
                "$LONGWIRE exec n.toml --report r.json --peer 'sh watch {losses} over far' \
                 --peer-wait 1ms -- sh -c 'sleep 6; touch over; sh watch 0 far near'"
            );
            user.shell(&line).well();
            assert_eq!(user.read("near"), "0\n", "near follows no link");
            user.read("far")
        };
        // The scenario leaves b.down on.
        assert_eq!(run(0), "0\n");
        let file = file.replace("\"?\" }", "[\"a.up\", \"b.up\"] }");
        user.write("n.toml", &file);
        assert_eq!(run(1), "1\n");
        assert_eq!(losses(&user.report(), "far"), 1);
    }
}

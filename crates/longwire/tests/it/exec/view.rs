//! The live view's history of real frames.

use longwire_testbed::support::have;
use serde_json::Value;

use crate::exec::{User, well};

/// Pings the peer through a link with these options; returns the history and the flows
/// of the direction up.
fn recorded(user: &User, options: &str) -> (Value, Value) {
    let line = "ask() { curl -sS --fail --unix-socket v.sock http://localhost/v1/$1; }; \
                ask flows/link.up > /dev/null; \
                ping -4 -q -c 40 -i 0.02 -s 972 far > /dev/null; sleep 0.3; \
                ask history/link.up; echo; ask flows/link.up";
    let line = format!("$LONGWIRE exec -q --control v.sock --view {options} -- sh -c '{line}'");
    let ended = well(user.shell(&line));
    let mut values = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let mut next = || values.next().unwrap_or_else(|| panic!("{ended:?}"));
    (next(), next())
}

/// Returns the approximate number of frames in a column of rates. Periods are longer on
/// a busy machine, and neighbour discovery adds frames.
fn frames(columns: &Value, rates: &Value) -> f64 {
    let ends: Vec<f64> = column(columns, "elapsed_s").collect();
    let begins = std::iter::once(0.0).chain(ends.iter().copied());
    let rates = rates
        .as_array()
        .expect("a column")
        .iter()
        .filter_map(Value::as_f64);
    let periods = begins.zip(&ends).map(|(begin, end)| end - begin);
    periods.zip(rates).map(|(period, rate)| period * rate).sum()
}

fn column<'a>(columns: &'a Value, name: &str) -> impl Iterator<Item = f64> + 'a {
    let column = columns[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {columns}"));
    column.iter().filter_map(Value::as_f64)
}

/// A frame of 1,014 bytes takes 8.112 ms at 1 Mbit/s, plus 20 ms of delay. In lanes, in
/// a network (no lane is open with a log), and in a flow queue.
#[test]
fn delays_are_those_of_the_models_on_every_path_of_a_frame() {
    if !have("curl") {
        return;
    }
    for user in User::all() {
        for more in [
            "",
            "--log run.csv",
            "--queue fq-codel",
            "--queue fq-codel --log run.csv",
        ] {
            let options = format!("--delay 20ms --rate 1mbit {more}");
            let (history, flows) = recorded(&user, &options);
            let frames = frames(&history, &history["packets_out_per_s"]);
            assert!(
                (36.0..52.0).contains(&frames),
                "{more}: {frames} of 40: {history}"
            );
            for (name, wanted) in [("queueing_p50_us", 8_112.0), ("delay_p50_us", 28_112.0)] {
                let delays: Vec<f64> = column(&history, name).collect();
                assert!(delays.len() >= 5, "{more}: {name}: {history}");
                // Echoes are 20 ms apart, and find the link idle.
                let near = delays
                    .iter()
                    .filter(|delay| (*delay / wanted - 1.0).abs() < 0.01);
                let near = near.count();
                assert!(near * 10 >= delays.len() * 8, "{more}: {name}: {delays:?}");
            }
            let rates: Vec<f64> = column(&history, "rate_bits_per_s").collect();
            assert!(rates.iter().all(|rate| *rate == 1e6), "{rates:?}");
            let flow = &flows["flows"][0];
            assert_eq!(flow["flow"], "icmp 10.77.0.1 > 10.77.0.2", "{flows}");
            assert_eq!(
                (&flow["packets"], &flow["bytes"]),
                (&40.into(), &40_560.into()),
                "{flows}"
            );
        }
    }
}

#[test]
fn losses_have_their_reason() {
    if !have("curl") {
        return;
    }
    for user in User::all() {
        let (history, flows) = recorded(&user, "--loss 100%");
        let lost = frames(&history, &history["drops_per_s"]["loss"]);
        assert!((36.0..52.0).contains(&lost), "{history}");
        assert_eq!(flows["packets"], 0, "{flows}");
        assert_eq!(column(&history, "delay_p50_us").count(), 0, "{history}");
    }
}

#[test]
fn the_rate_in_force_of_a_schedule_is_that_of_the_frames_served() {
    if !have("curl") {
        return;
    }
    for user in User::all() {
        let (history, _) = recorded(&user, "--rate \"steps:at=0s/1mbit;1h/2mbit\"");
        let rates: Vec<f64> = column(&history, "rate_bits_per_s").collect();
        assert!(rates.len() >= 5, "{history}");
        assert!(
            rates.iter().all(|rate| (rate / 1e6 - 1.0).abs() < 0.001),
            "{rates:?}"
        );
    }
}

/// The change is at second 1.234 of the scenario, within a period of the history.
#[test]
fn the_rate_in_force_is_that_of_the_sample() {
    if !have("curl") {
        return;
    }
    for user in User::all() {
        let scenario = "[[at]]\ntime = \"1234ms\"\nset = { link = { rate = \"3mbit\" } }\n";
        std::fs::write(user.dir.file("s.toml"), scenario).expect("a file");
        let line = "sleep 2; curl -sS --fail --unix-socket v.sock \
                    http://localhost/v1/history/link.up";
        let line = format!(
            "$LONGWIRE exec -q --control v.sock --view --rate 1mbit --scenario s.toml -- \
             sh -c '{line}'"
        );
        let ended = well(user.shell(&line));
        let history: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let samples = column(&history, "elapsed_s").zip(column(&history, "rate_bits_per_s"));
        let samples: Vec<(f64, f64)> = samples.collect();
        assert!(samples.iter().any(|(at, _)| *at > 1.3), "{samples:?}");
        let change = samples.partition_point(|(at, _)| *at < 1.234);
        for (index, (at, rate)) in samples.into_iter().enumerate() {
            // On a busy machine, this sample may precede the change.
            if index == change && rate == 1e6 {
                continue;
            }
            let wanted = if index < change { 1e6 } else { 3e6 };
            assert_eq!(rate, wanted, "at {at} s");
        }
    }
}

#[test]
fn a_run_with_a_view_alone_is_found_without_its_address() {
    for user in User::all() {
        // Root's other runs may have a view.
        let named = if user.is_root() {
            "--control $LONGWIRE_CONTROL"
        } else {
            ""
        };
        let line = format!(
            "env -u LONGWIRE_CONTROL $LONGWIRE ctl status {named}; ls -l $LONGWIRE_CONTROL"
        );
        // As after `su` or in a container: neither the variable nor a login directory
        // exists.
        let own = "export XDG_RUNTIME_DIR=$PWD/run";
        for variable in [own, "unset XDG_RUNTIME_DIR"] {
            let line = format!(
                "mkdir -p run && {variable} && $LONGWIRE exec -q --view -- sh -c '{line}'; \
                 {variable}; rmdir /tmp/longwire-$(id -u) 2>/dev/null"
            );
            let ended = user.shell(&line);
            let run = user.dir.path().join("run/longwire").display().to_string();
            let place = match variable {
                _ if user.is_root() => "/run/longwire/view-",
                _ if variable == own => &format!("{run}/view-"),
                _ => "/longwire",
            };
            assert!(ended.stdout.contains(": longwire "), "{ended:?}");
            assert!(ended.stdout.contains(place), "{ended:?}");
            let socket = ended.stdout.lines().find(|line| line.starts_with('s'));
            let socket = socket.and_then(|line| line.split(' ').next_back());
            let socket = std::path::Path::new(socket.expect("its socket"));
            assert!(!socket.exists(), "{ended:?}");
        }
    }
}

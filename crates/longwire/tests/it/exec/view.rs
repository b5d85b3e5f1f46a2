//! The live view's history of real frames.

use serde_json::Value;

use crate::common::program::{RunningProgram, wait_for};
use crate::common::{count, list};
use crate::exec::User;

/// A run with a view, whose command ends once the file `end` exists.
struct Viewed<'a> {
    user: &'a User,
    run: RunningProgram,
}

impl Viewed<'_> {
    /// Starts a run with these options; `command` runs before the wait for the end.
    fn start<'a>(user: &'a User, options: &str, command: &str) -> Viewed<'a> {
        let _ = std::fs::remove_file(user.dir.file("end"));
        let line = format!("{command}; until [ -e end ]; do sleep 0.02; done");
        let line = format!("-q --control v.sock --view {options} -- sh -c '{line}'");
        let run = RunningProgram::spawn(&mut user.exec_piped(line));
        user.wait_for_file("v.sock");
        Viewed { user, run }
    }

    fn ask(&self, what: &str) -> Value {
        // Another user, such as the test, has no access to the user's socket.
        let curl = "curl -sS --fail --unix-socket v.sock http://localhost/v1";
        self.user.shell(format!("{curl}/{what}")).well().json()
    }

    /// Waits for a matching history of direction up.
    #[track_caller]
    fn history(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for("the history", || {
            let history = self.ask("history/link.up");
            let found = wanted(&history);
            if found { Ok(history) } else { Err(history) }
        })
    }

    fn end(self) {
        self.user.write("end", "");
        self.run.end().well();
    }
}

/// Pings the peer 40 times through a link with these options, and waits until the history's rates
/// at the JSON pointer `rates` include these frames. Returns the history, and the flows of
/// direction up.
fn recorded(user: &User, options: &str, rates: &str) -> (Value, Value) {
    for file in ["go", "pinged"] {
        let _ = std::fs::remove_file(user.dir.file(file));
    }
    let ping = "ping -4 -q -c 40 -i 0.02 -s 972 far; touch pinged";
    let ping = format!("until [ -e go ]; do sleep 0.02; done; {ping}");
    let viewed = Viewed::start(user, options, &ping);
    // The first request enables flow counting.
    let _ = viewed.ask("flows/link.up");
    user.write("go", "");
    user.wait_for_file("pinged");
    let counted = |history: &Value| frames(history, history.pointer(rates).expect("rates"));
    let history = viewed.history(|history| counted(history) > 36.0);
    let flows = viewed.ask("flows/link.up");
    viewed.end();
    let frames = counted(&history);
    assert!(
        (36.0..52.0).contains(&frames),
        "{options}: {frames} of 40: {history}"
    );
    (history, flows)
}

/// Returns the approximate number of frames in a column of rates. Periods are longer on a busy
/// machine, and neighbour discovery adds frames.
fn frames(columns: &Value, rates: &Value) -> f64 {
    let ends: Vec<f64> = column(columns, "elapsed_s").collect();
    let begins = std::iter::once(0.0).chain(ends.iter().copied());
    let rates = list(rates).iter().filter_map(Value::as_f64);
    let periods = begins.zip(&ends).map(|(begin, end)| end - begin);
    periods.zip(rates).map(|(period, rate)| period * rate).sum()
}

fn column<'a>(columns: &'a Value, name: &str) -> impl Iterator<Item = f64> + 'a {
    list(&columns[name]).iter().filter_map(Value::as_f64)
}

/// A frame of 1,014 bytes takes 8.112 ms at 1 Mbit/s, plus 20 ms of delay. Covers lanes, a network
/// (a log disables lanes), and a flow queue.
#[test]
fn delays_are_those_of_the_models_on_every_path_of_a_frame() {
    for user in User::with(["curl", "ping"]) {
        for more in [
            "",
            "--log run.csv",
            "--queue fq-codel",
            "--queue fq-codel --log run.csv",
        ] {
            let options = format!("--delay 20ms --rate 1mbit {more}");
            let (history, flows) = recorded(&user, &options, "/packets_out_per_s");
            for (name, wanted) in [("queueing_p50_us", 8_112.0), ("delay_p50_us", 28_112.0)] {
                let delays: Vec<f64> = column(&history, name).collect();
                assert!(delays.len() >= 5, "{more}: {name}: {history}");
                // Echo requests are 20 ms apart, so each finds an idle link.
                let near = |delay: &&f64| (*delay / wanted - 1.0).abs() < 0.01;
                let near = delays.iter().filter(near).count();
                assert!(near * 10 >= delays.len() * 8, "{more}: {name}: {delays:?}");
            }
            let rates: Vec<f64> = column(&history, "rate_bits_per_s").collect();
            assert!(rates.iter().all(|rate| *rate == 1e6), "{rates:?}");
            let flow = &flows["flows"][0];
            assert_eq!(flow["flow"], "icmp 10.77.0.1 > 10.77.0.2", "{flows}");
            assert_eq!(
                (count(&flow["packets"]), count(&flow["bytes"])),
                (40, 40_560),
                "{flows}"
            );
        }
    }
}

#[test]
fn losses_have_their_reason() {
    for user in User::with(["curl", "ping"]) {
        let (history, flows) = recorded(&user, "--loss 100%", "/drops_per_s/loss");
        assert_eq!(flows["packets"], 0, "{flows}");
        assert_eq!(column(&history, "delay_p50_us").count(), 0, "{history}");
    }
}

#[test]
fn the_rate_in_force_of_a_schedule_is_that_of_the_frames_served() {
    for user in User::with(["curl", "ping"]) {
        let options = "--rate steps:at=0s/1mbit;1h/2mbit";
        let (history, _) = recorded(&user, options, "/packets_out_per_s");
        let rates: Vec<f64> = column(&history, "rate_bits_per_s").collect();
        assert!(rates.len() >= 5, "{history}");
        let in_force = |rate: &f64| (rate / 1e6 - 1.0).abs() < 0.001;
        assert!(rates.iter().all(in_force), "{rates:?}");
    }
}

/// The scenario changes the rate at 1.234 s, in the middle of a history period.
#[test]
fn the_rate_in_force_is_that_of_the_sample() {
    for user in User::with(["curl"]) {
        let scenario = "[[at]]\ntime = \"1234ms\"\nset = { link = { rate = \"3mbit\" } }\n";
        user.write("s.toml", scenario);
        let viewed = Viewed::start(&user, "--rate 1mbit --scenario s.toml", "true");
        let history = viewed.history(|history| column(history, "elapsed_s").any(|at| at > 1.5));
        viewed.end();
        let samples = column(&history, "elapsed_s").zip(column(&history, "rate_bits_per_s"));
        let samples: Vec<(f64, f64)> = samples.collect();
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
        // Select the run, because root may have other runs with a view.
        let named = if user.is_root() {
            "--control $LONGWIRE_CONTROL"
        } else {
            ""
        };
        let line = format!(
            "env -u LONGWIRE_CONTROL $LONGWIRE ctl status {named}; ls -l $LONGWIRE_CONTROL"
        );
        // The variable is unset after `su` and in a container, where there is no login directory
        // either.
        let own = "export XDG_RUNTIME_DIR=$PWD/run";
        for variable in [own, "unset XDG_RUNTIME_DIR"] {
            let line = format!(
                "mkdir -p run && {variable} && $LONGWIRE exec -q --view -- sh -c '{line}'; \
                 {variable}; rmdir /tmp/longwire-$(id -u) 2>/dev/null"
            );
            let ended = user.shell(&line).prints(": longwire ");
            let run = user.dir.path().join("run/longwire").display().to_string();
            let place = match variable {
                _ if user.is_root() => "/run/longwire/view-",
                _ if variable == own => &format!("{run}/view-"),
                _ => "/longwire",
            };
            let ended = ended.prints(place);
            let socket = ended.stdout.lines().find(|line| line.starts_with('s'));
            let socket = socket.and_then(|line| line.split(' ').next_back());
            let socket = std::path::Path::new(socket.expect("its socket"));
            assert!(!socket.exists(), "{ended:?}");
        }
    }
}

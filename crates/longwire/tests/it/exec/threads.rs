//! Models that start threads before the link runs: plugins and traces. A process that enters a user
//! namespace, as for an ordinary user, must be single-threaded.

use nix::sys::signal::Signal;

use crate::common::plugin::compile_threaded;
use crate::common::program::{RunningProgram, eventually};
use crate::exec::User;

/// Pings once through a link with this option, in every mode of `exec`.
fn works_in_every_form(user: &User, key: &str, value: &str) {
    let ports = "[ports]\nnear = \"null\"\nfar = \"null\"\n";
    user.write(
        "n.toml",
        format!("{ports}[[link]]\nname = \"x\"\n{key} = \"{value}\"\n"),
    );
    user.write(
        "s.toml",
        "[[at]]\ntime = \"1h\"\nset = { link = { delay = \"1ms\" } }\n",
    );
    let plain = format!("--{key} {value}");
    let controlled = format!("--control t.sock {plain}");
    let changed = format!("--scenario s.toml {plain}");
    for form in [&*plain, &controlled, &changed, "n.toml"] {
        user.exec(format!("{form} -- ping -c 1 far")).well();
    }
}

#[test]
fn plugins_work_for_every_user() {
    for user in User::with(["ping"]) {
        compile_threaded(&user.dir);
        works_in_every_form(&user, "loss", "plugin:file=threaded.so");
    }
}

#[test]
fn traces_work_for_every_user() {
    for user in User::with(["ping"]) {
        user.write("d.csv", "time_s,delay_ms\n0,5\n1,6\n");
        user.write("v.csv", "5\n6\n");
        works_in_every_form(&user, "delay", "trace:d.csv");
        works_in_every_form(&user, "delay", "samples:v.csv");
    }
}

#[test]
fn invalid_options_are_reported_before_missing_rights() {
    for user in User::all().iter().filter(|user| !user.is_root()) {
        user.exec("--uplink --delay 20parsec -- true")
            .exits(2)
            .says("parsec");
        user.exec("--uplink --delay 20ms -- true")
            .exits(1)
            .says("only root");
    }
}

#[test]
fn signals_end_a_process_whose_plugin_is_slow_to_begin() {
    for user in User::all() {
        compile_threaded(&user.dir);
        let slow = "--loss plugin:file=threaded.so,sleep=600 -- true";
        let running = RunningProgram::spawn(&mut user.exec_piped(slow));
        // Wait until the plugin is in its creation function.
        let waiting = format!("/proc/{}/wchan", running.id());
        eventually("it sleeps", || {
            std::fs::read_to_string(&waiting).is_ok_and(|place| place.contains("nanosleep"))
        });
        assert_eq!(running.end_by(Signal::SIGTERM).signal, Some(libc::SIGTERM));
    }
}

#[test]
fn signals_reach_the_command_in_spite_of_a_plugins_threads() {
    for user in User::all() {
        compile_threaded(&user.dir);
        let line =
            "trap \"echo mine; exit 5\" TERM; kill -TERM $PPID; while :; do sleep 0.05; done";
        let ended = user.exec(format!("--loss plugin:file=threaded.so -- sh -c '{line}'"));
        assert_eq!((ended.code, &*ended.stdout), (5, "mine\n"), "{ended:?}");
    }
}

//! Models that start threads before the link runs: plugins and traces. An ordinary
//! user's process must be single-threaded to enter its user namespace.

use std::time::{Duration, Instant};

use longwire_testbed::support::compile_plugin;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::process::TIMEOUT;
use crate::common::{ran, write};
use crate::exec::{User, well};

/// A plugin whose library starts a thread on load.
const THREADED: &str = r#"
#include <pthread.h>
#include <unistd.h>
#include "longwire_plugin.h"

static void *rest(void *unused) { for (;;) pause(); return unused; }

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, rest, 0);
}

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **state)
{
    uint64_t seconds = 0;
    (void)hints;
    if (host->count(parameters, "sleep", &seconds))
        return LONGWIRE_ERROR;
    sleep((unsigned)seconds);
    *state = 0;
    return LONGWIRE_OK;
}

static int lose(void *state, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    (void)state; (void)random; (void)packets;
    for (size_t i = 0; i < count; i++)
        fates[i] = LONGWIRE_DELIVER;
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "threaded",
    .create = create,
    .lose = lose,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void) { return &plugin; }
"#;

fn compile(user: &User) {
    write(&user.dir.file("threaded.c"), THREADED.as_bytes());
    compile_plugin(user.dir.file("threaded.c"), &user.dir.file("threaded.so"));
}

/// Runs `true` through a link with these options, in every mode of `exec`.
fn works_in_every_form(user: &User, options: &[(&str, &str)]) {
    let mut plain = Vec::new();
    let mut file =
        "[ports]\nnear = \"null\"\nfar = \"null\"\n\n[[link]]\nname = \"x\"\n".to_owned();
    for (key, value) in options {
        plain.extend([format!("--{key}"), (*value).to_owned()]);
        file.push_str(&format!("{key} = \"{value}\"\n"));
    }
    write(&user.dir.file("n.toml"), file.as_bytes());
    write(
        &user.dir.file("s.toml"),
        b"[[at]]\ntime = \"1h\"\nset = { link = { delay = \"1ms\" } }\n",
    );
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let command = ["--", "ping", "-c", "1", "far"];
    well(user.exec(&[&plain[..], &command[..]].concat()));
    for form in [["--control", "t.sock"], ["--scenario", "s.toml"]] {
        well(user.exec(&[&form[..], &plain[..], &command[..]].concat()));
    }
    well(user.exec(&[&["n.toml"][..], &command[..]].concat()));
}

#[test]
fn plugins_work_for_every_user() {
    for user in User::all() {
        compile(&user);
        works_in_every_form(&user, &[("loss", "plugin:file=threaded.so")]);
    }
}

#[test]
fn traces_work_for_every_user() {
    for user in User::all() {
        write(&user.dir.file("d.csv"), b"time_s,delay_ms\n0,5\n1,6\n");
        write(&user.dir.file("v.csv"), b"5\n6\n");
        works_in_every_form(&user, &[("delay", "trace:d.csv")]);
        works_in_every_form(&user, &[("delay", "samples:v.csv")]);
    }
}

#[test]
fn invalid_options_are_reported_before_missing_rights() {
    for user in User::all().iter().filter(|user| !user.is_root()) {
        let ended = user.exec(&["--uplink", "--delay", "20parsec", "--", "true"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("parsec"), "{ended:?}");
        let ended = user.exec(&["--uplink", "--delay", "20ms", "--", "true"]);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stderr.contains("only root"), "{ended:?}");
    }
}

#[test]
fn signals_end_a_process_whose_plugin_is_slow_to_begin() {
    use std::os::unix::process::ExitStatusExt;
    for user in User::all() {
        compile(&user);
        let slow = ["--loss", "plugin:file=threaded.so,sleep=600", "--", "true"];
        let mut child = user.exec_command(&slow).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(700));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it runs");
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > TIMEOUT {
                let _ = child.kill();
                panic!("it goes on");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.signal(), Some(libc::SIGTERM), "{status:?}");
    }
}

#[test]
fn signals_reach_the_command_in_spite_of_a_plugins_threads() {
    for user in User::all() {
        compile(&user);
        let line = "trap 'echo mine; exit 5' TERM; kill -TERM $PPID; \
                    while :; do sleep 0.05; done";
        let mut command = user.exec_command(&["--loss", "plugin:file=threaded.so", "--"]);
        let ended = ran(command
            .args(["sh", "-c", line])
            .output()
            .expect("it starts"));
        assert_eq!((ended.code, &*ended.stdout), (5, "mine\n"), "{ended:?}");
    }
}

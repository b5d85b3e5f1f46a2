//! `/run/longwire`: who creates it, and that no command removes it.
//!
//! Each test has a separate `/run` in a mount namespace.

use super::unshared_by_root;
use crate::common::Ran;

/// Runs a script as root in a mount namespace with an empty `/run`; `$1` is the
/// program.
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
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "700\n700\n"),
        "{ran:?}"
    );
}

#[test]
fn a_control_socket_in_it_creates_it() {
    let script = "ip link add name x0 type veth peer name x1; ip link set dev x0 up; ip link set dev x1 up; \
                  cd /; \"$1\" run x0 x1 --time 100ms --control /run/longwire/net.sock >&2; \
                  stat -c '%a %u' /run/longwire; ls /run/longwire";
    let Some(ran) = with_empty_run(script) else {
        return;
    };
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "755 0\n"), "{ran:?}");
}

#[test]
fn another_missing_directory_is_named_with_the_command_that_makes_it() {
    let script = "\"$1\" run null null --time 100ms --control /run/other/net.sock";
    let Some(ran) = with_empty_run(script) else {
        return;
    };
    assert_eq!(ran.code, 2, "{ran:?}");
    let advice = "mkdir -p /run/other";
    assert!(ran.stderr.contains(advice), "{ran:?}");
}

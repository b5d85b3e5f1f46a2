//! Host names on a system without `/etc/hosts`, such as a minimal installation.

use super::unshared_by_root;

#[test]
fn names_resolve_without_a_file_of_hosts_and_none_is_left() {
    // -n: root in a user namespace cannot write /run/mount.
    let script = "set -e; mount -t tmpfs none /mnt; \
                  cp /etc/nsswitch.conf /etc/passwd /etc/group /etc/ld.so.cache /mnt; \
                  mount -n --move /mnt /etc; test ! -e /etc/hosts; \
                  \"$1\" exec --delay 1ms -- getent hosts far near; \
                  test ! -e /etc/hosts && ls /etc | wc -l";
    let Some(ran) = unshared_by_root(&["--mount", "--net"], script, &[]) else {
        return;
    };
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    let words: Vec<String> = ran.stdout.lines().filter_map(last).collect();
    assert_eq!(
        (ran.code, words.join(" ").as_str()),
        (0, "far near 4"),
        "{ran:?}"
    );
}

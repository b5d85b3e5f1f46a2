//! Malformed files, and reused PIDs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;

use longwire_attach::Target;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

use crate::common::{TASKS, Tree, container, id};

/// Returns a tree with the running container `web`.
fn tree() -> Option<Tree> {
    let mut tree = Tree::new()?;
    tree.process(10, 1_000, "0::/default/web");
    tree.task("default", "web", 10, &json!({ "nerdctl/name": "shop" }));
    tree.expect("shop", 10);
    Some(tree)
}

fn configuration(tree: &Tree) -> std::path::PathBuf {
    tree.path(&format!("{TASKS}/default/web/config.json"))
}

#[test]
fn a_configuration_that_cannot_be_read_hides_the_name_only() {
    let Some(tree) = tree() else { return };
    let file = configuration(&tree);
    let secret = json!({ "annotations": { "nerdctl/name": "shop" } }).to_string();
    tree.file("elsewhere.json", secret.clone());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let writes: [(&str, &dyn Fn()); 7] = [
        ("100 MB", &|| {
            let large = File::create(&file).expect("a file");
            large.set_len(100 << 20).expect("a sparse file");
        }),
        ("no UTF-8", &|| {
            fs::write(&file, b"{\"annotations\":{\"\xff\":\"\xfe\"}}").expect("a file")
        }),
        ("deep", &|| fs::write(&file, &deep).expect("a file")),
        ("other types", &|| {
            fs::write(&file, r#"{"annotations":[1]}"#).expect("a file")
        }),
        ("link", &|| {
            std::os::unix::fs::symlink(tree.path("elsewhere.json"), &file).expect("a link");
        }),
        ("FIFO", &|| mkfifo(&file, Mode::S_IRWXU).expect("a FIFO")),
        ("directory", &|| fs::create_dir(&file).expect("a directory")),
    ];
    for (what, write) in writes {
        eprintln!("{what}");
        fs::remove_file(&file).expect("it exists");
        write();
        tree.expect("web", 10);
        tree.refuse(&container("shop"), "no container shop");
    }
}

#[test]
fn a_pid_file_that_cannot_be_read_is_a_stopped_container() {
    let Some(tree) = tree() else { return };
    let file = tree.path(&format!("{TASKS}/default/web/init.pid"));
    tree.file("elsewhere", "10");
    let long = "1".repeat(1_000_000);
    for content in ["", "-1", "0", "4294967296", "ten", "99", &long] {
        fs::write(&file, content).expect("a file");
        tree.refuse(&container("shop"), "is not running");
    }
    fs::remove_file(&file).expect("it exists");
    std::os::unix::fs::symlink(tree.path("elsewhere"), &file).expect("a link");
    tree.refuse(&container("shop"), "is not running");
}

#[test]
fn a_process_shows_the_container_of_a_wrong_pid_file() {
    let Some(mut tree) = tree() else { return };
    let id = id("3fa9");
    tree.process(30, 1, &format!("0::/default/{id}"));
    // The recorded PID has no process, has an unrelated process, or is missing.
    for pid in [99, 10, 0] {
        tree.task("default", &id, pid, &json!({ "nerdctl/name": "db" }));
        tree.expect("db", 30);
    }
}

#[test]
fn a_foreign_pid_is_not_taken_for_the_container() {
    let Some(mut tree) = tree() else { return };
    for (pid, cgroup) in [
        (1, "0::/init.scope"),
        (20, "0::/default/web2"),
        (21, "0::/other-web/x"),
        (22, "0::/"),
    ] {
        if pid != 1 {
            tree.process(pid, 1, cgroup);
        }
        tree.task("default", "web", pid, &json!({}));
        let reason = format!("PID {pid} (app) is not in a cgroup of the container");
        tree.refuse(&container("web"), &reason);
    }
}

#[test]
fn a_reused_pid_is_not_taken_for_the_container() {
    let Some(mut tree) = tree() else { return };
    let record = |started: u64| {
        let state = json!({ "id": "web", "init_process_pid": 10, "init_process_start": started });
        tree.json("run/containerd/runc/default/web/state.json", &state);
    };
    record(1_000);
    tree.expect("web", 10);
    // PID 10 is now a later process in the same container, for example one started by `exec`.
    record(999);
    tree.refuse(&container("web"), "PID 10 was reused");
    // A record of another PID is ignored. crun uses other field names.
    let other = json!({ "init_process_pid": 11, "init_process_start": 999 });
    tree.json("run/containerd/runc/default/web/state.json", &other);
    tree.expect("web", 10);
    let crun = json!({ "pid": 10, "process-start-time": 998, "bundle": "/x" });
    tree.json("run/crun/web/status", &crun);
    assert!(tree.resolve(&container("web")).is_err());
    // Process 12 is a zombie.
    fs::remove_file(tree.path("run/crun/web/status")).expect("it exists");
    tree.process(12, 1_000, "0::/default/web");
    let stat = fs::read_to_string(tree.path("proc/12/stat")).expect("a file");
    tree.file("proc/12/stat", stat.replace(" S ", " Z "));
    tree.task("default", "web", 12, &json!({}));
    tree.refuse(&container("web"), "is not running");
}

#[test]
fn directories_that_are_no_containers_are_skipped() {
    let Some(tree) = tree() else { return };
    let tasks = tree.path(TASKS);
    for name in [&b"\xff\xfe"[..], b"..x", b"a b", b"-x"] {
        fs::create_dir(tasks.join(OsStr::from_bytes(name))).expect("a directory");
        fs::create_dir(tasks.join("default").join(OsStr::from_bytes(name))).expect("a directory");
    }
    // A symbolic link to a directory that looks like a task.
    tree.link(&format!("{TASKS}/default/copy"), tasks.join("default/web"));
    tree.file(&format!("{TASKS}/default/file"), "");
    tree.file(
        "run/containers/storage/overlay-containers/containers.json",
        "[{\"id\":1}]",
    );
    tree.file("var/lib/docker/containers/x/config.v2.json", "{}");
    assert_eq!(tree.machine().containers().len(), 1);
}

#[test]
fn files_that_are_no_namespaces_are_refused() {
    let Some(tree) = tree() else { return };
    tree.file("run/netns/file", "");
    mkfifo(&tree.path("run/netns/fifo"), Mode::S_IRWXU).expect("a FIFO");
    tree.link("run/netns/mount", "/proc/self/ns/mnt");
    tree.link("run/netns/zero", "/dev/zero");
    tree.link("run/netns/loop", "loop");
    for (name, reason) in [
        ("file", "not a network namespace"),
        ("fifo", "not a network namespace"),
        ("zero", "not a network namespace"),
        ("mount", "a namespace, but not"),
        ("loop", "symbolic links"),
    ] {
        tree.refuse(&Target::Netns(name.into()), reason);
    }
    for name in ["", ".", "..", "/", "/etc/passwd", "/nowhere/x"] {
        assert!(tree.resolve(&Target::Netns(name.into())).is_err(), "{name}");
    }
}

//! Targets given as processes on this machine.

use std::os::fd::AsFd;
use std::process::Command;

use longwire_attach::{Target, TargetError};
use longwire_io::net::NetNamespace;
use longwire_testbed::support;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

#[test]
fn a_process_is_found_and_its_end_is_reported() {
    let Some(namespace) = support::namespace() else {
        return;
    };
    let child = namespace.run(|| Command::new("sleep").arg("1000").spawn());
    let mut child = child.expect("a thread").expect("sleep");
    let target = Target::Pid(child.id());
    let found = target.resolve().expect("it runs");
    assert_eq!(found.inode(), namespace.inode());
    assert!(!found.is_host);
    assert!(found.description.contains("(sleep)"));
    let process = found.process().expect("a descriptor");
    let mut fds = [PollFd::new(process, PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::ZERO), Ok(0));
    child.kill().expect("it runs");
    assert_eq!(poll(&mut fds, PollTimeout::from(20_000u16)), Ok(1));
    // Check before and after the parent reaps the process.
    for _ in 0..2 {
        let error = target.resolve().expect_err("it has ended");
        assert!(matches!(error, TargetError::NoProcess { .. }), "{error}");
        child.wait().expect("it ended");
    }
    // The namespace remains usable.
    let names = found.namespace.run(longwire_io::net::link_names);
    assert_eq!(names.expect("a thread").expect("devices"), ["lo"]);
}

#[test]
fn the_own_process_has_the_own_namespace() {
    let found = Target::Pid(std::process::id()).resolve().expect("it runs");
    let own = NetNamespace::current().expect("the test's namespace");
    assert_eq!(found.inode(), own.inode());
    assert_eq!(found.namespace.owner().ok(), own.owner().ok());
    // The descriptor refers to a network namespace, not to another kind.
    let file = found.namespace.as_fd().try_clone_to_owned();
    NetNamespace::from_file(file.expect("a descriptor")).expect("a network namespace");
}

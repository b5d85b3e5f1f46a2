//! Namespaces and their devices. Without permission to create namespaces, tests that
//! need them print a message and pass without running, except in CI.

use std::process::Command;

use longwire_io::net::NetNamespace;
use longwire_testbed::support::{device, namespace, wire};

use super::{Ran, ran};

/// Returns a namespace with these veth pairs, both ends up.
pub fn wired(pairs: &[(&str, &str)]) -> Option<NetNamespace> {
    let namespace = namespace()?;
    for (a, b) in pairs {
        let made = namespace.run(|| wire(device(a, None), device(b, None)));
        made.expect("the namespace is entered").expect("a pair");
    }
    Some(namespace)
}

/// Runs `longwire` in a namespace.
pub fn inside(namespace: &NetNamespace, arguments: &[&str]) -> Ran {
    let output = namespace.run(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(arguments).output()
    });
    ran(output
        .expect("the namespace is entered")
        .expect("it starts"))
}

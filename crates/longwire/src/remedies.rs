//! Remedies for system errors, shared by `longwire doctor` and error messages.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use longwire_io::net::NetError;
use longwire_io::{PortError, run_directory};
use longwire_runtime::StartError;
use longwire_testbed::EnvironmentError;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::Error;

/// Remedy if privileges to open interface ports are missing.
pub const PORT_RIGHTS: &str = "use sudo, or grant capabilities: sudo setcap \
                               cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock,cap_sys_nice+ep \
                               $(command -v longwire)";

/// Remedy for a missing /dev/net/tun.
pub const TUN_MISSING: &str = "sudo modprobe tun; for a container, --device /dev/net/tun";

/// Remedy for a /dev/net/tun that cannot be opened.
pub const TUN_DENIED: &str = "allow reading and writing /dev/net/tun, or use sudo";

/// Remedy for insufficient address space.
pub const ADDRESS_SPACE: &str = "ulimit -v unlimited";

/// Returns this process's address-space limit in bytes; `None` if unlimited.
pub fn address_space_limit() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}

/// Returns a remedy that the error's message lacks, if any.
pub fn of(error: &Error) -> Option<String> {
    match error {
        Error::Port(error) => of_port(error),
        Error::Start(StartError::Memory(_) | StartError::Thread(_)) => of_memory(),
        Error::Exec(error) => match &**error {
            EnvironmentError::Net(NetError::System { what, source, .. }) => of_tun(what, source),
            _ => None,
        },
        Error::Serve(error) => error.denied_socket().map(of_socket),
        _ => None,
    }
}

/// Returns the remedy for a socket in a directory that this user cannot write to.
fn of_socket(path: &Path) -> String {
    let name = path.file_name().unwrap_or(OsStr::new("link.sock"));
    let name = name.to_string_lossy();
    let own = match std::env::var_os(run_directory::VARIABLE) {
        Some(directory) if !directory.is_empty() => {
            format!(", or --control $XDG_RUNTIME_DIR/longwire/{name}")
        }
        _ => String::new(),
    };
    format!("use a socket in a writable directory: --control ./{name}{own}")
}

fn of_port(error: &PortError) -> Option<String> {
    match error {
        PortError::Denied { port, source, .. } => {
            let tun = port.starts_with("tap:") && source.raw_os_error() == Some(libc::EACCES);
            let remedy = if tun { TUN_DENIED } else { PORT_RIGHTS };
            Some(format!(
                "{remedy}. `longwire exec` needs no privileges; `longwire doctor` lists \
                 those of this user"
            ))
        }
        PortError::Failed { source, .. } if source.raw_os_error() == Some(libc::ENOMEM) => {
            of_memory()
        }
        _ => None,
    }
}

fn of_memory() -> Option<String> {
    let limit = address_space_limit()?;
    Some(format!(
        "`ulimit -v` limits the address space to {} MiB, and queued frames reserve much more than \
         they use; run {ADDRESS_SPACE}, or reduce --memory",
        limit >> 20
    ))
}

fn of_tun(what: &str, error: &io::Error) -> Option<String> {
    if what != "/dev/net/tun" {
        return None;
    }
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => TUN_MISSING,
        _ => TUN_DENIED,
    };
    Some(format!("{remedy}. --port packet needs no /dev/net/tun"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_port_has_the_remedy_of_doctor() {
        let error = Error::Port(PortError::Denied {
            port: "packet:a".to_owned(),
            action: "opening a packet socket",
            source: io::Error::from_raw_os_error(libc::EPERM),
        });
        let remedy = of(&error).expect("there is one");
        assert!(remedy.starts_with(PORT_RIGHTS), "{remedy}");
    }

    #[test]
    fn a_missing_control_file_of_tap_devices_has_one() {
        let error = Error::from(EnvironmentError::Net(NetError::System {
            action: "open",
            what: "/dev/net/tun".to_owned(),
            source: io::ErrorKind::NotFound.into(),
        }));
        let remedy = of(&error).expect("there is one");
        assert!(remedy.contains("modprobe tun"), "{remedy}");
    }
}

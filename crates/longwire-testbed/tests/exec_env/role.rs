//! The roles of this program when a test restarts it: a small `longwire exec` with a wire instead
//! of a link, or a listener.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use longwire_io::net::link::link_index;
use longwire_testbed::{
    Device, Environment, EnvironmentConfig, EnvironmentError, Event, PeerOutput, PortPlace, Side,
    exit_code_of,
};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socket};

use crate::{ORDINARY, User};

pub const VARIABLE: &str = "LONGWIRE_TEST_ROLE";
pub const PEER: &str = "LONGWIRE_TEST_PEER";
pub const UPLINK: &str = "LONGWIRE_TEST_UPLINK";
pub const TAP: &str = "LONGWIRE_TEST_TAP";

pub fn play(role: &OsStr) -> ExitCode {
    match role.to_str() {
        Some("listen") => listen(),
        _ => ExitCode::from(run().unwrap_or_else(|error| {
            eprintln!("{error}");
            error.exit_code()
        })),
    }
}

/// Listens after a delay, then creates the file named by the first argument.
fn listen() -> ExitCode {
    thread::sleep(Duration::from_millis(300));
    let _listener = TcpListener::bind(("0.0.0.0", 7)).expect("a free port");
    std::fs::write(std::env::args().nth(1).expect("a file"), "listening").expect("writable");
    thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}

/// A small `longwire exec`.
fn run() -> Result<u8, EnvironmentError> {
    let device = match std::env::var_os(TAP) {
        Some(_) => Device::Tap,
        None => Device::Veth,
    };
    let config = EnvironmentConfig {
        device,
        uplink: std::env::var_os(UPLINK).is_some(),
        ..EnvironmentConfig::default()
    };
    let mut environment = Environment::new(&config)?;
    for note in environment.notes() {
        eprintln!("note: {note}");
    }
    if device == Device::Veth {
        wire(&environment).map_err(|source| EnvironmentError::System {
            action: "wire the ports",
            source,
        })?;
    }
    if let Some(peer) = std::env::var_os(PEER) {
        let ready =
            environment.spawn_far(&peer, PeerOutput::Prefixed, Duration::from_millis(1500))?;
        eprintln!("peer ready: {ready}");
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    environment.spawn_near(&words)?;
    loop {
        match environment.children().next(Duration::from_secs(3600)) {
            Some(Event::CommandEnded(status)) => {
                environment.close();
                return Ok(exit_code_of(status));
            }
            event => eprintln!("event: {event:?}"),
        }
    }
}

/// Joins the two ports with a copying thread per direction.
fn wire(environment: &Environment) -> io::Result<()> {
    let near = open(environment.networks().port(Side::Near))?;
    let far = open(environment.networks().port(Side::Far))?;
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        thread::spawn(move || {
            let mut frame = vec![0; 1 << 16];
            while let Ok(length) = recv(from.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                let _ = send(to.as_raw_fd(), &frame[..length], MsgFlags::empty());
            }
        });
    }
    Ok(())
}

fn open(place: PortPlace<'_>) -> io::Result<OwnedFd> {
    let opened = place.namespace.run(|| -> io::Result<OwnedFd> {
        let index = link_index(place.device).map_err(io::Error::other)?;
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        // SAFETY: `sockaddr_ll` is plain data, for which zeros are a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        let ignore_outgoing: libc::c_int = 1;
        // SAFETY: both pointers and lengths describe values that outlive the calls.
        let bound = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const ignore_outgoing).cast(),
                size_of_val(&ignore_outgoing) as u32,
            );
            let length = size_of_val(&address) as u32;
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    });
    opened.map_err(io::Error::other)?
}

/// Returns a copy of this program that all users may read.
pub fn program() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let own = std::env::current_exe().expect("its own path");
        let copy = scratch().join("longwire-exec-env");
        std::fs::copy(own, &copy).expect("a copy");
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755))
            .expect("executable");
        copy
    })
}

/// Returns a directory that all users may write to: the system's temporary directory.
pub fn scratch() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("longwire-test-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o1777)).expect("its mode");
        path
    })
}

/// Runs the small `longwire exec` with a command.
pub fn exec(user: User, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .env(VARIABLE, "exec")
        .current_dir("/usr");
    if user == User::Ordinary && nix::unistd::geteuid().is_root() {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    command
}

/// Like [`exec`], with a shell line.
pub fn shell(user: User, line: &str) -> Command {
    exec(user, &["sh", "-c", line])
}

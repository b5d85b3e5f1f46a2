//! The file system that commands see: the host's, with the environment's names in `/etc/hosts` and
//! its network devices under `/sys`.
//!
//! Each side has a separate mount namespace, held by a descriptor. The host's file system is never
//! written to: replaced files are in a tmpfs visible only in this namespace.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use longwire_io::net::NetNamespace;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{chroot, fchdir};

use crate::hosts;
use crate::plan::Names;

/// Candidate mount points for the scratch tmpfs; the first existing one is used.
const SCRATCH: [&str; 4] = ["/tmp", "/run", "/var/tmp", "/mnt"];
/// The file with host names.
const HOSTS: &str = "/etc/hosts";
/// Directories of daemons that resolve the host's names; hidden, so that programs read the files
/// instead.
const NAME_DAEMONS: [&str; 1] = ["/var/run/nscd"];

/// A mount namespace with the caller's root and working directory.
#[derive(Debug)]
pub struct Mounts {
    namespace: OwnedFd,
    root: OwnedFd,
    directory: OwnedFd,
}

impl Mounts {
    /// Creates the mount namespace for one side's commands. Appends failed optional steps to
    /// `notes`.
    ///
    /// # Errors
    ///
    /// If no mount namespace can be created.
    pub fn new(
        network: &NetNamespace,
        names: &Names<'_>,
        with_resolver: bool,
        notes: &mut Vec<String>,
    ) -> io::Result<Mounts> {
        let made = network.run(|| -> io::Result<(Mounts, Vec<String>)> {
            unshare(CloneFlags::CLONE_NEWNS)?;
            // Keep these mounts private even if the host's are shared, but propagate the host's
            // unmounts, so that its file systems do not stay busy.
            let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
            mount(None::<&str>, "/", None::<&str>, slave, None::<&str>)?;
            let notes = furnish(names, with_resolver);
            let mounts = Mounts {
                namespace: File::open("/proc/thread-self/ns/mnt")?.into(),
                root: open_directory("/")?,
                directory: open_directory(".")?,
            };
            Ok((mounts, notes))
        });
        let (mounts, more) = made.map_err(io::Error::other)??;
        notes.extend(more);
        Ok(mounts)
    }

    /// Returns another handle to the namespace.
    pub fn try_clone(&self) -> io::Result<Mounts> {
        Ok(Mounts {
            namespace: self.namespace.try_clone()?,
            root: self.root.try_clone()?,
            directory: self.directory.try_clone()?,
        })
    }

    /// Moves the calling process into the namespace. Async-signal-safe: only makes system calls.
    pub fn enter(&self) -> nix::Result<()> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNS)?;
        // Entering changes the working directory to the namespace's root; return to the previous
        // one.
        fchdir(self.root.as_fd())?;
        chroot(c".")?;
        fchdir(self.directory.as_fd())
    }
}

fn open_directory(path: &str) -> io::Result<OwnedFd> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    options.custom_flags((OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).bits());
    options.open(path).map(OwnedFd::from)
}

/// Mounts the files and devices, each of which is optional. Returns the failures.
fn furnish(names: &Names<'_>, with_resolver: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(scratch) = SCRATCH.iter().map(Path::new).find(|path| path.is_dir()) else {
        notes.push("no directory to mount on: near and far do not resolve by name".into());
        return notes;
    };
    // Read the files now, because the scratch mount may hide them.
    let mut files = vec![(HOSTS, hosts::hosts(&read(HOSTS), &names.entries()))];
    files
        .extend(hosts::files_first(&read("/etc/nsswitch.conf")).map(|t| ("/etc/nsswitch.conf", t)));
    if with_resolver {
        resolver(&mut files, &mut notes);
    }
    // A minimal system has no such file, and bind mounts need an existing one.
    if !Path::new(HOSTS).exists()
        && let Err(error) = add_hosts(scratch)
    {
        notes.push(format!(
            "near and far do not resolve by name ({error}): create an empty {HOSTS}"
        ));
        files.remove(0);
    }
    for (path, text) in &files {
        if let Err(error) = replace(scratch, Path::new(path), text) {
            notes.push(format!("cannot mount a replacement for {path}: {error}"));
        }
    }
    for directory in NAME_DAEMONS {
        if Path::new(directory).is_dir() {
            let _ = mount_scratch(Path::new(directory));
        }
    }
    if let Err(error) = own_devices(scratch) {
        notes.push(format!(
            "/sys shows the host's network devices, not those behind the link: {error}"
        ));
    }
    notes
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Adds a `resolv.conf` with a reachable resolver if necessary, because outside names must resolve
/// with an uplink. A resolver on the host's loopback device cannot be reached from this namespace,
/// but its upstream server may be reachable.
fn resolver(files: &mut Vec<(&'static str, String)>, notes: &mut Vec<String>) {
    if hosts::resolver_is_reachable(&read("/etc/resolv.conf")) {
        return;
    }
    let behind = read("/run/systemd/resolve/resolv.conf");
    if hosts::resolver_is_reachable(&behind) {
        files.push(("/etc/resolv.conf", behind));
    } else {
        notes.push(
            "outside names do not resolve behind the link: the host's resolver (/etc/resolv.conf) \
             listens only on the host's loopback device"
                .into(),
        );
    }
}

fn mount_scratch(path: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("longwire"),
        path,
        Some("tmpfs"),
        flags,
        Some("mode=755,size=1m"),
    )
}

/// Makes `path` show `text`: writes the text to a tmpfs temporarily mounted over `scratch`, and
/// bind-mounts the file. The bind mount keeps the tmpfs alive after the scratch mount is removed.
fn replace(scratch: &Path, path: &Path, text: &str) -> io::Result<()> {
    if !path.exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    // Resolve symbolic links, so that the scratch mount changes nothing.
    let path = path.canonicalize()?;
    let target = open_target(&path)?;
    mount_scratch(scratch)?;
    let file = scratch.join("file");
    let bound = fs::write(&file, text).and_then(|()| {
        let target = format!(
            "/proc/thread-self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&target)
        );
        let none = None::<&str>;
        mount(Some(&file), target.as_str(), none, MsFlags::MS_BIND, none)?;
        Ok(())
    });
    umount2(scratch, MntFlags::MNT_DETACH)?;
    bound
}

/// Adds an empty `/etc/hosts` as an overlay whose upper layer is in a tmpfs. Changes that commands
/// make in `/etc` are lost at the end.
fn add_hosts(scratch: &Path) -> io::Result<()> {
    mount_scratch(scratch)?;
    let add = || -> io::Result<()> {
        let (upper, work) = (scratch.join("upper"), scratch.join("work"));
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        fs::write(upper.join("hosts"), "")?;
        let options = format!(
            "lowerdir=/etc,upperdir={},workdir={}",
            upper.display(),
            work.display()
        );
        let options = Some(options.as_str());
        mount(
            Some("longwire"),
            "/etc",
            Some("overlay"),
            MsFlags::empty(),
            options,
        )?;
        Ok(())
    };
    let added = add();
    umount2(scratch, MntFlags::MNT_DETACH)?;
    added
}

fn open_target(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    options.custom_flags((OFlag::O_PATH | OFlag::O_CLOEXEC).bits());
    options.open(path)
}

/// Mounts a new sysfs, which shows the current network namespace, and bind-mounts its two device
/// directories. The rest of `/sys` (control groups, processors) is unchanged.
fn own_devices(scratch: &Path) -> nix::Result<()> {
    let none = None::<&str>;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // If the host's mount is read-only, the kernel only allows a read-only one.
    mount(Some("sysfs"), scratch, Some("sysfs"), plain, none).or_else(|_| {
        let read_only = plain | MsFlags::MS_RDONLY;
        mount(Some("sysfs"), scratch, Some("sysfs"), read_only, none)
    })?;
    let bound = ["class/net", "devices/virtual/net"]
        .iter()
        .try_for_each(|part| {
            let ours = scratch.join(part);
            let theirs = Path::new("/sys").join(part);
            mount(Some(&ours), &theirs, none, MsFlags::MS_BIND, none)
        });
    umount2(scratch, MntFlags::MNT_DETACH)?;
    bound
}

//! Capabilities of the calling thread.
//!
//! Opening ports needs rights that a run does not. On Linux, capabilities belong to threads, and a
//! new thread inherits those of its creator. Programs executed by root regain all of them
//! (capabilities(7), "Capabilities and execution of programs by root").

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

/// A capability, numbered as in linux/capability.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// `CAP_DAC_OVERRIDE`: access other users' files.
    DacOverride = 1,
    /// `CAP_DAC_READ_SEARCH`: read other users' files.
    DacReadSearch = 2,
    /// `CAP_KILL`: signal other users' processes.
    Kill = 5,
    /// `CAP_NET_ADMIN`: change interface settings.
    NetAdmin = 12,
    /// `CAP_NET_RAW`: open packet sockets.
    NetRaw = 13,
    /// `CAP_IPC_LOCK`: lock memory beyond the limit.
    IpcLock = 14,
    /// `CAP_SYS_ADMIN`: enter and create namespaces.
    SysAdmin = 21,
    /// `CAP_SYS_NICE`: set priorities and real-time classes.
    SysNice = 23,
    /// `CAP_BPF`: load XDP programs.
    Bpf = 39,
}

impl Capability {
    /// Returns the capability's bit in a mask.
    pub const fn bit(self) -> u64 {
        1 << self as u32
    }

    /// Returns the capability's name, such as `CAP_NET_ADMIN`.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::DacOverride => "CAP_DAC_OVERRIDE",
            Capability::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Capability::Kill => "CAP_KILL",
            Capability::NetAdmin => "CAP_NET_ADMIN",
            Capability::NetRaw => "CAP_NET_RAW",
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::SysNice => "CAP_SYS_NICE",
            Capability::Bpf => "CAP_BPF",
        }
    }
}

/// Whether this process has opened a port on an interface. If so, it may have to restore settings
/// that it or an earlier process changed, for which it needs `CAP_NET_ADMIN`.
static RESTORES: AtomicBool = AtomicBool::new(false);

/// Makes [`give_up`] keep the right to restore interface settings.
pub(crate) fn will_restore() {
    RESTORES.store(true, Ordering::Relaxed);
}

/// Permanently drops the calling thread's capabilities, with three exceptions: those in `keep`;
/// those needed for timing (`CAP_SYS_NICE` for priorities, and `CAP_IPC_LOCK`, without which locked
/// memory cannot grow); and `CAP_NET_ADMIN` if interface settings may have to be restored. Adds no
/// capabilities.
///
/// # Errors
/// The kernel refuses, which does not happen for a reduction.
pub fn give_up(keep: &[Capability]) -> io::Result<()> {
    let mut sets = Sets::get()?;
    sets.retain(kept(keep, RESTORES.load(Ordering::Relaxed)));
    sets.set()
}

/// Like [`give_up`] with nothing to keep, for the start of threads that need no rights. Best
/// effort.
pub fn give_up_all() {
    let _ = give_up(&[]);
}

/// Returns the mask of capabilities to keep.
fn kept(keep: &[Capability], restores: bool) -> u64 {
    let mut kept = Capability::SysNice.bit() | Capability::IpcLock.bit();
    if restores {
        kept |= Capability::NetAdmin.bit();
    }
    for capability in keep {
        kept |= capability.bit();
    }
    kept
}

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// `_LINUX_CAPABILITY_VERSION_3`: 64 capabilities in two words.
const VERSION: u32 = 0x2008_0522;

/// Selects the calling thread.
const SELF: Header = Header {
    version: VERSION,
    pid: 0,
};

/// `struct __user_cap_data_struct`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The calling thread's capability sets.
struct Sets {
    words: [Word; 2],
}

impl Sets {
    fn get() -> io::Result<Sets> {
        let mut header = SELF;
        let mut words = [Word::default(); 2];
        // SAFETY: for version 3 the kernel reads and writes one header and writes two words; all
        // outlive the call.
        let result =
            unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) };
        Errno::result(result)?;
        Ok(Sets { words })
    }

    fn retain(&mut self, kept: u64) {
        for (word, set) in self.words.iter_mut().enumerate() {
            let kept = (kept >> (32 * word)) as u32;
            set.effective &= kept;
            set.permitted &= kept;
            set.inheritable &= kept;
        }
    }

    fn set(&self) -> io::Result<()> {
        let mut header = SELF;
        // SAFETY: as above, except that the kernel reads the two words.
        let result =
            unsafe { libc::syscall(libc::SYS_capset, &raw mut header, self.words.as_ptr()) };
        Errno::result(result)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the effective, permitted and inheritable capabilities.
    fn masks(sets: &Sets) -> [u64; 3] {
        let of = |take: fn(&Word) -> u32| {
            let [low, high] = &sets.words;
            u64::from(take(low)) | u64::from(take(high)) << 32
        };
        [
            of(|word| word.effective),
            of(|word| word.permitted),
            of(|word| word.inheritable),
        ]
    }

    #[test]
    fn only_kept_capabilities_remain() {
        const TIMING: u64 = (1 << 14) | (1 << 23);
        let all = Word {
            effective: u32::MAX,
            permitted: u32::MAX,
            inheritable: u32::MAX,
        };
        for (keep, restores, expected) in [
            (&[][..], false, TIMING),
            (&[], true, TIMING | (1 << 12)),
            (&[Capability::Kill], false, TIMING | (1 << 5)),
            (&[Capability::Bpf], true, TIMING | (1 << 12) | (1 << 39)),
        ] {
            let mut sets = Sets { words: [all; 2] };
            sets.retain(kept(keep, restores));
            assert_eq!(masks(&sets), [expected; 3], "{keep:?} {restores}");
            // Absent capabilities stay absent.
            let mut none = Sets {
                words: [Word::default(); 2],
            };
            none.retain(kept(keep, restores));
            assert_eq!(masks(&none), [0; 3]);
        }
    }

    #[test]
    fn a_thread_gives_up_only_its_own_capabilities() {
        let read = || masks(&Sets::get().expect("the kernel says"));
        let before = read();
        let inside = std::thread::spawn(move || {
            give_up(&[Capability::Kill]).expect("fewer are allowed");
            read()
        });
        let inside = inside.join().expect("the thread ends");
        // A concurrent test in this process may have opened a port.
        let comparable = !Capability::NetAdmin.bit();
        let kept = kept(&[Capability::Kill], false);
        for (inside, before) in inside.iter().zip(before) {
            assert_eq!(inside & comparable, before & kept, "{inside:x} {before:x}");
        }
        assert_eq!(read(), before);
    }
}

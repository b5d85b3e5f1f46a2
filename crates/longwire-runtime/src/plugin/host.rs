//! The functions that plugins can call: random numbers and messages.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use longwire_engine::{Nanos, Probability};
use longwire_units::random::Stream;

use super::{abi, parameters};

/// Maximum number of lines that a state may log: a message per packet would cost more
/// than the rest of its processing.
const LINES_MAX: u32 = 100;

/// The host struct of one plugin state, followed by private data.
#[repr(C)]
#[derive(Debug)]
pub(super) struct PluginHost {
    /// First, so that its address is that of the whole struct.
    raw: abi::Host,
    name: String,
    failed: AtomicBool,
    message: Mutex<String>,
    lines: AtomicU32,
}

impl PluginHost {
    /// Returns a host for the plugin with this name.
    pub fn new(name: String) -> PluginHost {
        PluginHost {
            raw: abi::Host {
                abi: abi::VERSION,
                struct_size: size_of::<abi::Host>() as u32,
                next_u64,
                up_to,
                uniform,
                chance,
                exponential,
                fail,
                log,
                text: parameters::text,
                require: parameters::require,
                time: parameters::time,
                rate: parameters::rate,
                size: parameters::size,
                probability: parameters::probability,
                count: parameters::count,
                real: parameters::real,
            },
            name,
            failed: AtomicBool::new(false),
            message: Mutex::new(String::new()),
            lines: AtomicU32::new(0),
        }
    }

    /// Returns the pointer for the plugin.
    pub fn as_raw(&self) -> *const abi::Host {
        std::ptr::from_ref(self).cast()
    }

    /// Whether the plugin has reported a failure.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Records a failure; only the first message is kept.
    pub fn note_failure(&self, message: String) {
        let mut kept = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.failed.swap(true, Ordering::Relaxed) {
            *kept = message;
        }
    }

    /// Returns the failure message.
    pub fn failure(&self) -> String {
        let kept = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            "failed without a message; return fail(host, message)".to_owned()
        } else {
            kept.clone()
        }
    }
}

/// Calls `work` and records a panic as a failure: it must not reach the calling C code.
pub(super) fn guarded<T>(host: &PluginHost, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        host.note_failure("panic in Longwire; please report this".to_owned());
        otherwise
    })
}

/// Returns a C string as text; invalid UTF-8 is replaced, and NULL is empty.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte and lives during the
/// call.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// # Safety
/// `host` is the pointer that `create` received, of a state that lives;
/// `message` is as in [`text_of`].
unsafe extern "C" fn fail(host: *const abi::Host, message: *const c_char) -> c_int {
    // SAFETY: `create` receives a pointer to the beginning of a `PluginHost`
    // that lives as long as the state.
    let host = unsafe { &*host.cast::<PluginHost>() };
    // SAFETY: the caller guarantees the message.
    let message = || unsafe { text_of(message) };
    guarded(host, (), || host.note_failure(message()));
    abi::ERROR
}

/// Writes a line to stderr. A closed stderr must not cause a panic in the plugin's call.
fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// # Safety
/// As of [`fail`].
unsafe extern "C" fn log(host: *const abi::Host, message: *const c_char) {
    // SAFETY: as for `fail`.
    let host = unsafe { &*host.cast::<PluginHost>() };
    // SAFETY: as for `fail`.
    let message = || unsafe { text_of(message) };
    guarded(host, (), || {
        let lines = host.lines.fetch_add(1, Ordering::Relaxed);
        if lines < LINES_MAX {
            print_line(format_args!("plugin {}: {}", host.name, message()));
        } else if lines == LINES_MAX {
            print_line(format_args!(
                "plugin {}: omitting further messages",
                host.name
            ));
        } else {
            // Prevents the counter from wrapping.
            host.lines.store(LINES_MAX + 1, Ordering::Relaxed);
        }
    });
}

/// The random stream of a hook, and its first misuse.
pub(super) struct HookRandom<'a> {
    stream: &'a mut Stream,
    misuse: Option<String>,
}

impl<'a> HookRandom<'a> {
    pub fn new(stream: &'a mut Stream) -> HookRandom<'a> {
        HookRandom {
            stream,
            misuse: None,
        }
    }

    /// Returns the pointer for the hook.
    pub fn as_raw(&mut self) -> *mut abi::Random {
        std::ptr::from_mut(self).cast()
    }

    /// Takes the message about the first misuse.
    #[inline]
    pub fn misuse(&mut self) -> Option<String> {
        self.misuse.take()
    }
}

/// Returns the stream of a pointer that a hook received.
///
/// # Safety
/// The pointer is that of [`HookRandom::as_raw`], of a value that lives, and no
/// other reference to it is used while this one is.
unsafe fn random<'a>(random: *mut abi::Random) -> &'a mut HookRandom<'a> {
    // SAFETY: guaranteed by the caller.
    unsafe { &mut *random.cast::<HookRandom<'a>>() }
}

/// # Safety
/// `raw` is the pointer that the running hook received.
unsafe extern "C" fn next_u64(raw: *mut abi::Random) -> u64 {
    // SAFETY: during a hook's call the value is used in these functions only.
    unsafe { random(raw) }.stream.next_u64()
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn up_to(raw: *mut abi::Random, max: u64) -> u64 {
    // SAFETY: as for `next_u64`.
    unsafe { random(raw) }.stream.up_to(max)
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn uniform(raw: *mut abi::Random) -> f64 {
    // SAFETY: as for `next_u64`.
    unsafe { random(raw) }.stream.unit()
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn chance(raw: *mut abi::Random, p: f64) -> c_int {
    // SAFETY: as for `next_u64`.
    let random = unsafe { random(raw) };
    if !(0.0..=1.0).contains(&p) {
        random.misuse = Some(format!("chance: probability {p} is outside 0..1"));
        return 0;
    }
    c_int::from(random.stream.chance(Probability::from_f64(p)))
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn exponential(raw: *mut abi::Random, mean_ns: i64) -> i64 {
    // SAFETY: as for `next_u64`.
    let random = unsafe { random(raw) };
    let Ok(mean) = u64::try_from(mean_ns) else {
        random.misuse = Some(format!("exponential: mean {mean_ns} ns is negative"));
        return 0;
    };
    let drawn = random.stream.exponential(Nanos::from_nanos(mean));
    i64::try_from(drawn.as_nanos()).unwrap_or(i64::MAX)
}

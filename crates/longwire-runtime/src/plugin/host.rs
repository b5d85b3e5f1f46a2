//! What Longwire offers to a plugin: random numbers and messages. The
//! functions here are called from C.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use longwire_engine::{Nanos, Probability};
use longwire_units::random::Stream;

use super::{abi, parameters};

/// Lines that a state may log: a message for each packet would be the
/// dearest thing that ever happens to it.
const LINES_MAX: u32 = 100;

/// A host struct and what stands behind it, for one state of a plugin.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Host {
    /// First, so that its address is that of the whole.
    raw: abi::Host,
    name: String,
    failed: AtomicBool,
    message: Mutex<String>,
    lines: AtomicU32,
}

impl Host {
    /// A host for the plugin with this name.
    pub fn new(name: String) -> Host {
        Host {
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

    /// As the plugin is given it.
    pub fn as_raw(&self) -> *const abi::Host {
        std::ptr::from_ref(self).cast()
    }

    /// Whether the plugin has said that it failed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Notes a failure. The first message is kept.
    pub fn note_failure(&self, message: String) {
        let mut kept = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.failed.swap(true, Ordering::Relaxed) {
            *kept = message;
        }
    }

    /// What the plugin said of its failure.
    pub fn failure(&self) -> String {
        let kept = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.is_empty() {
            true => "it failed and did not say why: return fail(host, message)".to_owned(),
            false => kept.clone(),
        }
    }
}

/// Calls `work`; what it panics with is noted as a failure, for no panic may
/// reach the C code that called us.
pub(super) fn guarded<T>(host: &Host, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        host.note_failure("a panic in Longwire itself; please report this".to_owned());
        otherwise
    })
}

/// A C string as text; what is no UTF-8 is replaced, NULL is empty.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte and lives during the
/// call.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the caller answers for the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// # Safety
/// `host` is what `create` was given, of a state that lives; `message` is as
/// in [`text_of`].
unsafe extern "C" fn fail(host: *const abi::Host, message: *const c_char) -> c_int {
    // SAFETY: what `create` is given is the beginning of a `Host` that lives
    // as long as the state.
    let host = unsafe { &*host.cast::<Host>() };
    // SAFETY: the caller answers for the message.
    let message = || unsafe { text_of(message) };
    guarded(host, (), || host.note_failure(message()));
    abi::ERROR
}

/// Writes a line to stderr. A closed stderr is no fault of the plugin, so it
/// must not cause a panic in its call.
fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// # Safety
/// As of [`fail`].
unsafe extern "C" fn log(host: *const abi::Host, message: *const c_char) {
    // SAFETY: as in `fail`.
    let host = unsafe { &*host.cast::<Host>() };
    // SAFETY: as in `fail`.
    let message = || unsafe { text_of(message) };
    guarded(host, (), || {
        let lines = host.lines.fetch_add(1, Ordering::Relaxed);
        if lines < LINES_MAX {
            print_line(format_args!("plugin {}: {}", host.name, message()));
        } else if lines == LINES_MAX {
            print_line(format_args!(
                "plugin {}: further messages are left out",
                host.name
            ));
        } else {
            // Lest the count ever wraps.
            host.lines.store(LINES_MAX + 1, Ordering::Relaxed);
        }
    });
}

/// The random stream that a hook is given, and what it asked of it that
/// makes no sense.
pub(super) struct Random<'a> {
    stream: &'a mut Stream,
    misuse: Option<String>,
}

impl<'a> Random<'a> {
    pub fn new(stream: &'a mut Stream) -> Random<'a> {
        Random {
            stream,
            misuse: None,
        }
    }

    /// As a hook is given it.
    pub fn as_raw(&mut self) -> *mut abi::Random {
        std::ptr::from_mut(self).cast()
    }

    /// What was asked of it that makes no sense.
    #[inline]
    pub fn misuse(&mut self) -> Option<String> {
        self.misuse.take()
    }
}

/// The stream behind a pointer that a hook was given.
///
/// # Safety
/// The pointer is that of [`Random::as_raw`], of a value that lives, and no
/// other reference to it is used while this one is.
unsafe fn random<'a>(random: *mut abi::Random) -> &'a mut Random<'a> {
    // SAFETY: the caller says so.
    unsafe { &mut *random.cast::<Random<'a>>() }
}

/// # Safety
/// `raw` is what the running hook was given.
unsafe extern "C" fn next_u64(raw: *mut abi::Random) -> u64 {
    // SAFETY: during a hook's call the value is used in these functions only.
    unsafe { random(raw) }.stream.next_u64()
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn up_to(raw: *mut abi::Random, max: u64) -> u64 {
    // SAFETY: as in `next_u64`.
    unsafe { random(raw) }.stream.up_to(max)
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn uniform(raw: *mut abi::Random) -> f64 {
    // SAFETY: as in `next_u64`.
    unsafe { random(raw) }.stream.unit()
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn chance(raw: *mut abi::Random, p: f64) -> c_int {
    // SAFETY: as in `next_u64`.
    let random = unsafe { random(raw) };
    if !(0.0..=1.0).contains(&p) {
        random.misuse = Some(format!("chance: the probability {p} is not in 0 to 1"));
        return 0;
    }
    c_int::from(random.stream.chance(Probability::from_f64(p)))
}

/// # Safety
/// As of [`next_u64`].
unsafe extern "C" fn exponential(raw: *mut abi::Random, mean_ns: i64) -> i64 {
    // SAFETY: as in `next_u64`.
    let random = unsafe { random(raw) };
    let Ok(mean) = u64::try_from(mean_ns) else {
        random.misuse = Some(format!("exponential: the mean of {mean_ns} ns is negative"));
        return 0;
    };
    let drawn = random.stream.exponential(Nanos::from_nanos(mean));
    i64::try_from(drawn.as_nanos()).unwrap_or(i64::MAX)
}

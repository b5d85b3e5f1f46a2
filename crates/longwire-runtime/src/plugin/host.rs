//! The functions that plugins can call: random numbers, messages and, in `create`,
//! parameters.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use longwire_engine::{BitRate, Bytes, Nanos, Probability};
use longwire_units::random::Stream;
use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

use super::abi;

/// Maximum number of lines that a state may log. A message per packet would cost more than all
/// other processing.
const LINES_MAX: u32 = 100;

/// A plugin state's host struct, followed by private data.
#[repr(C)]
#[derive(Debug)]
pub(super) struct PluginHost {
    /// The first field, so that its address is also that of the struct.
    raw: abi::Host,
    name: String,
    failure: OnceLock<String>,
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
                text,
                require,
                time: read::<Nanos>,
                rate: read::<BitRate>,
                size: read::<Bytes>,
                probability: read::<Probability>,
                count: read::<Count>,
                real: read::<Real>,
            },
            name,
            failure: OnceLock::new(),
            lines: AtomicU32::new(0),
        }
    }

    /// Returns the pointer for the plugin.
    pub fn as_raw(&self) -> *const abi::Host {
        std::ptr::from_ref(self).cast()
    }

    /// Returns whether the plugin has reported a failure.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Records a failure. Only the first message is kept.
    pub fn note_failure(&self, message: String) {
        let _ = self.failure.set(message);
    }

    /// Returns the failure message.
    pub fn failure(&self) -> String {
        let message = self.failure.get().filter(|message| !message.is_empty());
        message
            .map_or(
                "failed without a message; return fail(host, message)",
                String::as_str,
            )
            .to_owned()
    }
}

/// Calls `work` and records a panic as a failure. A panic must not reach the calling C code.
pub(super) fn guarded<T>(host: &PluginHost, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        host.note_failure("panic in Longwire; please report this".to_owned());
        otherwise
    })
}

/// Returns a C string as text. Invalid UTF-8 is replaced, and NULL is empty.
///
/// # Safety
/// `text` is null, or a zero-terminated string that lives during the call.
pub(super) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// # Safety
/// `host` is the pointer that `create` received for a state that is alive; `message` is as for
/// [`text_of`].
unsafe extern "C" fn fail(host: *const abi::Host, message: *const c_char) -> c_int {
    // SAFETY: `create` receives a pointer to the start of a `PluginHost` that lives as long as the
    // state.
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
/// As for [`fail`].
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
            // Prevents the counter from wrapping around.
            host.lines.store(LINES_MAX + 1, Ordering::Relaxed);
        }
    });
}

/// A hook's random stream, and its first misuse.
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

    /// Takes the message for the first misuse.
    #[inline]
    pub fn misuse(&mut self) -> Option<String> {
        self.misuse.take()
    }
}

/// Returns the stream behind a pointer that a hook received.
///
/// # Safety
/// The pointer is from [`HookRandom::as_raw`] on a value that is alive, and no other reference to
/// the value is used while this one is.
unsafe fn random<'a>(random: *mut abi::Random) -> &'a mut HookRandom<'a> {
    // SAFETY: the caller guarantees this.
    unsafe { &mut *random.cast::<HookRandom<'a>>() }
}

/// # Safety
/// `raw` is the pointer that the running hook received.
unsafe extern "C" fn next_u64(raw: *mut abi::Random) -> u64 {
    // SAFETY: during a hook's call, only these functions use the value.
    unsafe { random(raw) }.stream.next_u64()
}

/// # Safety
/// As for [`next_u64`].
unsafe extern "C" fn up_to(raw: *mut abi::Random, max: u64) -> u64 {
    // SAFETY: as for `next_u64`.
    unsafe { random(raw) }.stream.up_to(max)
}

/// # Safety
/// As for [`next_u64`].
unsafe extern "C" fn uniform(raw: *mut abi::Random) -> f64 {
    // SAFETY: as for `next_u64`.
    unsafe { random(raw) }.stream.unit()
}

/// # Safety
/// As for [`next_u64`].
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
/// As for [`next_u64`].
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

/// One state's parameters, during its `create`.
pub(super) struct CreateParameters<'a> {
    host: &'a PluginHost,
    pairs: Vec<(CString, CString)>,
    /// Requested keys, in order.
    asked: RefCell<Vec<String>>,
}

impl<'a> CreateParameters<'a> {
    /// Returns the user's parameters.
    ///
    /// # Errors
    /// A parameter cannot be passed to C.
    pub fn new(
        host: &'a PluginHost,
        pairs: &[(String, String)],
    ) -> Result<CreateParameters<'a>, String> {
        let c_string = |text: &String| {
            CString::new(text.as_str()).map_err(|_| format!("{text:?} contains a zero byte"))
        };
        let pairs = pairs
            .iter()
            .map(|(key, value)| Ok((c_string(key)?, c_string(value)?)))
            .collect::<Result<_, String>>()?;
        Ok(CreateParameters {
            host,
            pairs,
            asked: RefCell::default(),
        })
    }

    /// Returns the pointer for `create`.
    pub fn as_raw(&self) -> *const abi::Parameters {
        std::ptr::from_ref(self).cast()
    }

    /// Returns the message for a parameter that the plugin never requested.
    pub fn unknown_parameter(&self) -> Option<String> {
        let asked = self.asked.borrow();
        let unasked = |key: &CString| !asked.iter().any(|other| other.as_bytes() == key.as_bytes());
        let (key, _) = self.pairs.iter().find(|(key, _)| unasked(key))?;
        let known = if asked.is_empty() {
            "no parameters".to_owned()
        } else {
            asked.join(", ")
        };
        let key = key.to_string_lossy();
        Some(format!("unknown parameter '{key}'; parameters are {known}"))
    }

    /// Returns a key's value and marks the key as requested.
    fn value(&self, key: &str) -> Option<&CStr> {
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|other| other == key) {
            asked.push(key.to_owned());
        }
        let mut pairs = self.pairs.iter();
        let found = pairs.find(|(other, _)| other.as_bytes() == key.as_bytes());
        found.map(|(_, value)| value.as_c_str())
    }

    /// Parses an optional value.
    fn read<U: ParameterUnit>(&self, key: &str) -> Result<Option<U::Value>, String> {
        let value = self.value(key).map(CStr::to_string_lossy);
        let read = value.map(|value| U::parse(&value)).transpose();
        read.map_err(|error| format!("{key}: {error}"))
    }
}

/// Converts the pointer passed to `create` back to its parameters.
///
/// # Safety
/// The pointer is from [`CreateParameters::as_raw`] on a value that is alive.
unsafe fn parameters<'a>(raw: *const abi::Parameters) -> &'a CreateParameters<'a> {
    // SAFETY: the caller guarantees this.
    unsafe { &*raw.cast::<CreateParameters<'a>>() }
}

/// # Safety
/// `raw` is the pointer that the running `create` received; `key` is a zero-terminated string.
unsafe extern "C" fn text(raw: *const abi::Parameters, key: *const c_char) -> *const c_char {
    // SAFETY: the caller guarantees both pointers.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, std::ptr::null(), || {
        let value = parameters.value(&key);
        value.map_or(std::ptr::null(), CStr::as_ptr)
    })
}

/// # Safety
/// As for [`text`].
unsafe extern "C" fn require(raw: *const abi::Parameters, key: *const c_char) -> c_int {
    // SAFETY: as for `text`.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, abi::ERROR, || {
        if parameters.value(&key).is_some() {
            return abi::OK;
        }
        let message = format!("missing parameter {key}=...");
        parameters.host.note_failure(message);
        abi::ERROR
    })
}

/// A parameter unit, read as a C value.
trait ParameterUnit {
    type Value;

    fn parse(text: &str) -> Result<Self::Value, UnitError>;
}

/// The unit of plain integers.
struct Count;

/// The unit of plain numbers.
struct Real;

impl ParameterUnit for Nanos {
    type Value = i64;

    fn parse(text: &str) -> Result<i64, UnitError> {
        // A time is at most one day.
        let time = Nanos::from_str(text)?;
        Ok(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl ParameterUnit for BitRate {
    type Value = u64;

    fn parse(text: &str) -> Result<u64, UnitError> {
        BitRate::from_str(text).map(BitRate::bits_per_sec)
    }
}

impl ParameterUnit for Bytes {
    type Value = u64;

    fn parse(text: &str) -> Result<u64, UnitError> {
        Bytes::from_str(text).map(|bytes| bytes.0)
    }
}

impl ParameterUnit for Probability {
    type Value = f64;

    fn parse(text: &str) -> Result<f64, UnitError> {
        if text.ends_with('%') {
            Probability::from_str(text).map(Probability::as_f64)
        } else {
            parse_ratio(text)
        }
    }
}

impl ParameterUnit for Count {
    type Value = u64;

    fn parse(text: &str) -> Result<u64, UnitError> {
        parse_count(text)
    }
}

impl ParameterUnit for Real {
    type Value = f64;

    fn parse(text: &str) -> Result<f64, UnitError> {
        parse_real(text)
    }
}

/// Reads a parameter and, if it is given, writes its value to `out`.
///
/// # Safety
/// As for [`text`]; `out` is null or valid for writing a value.
unsafe extern "C" fn read<U: ParameterUnit>(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut U::Value,
) -> c_int {
    // SAFETY: as for `text`.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, abi::ERROR, || {
        let message = match parameters.read::<U>(&key) {
            Ok(None) => return abi::OK,
            Ok(Some(_)) if out.is_null() => format!("{key}: no variable is given for the value"),
            Ok(Some(value)) => {
                // SAFETY: the pointer is not null, and the caller guarantees the rest.
                unsafe { out.write(value) };
                return abi::OK;
            }
            Err(message) => message,
        };
        parameters.host.note_failure(message);
        abi::ERROR
    })
}

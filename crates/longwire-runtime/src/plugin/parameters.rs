//! Plugin parameters, and the functions that read them, called from C in `create`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::str::FromStr;

use longwire_engine::{BitRate, Bytes, Nanos, Probability};
use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

use super::abi;
use super::host::{PluginHost, guarded, text_of};

/// The parameters of one state, during its `create`.
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

    /// Returns the message about a parameter that the plugin never requested.
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

    /// Returns the value of a key and marks the key as requested.
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
    fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, UnitError>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let value = value.to_string_lossy();
        let read = parse(&value).map_err(|error| format!("{key}: {error}"))?;
        Ok(Some(read))
    }
}

/// Converts the pointer of `create` back to its parameters.
///
/// # Safety
/// The pointer is that of [`CreateParameters::as_raw`], of a value that lives.
unsafe fn parameters<'a>(raw: *const abi::Parameters) -> &'a CreateParameters<'a> {
    // SAFETY: guaranteed by the caller.
    unsafe { &*raw.cast::<CreateParameters<'a>>() }
}

/// # Safety
/// `raw` is the pointer that the running `create` received, `key` a string that
/// ends with a zero byte.
pub(super) unsafe extern "C" fn text(
    raw: *const abi::Parameters,
    key: *const c_char,
) -> *const c_char {
    // SAFETY: the caller guarantees both pointers.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, std::ptr::null(), || {
        let value = parameters.value(&key);
        value.map_or(std::ptr::null(), CStr::as_ptr)
    })
}

/// # Safety
/// As of [`text`].
pub(super) unsafe extern "C" fn require(raw: *const abi::Parameters, key: *const c_char) -> c_int {
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

/// Reads a parameter and, if given, writes its value to `out`.
///
/// # Safety
/// As of [`text`]; `out` is null or valid for writing a value.
unsafe fn read<T, U>(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut U,
    parse: impl FnOnce(&str) -> Result<T, UnitError>,
    convert: impl FnOnce(T) -> U,
) -> c_int {
    // SAFETY: as for `text`.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, abi::ERROR, || {
        match parameters.read(&key, parse) {
            Ok(None) => abi::OK,
            Ok(Some(_)) if out.is_null() => {
                let message = format!("{key}: no variable for the value");
                parameters.host.note_failure(message);
                abi::ERROR
            }
            Ok(Some(value)) => {
                // SAFETY: it is not null, and the caller guarantees the rest.
                unsafe { out.write(convert(value)) };
                abi::OK
            }
            Err(message) => {
                parameters.host.note_failure(message);
                abi::ERROR
            }
        }
    })
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn time(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut i64,
) -> c_int {
    // A time is at most a day.
    let signed = |time: Nanos| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, Nanos::from_str, signed) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn rate(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, BitRate::from_str, BitRate::bits_per_sec) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn size(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, Bytes::from_str, |bytes| bytes.0) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn probability(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut f64,
) -> c_int {
    let parse = |text: &str| {
        if text.ends_with('%') {
            Probability::from_str(text).map(Probability::as_f64)
        } else {
            parse_ratio(text)
        }
    };
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, parse, |value| value) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn count(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, parse_count, |count| count) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn real(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut f64,
) -> c_int {
    // SAFETY: the caller guarantees all three.
    unsafe { read(raw, key, out, parse_real, |value| value) }
}

//! A plugin's parameters and the functions that read them. They are called
//! from C, in `create`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::str::FromStr;

use longwire_engine::{BitRate, Bytes, Nanos, Probability};
use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

use super::abi;
use super::host::{Host, guarded, text_of};

/// The parameters of one state, during its `create`.
pub(super) struct Parameters<'a> {
    host: &'a Host,
    pairs: Vec<(CString, CString)>,
    /// The keys that were asked for, in order.
    asked: RefCell<Vec<String>>,
}

impl<'a> Parameters<'a> {
    /// The user's parameters.
    ///
    /// # Errors
    /// If one cannot be given to C.
    pub fn new(host: &'a Host, pairs: &[(String, String)]) -> Result<Parameters<'a>, String> {
        let c_string = |text: &String| {
            CString::new(text.as_str()).map_err(|_| format!("{text:?} contains a zero byte"))
        };
        let pairs = pairs
            .iter()
            .map(|(key, value)| Ok((c_string(key)?, c_string(value)?)))
            .collect::<Result<_, String>>()?;
        Ok(Parameters {
            host,
            pairs,
            asked: RefCell::default(),
        })
    }

    /// As `create` is given it.
    pub fn as_raw(&self) -> *const abi::Parameters {
        std::ptr::from_ref(self).cast()
    }

    /// What is wrong with a parameter that nothing has asked for.
    pub fn misspelt(&self) -> Option<String> {
        let asked = self.asked.borrow();
        let unasked = |key: &CString| !asked.iter().any(|other| other.as_bytes() == key.as_bytes());
        let (key, _) = self.pairs.iter().find(|(key, _)| unasked(key))?;
        let known = match asked.is_empty() {
            true => "no parameters".to_owned(),
            false => asked.join(", "),
        };
        let key = key.to_string_lossy();
        Some(format!(
            "the plugin has no parameter '{key}'; it takes {known}"
        ))
    }

    /// The value of a key, which counts as asked for.
    fn value(&self, key: &str) -> Option<&CStr> {
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|other| other == key) {
            asked.push(key.to_owned());
        }
        let mut pairs = self.pairs.iter();
        let found = pairs.find(|(other, _)| other.as_bytes() == key.as_bytes());
        found.map(|(_, value)| value.as_c_str())
    }

    /// Reads a value that may be missing.
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

/// The parameters behind a pointer that `create` was given.
///
/// # Safety
/// The pointer is that of [`Parameters::as_raw`], of a value that lives.
unsafe fn parameters<'a>(raw: *const abi::Parameters) -> &'a Parameters<'a> {
    // SAFETY: the caller says so.
    unsafe { &*raw.cast::<Parameters<'a>>() }
}

/// # Safety
/// `raw` is what the running `create` was given, `key` a string that ends with
/// a zero byte.
pub(super) unsafe extern "C" fn text(
    raw: *const abi::Parameters,
    key: *const c_char,
) -> *const c_char {
    // SAFETY: the caller answers for both pointers.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, std::ptr::null(), || {
        let value = parameters.value(&key);
        value.map_or(std::ptr::null(), CStr::as_ptr)
    })
}

/// # Safety
/// As of [`text`].
pub(super) unsafe extern "C" fn require(raw: *const abi::Parameters, key: *const c_char) -> c_int {
    // SAFETY: as in `text`.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, abi::ERROR, || {
        if parameters.value(&key).is_some() {
            return abi::OK;
        }
        let message = format!("the plugin's parameter '{key}' must be given: {key}=...");
        parameters.host.note_failure(message);
        abi::ERROR
    })
}

/// Reads a parameter and writes what it is to `out`, if it was given.
///
/// # Safety
/// As of [`text`]; `out` is null or a place that a value can be written to.
unsafe fn read<T, U>(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut U,
    parse: impl FnOnce(&str) -> Result<T, UnitError>,
    convert: impl FnOnce(T) -> U,
) -> c_int {
    // SAFETY: as in `text`.
    let (parameters, key) = unsafe { (parameters(raw), text_of(key)) };
    guarded(parameters.host, abi::ERROR, || {
        match parameters.read(&key, parse) {
            Ok(None) => abi::OK,
            Ok(Some(_)) if out.is_null() => {
                let message = format!("{key}: nowhere to write the value to");
                parameters.host.note_failure(message);
                abi::ERROR
            }
            Ok(Some(value)) => {
                // SAFETY: it is not null, and the caller answers for the rest.
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
    // A day is the most that can be written.
    let signed = |time: Nanos| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, Nanos::from_str, signed) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn rate(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, BitRate::from_str, BitRate::bits_per_sec) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn size(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, Bytes::from_str, |bytes| bytes.0) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn probability(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut f64,
) -> c_int {
    let parse = |text: &str| match text.ends_with('%') {
        true => Probability::from_str(text).map(Probability::as_f64),
        false => parse_ratio(text),
    };
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, parse, |value| value) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn count(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, parse_count, |count| count) }
}

/// # Safety
/// As of [`read`].
pub(super) unsafe extern "C" fn real(
    raw: *const abi::Parameters,
    key: *const c_char,
    out: *mut f64,
) -> c_int {
    // SAFETY: the caller answers for all three.
    unsafe { read(raw, key, out, parse_real, |value| value) }
}

//! The kernel's network settings under `/proc/sys/net`, in the calling thread's
//! namespace.

use std::fs;
use std::path::PathBuf;

use super::NetError;

fn path_of(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net").join(key)
}

/// Reads a setting, such as `ipv4/ip_forward`.
///
/// # Errors
/// [`NetError::System`] if the kernel has no such setting.
pub fn get(key: &str) -> Result<String, NetError> {
    let path = path_of(key);
    fs::read_to_string(&path)
        .map(|value| value.trim_end().to_owned())
        .map_err(|e| NetError::system("read", path.display().to_string(), e))
}

/// Writes a setting.
///
/// # Errors
/// [`NetError::System`] if the kernel has no such setting or rejects the value, or if `/proc/sys`
/// is read-only for this user.
pub fn set(key: &str, value: &str) -> Result<(), NetError> {
    let path = path_of(key);
    fs::write(&path, value)
        .map_err(|e| NetError::system("set", format!("{} to {value}", path.display()), e))
}

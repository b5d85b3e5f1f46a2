//! Parameters shared by queue disciplines.

use super::{HeaderFields, QueueLimit};
use crate::models::prelude::*;

/// A Boolean; the first keyword means true.
pub(super) const BOOLEAN: Unit = Unit::Choice(&["true", "false"]);

/// Maximum number of frames, excluding the frame in service.
pub(super) const fn limit(default: &'static str) -> Param {
    Param::with_default("limit", Unit::Packets, default)
        .help("maximum frames in the queue, not counting the frame in service")
}

/// Maximum number of bytes, in addition to the limit in frames.
pub(super) const LIMIT_BYTES: Param = Param::new("limit-bytes", Unit::Size)
    .help("maximum bytes in the queue, in addition to the limit in frames; default: unlimited");

/// Maximum number of frames over all classes, excluding the frame in service.
pub(super) const fn limit_of_all(default: &'static str) -> Param {
    limit(default).help("maximum frames in all classes, not counting the frame in service")
}

/// Maximum number of bytes over all classes, in addition to the limit in frames.
pub(super) const LIMIT_BYTES_OF_ALL: Param = LIMIT_BYTES
    .help("maximum bytes in all classes, in addition to the limit in frames; default: unlimited");

/// Whether ECN-capable frames are marked.
pub(super) const fn ecn(default: &'static str) -> Param {
    Param::with_default("ecn", BOOLEAN, default)
        .help("mark ECN-capable frames instead of dropping them")
}

/// Returns the header fields used by a discipline that marks if `ecn` is set.
pub(super) const fn read_for_marks(ecn: bool) -> HeaderFields {
    if ecn {
        HeaderFields::Class
    } else {
        HeaderFields::Nothing
    }
}

/// Reads `limit` and `limit-bytes`.
pub(super) fn read_limit(arguments: &Arguments) -> Result<QueueLimit, SpecError> {
    let limit = QueueLimit {
        packets: Some(arguments.required::<Packets>("limit")?),
        bytes: arguments.optional::<Bytes>("limit-bytes")?,
    };
    if limit.packets == Some(Packets(0)) || limit.bytes == Some(Bytes(0)) {
        return Err(arguments.invalid("a queue of 0 passes no frames; the minimum is limit=1p"));
    }
    limit.refuse_no_frame(arguments)?;
    Ok(limit)
}

/// Reads a Boolean.
pub(super) fn read_bool(arguments: &Arguments, key: &'static str) -> Result<bool, SpecError> {
    Ok(arguments.choice(key)? == 0)
}

/// Reads a time of at least `least`.
pub(super) fn read_time(
    arguments: &Arguments,
    key: &'static str,
    least: Nanos,
) -> Result<Nanos, SpecError> {
    let time: Nanos = arguments.required(key)?;
    if time < least {
        let message = format!("{key}={time} is too short; the minimum is {least}");
        return Err(arguments.invalid(message));
    }
    Ok(time)
}

/// Reads a size of at least one byte.
pub(super) fn read_size(arguments: &Arguments, key: &'static str) -> Result<Bytes, SpecError> {
    let size: Bytes = arguments.required(key)?;
    if size == Bytes(0) {
        return Err(arguments.invalid(format!("{key} is 0; the minimum is {key}=1b")));
    }
    Ok(size)
}

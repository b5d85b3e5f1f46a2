//! Rounds numbers in reports to a sensible precision.

use serde::{Serialize, Serializer};

/// Rounds seconds to the microsecond.
pub(crate) fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(to_digits(*value, 1e6))
}

/// Rounds optional seconds to the microsecond.
pub(crate) fn some_seconds<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value
        .map(|value| to_digits(value, 1e6))
        .serialize(serializer)
}

/// Rounds microseconds to the nanosecond.
pub(crate) fn micros<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(to_digits(*value, 1e3))
}

/// Rounds to a multiple of 1 / `scale`.
fn to_digits(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

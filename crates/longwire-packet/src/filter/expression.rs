//! Numeric expressions on frames, following pcap-filter(7): 32-bit unsigned integers that wrap around.

use alloc::boxed::Box;

use super::facts::{Facts, Layer};

/// A numeric expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Expression {
    Number(u32),
    /// Frame length.
    Length,
    /// Captured length.
    Captured,
    /// An IP header field, of either version.
    Ip(IpNumber),
    /// Bytes at a fixed offset within a layer.
    Load {
        layer: Layer,
        offset: u32,
        size: usize,
    },
    /// Bytes at a computed offset.
    LoadAt {
        layer: Layer,
        offset: Box<Expression>,
        size: usize,
    },
    Binary(Operation, Box<(Expression, Expression)>),
}

/// A field common to both IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum IpNumber {
    Ttl,
    Dscp,
    Ecn,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Exclusive,
    Left,
    Right,
}

impl Operation {
    fn of(self, a: u32, b: u32) -> Option<u32> {
        Some(match self {
            Operation::Add => a.wrapping_add(b),
            Operation::Subtract => a.wrapping_sub(b),
            Operation::Multiply => a.wrapping_mul(b),
            Operation::Divide => a.checked_div(b)?,
            Operation::Remainder => a.checked_rem(b)?,
            Operation::And => a & b,
            Operation::Or => a | b,
            Operation::Exclusive => a ^ b,
            Operation::Left => a.checked_shl(b).unwrap_or(0),
            Operation::Right => a.checked_shr(b).unwrap_or(0),
        })
    }
}

impl Expression {
    /// Returns the value, if the frame has one.
    #[inline]
    pub(super) fn value(&self, facts: &Facts<'_>) -> Option<u32> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Length => Some(facts.len),
            Expression::Captured => Some(facts.bytes.len() as u32),
            Expression::Ip(field) => facts.ip_number(*field),
            Expression::Load {
                layer,
                offset,
                size,
            } => facts.load(*layer, *offset, *size),
            Expression::LoadAt {
                layer,
                offset,
                size,
            } => facts.load(*layer, offset.value(facts)?, *size),
            Expression::Binary(operation, sides) => {
                operation.of(sides.0.value(facts)?, sides.1.value(facts)?)
            }
        }
    }

    /// Combines two expressions, folding constants.
    pub(super) fn joined(operation: Operation, left: Expression, right: Expression) -> Expression {
        if let (Expression::Number(a), Expression::Number(b)) = (&left, &right)
            && let Some(number) = operation.of(*a, *b)
        {
            return Expression::Number(number);
        }
        Expression::Binary(operation, Box::new((left, right)))
    }

    /// Returns an expression for masked bytes in a layer.
    pub(super) fn bits(layer: Layer, offset: u32, size: usize, mask: u32) -> Expression {
        let whole = Expression::Load {
            layer,
            offset,
            size,
        };
        if mask == u32::MAX {
            return whole;
        }
        let masked = Expression::joined(Operation::And, whole, Expression::Number(mask));
        match mask.trailing_zeros() {
            0 => masked,
            shift => Expression::joined(Operation::Right, masked, Expression::Number(shift)),
        }
    }
}

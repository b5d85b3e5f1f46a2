//! Numeric expressions on frames, after pcap-filter(7): unsigned 32 bits, wrapping.

use alloc::boxed::Box;
use alloc::format;

use super::facts::{ARP, Facts, Layer, RARP, Relation};
use super::names;
use super::parser::{FilterError, Parser};
use super::values::number;

/// A numeric expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Expression {
    Number(u32),
    /// Length of the frame.
    Length,
    /// Captured length.
    Captured,
    /// An IP header field of either version.
    Ip(IpNumber),
    /// Bytes at a fixed offset in a layer.
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
    /// Returns the value, if the frame has it.
    #[inline]
    pub(super) fn value(&self, facts: &Facts<'_>) -> Option<u32> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Length => Some(facts.len()),
            Expression::Captured => Some(facts.captured()),
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

    /// Combines two expressions; folds constants.
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

/// Operators by increasing precedence.
const LEVELS: [&[(&str, Operation)]; 5] = [
    &[("|", Operation::Or), ("^", Operation::Exclusive)],
    &[("&", Operation::And)],
    &[("<<", Operation::Left), (">>", Operation::Right)],
    &[("+", Operation::Add), ("-", Operation::Subtract)],
    &[
        ("*", Operation::Multiply),
        ("/", Operation::Divide),
        ("%", Operation::Remainder),
    ],
];

/// Relational operators of tcpdump and Wireshark.
const RELATIONS: [(&str, Relation); 13] = [
    ("==", Relation::Equal),
    ("=", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("eq", Relation::Equal),
    ("ne", Relation::Unequal),
    ("le", Relation::AtMost),
    ("ge", Relation::AtLeast),
    ("lt", Relation::Less),
    ("gt", Relation::Greater),
];

/// Returns the relation of a word.
pub(super) fn relation(word: &str) -> Option<Relation> {
    let found = RELATIONS.iter().find(|(name, _)| *name == word);
    found.map(|(_, relation)| *relation)
}

/// Whether a word continues or compares an expression.
pub(super) fn continues(word: &str) -> bool {
    let mut operations = LEVELS.iter().flat_map(|level| level.iter());
    operations.any(|(mark, _)| *mark == word) || relation(word).is_some()
}

/// Returns the layer that a word with brackets reads.
pub(super) fn layer(word: &str) -> Option<Layer> {
    Some(match word {
        "ether" | "link" => Layer::Ether,
        "ip" => Layer::Ip4,
        "ip6" => Layer::Ip6,
        "arp" => Layer::Typed(ARP),
        "rarp" => Layer::Typed(RARP),
        _ => Layer::Transport(names::protocol(word)?),
    })
}

impl Parser<'_> {
    /// Parses an expression with operators of this precedence level or higher.
    pub(super) fn expression(
        &mut self,
        level: usize,
        depth: u32,
    ) -> Result<Expression, FilterError> {
        let Some(operations) = LEVELS.get(level) else {
            return self.operand(depth);
        };
        let mut left = self.expression(level + 1, depth)?;
        while let Some((_, operation)) = self
            .peek()
            .and_then(|word| operations.iter().find(|(mark, _)| *mark == word))
        {
            self.take();
            let zero = self.column();
            let right = self.expression(level + 1, depth)?;
            let divides = matches!(operation, Operation::Divide | Operation::Remainder);
            if divides && right == Expression::Number(0) {
                let message = "division by zero";
                return Err(FilterError {
                    column: zero,
                    message: message.into(),
                });
            }
            left = Expression::joined(*operation, left, right);
        }
        Ok(left)
    }

    fn operand(&mut self, depth: u32) -> Result<Expression, FilterError> {
        const WHAT: &str = "a number, len, or bytes such as tcp[13] or ip[2:2]";
        self.check_depth(depth)?;
        let word = self.peek().ok_or_else(|| self.expected(WHAT))?;
        match word {
            "(" => {
                self.take();
                let inner = self.expression(0, depth + 1)?;
                self.close(")")?;
                Ok(inner)
            }
            "-" => {
                self.take();
                let positive = self.operand(depth + 1)?;
                let zero = Expression::Number(0);
                Ok(Expression::joined(Operation::Subtract, zero, positive))
            }
            "len" => {
                self.take();
                Ok(Expression::Length)
            }
            _ if self.peek_at(1) == Some("[") => self.bytes_of(word, depth),
            _ => {
                let value = |text: &str| number(text).or_else(|| names::constant(text));
                self.read(WHAT, value).map(Expression::Number)
            }
        }
    }

    /// Parses `tcp[13]`, `ip[2:2]` and similar.
    fn bytes_of(&mut self, word: &str, depth: u32) -> Result<Expression, FilterError> {
        let layer = layer(word).ok_or_else(|| {
            self.wrong(format!(
                "no bytes of '{word}'; write ether, ip, ip6, arp, tcp, udp, icmp, icmp6 or sctp \
                 before '['"
            ))
        })?;
        self.take();
        self.take();
        let offset = self.expression(0, depth + 1)?;
        let size = if self.take_if(&[":"]) {
            self.read("a number of bytes: 1, 2 or 4", |text| {
                number(text).filter(|size| [1, 2, 4].contains(size))
            })?
        } else {
            1
        };
        self.close("]")?;
        Ok(match offset {
            Expression::Number(offset) => Expression::Load {
                layer,
                offset,
                size,
            },
            offset => Expression::LoadAt {
                layer,
                offset: Box::new(offset),
                size,
            },
        })
    }
}

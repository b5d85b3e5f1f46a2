//! Arithmetic expressions and relational operators.

use alloc::boxed::Box;
use alloc::format;

use super::expression::{Expression, Operation};
use super::facts::{ARP, Layer, RARP, Relation};
use super::names;
use super::parser::{FilterError, Parser};
use super::values::number;

/// Operators, in order of increasing precedence.
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

/// Returns the relation denoted by a word.
pub(super) fn relation(word: &str) -> Option<Relation> {
    let found = RELATIONS.iter().find(|(name, _)| *name == word);
    found.map(|(_, relation)| *relation)
}

/// Whether a word continues an expression or compares it.
pub(super) fn continues(word: &str) -> bool {
    let mut operations = LEVELS.iter().flat_map(|level| level.iter());
    operations.any(|(mark, _)| *mark == word) || relation(word).is_some()
}

/// Returns the layer accessed by a word with brackets.
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
    /// Parses an expression with operators at or above this precedence level.
    pub(super) fn expression(
        &mut self,
        level: usize,
        depth: u32,
    ) -> Result<Expression, FilterError> {
        let Some(operations) = LEVELS.get(level) else {
            return self.operand(depth);
        };
        let mut left = self.expression(level + 1, depth)?;
        let operation = |word| operations.iter().find(|(mark, _)| *mark == word);
        while let Some((_, operation)) = self.take_as(operation) {
            let column = self.column();
            let right = self.expression(level + 1, depth)?;
            let divides = matches!(operation, Operation::Divide | Operation::Remainder);
            if divides && right == Expression::Number(0) {
                let message = "division by zero".into();
                return Err(FilterError { column, message });
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

    /// Parses byte accesses such as `tcp[13]` and `ip[2:2]`.
    fn bytes_of(&mut self, word: &str, depth: u32) -> Result<Expression, FilterError> {
        let layer = layer(word).ok_or_else(|| {
            self.wrong(format!(
                "'{word}' has no byte access; write ether, ip, ip6, arp, tcp, udp, icmp, icmp6 or \
                 sctp before '['"
            ))
        })?;
        self.take();
        self.take();
        let offset = self.expression(0, depth + 1)?;
        let mut size = 1;
        if self.take_if(&[":"]) {
            let one_of = |text: &str| number(text).filter(|size| [1, 2, 4].contains(size));
            size = self.read("a number of bytes: 1, 2 or 4", one_of)?;
        }
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

//! Tests with a dedicated keyword.

use super::arithmetic::relation;
use super::expression::{Expression, IpNumber};
use super::facts::{Relation, Test};
use super::parser::Parser;
use super::tokens::FilterError;
use super::values::{code_point, hexadecimal, number};

impl Parser<'_> {
    /// Parses a test with a dedicated keyword; `None` for other words.
    pub(super) fn own(&mut self, word: &str) -> Result<Option<Test>, FilterError> {
        let test = match word {
            "len" => self.compare(Expression::Length, "a length in bytes", number)?,
            "ttl" => {
                let what = "a time to live, 0 to 255";
                self.compare(Expression::Ip(IpNumber::Ttl), what, up_to(255))?
            }
            "dscp" => {
                let what = "a code point: 0 to 63, ef, cs1 or af11";
                self.compare(Expression::Ip(IpNumber::Dscp), what, |text| {
                    up_to(63)(text).or_else(|| code_point(text).map(|bits| bits as u32))
                })?
            }
            "ecn" => {
                const WORDS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
                let what = "one of not-ect, ect1, ect0, ce, or 0 to 3";
                self.compare(Expression::Ip(IpNumber::Ecn), what, |text| {
                    let word = WORDS.iter().position(|word| *word == text);
                    up_to(3)(text).or(word.map(|bits| bits as u32))
                })?
            }
            "less" | "greater" => {
                self.take();
                let limit = self.read("a length in bytes", number)?;
                let relation = match word {
                    "less" => Relation::AtMost,
                    _ => Relation::AtLeast,
                };
                Test::relation(Expression::Length, relation, Expression::Number(limit))
            }
            "vlan" => self.vlan(),
            "flag" => {
                const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
                self.take();
                let flag = self.read("one of fin, syn, rst, psh, ack, urg, ece, cwr", |text| {
                    FLAGS.iter().position(|flag| *flag == text)
                })?;
                Test::Flag(1 << flag)
            }
            "fragment" => {
                self.take();
                Test::Fragment
            }
            "bytes" => {
                self.take();
                let offset: u16 = self.read("an offset in bytes, 0 to 65535", number)?;
                let bytes = self.read("bytes in hexadecimal such as 4500", hexadecimal)?;
                let offset = usize::from(offset);
                Test::Bytes { offset, bytes }
            }
            _ => return Ok(None),
        };
        Ok(Some(test))
    }

    /// Parses an optional relation and a value; "dscp 46" is "dscp = 46".
    fn compare(
        &mut self,
        left: Expression,
        what: &str,
        value: impl FnOnce(&str) -> Option<u32>,
    ) -> Result<Test, FilterError> {
        self.take();
        let wanted = self.peek().and_then(relation);
        if wanted.is_some() {
            self.take();
        }
        let right = Expression::Number(self.read(what, value)?);
        Ok(Test::relation(
            left,
            wanted.unwrap_or(Relation::Equal),
            right,
        ))
    }

    /// Parses an optional VLAN ID. Tests joined by `and` refer to consecutive tags.
    fn vlan(&mut self) -> Test {
        self.take();
        let id = self.peek().and_then(number).filter(|vlan| *vlan < 4096);
        if id.is_some() {
            self.take();
        }
        self.vlans += 1;
        let nth = self.vlans - 1;
        Test::Vlan { nth, id }
    }
}

fn up_to(max: u32) -> impl Fn(&str) -> Option<u32> {
    move |text| number(text).filter(|n| *n <= max)
}

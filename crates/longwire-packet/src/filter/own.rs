//! Tests with a dedicated keyword.

use alloc::boxed::Box;

use super::arithmetic::relation;
use super::expression::{Expression, IpNumber};
use super::facts::{Relation, Test};
use super::parser::Parser;
use super::tokens::FilterError;
use super::values::{code_point, hexadecimal, number};

/// Creates a comparison with a constant.
fn related(left: Expression, relation: Relation, right: u32) -> Test {
    Test::Relation(Box::new((left, relation, Expression::Number(right))))
}

impl Parser<'_> {
    /// Parses a test with a dedicated keyword; `None` for other words.
    pub(super) fn own(&mut self, word: &str) -> Result<Option<Test>, FilterError> {
        let test = match word {
            "len" => self.compare(Expression::Length, |parser| {
                parser.read("a length in bytes", number)
            })?,
            "ttl" => self.compare(Expression::Ip(IpNumber::Ttl), |parser| {
                parser.read("a time to live, 0 to 255", up_to(255))
            })?,
            "dscp" => self.compare(Expression::Ip(IpNumber::Dscp), |parser| {
                parser.read("a code point: 0 to 63, ef, cs1 or af11", |text| {
                    up_to(63)(text).or_else(|| code_point(text).map(|bits| bits as u32))
                })
            })?,
            "ecn" => self.compare(Expression::Ip(IpNumber::Ecn), |parser| {
                parser.read("one of not-ect, ect1, ect0, ce, or 0 to 3", |text| {
                    const WORDS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
                    let word = WORDS.iter().position(|word| *word == text);
                    up_to(3)(text).or(word.map(|bits| bits as u32))
                })
            })?,
            "less" | "greater" => {
                self.take();
                let limit = self.read("a length in bytes", number)?;
                match word {
                    "less" => related(Expression::Length, Relation::AtMost, limit),
                    _ => related(Expression::Length, Relation::AtLeast, limit),
                }
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
        value: impl FnOnce(&mut Self) -> Result<u32, FilterError>,
    ) -> Result<Test, FilterError> {
        self.take();
        let wanted = self.peek().and_then(relation);
        if wanted.is_some() {
            self.take();
        }
        let right = value(self)?;
        Ok(related(left, wanted.unwrap_or(Relation::Equal), right))
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

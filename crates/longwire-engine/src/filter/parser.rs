//! Reads a filter's text. Every text is read or refused; none is too deep.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::facts::{Field, Node, Relation, Side, Test};
use super::tokens::{FilterError, Token, tokens};
use super::values::{Net, code_point, hexadecimal, mac, number};

/// Parentheses and negations within one another, at the most.
const DEPTH_MAX: u32 = 32;

/// Reads a filter.
///
/// # Errors
/// What is wrong with it, and in which column.
pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let (tokens, end) = tokens(text);
    let mut parser = Parser {
        tokens: &tokens,
        end,
    };
    let filter = parser.any(0)?;
    match parser.peek() {
        None => Ok(filter),
        Some(")") => Err(parser.wrong("this ')' closes nothing")),
        Some(word) => Err(parser.wrong(format!("'{word}' follows; join tests with 'and' or 'or'"))),
    }
}

/// The words that have not been read.
struct Parser<'a> {
    tokens: &'a [Token<'a>],
    /// The column behind the text.
    end: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.first().map(|token| token.text)
    }

    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.text)
    }

    fn take_if(&mut self, words: &[&str]) -> bool {
        let there = self.peek().is_some_and(|word| words.contains(&word));
        if there {
            self.take();
        }
        there
    }

    /// An error at the next word.
    fn wrong(&self, message: impl Into<String>) -> FilterError {
        FilterError {
            column: self.tokens.first().map_or(self.end, |token| token.column),
            message: message.into(),
        }
    }

    /// An error about the next word, or that there is none.
    fn expected(&self, what: &str) -> FilterError {
        match self.peek() {
            Some(word) => self.wrong(format!("'{word}' is not {what}")),
            None => self.wrong(format!("the filter ends where {what} should follow")),
        }
    }

    /// Reads the next word, or leaves it and says what was expected.
    fn read<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FilterError> {
        let value = self.peek().and_then(read);
        let value = value.ok_or_else(|| self.expected(what))?;
        self.take();
        Ok(value)
    }

    fn any(&mut self, depth: u32) -> Result<Node, FilterError> {
        let mut filters = alloc::vec![self.all(depth)?];
        while self.take_if(&["or", "||"]) {
            filters.push(self.all(depth)?);
        }
        Ok(joined(filters, Node::Any))
    }

    fn all(&mut self, depth: u32) -> Result<Node, FilterError> {
        let mut filters = alloc::vec![self.one(depth)?];
        while self.take_if(&["and", "&&"]) {
            filters.push(self.one(depth)?);
        }
        Ok(joined(filters, Node::All))
    }

    fn one(&mut self, depth: u32) -> Result<Node, FilterError> {
        if depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} parentheses and negations in one another");
            return Err(self.wrong(message));
        }
        if self.take_if(&["not", "!"]) {
            return Ok(Node::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.take_if(&["("]) {
            let filter = self.any(depth + 1)?;
            if !self.take_if(&[")"]) {
                return Err(self.expected("')'"));
            }
            return Ok(filter);
        }
        self.test()
    }

    fn test(&mut self) -> Result<Node, FilterError> {
        const WHAT: &str = "a test such as ip, udp, port 53, src net 10.0.0.0/8 or len > 100";
        let word = self.peek().ok_or_else(|| self.expected(WHAT))?;
        if let Some(test) = protocol(word) {
            self.take();
            let test = Node::Test(test);
            // As in "udp port 53".
            return match self.peek() {
                Some("src" | "dst" | "host" | "net" | "port" | "portrange") => {
                    Ok(Node::All(alloc::vec![test, Node::Test(self.of_side()?)]))
                }
                _ => Ok(test),
            };
        }
        let test = match word {
            "src" | "dst" | "host" | "net" | "port" | "portrange" => self.of_side()?,
            "ether" => self.ether()?,
            "len" | "ttl" | "dscp" | "ecn" => self.compare()?,
            "vlan" | "proto" | "flag" | "fragment" | "bytes" => self.other()?,
            _ => return Err(self.expected(WHAT)),
        };
        Ok(Node::Test(test))
    }

    fn side(&mut self) -> Side {
        let side = match self.peek() {
            Some("src") => Side::Source,
            Some("dst") => Side::Destination,
            _ => return Side::Either,
        };
        self.take();
        side
    }

    fn of_side(&mut self) -> Result<Test, FilterError> {
        let side = self.side();
        match self.peek() {
            Some("port") => {
                self.take();
                let port = self.read("a port number, 0 to 65535", number)?;
                let (low, high) = (port, port);
                Ok(Test::Port { side, low, high })
            }
            Some("portrange") => {
                self.take();
                let (low, high) = self.read("a range of ports such as 5000-5010", |text| {
                    let (low, high) = text.split_once('-')?;
                    let range: (u16, u16) = (number(low)?, number(high)?);
                    (range.0 <= range.1).then_some(range)
                })?;
                Ok(Test::Port { side, low, high })
            }
            Some("net") => {
                self.take();
                let net = self.read(
                    "a network such as 10.0.0.0/8 or 2001:db8::/32",
                    Net::with_prefix,
                )?;
                Ok(Test::Net { side, net })
            }
            _ => {
                // "src 10.0.0.1" is "src host 10.0.0.1".
                self.take_if(&["host"]);
                let net = self.read("an address such as 10.0.0.1 or 2001:db8::1", Net::host)?;
                Ok(Test::Net { side, net })
            }
        }
    }

    fn ether(&mut self) -> Result<Test, FilterError> {
        self.take();
        if self.take_if(&["proto"]) {
            let ethertype = self.read("a type of Ethernet frames such as 0x88cc", number)?;
            return Ok(Test::EtherType(ethertype));
        }
        let side = self.side();
        self.take_if(&["host"]);
        let address = self.read("an Ethernet address such as 02:00:00:00:00:01", mac)?;
        Ok(Test::Mac { side, address })
    }

    fn compare(&mut self) -> Result<Test, FilterError> {
        let field = match self.take() {
            Some("len") => Field::Length,
            Some("ttl") => Field::Ttl,
            Some("dscp") => Field::Dscp,
            _ => Field::Ecn,
        };
        let relation = match self.peek() {
            Some("=" | "==") => Relation::Equal,
            Some("!=") => Relation::Unequal,
            Some("<") => Relation::Less,
            Some("<=") => Relation::AtMost,
            Some(">") => Relation::Greater,
            Some(">=") => Relation::AtLeast,
            // "dscp 46" is "dscp = 46".
            _ => {
                let value = self.value(field)?;
                let relation = Relation::Equal;
                return Ok(Test::Compare {
                    field,
                    relation,
                    value,
                });
            }
        };
        self.take();
        let value = self.value(field)?;
        Ok(Test::Compare {
            field,
            relation,
            value,
        })
    }

    fn value(&mut self, field: Field) -> Result<u64, FilterError> {
        let up_to = |max: u64| move |text: &str| number::<u64>(text).filter(|n| *n <= max);
        match field {
            Field::Length => self.read("a length in bytes", up_to(u64::from(u32::MAX))),
            Field::Ttl => self.read("a time to live, 0 to 255", up_to(255)),
            Field::Dscp => self.read("a code point: 0 to 63, ef, cs1 or af11", |text| {
                up_to(63)(text).or_else(|| code_point(text))
            }),
            Field::Ecn => self.read("one of not-ect, ect1, ect0, ce, or 0 to 3", |text| {
                const WORDS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
                let word = WORDS.iter().position(|word| *word == text);
                up_to(3)(text).or(word.map(|bits| bits as u64))
            }),
        }
    }

    fn other(&mut self) -> Result<Test, FilterError> {
        match self.take() {
            Some("vlan") => {
                let vlan = self.peek().and_then(number).filter(|vlan| *vlan < 4096);
                if vlan.is_some() {
                    self.take();
                }
                Ok(Test::Vlan(vlan))
            }
            Some("proto") => {
                let protocol = self.read("a protocol number, 0 to 255", number)?;
                Ok(Test::Protocol(protocol))
            }
            Some("flag") => {
                const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
                let flag = self.read("one of fin, syn, rst, psh, ack, urg, ece, cwr", |text| {
                    FLAGS.iter().position(|flag| *flag == text)
                })?;
                Ok(Test::Flag(1 << flag))
            }
            Some("fragment") => Ok(Test::Fragment),
            _ => {
                let offset: u16 = self.read("an offset in bytes, 0 to 65535", number)?;
                let bytes = self.read("bytes in hexadecimal such as 4500", hexadecimal)?;
                Ok(Test::Bytes {
                    offset: usize::from(offset),
                    bytes,
                })
            }
        }
    }
}

/// One filter as it is, several as one.
fn joined(mut filters: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match filters.len() {
        1 => filters.swap_remove(0),
        _ => join(filters),
    }
}

fn protocol(word: &str) -> Option<Test> {
    Some(match word {
        "ip" => Test::EtherType(0x0800),
        "ip6" => Test::EtherType(0x86dd),
        "arp" => Test::EtherType(0x0806),
        "icmp" => Test::Protocol(1),
        "icmp6" => Test::Protocol(58),
        "tcp" => Test::Protocol(6),
        "udp" => Test::Protocol(17),
        "sctp" => Test::Protocol(132),
        _ => return None,
    })
}

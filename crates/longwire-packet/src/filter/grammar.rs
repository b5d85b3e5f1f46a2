//! Grammar of filters: tests joined by `and`, `or`, `not` and parentheses. Nesting is bounded, so
//! every text is either parsed or rejected.

use alloc::boxed::Box;
use alloc::{format, vec};

use super::arithmetic::{continues, relation};
use super::facts::{Node, Test};
use super::parser::{FilterError, Parser, joined, tokens};
use super::values::number;
use super::{fields, names};

/// Parses a filter.
///
/// # Errors
/// The error with its column.
pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let (tokens, end) = tokens(text);
    let mut parser = Parser::new(&tokens, end);
    let filter = parser.any(0)?;
    match parser.peek() {
        None => Ok(filter),
        Some(")") => Err(parser.wrong("unmatched ')'")),
        Some(word) => Err(parser.wrong(format!(
            "unexpected '{word}'; join tests with 'and' or 'or'"
        ))),
    }
}

impl Parser<'_> {
    fn any(&mut self, depth: u32) -> Result<Node, FilterError> {
        self.alternatives(|parser| parser.one(depth))
    }

    /// Parses operands joined by `and` and `or`.
    pub(super) fn alternatives(
        &mut self,
        mut operand: impl FnMut(&mut Self) -> Result<Node, FilterError>,
    ) -> Result<Node, FilterError> {
        let mut any = vec![];
        loop {
            let outside = self.vlans;
            let mut all = vec![operand(self)?];
            while self.take_if(&["and", "&&"]) {
                all.push(operand(self)?);
            }
            self.vlans = outside;
            any.push(joined(all, Node::All));
            if !self.take_if(&["or", "||"]) {
                return Ok(joined(any, Node::Any));
            }
        }
    }

    fn one(&mut self, depth: u32) -> Result<Node, FilterError> {
        self.check_depth(depth)?;
        if self.take_if(&["not", "!"]) {
            let vlans = self.vlans;
            let negated = Node::Not(Box::new(self.one(depth + 1)?));
            self.vlans = vlans;
            return Ok(negated);
        }
        if self.begins_arithmetic() {
            return self.compared(depth).map(Node::Test);
        }
        if self.take_if(&["("]) {
            let filter = self.any(depth + 1)?;
            self.close(")")?;
            return Ok(filter);
        }
        self.test(depth)
    }

    /// Whether a comparison of expressions follows.
    fn begins_arithmetic(&self) -> bool {
        let Some(word) = self.peek() else {
            return false;
        };
        let next = self.peek_at(1);
        let goes_on = next.is_some_and(continues);
        match word {
            "(" => self.behind_parenthesis().is_some_and(continues),
            "-" => true,
            "len" => goes_on,
            _ if next == Some("[") => true,
            _ if number::<u32>(word).is_some() || names::constant(word).is_some() => goes_on,
            _ => false,
        }
    }

    fn compared(&mut self, depth: u32) -> Result<Test, FilterError> {
        let left = self.expression(0, depth)?;
        let relation = self.read("one of = != < <= > >=", relation)?;
        let right = self.expression(0, depth)?;
        Ok(Test::relation(left, relation, right))
    }

    fn test(&mut self, depth: u32) -> Result<Node, FilterError> {
        const WHAT: &str = "a test such as ip, udp, port 53, src net 10.0.0.0/8 or len > 100";
        let word = self.peek().ok_or_else(|| self.expected(WHAT))?;
        if let Some(field) = fields::find(word) {
            return self.field(field);
        }
        if let Some(test) = self.own(word)? {
            return Ok(Node::Test(test));
        }
        if let Some(node) = self.qualified(depth)? {
            return Ok(node);
        }
        // "port 80 or 443" means "port 80 or port 443".
        if let Some(qualifier) = self.qualifier
            && let Ok(node) = self.value(&qualifier)
        {
            return Ok(node);
        }
        Err(self.expected(WHAT))
    }
}

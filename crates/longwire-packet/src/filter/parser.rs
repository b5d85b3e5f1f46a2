//! Reads a filter's text. Every text is read or refused; none is too deep.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::arithmetic::{continues, relation};
use super::facts::{Node, Test};
use super::fields;
use super::names;
use super::primitives::Qualifier;
use super::tokens::{FilterError, Token, tokens};
use super::values::number;

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
        vlans: 0,
        qualifier: None,
    };
    let filter = parser.any(0)?;
    match parser.peek() {
        None => Ok(filter),
        Some(")") => Err(parser.wrong("this ')' closes nothing")),
        Some(word) => Err(parser.wrong(format!("'{word}' follows; join tests with 'and' or 'or'"))),
    }
}

/// The words that have not been read.
pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    /// The column behind the text.
    end: usize,
    /// VLAN tags that tests before in the same conjunction are about: the next
    /// one is about the tag behind them.
    pub(super) vlans: usize,
    /// The last words of the kind of `udp dst port`: bare values behind `or`
    /// are of it.
    pub(super) qualifier: Option<Qualifier>,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(ahead).map(|token| token.text)
    }

    pub(super) fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.text)
    }

    pub(super) fn take_if(&mut self, words: &[&str]) -> bool {
        let there = self.peek().is_some_and(|word| words.contains(&word));
        if there {
            self.take();
        }
        there
    }

    /// Reads what closes a bracket.
    pub(super) fn close(&mut self, mark: &str) -> Result<(), FilterError> {
        match self.take_if(&[mark]) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{mark}'"))),
        }
    }

    /// Where the next word begins.
    pub(super) fn column(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.column)
    }

    /// An error at the next word.
    pub(super) fn wrong(&self, message: impl Into<String>) -> FilterError {
        FilterError {
            column: self.column(),
            message: message.into(),
        }
    }

    /// An error about the next word, or that there is none.
    pub(super) fn expected(&self, what: &str) -> FilterError {
        match self.peek() {
            Some(word) => self.wrong(format!("'{word}' is not {what}")),
            None => self.wrong(format!("the filter ends where {what} should follow")),
        }
    }

    /// Reads the next word, or leaves it and says what was expected.
    pub(super) fn read<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FilterError> {
        let value = self.peek().and_then(read);
        let value = value.ok_or_else(|| self.expected(what))?;
        self.take();
        Ok(value)
    }

    pub(super) fn check_depth(&self, depth: u32) -> Result<(), FilterError> {
        if depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} parentheses and negations in one another");
            return Err(self.wrong(message));
        }
        Ok(())
    }

    fn any(&mut self, depth: u32) -> Result<Node, FilterError> {
        let mut filters = alloc::vec![self.all(depth)?];
        while self.take_if(&["or", "||"]) {
            filters.push(self.all(depth)?);
        }
        Ok(joined(filters, Node::Any))
    }

    fn all(&mut self, depth: u32) -> Result<Node, FilterError> {
        let outside = self.vlans;
        let mut filters = alloc::vec![self.one(depth)?];
        while self.take_if(&["and", "&&"]) {
            filters.push(self.one(depth)?);
        }
        self.vlans = outside;
        Ok(joined(filters, Node::All))
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

    /// Whether a comparison of two expressions follows, and no other test.
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

    /// The word behind the parenthesis that the next word opens.
    fn behind_parenthesis(&self) -> Option<&'a str> {
        let mut open = 0;
        for (index, token) in self.tokens.iter().enumerate() {
            match token.text {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
            if open == 0 {
                return self.peek_at(index + 1);
            }
        }
        None
    }

    fn compared(&mut self, depth: u32) -> Result<Test, FilterError> {
        let left = self.expression(0, depth)?;
        let relation = self.read("one of = != < <= > >=", relation)?;
        let right = self.expression(0, depth)?;
        Ok(Test::Relation(Box::new((left, relation, right))))
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
        // "port 80 or 443" is "port 80 or port 443".
        if let Some(qualifier) = self.qualifier
            && let Some(node) = self.value_of(&qualifier)
        {
            return Ok(node);
        }
        Err(self.expected(WHAT))
    }
}

/// One filter as it is, several as one.
pub(super) fn joined(mut filters: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match filters.len() {
        1 => filters.swap_remove(0),
        _ => join(filters),
    }
}

//! The parser's state: the words of a filter that follow, and errors at their place.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::facts::Node;
use super::primitives::Qualifier;
use super::tokens::{FilterError, Token};

/// Parentheses and negations within one another, at the most.
const DEPTH_MAX: u32 = 32;

/// The words that have not been read.
pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    /// The column after the text.
    end: usize,
    /// VLAN tags that previous tests in the same conjunction are about: the next one is
    /// about the following tag.
    pub(super) vlans: usize,
    /// The last qualifier such as `udp dst port`: it applies to bare values after `or`.
    pub(super) qualifier: Option<Qualifier>,
}

impl<'a> Parser<'a> {
    /// Creates a parser of these words; the text ends before the column `end`.
    pub(super) fn new(tokens: &'a [Token<'a>], end: usize) -> Parser<'a> {
        Parser {
            tokens,
            end,
            vlans: 0,
            qualifier: None,
        }
    }

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
        if self.take_if(&[mark]) {
            Ok(())
        } else {
            Err(self.expected(&format!("'{mark}'")))
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

    /// The word behind the parenthesis that the next word opens.
    pub(super) fn behind_parenthesis(&self) -> Option<&'a str> {
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
}

/// One filter as it is, several as one.
pub(super) fn joined(mut filters: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match filters.len() {
        1 => filters.swap_remove(0),
        _ => join(filters),
    }
}

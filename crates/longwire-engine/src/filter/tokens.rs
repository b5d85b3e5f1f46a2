//! A filter's text, cut into words.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a filter was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong, and what would do.
    pub message: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

/// A word and where it begins, in characters from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    pub column: usize,
}

/// Marks that are words of their own, the longer ones first.
const MARKS: [&str; 12] = [
    "==", "!=", "<=", ">=", "&&", "||", "=", "<", ">", "!", "(", ")",
];

/// Cuts a text at blanks and around marks. Returns the words, and the column
/// behind the last character.
pub(super) fn tokens(text: &str) -> (Vec<Token<'_>>, usize) {
    let mut tokens = Vec::new();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            column += 1;
            continue;
        }
        let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
        let len = match mark {
            Some(mark) => mark.len(),
            None => {
                let ends = |c: char| c.is_whitespace() || "=!<>&|()".contains(c);
                // A lone mark that means nothing is a word by itself.
                let after = rest.char_indices().skip(1).find(|(_, c)| ends(*c));
                after.map_or(rest.len(), |(at, _)| at)
            }
        };
        let (word, after) = rest.split_at(len);
        tokens.push(Token { text: word, column });
        column += word.chars().count();
        rest = after;
    }
    (tokens, column)
}

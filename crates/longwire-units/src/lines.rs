//! Splits text into lines while it is read in pieces.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

/// Maximum length in bytes of a line that spans pieces; rejects files in other formats early.
const LINE_MAX: usize = 64 * 1024;

/// Splits successive pieces of text into lines, which may span pieces.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// Incomplete line at the end of the last piece.
    begun: Vec<u8>,
    number: u64,
}

/// Callback for each line's number and text.
type Take<'a> = &'a mut dyn FnMut(u64, &str) -> Result<(), String>;

impl LineSplitter {
    /// Processes the next piece, and passes each completed line to `take`.
    ///
    /// # Errors
    /// If a line that spans pieces is too long, a line is not UTF-8, or `take` fails.
    pub fn feed(&mut self, piece: &[u8], take: Take<'_>) -> Result<(), String> {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            if self.begun.is_empty() {
                self.line(&rest[..end], take)?;
            } else {
                self.extend(&rest[..end])?;
                let whole = core::mem::take(&mut self.begun);
                self.line(&whole, take)?;
            }
            rest = &rest[end + 1..];
        }
        self.extend(rest)
    }

    /// Ends the text. Remaining bytes form the last line.
    ///
    /// # Errors
    /// The errors of [`LineSplitter::feed`].
    pub fn finish(&mut self, take: Take<'_>) -> Result<(), String> {
        let last = core::mem::take(&mut self.begun);
        if last.is_empty() {
            return Ok(());
        }
        self.line(&last, take)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), String> {
        if self.begun.len() + part.len() > LINE_MAX {
            let line = self.number + 1;
            return Err(format!("line {line}: longer than {LINE_MAX} bytes"));
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }

    fn line(&mut self, line: &[u8], take: Take<'_>) -> Result<(), String> {
        self.number += 1;
        let number = self.number;
        // Neither a final carriage return nor a byte order mark is part of the line.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mark = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1);
        let line = mark.unwrap_or(line);
        let text = str::from_utf8(line).map_err(|_| format!("line {number}: not UTF-8 text"))?;
        take(number, text).map_err(|message| format!("line {number}: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn split(pieces: &[&[u8]]) -> Result<Vec<(u64, String)>, String> {
        let mut lines = Vec::new();
        let mut take = |number, text: &str| {
            lines.push((number, text.to_string()));
            Ok(())
        };
        let mut splitter = LineSplitter::default();
        for piece in pieces {
            splitter.feed(piece, &mut take)?;
        }
        splitter.finish(&mut take)?;
        Ok(lines)
    }

    #[test]
    fn lines_are_the_same_for_any_pieces() {
        let text = b"\xef\xbb\xbfone\r\n\ntwo and a half\nlast";
        let whole = split(&[text]).unwrap();
        assert_eq!(whole[0], (1, "one".to_string()));
        assert_eq!(whole[1], (2, String::new()));
        assert_eq!(whole[3], (4, "last".to_string()));
        for cut in 0..text.len() {
            assert_eq!(split(&[&text[..cut], &text[cut..]]).unwrap(), whole);
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(&bytes).unwrap(), whole);
    }

    #[test]
    fn invalid_utf8_is_refused_with_its_line() {
        assert_eq!(split(&[b"a\n\xff\n"]), Err("line 2: not UTF-8 text".into()));
        let long = vec![b'a'; LINE_MAX + 1];
        assert!(split(&[&long]).unwrap_err().starts_with("line 1: longer"));
    }
}

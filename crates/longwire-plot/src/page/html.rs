//! HTML output.

use std::fmt::Write;

/// An HTML document under construction.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Adds markup verbatim.
    pub fn raw(&mut self, markup: &str) -> &mut Html {
        self.0 += markup;
        self
    }

    /// Adds escaped text.
    pub fn text(&mut self, text: &str) -> &mut Html {
        self.0 += &escaped(text);
        self
    }

    /// Adds an element that contains only text.
    pub fn element(&mut self, name: &str, text: &str) -> &mut Html {
        let _ = write!(self.0, "<{name}>{}</{name}>", escaped(text));
        self
    }

    /// Adds a list of texts.
    pub fn list(&mut self, texts: &[String]) -> &mut Html {
        self.raw("<ul>");
        for text in texts {
            self.element("li", text);
        }
        self.raw("</ul>")
    }

    /// Adds a table; the first cell of each row is its heading.
    pub fn table(
        &mut self,
        head: impl IntoIterator<Item = impl AsRef<str>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.raw("<div class=\"scroll\"><table><thead><tr>");
        for cell in head {
            self.raw("<th scope=\"col\">")
                .text(cell.as_ref())
                .raw("</th>");
        }
        self.raw("</tr></thead><tbody>");
        for row in rows {
            self.raw("<tr>");
            for (index, cell) in row.iter().enumerate() {
                let (open, close) = if index == 0 {
                    ("<th scope=\"row\">", "</th>")
                } else {
                    ("<td>", "</td>")
                };
                self.raw(open).text(cell).raw(close);
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
    }

    /// Returns the document.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Escapes text for elements and double-quoted attributes. Control characters, which are invalid in
/// documents, are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            // Bidirectional overrides could disguise a command.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element, in which `</script>` and `<!--` are special.
pub fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Quotes a word for the shell, if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_texts_is_no_markup() {
        let hostile = "</script><img src=x onerror=\"alert('1')\">&\u{0}\u{202e}";
        let safe = escaped(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{202e}']));
        assert!(safe.contains("&lt;/script&gt;") && safe.contains("&amp;"));
        let json = script_json(&serde_json::json!([hostile, "<!--"]).to_string());
        assert!(!json.contains(['<', '>', '&']));
        let back: Vec<String> = serde_json::from_str(&json).expect("still JSON");
        assert_eq!(back, [hostile, "<!--"]);
    }

    #[test]
    fn words_survive_a_shell() {
        for word in ["", "a b", "it's", "$(x)", "--rate=10mbit", "*", "a\nb", "~"] {
            let command = format!("printf %s {}", shell_word(word));
            let output = std::process::Command::new("sh")
                .args(["-c", &command])
                .output();
            assert_eq!(
                String::from_utf8_lossy(&output.expect("a shell").stdout),
                word
            );
        }
    }
}

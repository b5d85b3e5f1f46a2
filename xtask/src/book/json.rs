//! A minimal JSON reader for the OpenAPI document, because `cargo xtask` has no dependencies.

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`, a boolean or a number, as written.
    Plain(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in document order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a document; `None` if it is invalid.
    pub fn read(text: &str) -> Option<Json> {
        let mut reader = Reader { rest: text };
        let value = reader.value()?;
        reader.rest.trim().is_empty().then_some(value)
    }

    /// Returns a field of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let mut fields = self.fields();
        fields.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the fields of an object; empty for other values.
    pub fn fields(&self) -> impl Iterator<Item = &(String, Json)> {
        let fields = match self {
            Json::Object(fields) => fields.as_slice(),
            _ => &[],
        };
        fields.iter()
    }

    /// Returns the elements of an array; empty for other values.
    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(list) => list,
            _ => &[],
        }
    }

    /// Returns a string field; empty if missing.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", Json::as_text)
    }

    /// Returns a string or a plain value as text.
    pub fn as_text(&self) -> &str {
        match self {
            Json::Text(text) | Json::Plain(text) => text,
            _ => "",
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Consumes `wanted` after white space.
    fn take(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(wanted)?;
        Some(())
    }

    fn value(&mut self) -> Option<Json> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '{' => self.sequence(['{', '}'], Self::field).map(Json::Object),
            '[' => self.sequence(['[', ']'], Self::value).map(Json::List),
            '"' => self.string().map(Json::Text),
            _ => {
                let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
                let (plain, rest) = self.rest.split_at(end);
                self.rest = rest;
                let plain = plain.trim();
                (!plain.is_empty()).then(|| Json::Plain(plain.to_owned()))
            }
        }
    }

    fn field(&mut self) -> Option<(String, Json)> {
        self.rest = self.rest.trim_start();
        let name = self.string()?;
        self.take(':')?;
        Some((name, self.value()?))
    }

    /// Reads elements, separated by commas, between these brackets.
    fn sequence<T>(
        &mut self,
        [open, close]: [char; 2],
        element: fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.take(open)?;
        let mut elements = Vec::new();
        if self.take(close).is_some() {
            return Some(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.take(',').is_none() {
                self.take(close)?;
                return Some(elements);
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let inside = self.rest.strip_prefix('"')?;
        let mut text = String::new();
        let mut chars = inside.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.rest = inside.get(at + 1..)?;
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'u' => {
                        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let read = Json::read(r#" {"a": [1, -2.5, null], "b": {"c": "x\"\u00e9\n"}, "d": []} "#);
        let read = read.expect("a document");
        let list = read.get("a").expect("a").list().iter();
        let list: Vec<&str> = list.map(Json::as_text).collect();
        assert_eq!(list, ["1", "-2.5", "null"]);
        assert_eq!(read.get("b").expect("b").text("c"), "x\"é\n");
        assert_eq!(read.get("d"), Some(&Json::List(Vec::new())));
        for wrong in ["", "{", "[1", r#"{"a" 1}"#, r#""x"#, "1 }"] {
            assert_eq!(Json::read(wrong), None, "{wrong}");
        }
    }
}

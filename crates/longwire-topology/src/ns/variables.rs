//! Variables and loops of a script.

use super::script::{COMMANDS_MAX, CommandError, Script};

impl Script {
    /// Substitutes `$name` and `$name(index)`.
    pub(super) fn substitute(&self, text: &str) -> Result<String, CommandError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            filled += before;
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            let (mut name, mut behind) = (after[..end].to_owned(), &after[end..]);
            if let Some(index) = behind.strip_prefix('(')
                && let Some((index, more)) = index.split_once(')')
            {
                name = format!("{name}({})", self.substitute(index)?);
                behind = more;
            }
            let value = self.values.get(&name);
            filled += value.ok_or_else(|| CommandError::from(format!("'${name}' is not set")))?;
            rest = behind;
        }
        Ok(filled + rest)
    }

    pub(super) fn increase(&mut self, variable: &str, by: &[&str]) -> Result<(), CommandError> {
        let whole = |text: &str| {
            let number: Result<i64, _> = text.parse();
            number.map_err(|_| CommandError::from(format!("'{text}' is not an integer")))
        };
        let by = by.first().map_or(Ok(1), |by| whole(by))?;
        let value = self.values.get(variable).map_or("0", String::as_str);
        let value = whole(value)?.saturating_add(by);
        self.values.insert(variable.to_owned(), value.to_string());
        Ok(())
    }

    /// Runs `for {set i 0} {$i < 4} {incr i} { … }`.
    pub(super) fn repeat(
        &mut self,
        (first, test, step): (&str, &str, &str),
        body: &str,
        body_line: usize,
        line: usize,
    ) -> Result<(), CommandError> {
        self.run(first, line).map_err(CommandError::Nested)?;
        while self.condition(test)? {
            self.run(body, body_line).map_err(CommandError::Nested)?;
            self.run(step, line).map_err(CommandError::Nested)?;
        }
        Ok(())
    }

    fn condition(&mut self, test: &str) -> Result<bool, CommandError> {
        // A loop with an empty body counts too.
        self.run += 1;
        let wrong = || {
            CommandError::from(format!(
                "condition '{test}' is not supported; write it as $i < 4"
            ))
        };
        if self.run > COMMANDS_MAX {
            return Err(format!("the loop runs more than {COMMANDS_MAX} times").into());
        }
        let filled = self.substitute(test)?;
        let words: Vec<&str> = filled.split_whitespace().collect();
        let [a, sign, b] = words.as_slice() else {
            return Err(wrong());
        };
        let (a, b): (i64, i64) = match (a.parse(), b.parse()) {
            (Ok(a), Ok(b)) => (a, b),
            _ => return Err(wrong()),
        };
        match *sign {
            "<" => Ok(a < b),
            "<=" => Ok(a <= b),
            ">" => Ok(a > b),
            ">=" => Ok(a >= b),
            "!=" => Ok(a != b),
            _ => Err(wrong()),
        }
    }
}

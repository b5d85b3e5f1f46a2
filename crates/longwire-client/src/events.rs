//! Parser of event streams (WHATWG HTML, section 9.2.6).

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Name; empty by default.
    pub kind: String,
    /// Data.
    pub data: String,
}

/// Incremental parser. Event IDs and retry times are ignored.
#[derive(Debug, Default)]
pub struct Events {
    /// Incomplete line.
    line: Vec<u8>,
    /// Whether the last line ended in CR; an LF that follows belongs to it.
    after_return: bool,
    begun: bool,
    kind: String,
    data: Option<String>,
}

/// Longest event, in bytes; more than the counters of 10,000 links.
pub const EVENT_MAX: usize = 64 << 20;

/// An event is longer than [`EVENT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Events {
    /// Returns the events that these bytes complete.
    ///
    /// # Errors
    /// If an event is too large.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.line);
            events.extend(self.end_line(&line));
            let behind = &rest[end + 1..];
            rest = match rest[end] {
                b'\r' if behind.is_empty() => {
                    self.after_return = true;
                    behind
                }
                b'\r' => behind.strip_prefix(b"\n").unwrap_or(behind),
                _ => behind,
            };
        }
        self.line.extend_from_slice(rest);
        let size = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if size > EVENT_MAX {
            Err(TooLarge)
        } else {
            Ok(events)
        }
    }

    /// Parses a line; returns the event that it completes.
    fn end_line(&mut self, line: &[u8]) -> Option<Event> {
        let line = if self.begun {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        self.begun = true;
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            return self.data.take().map(|data| Event { kind, data });
        }
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (name, &mut self.data) {
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", none) => *none = Some(value.to_owned()),
            ("event", _) => self.kind = value.to_owned(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = "\u{feff}: heartbeat\n\ndata: {\"a\":1}\n\nevent: x\r\nid: 7\r\n\
        data: two\r\ndata:lines\r\ndata\r\n\r\nretry: 5\r\rdata: \u{e4}\r\rdata: unfinished\n"
        .as_bytes();

    #[test]
    fn events_do_not_depend_on_chunk_sizes() {
        let event = |kind: &str, data: &str| Event {
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let wanted = [
            event("", "{\"a\":1}"),
            event("x", "two\nlines\n"),
            event("", "\u{e4}"),
        ];
        for step in 1..=STREAM.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for bytes in STREAM.chunks(step) {
                found.extend(events.take(bytes).expect("it is small"));
            }
            assert_eq!(found, wanted, "in steps of {step}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut events = Events::default();
        let chunk = vec![b'x'; 1 << 20];
        let taken = (0..100).find_map(|_| events.take(&chunk).err());
        assert_eq!(taken, Some(TooLarge));
    }
}

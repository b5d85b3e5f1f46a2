//! Executes a script's commands.

use std::collections::HashMap;
use std::net::IpAddr;

use longwire_engine::{BitRate, Nanos};

use super::network::{Edge, EdgeOptions, Network, Vertex};
use super::tcl::{ScriptCommand, ScriptError, Word, commands};

/// Maximum number of commands and loop iterations.
const STEPS_MAX: u64 = 1_000_000;

/// Commands that do not affect the network.
const IGNORED: [&str; 12] = [
    "source",
    "puts",
    "tb-set-node-os",
    "tb-set-hardware",
    "tb-set-node-startcmd",
    "tb-set-node-startup",
    "tb-set-node-rpms",
    "tb-set-node-tarfiles",
    "tb-set-vlink-emulation",
    "tb-set-multiplexed",
    "tb-use-endnodeshaping",
    "tb-set-sync-server",
];

/// Methods of `$ns` that do not affect the network.
const IGNORED_OF_NS: [&str; 6] = [
    "run",
    "rtproto",
    "color",
    "namtrace-all",
    "trace-all",
    "duplex-link-op",
];

/// A script being executed.
#[derive(Debug, Default)]
pub struct Script {
    /// Network described so far.
    pub network: Network,
    values: HashMap<String, String>,
    simulator: Option<String>,
    /// Number of commands and loop iterations run so far.
    steps: u64,
    /// Line of the current command.
    line: usize,
}

impl Script {
    /// Runs a script or a loop body.
    ///
    /// # Errors
    /// If a command is invalid or unsupported, or the script runs too many commands; the error
    /// includes the command's line.
    pub fn run(&mut self, text: &str, line: usize) -> Result<(), ScriptError> {
        for command in commands(text, line)? {
            self.line = command.line;
            self.count_step()?;
            self.command(&command)?;
        }
        Ok(())
    }

    /// Counts a command or a loop iteration; rejects more than [`STEPS_MAX`].
    fn count_step(&mut self) -> Result<(), ScriptError> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let reason =
                format!("the script runs more than {STEPS_MAX} commands and loop iterations");
            return self.refuse(reason);
        }
        Ok(())
    }

    fn command(&mut self, command: &ScriptCommand) -> Result<(), ScriptError> {
        if let [
            Word::Plain(name),
            Word::Braced(first, _),
            Word::Braced(test, _),
            Word::Braced(step, _),
            Word::Braced(body, line),
        ] = command.words.as_slice()
            && name == "for"
        {
            return self.repeat((first, test, step), body, *line);
        }
        if let [
            Word::Plain(name),
            Word::Plain(variable),
            Word::Bracket(made),
        ] = command.words.as_slice()
            && name == "set"
        {
            let variable = self.substitute(variable)?;
            let inner = commands(made, command.line)?;
            let [inner] = inner.as_slice() else {
                return self.refuse(format!("'[{made}]' is not one command"));
            };
            let words = self.words(inner)?;
            let value = self.evaluate(&variable, &words)?;
            self.values.insert(variable, value);
            return Ok(());
        }
        let words = self.words(command)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["set", variable, value] => {
                self.values
                    .insert((*variable).to_owned(), (*value).to_owned());
                Ok(())
            }
            ["incr", variable, by @ ..] => self.increase(variable, by),
            [name, ..] if IGNORED.contains(name) => Ok(()),
            [ns, name, ..] if self.is_simulator(ns) && IGNORED_OF_NS.contains(name) => Ok(()),
            [ns, rest @ ..] if self.is_simulator(ns) => self.simulator_method("", rest).map(drop),
            ["tb-set-link-loss", rest @ ..] => self.link_loss(rest),
            ["tb-set-lan-loss", lan, share] => self.lan_loss(lan, share),
            ["tb-set-ip", node, address] => self.address(node, address),
            [
                "tb-set-ip-link" | "tb-set-ip-lan" | "tb-set-ip-interface",
                node,
                _,
                address,
            ] => self.address(node, address),
            [name, ..] => self.refuse(format!(
                "'{name}' is not supported; supported: nodes, duplex-link, simplex-link, \
                 queue-limit, make-lan, tb-set-link-loss, tb-set-lan-loss, tb-set-ip, set, incr \
                 and for"
            )),
            [] => Ok(()),
        }
    }

    fn is_simulator(&self, word: &str) -> bool {
        self.simulator.as_deref() == Some(word)
    }

    /// Returns a command's words with variables substituted.
    fn words(&self, command: &ScriptCommand) -> Result<Vec<String>, ScriptError> {
        let word = |word: &Word| match word {
            Word::Plain(text) => self.substitute(text),
            Word::Braced(text, _) => Ok(text.clone()),
            Word::Bracket(text) => {
                self.refuse(format!("'[{text}]' is supported only after 'set NAME'"))
            }
        };
        // The target of `set` is a name, not a value, but may have a variable as index.
        command.words.iter().map(word).collect()
    }

    /// Runs a `[…]` command whose result is assigned to a variable.
    fn evaluate(&mut self, variable: &str, words: &[String]) -> Result<String, ScriptError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["new", "Simulator"] => {
                let simulator = format!("simulator {variable}");
                self.simulator = Some(simulator.clone());
                Ok(simulator)
            }
            [ns, rest @ ..] if self.is_simulator(ns) => self.simulator_method(variable, rest),
            _ => self.refuse(format!("'[{}]' is not supported", words.join(" "))),
        }
    }

    /// Runs a method of `$ns`.
    fn simulator_method(&mut self, variable: &str, words: &[&str]) -> Result<String, ScriptError> {
        // Emulab's names: nodes(3) becomes nodes-3.
        let name = variable.replace('(', "-").replace(')', "");
        match words {
            ["node"] if !name.is_empty() => self.add_vertex(&name, false),
            ["make-lan", members, bandwidth, time] if !name.is_empty() => {
                self.lan(&name, members, (bandwidth, time))
            }
            ["duplex-link", a, b, bandwidth, time, queue] => {
                let options = self.edge_options(bandwidth, time, queue)?;
                self.link(&name, (a, b), options.clone(), Some(options))
            }
            ["simplex-link", a, b, bandwidth, time, queue] => {
                let options = self.edge_options(bandwidth, time, queue)?;
                let (from, to) = (self.node(a)?, self.node(b)?);
                if let Some((edge, false)) = self.network.between(from, to)
                    && edge.down.is_none()
                {
                    edge.down = Some(options);
                    return Ok(edge.name.clone());
                }
                self.link(&name, (a, b), options, None)
            }
            ["queue-limit", a, b, limit] => {
                let Ok(packets) = limit.parse() else {
                    return self.refuse(format!("'{limit}' is not a number of packets"));
                };
                let (from, to) = (self.node(a)?, self.node(b)?);
                let options = match self.network.between(from, to) {
                    Some((edge, true)) => Some(&mut edge.up),
                    Some((edge, false)) => edge.down.as_mut(),
                    None => None,
                };
                let Some(options) = options else {
                    return self.refuse(format!("no link from {a} to {b}"));
                };
                options.queue = Some(packets);
                Ok(String::new())
            }
            _ => self.refuse(format!(
                "'$ns {}' is not supported; supported: node, duplex-link A B 100Mb 10ms DropTail, \
                 simplex-link, queue-limit and make-lan \"A B\" 100Mb 0ms",
                words.join(" ")
            )),
        }
    }

    fn add_vertex(&mut self, name: &str, is_lan: bool) -> Result<String, ScriptError> {
        if self.network.vertex(name).is_some() {
            return self.refuse(format!("'{name}' already exists"));
        }
        self.network.vertices.push(Vertex {
            name: name.to_owned(),
            is_lan,
            addresses: Vec::new(),
        });
        Ok(name.to_owned())
    }

    fn node(&self, name: &str) -> Result<usize, ScriptError> {
        match self.network.vertex(name) {
            Some(vertex) => Ok(vertex),
            None => self.refuse(format!("no node named '{name}'")),
        }
    }

    fn link(
        &mut self,
        name: &str,
        (a, b): (&str, &str),
        up: EdgeOptions,
        down: Option<EdgeOptions>,
    ) -> Result<String, ScriptError> {
        let ends = (self.node(a)?, self.node(b)?);
        if ends.0 == ends.1 {
            return self.refuse(format!("the link connects {a} to itself"));
        }
        let plain = if name.is_empty() {
            format!("{a}-{b}")
        } else {
            name.to_owned()
        };
        let taken = |name: &str| self.network.edges.iter().any(|edge| edge.name == name);
        let mut name = plain.clone();
        let mut nth = 2;
        while taken(&name) {
            name = format!("{plain}-{nth}");
            nth += 1;
        }
        self.network.edges.push(Edge {
            name: name.clone(),
            ends,
            up,
            down,
            line: self.line,
            lan: None,
        });
        Ok(name)
    }

    /// Creates a LAN: a link from each member to a central vertex. A LAN's delay applies between
    /// two members, so each link gets half.
    fn lan(
        &mut self,
        name: &str,
        members: &str,
        (bandwidth, time): (&str, &str),
    ) -> Result<String, ScriptError> {
        let whole = self.edge_options(bandwidth, time, "DropTail")?;
        let half = EdgeOptions {
            delay_ns: whole.delay_ns / 2,
            ..whole
        };
        self.add_vertex(name, true)?;
        for member in members.split_whitespace() {
            let link = format!("{name}-{member}");
            self.link(&link, (member, name), half.clone(), Some(half.clone()))?;
            if let Some(edge) = self.network.edges.last_mut() {
                edge.lan = Some(name.to_owned());
            }
        }
        Ok(name.to_owned())
    }

    fn link_loss(&mut self, words: &[&str]) -> Result<(), ScriptError> {
        let (edge, share) = match words {
            [name, share] => {
                let mut edges = self.network.edges.iter_mut();
                (edges.find(|edge| edge.name == *name), share)
            }
            [a, b, share] => {
                let ends = (self.node(a)?, self.node(b)?);
                let found = self.network.between(ends.0, ends.1);
                (found.map(|(edge, _)| edge), share)
            }
            _ => {
                let usage = "tb-set-link-loss takes a link, or two nodes, and a loss";
                return self.refuse(usage.to_owned());
            }
        };
        let Some(edge) = edge else {
            return self.refuse("no link between these nodes, or of this name".to_owned());
        };
        let share = loss(share).map_err(|reason| (self.line, reason))?;
        edge.up.loss = share;
        edge.down.iter_mut().for_each(|down| down.loss = share);
        Ok(())
    }

    fn lan_loss(&mut self, lan: &str, share: &str) -> Result<(), ScriptError> {
        // Frames cross two links, so each link has a loss of 1 - √(1 - p).
        let each = 1.0 - (1.0 - self.at_line(loss(share))?).sqrt();
        let mut found = false;
        for edge in &mut self.network.edges {
            if edge.lan.as_deref() == Some(lan) {
                found = true;
                edge.up.loss = each;
                edge.down.iter_mut().for_each(|down| down.loss = each);
            }
        }
        if !found {
            return self.refuse(format!("no LAN named '{lan}'"));
        }
        Ok(())
    }

    fn address(&mut self, node: &str, address: &str) -> Result<(), ScriptError> {
        let node = self.node(node)?;
        if address.parse::<IpAddr>().is_err() {
            return self.refuse(format!("'{address}' is not an IP address"));
        }
        let addresses = &mut self.network.vertices[node].addresses;
        if !addresses.iter().any(|known| known == address) {
            addresses.push(address.to_owned());
        }
        Ok(())
    }

    fn edge_options(
        &self,
        bandwidth: &str,
        time: &str,
        queue: &str,
    ) -> Result<EdgeOptions, ScriptError> {
        if queue != "DropTail" {
            return self.refuse(format!(
                "queue '{queue}' is not supported; use DropTail, and set the queue in the topology"
            ));
        }
        Ok(EdgeOptions {
            rate: self.at_line(rate(bandwidth))?,
            delay_ns: self.at_line(delay(time))?,
            loss: 0.0,
            queue: None,
        })
    }

    /// Substitutes `$name` and `$name(index)`.
    fn substitute(&self, text: &str) -> Result<String, ScriptError> {
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
            match self.values.get(&name) {
                Some(value) => filled += value,
                None => return self.refuse(format!("'${name}' is not set")),
            }
            rest = behind;
        }
        Ok(filled + rest)
    }

    fn increase(&mut self, variable: &str, by: &[&str]) -> Result<(), ScriptError> {
        let whole = |text: &str| match text.parse::<i64>() {
            Ok(number) => Ok(number),
            Err(_) => self.refuse(format!("'{text}' is not an integer")),
        };
        let by = by.first().map_or(Ok(1), |by| whole(by))?;
        let value = self.values.get(variable).map_or("0", String::as_str);
        let value = whole(value)?.saturating_add(by);
        self.values.insert(variable.to_owned(), value.to_string());
        Ok(())
    }

    /// Runs a loop such as `for {set i 0} {$i < 4} {incr i} { … }`.
    fn repeat(
        &mut self,
        (first, test, step): (&str, &str, &str),
        body: &str,
        body_line: usize,
    ) -> Result<(), ScriptError> {
        let line = self.line;
        self.run(first, line)?;
        while self.condition(test, line)? {
            self.run(body, body_line)?;
            self.run(step, line)?;
        }
        Ok(())
    }

    fn condition(&mut self, test: &str, line: usize) -> Result<bool, ScriptError> {
        self.line = line;
        // Count iterations of an empty loop too.
        self.count_step()?;
        let filled = self.substitute(test)?;
        let words: Vec<&str> = filled.split_whitespace().collect();
        if let [a, sign, b] = words.as_slice()
            && let (Ok(a), Ok(b)) = (a.parse::<i64>(), b.parse::<i64>())
        {
            match *sign {
                "<" => return Ok(a < b),
                "<=" => return Ok(a <= b),
                ">" => return Ok(a > b),
                ">=" => return Ok(a >= b),
                "!=" => return Ok(a != b),
                _ => {}
            }
        }
        self.refuse(format!(
            "condition '{test}' is not supported; write it like $i < 4"
        ))
    }

    /// Returns an error with the current command's line.
    fn refuse<T>(&self, reason: String) -> Result<T, ScriptError> {
        self.at_line(Err(reason))
    }

    /// Adds the current command's line to an error.
    fn at_line<T>(&self, result: Result<T, String>) -> Result<T, ScriptError> {
        result.map_err(|reason| (self.line, reason))
    }
}

/// Converts `100Mb`, `1.5Mbps`, `56Kb` or `1Gb` to `rate` syntax.
fn rate(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is not a bandwidth such as 100Mb, 1.5Mb or 56kb");
    let bare = text.strip_suffix("bps").or_else(|| text.strip_suffix('b'));
    let bare = bare.unwrap_or(text);
    let (digits, unit) = match bare.chars().last() {
        Some('k' | 'K') => (&bare[..bare.len() - 1], "kbit"),
        Some('M' | 'm') => (&bare[..bare.len() - 1], "mbit"),
        Some('G' | 'g') => (&bare[..bare.len() - 1], "gbit"),
        _ => (bare, "bit"),
    };
    let written = format!("{digits}{unit}");
    let rate: BitRate = written.parse().map_err(|_| wrong())?;
    Ok(rate.to_string())
}

/// Converts `10ms`, `0.01s` or `50us` to nanoseconds.
fn delay(text: &str) -> Result<u64, String> {
    if text.parse::<f64>() == Ok(0.0) {
        return Ok(0);
    }
    let time = text.parse().map(Nanos::as_nanos);
    time.map_err(|_| format!("'{text}' is not a delay such as 10ms"))
}

/// Parses a probability, such as `0.05`.
fn loss(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a loss ratio from 0 to 1"))
}

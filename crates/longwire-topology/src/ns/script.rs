//! Executes the commands of a script.

use std::collections::HashMap;

use super::network::{Edge, EdgeOptions, Network, Vertex};
use super::tcl::{ScriptCommand, ScriptError, Word, commands};
use super::values::{delay, loss, rate};

/// Maximum commands, including those in loops.
pub(super) const COMMANDS_MAX: u64 = 1_000_000;

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

/// A script under execution.
#[derive(Debug, Default)]
pub struct Script {
    /// The network described so far.
    pub network: Network,
    pub(super) values: HashMap<String, String>,
    simulator: Option<String>,
    pub(super) run: u64,
}

impl Script {
    /// Runs a script or a loop body.
    ///
    /// # Errors
    /// An unsupported command, with its line.
    pub fn run(&mut self, text: &str, line: usize) -> Result<(), ScriptError> {
        for command in commands(text, line)? {
            self.run += 1;
            if self.run > COMMANDS_MAX {
                let reason = format!("the script runs more than {COMMANDS_MAX} commands");
                return Err((command.line, reason));
            }
            self.command(&command).map_err(|reason| match reason {
                CommandError::Plain(reason) => (command.line, reason),
                CommandError::Nested(wrong) => wrong,
            })?;
        }
        Ok(())
    }

    fn command(&mut self, command: &ScriptCommand) -> Result<(), CommandError> {
        if let [
            Word::Plain(name),
            Word::Braced(first, _),
            Word::Braced(test, _),
            Word::Braced(step, _),
            Word::Braced(body, line),
        ] = command.words.as_slice()
            && name == "for"
        {
            return self.repeat((first, test, step), body, *line, command.line);
        }
        if let [
            Word::Plain(name),
            Word::Plain(variable),
            Word::Bracket(made),
        ] = command.words.as_slice()
            && name == "set"
        {
            let variable = self.substitute(variable)?;
            let inner = commands(made, command.line).map_err(CommandError::Nested)?;
            let [inner] = inner.as_slice() else {
                return Err(format!("'[{made}]' is not one command").into());
            };
            let words = self.words(inner)?;
            let value = self.evaluate(&variable, &words, command.line)?;
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
            [ns, rest @ ..] if self.is_simulator(ns) => {
                let made = self.simulator_method("", rest, command.line)?;
                drop(made);
                Ok(())
            }
            ["tb-set-link-loss", rest @ ..] => self.link_loss(rest),
            ["tb-set-lan-loss", lan, share] => self.lan_loss(lan, share),
            ["tb-set-ip", node, address] => self.address(node, address),
            [
                "tb-set-ip-link" | "tb-set-ip-lan" | "tb-set-ip-interface",
                node,
                _,
                address,
            ] => self.address(node, address),
            [name, ..] => Err(format!(
                "'{name}' is not supported; supported are nodes, duplex-link, simplex-link, queue-limit, \
                 make-lan, tb-set-link-loss, tb-set-lan-loss, tb-set-ip, set, incr and for"
            )
            .into()),
            [] => Ok(()),
        }
    }

    fn is_simulator(&self, word: &str) -> bool {
        self.simulator.as_deref() == Some(word)
    }

    /// Returns a command's words with variables substituted.
    fn words(&self, command: &ScriptCommand) -> Result<Vec<String>, CommandError> {
        let word = |word: &Word| match word {
            Word::Plain(text) => self.substitute(text),
            Word::Braced(text, _) => Ok(text.clone()),
            Word::Bracket(text) => {
                Err(format!("'[{text}]' is supported only after 'set NAME'").into())
            }
        };
        // The target of `set` is a name, but its index may be a variable.
        command.words.iter().map(word).collect()
    }

    /// Runs a `[…]` whose result is assigned to a variable.
    fn evaluate(
        &mut self,
        variable: &str,
        words: &[String],
        line: usize,
    ) -> Result<String, CommandError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["new", "Simulator"] => {
                let simulator = format!("simulator {variable}");
                self.simulator = Some(simulator.clone());
                Ok(simulator)
            }
            [ns, rest @ ..] if self.is_simulator(ns) => self.simulator_method(variable, rest, line),
            _ => Err(format!("'[{}]' is not supported", words.join(" ")).into()),
        }
    }

    /// Runs a method of `$ns`.
    fn simulator_method(
        &mut self,
        variable: &str,
        words: &[&str],
        line: usize,
    ) -> Result<String, CommandError> {
        // As Emulab names them: nodes(3) is nodes-3.
        let name = variable.replace('(', "-").replace(')', "");
        match words {
            ["node"] if !name.is_empty() => self.add_vertex(&name, false),
            ["make-lan", members, bandwidth, time] if !name.is_empty() => {
                self.lan(&name, members, (bandwidth, time), line)
            }
            ["duplex-link", a, b, bandwidth, time, queue] => {
                let options = edge_options(bandwidth, time, queue)?;
                self.link(&name, (a, b), options.clone(), Some(options), line)
            }
            ["simplex-link", a, b, bandwidth, time, queue] => {
                let options = edge_options(bandwidth, time, queue)?;
                let (from, to) = (self.node(a)?, self.node(b)?);
                if let Some((edge, false)) = self.network.between(from, to)
                    && edge.down.is_none()
                {
                    edge.down = Some(options);
                    return Ok(edge.name.clone());
                }
                self.link(&name, (a, b), options, None, line)
            }
            ["queue-limit", a, b, limit] => {
                let packets: u64 = limit
                    .parse()
                    .map_err(|_| CommandError::from(format!("'{limit}' is not a number of packets")))?;
                let (from, to) = (self.node(a)?, self.node(b)?);
                let found = self.network.between(from, to);
                let (edge, forward) = found
                    .ok_or_else(|| CommandError::from(format!("no link from {a} to {b}")))?;
                let options = if forward {
                    Some(&mut edge.up)
                } else {
                    edge.down.as_mut()
                };
                options.ok_or_else(|| CommandError::from(format!("no link from {a} to {b}")))?
                    .queue = Some(packets);
                Ok(String::new())
            }
            _ => Err(format!(
                "'$ns {}' is not supported; supported are node, duplex-link A B 100Mb 10ms DropTail, \
                 simplex-link, queue-limit and make-lan \"A B\" 100Mb 0ms",
                words.join(" ")
            )
            .into()),
        }
    }

    fn add_vertex(&mut self, name: &str, is_lan: bool) -> Result<String, CommandError> {
        if self.network.vertex(name).is_some() {
            return Err(format!("'{name}' already exists").into());
        }
        self.network.vertices.push(Vertex {
            name: name.to_owned(),
            is_lan,
            addresses: Vec::new(),
        });
        Ok(name.to_owned())
    }

    fn node(&self, name: &str) -> Result<usize, CommandError> {
        let vertex = self.network.vertex(name);
        vertex.ok_or_else(|| format!("no node named '{name}'").into())
    }

    fn link(
        &mut self,
        name: &str,
        (a, b): (&str, &str),
        up: EdgeOptions,
        down: Option<EdgeOptions>,
        line: usize,
    ) -> Result<String, CommandError> {
        let ends = (self.node(a)?, self.node(b)?);
        if ends.0 == ends.1 {
            return Err(format!("the link connects {a} to itself").into());
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
        let lan = None;
        let edge = Edge {
            name: name.clone(),
            ends,
            up,
            down,
            line,
            lan,
        };
        self.network.edges.push(edge);
        Ok(name)
    }

    /// Each member has a link to a central vertex. Delays are given between members, so
    /// each link gets half.
    fn lan(
        &mut self,
        name: &str,
        members: &str,
        (bandwidth, time): (&str, &str),
        line: usize,
    ) -> Result<String, CommandError> {
        let whole = edge_options(bandwidth, time, "DropTail")?;
        let half = EdgeOptions {
            delay_ns: whole.delay_ns / 2,
            ..whole
        };
        self.add_vertex(name, true)?;
        for member in members.split_whitespace() {
            let link = format!("{name}-{member}");
            self.link(
                &link,
                (member, name),
                half.clone(),
                Some(half.clone()),
                line,
            )?;
            if let Some(edge) = self.network.edges.last_mut() {
                edge.lan = Some(name.to_owned());
            }
        }
        Ok(name.to_owned())
    }

    fn link_loss(&mut self, words: &[&str]) -> Result<(), CommandError> {
        let (edge, share) = match words {
            [name, share] => {
                let edges = &mut self.network.edges;
                (edges.iter_mut().find(|edge| edge.name == *name), share)
            }
            [a, b, share] => {
                let ends = (self.node(a)?, self.node(b)?);
                (
                    self.network.between(ends.0, ends.1).map(|(edge, _)| edge),
                    share,
                )
            }
            _ => {
                return Err("tb-set-link-loss takes a link, or two nodes, and a loss"
                    .to_owned()
                    .into());
            }
        };
        let edge = edge.ok_or_else(|| CommandError::from("no such link".to_owned()))?;
        let share = loss(share)?;
        edge.up.loss = share;
        if let Some(down) = &mut edge.down {
            down.loss = share;
        }
        Ok(())
    }

    fn lan_loss(&mut self, lan: &str, share: &str) -> Result<(), CommandError> {
        // Frames cross two links, so each gets 1 - √(1 - p).
        let each = 1.0 - (1.0 - loss(share)?).sqrt();
        let mut found = false;
        for edge in &mut self.network.edges {
            if edge.lan.as_deref() == Some(lan) {
                found = true;
                edge.up.loss = each;
                edge.down.iter_mut().for_each(|down| down.loss = each);
            }
        }
        if found {
            Ok(())
        } else {
            Err(format!("no LAN named '{lan}'").into())
        }
    }

    fn address(&mut self, node: &str, address: &str) -> Result<(), CommandError> {
        let node = self.node(node)?;
        let parsed: Result<std::net::IpAddr, _> = address.parse();
        parsed.map_err(|_| CommandError::from(format!("'{address}' is not an IP address")))?;
        let addresses = &mut self.network.vertices[node].addresses;
        if !addresses.iter().any(|known| known == address) {
            addresses.push(address.to_owned());
        }
        Ok(())
    }
}

fn edge_options(bandwidth: &str, time: &str, queue: &str) -> Result<EdgeOptions, CommandError> {
    if queue != "DropTail" {
        let reason = format!(
            "queue '{queue}' is not supported; use DropTail, and set \
             another queue in the topology"
        );
        return Err(reason.into());
    }
    Ok(EdgeOptions {
        rate: rate(bandwidth)?,
        delay_ns: delay(time)?,
        loss: 0.0,
        queue: None,
    })
}

/// Why a command is refused.
pub(super) enum CommandError {
    /// At the command's own line.
    Plain(String),
    /// At a nested line.
    Nested(ScriptError),
}

impl From<String> for CommandError {
    fn from(reason: String) -> CommandError {
        CommandError::Plain(reason)
    }
}

//! The commands of a script.

use std::collections::HashMap;

use super::network::{Edge, EdgeSide, Network, Vertex};
use super::tcl::{ScriptCommand, ScriptError, Word, commands};
use super::values::{delay, loss, rate};

/// The most commands that are run, loops counted: a script is no program.
pub(super) const COMMANDS_MAX: u64 = 1_000_000;

/// Commands that say nothing of the network.
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

/// Methods of `$ns` that do not change the network.
const IGNORED_OF_NS: [&str; 6] = [
    "run",
    "rtproto",
    "color",
    "namtrace-all",
    "trace-all",
    "duplex-link-op",
];

/// A script that is being run.
#[derive(Debug, Default)]
pub struct Script {
    /// The network that it made.
    pub network: Network,
    pub(super) values: HashMap<String, String>,
    simulator: Option<String>,
    pub(super) run: u64,
}

impl Script {
    /// Runs a script, or a loop's body.
    ///
    /// # Errors
    /// What is not understood, with its line.
    pub fn run(&mut self, text: &str, line: usize) -> Result<(), ScriptError> {
        for command in commands(text, line)? {
            self.run += 1;
            if self.run > COMMANDS_MAX {
                let reason = format!("the script runs more than {COMMANDS_MAX} commands");
                return Err((command.line, reason));
            }
            self.command(&command).map_err(|reason| match reason {
                Reason::Here(reason) => (command.line, reason),
                Reason::There(wrong) => wrong,
            })?;
        }
        Ok(())
    }

    fn command(&mut self, command: &ScriptCommand) -> Result<(), Reason> {
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
            let variable = self.filled(variable)?;
            let inner = commands(made, command.line).map_err(Reason::There)?;
            let [inner] = inner.as_slice() else {
                return Err(format!("'[{made}]' is not one command").into());
            };
            let words = self.words(inner)?;
            let value = self.made(&variable, &words, command.line)?;
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
                let made = self.of_simulator("", rest, command.line)?;
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
                "'{name}' is not understood; nodes, duplex-link, simplex-link, queue-limit, \
                 make-lan, tb-set-link-loss, tb-set-lan-loss, tb-set-ip, set, incr and for are"
            )
            .into()),
            [] => Ok(()),
        }
    }

    fn is_simulator(&self, word: &str) -> bool {
        self.simulator.as_deref() == Some(word)
    }

    /// A command's words with all variables replaced.
    fn words(&self, command: &ScriptCommand) -> Result<Vec<String>, Reason> {
        let word = |word: &Word| match word {
            Word::Plain(text) => self.filled(text),
            Word::Braced(text, _) => Ok(text.clone()),
            Word::Bracket(text) => {
                Err(format!("'[{text}]' is understood only behind 'set NAME'").into())
            }
        };
        // What is set is a name, not a value, but its index may be one.
        command.words.iter().map(word).collect()
    }

    /// Runs the `[…]` whose result a variable gets.
    fn made(&mut self, variable: &str, words: &[String], line: usize) -> Result<String, Reason> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["new", "Simulator"] => {
                let simulator = format!("simulator {variable}");
                self.simulator = Some(simulator.clone());
                Ok(simulator)
            }
            [ns, rest @ ..] if self.is_simulator(ns) => self.of_simulator(variable, rest, line),
            _ => Err(format!("'[{}]' is not understood", words.join(" ")).into()),
        }
    }

    /// Runs a method of the simulator.
    fn of_simulator(
        &mut self,
        variable: &str,
        words: &[&str],
        line: usize,
    ) -> Result<String, Reason> {
        // The names that Emulab gives, too: nodes(3) is nodes-3.
        let name = variable.replace('(', "-").replace(')', "");
        match words {
            ["node"] if !name.is_empty() => self.add_place(&name, false),
            ["make-lan", members, bandwidth, time] if !name.is_empty() => {
                self.lan(&name, members, (bandwidth, time), line)
            }
            ["duplex-link", a, b, bandwidth, time, queue] => {
                let side = side(bandwidth, time, queue)?;
                self.link(&name, (a, b), side.clone(), Some(side), line)
            }
            ["simplex-link", a, b, bandwidth, time, queue] => {
                let side = side(bandwidth, time, queue)?;
                let (from, to) = (self.node(a)?, self.node(b)?);
                if let Some((edge, false)) = self.network.between(from, to)
                    && edge.down.is_none()
                {
                    edge.down = Some(side);
                    return Ok(edge.name.clone());
                }
                self.link(&name, (a, b), side, None, line)
            }
            ["queue-limit", a, b, limit] => {
                let packets: u64 = limit
                    .parse()
                    .map_err(|_| Reason::from(format!("'{limit}' is no number of packets")))?;
                let (from, to) = (self.node(a)?, self.node(b)?);
                let found = self.network.between(from, to);
                let (edge, forward) = found
                    .ok_or_else(|| Reason::from(format!("there is no link from {a} to {b}")))?;
                let side = if forward {
                    Some(&mut edge.up)
                } else {
                    edge.down.as_mut()
                };
                side.ok_or_else(|| Reason::from(format!("there is no link from {a} to {b}")))?
                    .queue = Some(packets);
                Ok(String::new())
            }
            _ => Err(format!(
                "'$ns {}' is not understood; node, duplex-link A B 100Mb 10ms DropTail, \
                 simplex-link, queue-limit and make-lan \"A B\" 100Mb 0ms are",
                words.join(" ")
            )
            .into()),
        }
    }

    fn add_place(&mut self, name: &str, is_lan: bool) -> Result<String, Reason> {
        if self.network.place(name).is_some() {
            return Err(format!("there is a '{name}' already").into());
        }
        self.network.places.push(Vertex {
            name: name.to_owned(),
            is_lan,
            addresses: Vec::new(),
        });
        Ok(name.to_owned())
    }

    fn node(&self, name: &str) -> Result<usize, Reason> {
        let place = self.network.place(name);
        place.ok_or_else(|| format!("there is no node '{name}'").into())
    }

    fn link(
        &mut self,
        name: &str,
        (a, b): (&str, &str),
        up: EdgeSide,
        down: Option<EdgeSide>,
        line: usize,
    ) -> Result<String, Reason> {
        let ends = (self.node(a)?, self.node(b)?);
        if ends.0 == ends.1 {
            return Err(format!("the link leads from {a} to itself").into());
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

    /// Each member has a link to the middle. What is given is from one member
    /// to another, so each of the two links has half of it.
    fn lan(
        &mut self,
        name: &str,
        members: &str,
        (bandwidth, time): (&str, &str),
        line: usize,
    ) -> Result<String, Reason> {
        let whole = side(bandwidth, time, "DropTail")?;
        let half = EdgeSide {
            delay_ns: whole.delay_ns / 2,
            ..whole
        };
        self.add_place(name, true)?;
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

    fn link_loss(&mut self, words: &[&str]) -> Result<(), Reason> {
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
        let edge = edge.ok_or_else(|| Reason::from("there is no such link".to_owned()))?;
        let share = loss(share)?;
        edge.up.loss = share;
        if let Some(down) = &mut edge.down {
            down.loss = share;
        }
        Ok(())
    }

    fn lan_loss(&mut self, lan: &str, share: &str) -> Result<(), Reason> {
        // Lost on one of two links: 1 - (1 - p)².
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
            Err(format!("there is no LAN '{lan}'").into())
        }
    }

    fn address(&mut self, node: &str, address: &str) -> Result<(), Reason> {
        let node = self.node(node)?;
        let parsed: Result<std::net::IpAddr, _> = address.parse();
        parsed.map_err(|_| Reason::from(format!("'{address}' is no IP address")))?;
        let addresses = &mut self.network.places[node].addresses;
        if !addresses.iter().any(|known| known == address) {
            addresses.push(address.to_owned());
        }
        Ok(())
    }
}

fn side(bandwidth: &str, time: &str, queue: &str) -> Result<EdgeSide, Reason> {
    if queue != "DropTail" {
        let reason = format!(
            "the queue '{queue}' is not understood; DropTail is. Import that, and give the link \
             another queue in the topology"
        );
        return Err(reason.into());
    }
    Ok(EdgeSide {
        rate: rate(bandwidth)?,
        delay_ns: delay(time)?,
        loss: 0.0,
        queue: None,
    })
}

/// The reason to refuse a command.
pub(super) enum Reason {
    /// At its own line.
    Here(String),
    /// At a line within it.
    There(ScriptError),
}

impl From<String> for Reason {
    fn from(reason: String) -> Reason {
        Reason::Here(reason)
    }
}

//! Prepares commands: parses and checks them completely, so that applying them cannot fail.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

use longwire_engine::{LinkChange, LinkId, LinkSpec, LinkState, Loader, Nanos, OptionError};
use longwire_runtime::deciding::{DeferredDrop, Operation, Target};

use super::numbered::Numbered;
use longwire_runtime::suggest;
use longwire_topology::{Action, Class, Command, Direction, Problem, State};

/// A prepared command.
#[derive(Default)]
pub struct PreparedCommand {
    /// Operations with their times since the start. A move with an outage has two.
    pub operations: Vec<(Nanos, Operation)>,
    /// Changes to the recorded state.
    pub(super) effects: Vec<Effect>,
    /// Number of named links whose options or state change.
    pub(super) links: usize,
}

/// A change to the recorded state of links.
pub(super) enum Effect {
    /// Overlay these options, and reset the named ones.
    Options(Vec<LinkId>, Box<LinkSpec>, Vec<&'static str>),
    State(Vec<LinkId>, State),
    /// Send frames of the first class along the path of the second.
    Moved(Class, Class),
}

impl Numbered {
    /// Prepares a command. Replaced parts will be sent to `retired`.
    ///
    /// # Errors
    /// The command's first problem.
    pub fn plan(
        &self,
        command: &Command,
        loader: &dyn Loader,
        retired: &Sender<DeferredDrop>,
    ) -> Result<PreparedCommand, Box<Problem>> {
        let at = command.at.unwrap_or(Nanos::ZERO);
        let mut changes: Vec<(LinkId, LinkChange)> = Vec::new();
        let mut targets: Vec<(u32, Target)> = Vec::new();
        let mut later: Vec<(Nanos, Vec<(u32, Target)>)> = Vec::new();
        let (mut effects, mut changed) = (Vec::new(), BTreeSet::new());
        for action in &command.actions {
            match action {
                Action::Set {
                    pattern,
                    options,
                    resets,
                } => {
                    let links = self.fitting(pattern);
                    changed.extend(self.named(pattern).into_iter().map(|(index, _)| index));
                    for link in &links {
                        let change = options.build_change(loader);
                        let name = &self.links[link.0 as usize].name;
                        changes.push((*link, change.map_err(|error| refused(name, &error))?));
                    }
                    effects.push(Effect::Options(links, options.clone(), resets.clone()));
                }
                Action::State { pattern, state } => {
                    let links = self.fitting(pattern);
                    changed.extend(self.named(pattern).into_iter().map(|(index, _)| index));
                    changes.extend(links.iter().map(|link| (*link, changed_state(*state))));
                    effects.push(Effect::State(links, *state));
                }
                Action::Move { class, to, outage } => {
                    let (name, class, to) = (class, self.class(class)?, self.class(to)?);
                    let moved = self.moved(class, to);
                    if moved.is_empty() {
                        let reason = format!("'{name}' has no matcher, so no frames to move");
                        let remedy = "move a link or path with a matcher";
                        return Err(problem("move", reason, remedy));
                    }
                    effects.push(Effect::Moved(class, to));
                    if *outage == Nanos::ZERO {
                        targets.extend(moved);
                        continue;
                    }
                    targets.extend(moved.iter().map(|(rule, to)| (*rule, during_outage(*to))));
                    later.push((at.saturating_add(*outage), moved));
                }
            }
        }
        let mut operations = vec![(at, work(changes, targets, retired))];
        for (at, targets) in later {
            operations.push((at, work(Vec::new(), targets, retired)));
        }
        Ok(PreparedCommand {
            operations,
            effects,
            links: changed.len(),
        })
    }

    fn class(&self, name: &str) -> Result<Class, Box<Problem>> {
        let found = self.topology.named(name);
        let reason = || format!("no link or path named '{name}'");
        found.ok_or_else(|| problem("move", reason(), "it may have been removed"))
    }

    /// Returns a class's rules with their targets after a move to `to`.
    fn moved(&self, class: Class, to: Class) -> Vec<(u32, Target)> {
        let rules = self.rules_of(class);
        let moved = rules.map(|rule| {
            let direction: Direction = self.topology.rules[rule as usize].target.direction;
            (rule, self.target(to, direction))
        });
        moved.collect()
    }
}

/// Returns the target during a move's outage.
fn during_outage(to: Target) -> Target {
    match to {
        Target::Path(path) => Target::Handover(path),
        other => other,
    }
}

fn problem(field: &str, reason: String, remedy: &str) -> Box<Problem> {
    Box::new(Problem {
        field: field.to_owned(),
        reason,
        remedy: remedy.to_owned(),
        ..Problem::default()
    })
}

pub(super) fn refused(link: &str, error: &OptionError) -> Box<Problem> {
    problem(
        &format!("{link}.{}", error.option),
        suggest::spec_error_without_content(&error.source),
        &format!("`longwire models {}` lists the choices", error.option),
    )
}

fn changed_state(state: State) -> LinkChange {
    let state = match state {
        State::On => LinkState::On,
        State::Off => LinkState::Off,
        State::Paused => LinkState::Paused,
    };
    LinkChange {
        state: Some(state),
        ..LinkChange::default()
    }
}

fn work(
    changes: Vec<(LinkId, LinkChange)>,
    targets: Vec<(u32, Target)>,
    retired: &Sender<DeferredDrop>,
) -> Operation {
    let retired = retired.clone();
    Box::new(move |core, at| {
        for (link, change) in changes {
            if let Some(replaced) = core.change_link(link, at, change) {
                // If the receiver no longer exists, this thread drops the parts.
                let _ = retired.send(replaced);
            }
        }
        for (rule, target) in targets {
            core.set_target(rule, target);
        }
    })
}

//! Programs that take frames at an interface.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::bpf::tcx::Hook;
use crate::bpf::{self, ProgramKind};
use crate::net::grace::ExpeditedGrace;

use super::alive::AliveCall;
use super::order::Rank;
use super::program::{self, Destination};
use super::{AttachError, Direction, FailMode, HOOKS, Selection};

/// A program that takes frames at one hook.
#[derive(Debug)]
pub(super) struct Taker {
    pub hook: Hook,
    program: OwnedFd,
    /// Its call of the redirecting program; `None` if it takes frames even after the
    /// process has ended.
    call: Option<AliveCall>,
}

impl Taker {
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Closes the program, which its link keeps.
    pub fn into_call(self) -> Option<AliveCall> {
        self.call
    }
}

/// Facts about an attachment that its programs embed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub rank: Rank,
    pub mark: u32,
    /// Indices of the inner and outer devices.
    pub devices: [u32; 2],
    pub fail: FailMode,
}

/// Loads programs for other selections, separately from
/// [`Attachment::select`](super::Attachment::select) because that takes milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    recipe: Recipe,
    direction: Direction,
}

/// Loaded programs for a selection.
#[derive(Debug)]
pub struct LoadedSelection {
    takers: Vec<Taker>,
    selection: Selection,
}

impl LoadedSelection {
    pub(super) fn into_parts(self) -> (Vec<Taker>, Selection) {
        (self.takers, self.selection)
    }
}

impl Selector {
    pub(super) fn new(recipe: Recipe, direction: Direction) -> Selector {
        Selector { recipe, direction }
    }

    /// Loads the programs of a selection.
    ///
    /// # Errors
    /// The kernel rejects the programs, or only one of the selections takes all frames:
    /// their ranks differ.
    pub fn load(&self, selection: &Selection) -> Result<LoadedSelection, AttachError> {
        selection.check_size()?;
        if selection.takes_all() != self.recipe.rank.takes_all {
            return Err(AttachError::OtherPlace);
        }
        let _hurry = ExpeditedGrace::begin();
        Ok(LoadedSelection {
            takers: self.takers(selection)?,
            selection: selection.clone(),
        })
    }

    pub(super) fn takers(&self, selection: &Selection) -> Result<Vec<Taker>, AttachError> {
        let hooks = HOOKS.into_iter().filter(|hook| self.direction.has(*hook));
        hooks.map(|hook| self.taker(hook, selection)).collect()
    }

    fn taker(&self, hook: Hook, selection: &Selection) -> Result<Taker, AttachError> {
        let [inside, outside] = self.recipe.devices;
        let (sending, device) = match hook {
            Hook::Egress => (true, inside),
            Hook::Ingress => (false, outside),
        };
        let call = match self.recipe.fail {
            FailMode::Open => Some(AliveCall::to(device).map_err(AttachError::program)?),
            FailMode::Closed => None,
        };
        let destination = match &call {
            None => Destination::Device(device),
            Some((_, array)) => Destination::WhileAlive(array.as_fd()),
        };
        let selected = selection.node(sending);
        let marked = Some((self.recipe.mark, hook));
        let instructions = program::take(marked, selected.as_ref(), destination);
        let instructions = instructions.ok_or(AttachError::FilterTooComplex)?;
        let name = self.recipe.rank.name(hook);
        let program = bpf::load_program(ProgramKind::Tcx, &name, &instructions);
        Ok(Taker {
            hook,
            program: program.map_err(AttachError::program)?,
            call: call.map(|(call, _)| call),
        })
    }
}

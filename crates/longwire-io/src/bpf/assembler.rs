//! Programs with labels.

use super::instruction::{EXIT, Instruction, SKIP};

/// A place in a program, which may come later than the jumps to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// A program that is being written. Jumps lead forward. Instructions that cannot be reached
/// are left out: the kernel refuses programs with such.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Where each label is, once it is placed.
    places: Vec<Option<usize>>,
    /// Instructions that jump, and where to.
    jumps: Vec<(usize, Label)>,
    /// The instruction before leads elsewhere always.
    is_over: bool,
}

impl Assembler {
    /// Appends an instruction that does not jump.
    pub(crate) fn put(&mut self, instruction: Instruction) {
        if !self.is_over {
            self.instructions.push(instruction);
        }
        self.is_over |= instruction == EXIT;
    }

    /// Appends instructions that do not jump.
    pub(crate) fn put_all(&mut self, instructions: impl IntoIterator<Item = Instruction>) {
        for instruction in instructions {
            self.put(instruction);
        }
    }

    /// Appends a conditional instruction, which jumps to a label.
    pub(crate) fn jump(&mut self, condition: Instruction, to: Label) {
        if !self.is_over {
            self.jumps.push((self.instructions.len(), to));
            self.instructions.push(condition);
        }
    }

    /// Jumps to a label always.
    pub(crate) fn go(&mut self, to: Label) {
        self.jump(SKIP, to);
        self.is_over = true;
    }

    /// Returns a label that is not placed yet.
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label here.
    pub(crate) fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.instructions.len());
        self.is_over &= self.jumps.iter().all(|(_, to)| *to != label);
    }

    /// Returns the program. `None` if a jump is too long for an instruction.
    pub(crate) fn finish(mut self) -> Option<Vec<Instruction>> {
        for (at, label) in self.jumps {
            let distance = self.places[label.0]?.checked_sub(at + 1)?;
            self.instructions[at].offset = i16::try_from(distance).ok()?;
        }
        Some(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::instruction::{Compare, move_number, skip_if_number};

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        let end = program.label();
        program.jump(skip_if_number(Compare::Equal, 1, 7), end);
        program.put(move_number(0, 1));
        program.put(move_number(0, 2));
        program.place(end);
        program.put(EXIT);
        let finished = program.finish().expect("a program");
        assert_eq!(finished[0].offset, 2);
    }

    #[test]
    fn what_cannot_be_reached_is_left_out() {
        let mut program = Assembler::default();
        let [used, unused] = [(); 2].map(|()| program.label());
        program.go(used);
        program.place(unused);
        program.put(move_number(0, 1));
        program.jump(skip_if_number(Compare::Equal, 1, 7), unused);
        program.place(used);
        program.put(EXIT);
        program.put(move_number(0, 1));
        let finished = program.finish().expect("a program");
        assert_eq!(finished, [SKIP, EXIT]);
    }

    #[test]
    fn a_jump_that_is_too_long_is_noticed() {
        let mut program = Assembler::default();
        let end = program.label();
        program.jump(skip_if_number(Compare::Equal, 1, 7), end);
        program.put_all(vec![move_number(0, 1); 40_000]);
        program.place(end);
        program.put(EXIT);
        assert!(program.finish().is_none());
    }
}

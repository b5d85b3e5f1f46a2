//! Programs with labels.

use super::instruction::{EXIT, Instruction, SKIP};

/// A jump target, which may be placed after its jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction, with forward jumps only. Unreachable instructions are
/// omitted, as the kernel rejects them.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    /// Position of each label, once placed.
    places: Vec<Option<usize>>,
    /// Jump instructions and their labels.
    jumps: Vec<(usize, Label)>,
    /// Whether the present position is unreachable.
    is_over: bool,
}

impl Assembler {
    /// Appends an instruction other than a jump.
    pub fn put(&mut self, instruction: Instruction) {
        if !self.is_over {
            self.instructions.push(instruction);
        }
        self.is_over |= instruction == EXIT;
    }

    /// Appends instructions other than jumps.
    pub fn put_all(&mut self, instructions: impl IntoIterator<Item = Instruction>) {
        for instruction in instructions {
            self.put(instruction);
        }
    }

    /// Appends a conditional jump to a label.
    pub fn jump(&mut self, condition: Instruction, to: Label) {
        if !self.is_over {
            self.jumps.push((self.instructions.len(), to));
            self.instructions.push(condition);
        }
    }

    /// Appends an unconditional jump to a label.
    pub fn go(&mut self, to: Label) {
        self.jump(SKIP, to);
        self.is_over = true;
    }

    /// Returns a new, unplaced label.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.instructions.len());
        self.is_over &= self.jumps.iter().all(|(_, to)| *to != label);
    }

    /// Returns the program; `None` if a jump is too long.
    pub fn finish(mut self) -> Option<Vec<Instruction>> {
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
    fn unreachable_parts_are_omitted() {
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

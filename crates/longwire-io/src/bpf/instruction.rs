//! The eBPF instructions (RFC 9669) that Longwire's programs use, and an assembler with labels.

/// BPF_PSEUDO_MAP_FD: the immediate is a map's descriptor.
const MAP_DESCRIPTOR: u8 = 1;
/// BPF_PSEUDO_MAP_VALUE: like `MAP_DESCRIPTOR`, for an address in the map's value.
const MAP_VALUE: u8 = 2;

/// An eBPF instruction with the layout of `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub code: u8,
    /// Destination register in the low half, source register in the high half.
    pub registers: u8,
    /// Jump distance or memory offset.
    pub offset: i16,
    /// The immediate operand.
    pub immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

const fn op(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: to | from << 4,
        offset,
        immediate,
    }
}

/// Copies a 64-bit register.
pub const fn move_register(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

/// Sets a register to a sign-extended number.
pub const fn move_number(to: u8, value: i32) -> Instruction {
    op(0xb7, to, 0, 0, value)
}

/// Adds a sign-extended number to a 64-bit register.
pub const fn add_number(to: u8, value: i32) -> Instruction {
    op(0x07, to, 0, 0, value)
}

/// Loads 32 bits from memory.
pub const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x61, to, from, offset, 0)
}

/// Stores a 64-bit register to memory.
pub const fn store_double(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x7b, to, from, offset, 0)
}

/// Calls a kernel helper: arguments from register 1 on, result in register 0.
pub const fn call(helper: i32) -> Instruction {
    op(0x85, 0, 0, 0, helper)
}

/// Jumps unless the register equals `value`.
pub const fn skip_unless(register: u8, value: i32) -> Instruction {
    op(0x55, register, 0, 0, value)
}

/// Jumps if `register` is above `other`.
pub const fn skip_above(register: u8, other: u8) -> Instruction {
    op(0x2d, register, other, 0, 0)
}

/// Ends the program; register 0 is its result.
pub const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// Stores the low 32 bits of a register.
pub const fn store_word(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x63, to, from, offset, 0)
}

/// Stores a sign-extended number as 64 bits.
pub const fn store_number(to: u8, offset: i16, value: i32) -> Instruction {
    op(0x7a, to, 0, offset, value)
}

/// Loads 8 bits from memory.
pub const fn load_byte(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x71, to, from, offset, 0)
}

/// Loads 16 bits from memory.
pub const fn load_half(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x69, to, from, offset, 0)
}

/// Loads 64 bits from memory.
pub const fn load_double(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x79, to, from, offset, 0)
}

/// Swaps between network and host byte order in the low `bits` (16 or 32). Clears the other bits.
pub const fn swap(register: u8, bits: i32) -> Instruction {
    op(0xdc, register, 0, 0, bits)
}

/// A 32-bit operation. Clears the high half of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Alu {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    Left = 0x60,
    Right = 0x70,
    Remainder = 0x90,
    Exclusive = 0xa0,
}

/// Applies an operation to two registers. The result replaces the first.
pub const fn compute(alu: Alu, to: u8, from: u8) -> Instruction {
    op(alu as u8 | 0x0c, to, from, 0, 0)
}

/// Applies an operation to a register and a constant. The result replaces the register.
pub const fn compute_number(alu: Alu, to: u8, value: u32) -> Instruction {
    op(alu as u8 | 0x04, to, 0, 0, value.cast_signed())
}

/// Adds a 64-bit register.
pub const fn add_register(to: u8, from: u8) -> Instruction {
    op(0x0f, to, from, 0, 0)
}

/// An unsigned comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Compare {
    Equal = 0x10,
    Above = 0x20,
    AtLeast = 0x30,
    Unequal = 0x50,
    Below = 0xa0,
    AtMost = 0xb0,
}

/// Jumps if the comparison holds between the low halves of two registers.
pub const fn skip_if(compare: Compare, register: u8, other: u8) -> Instruction {
    op(compare as u8 | 0x0e, register, other, 0, 0)
}

/// Jumps if the comparison holds between the low half of a register and a number.
pub const fn skip_if_number(compare: Compare, register: u8, value: u32) -> Instruction {
    op(compare as u8 | 0x06, register, 0, 0, value.cast_signed())
}

/// Jumps unconditionally.
pub const SKIP: Instruction = op(0x05, 0, 0, 0, 0);

/// Loads a map's address. Takes two instruction slots.
pub const fn load_map(to: u8, map: i32) -> [Instruction; 2] {
    [op(0x18, to, MAP_DESCRIPTOR, 0, map), op(0, 0, 0, 0, 0)]
}

/// Loads an address within a single-entry map's value. Takes two instruction slots.
pub const fn load_value(to: u8, map: i32, offset: i32) -> [Instruction; 2] {
    [op(0x18, to, MAP_VALUE, 0, map), op(0, 0, 0, 0, offset)]
}

/// Atomically adds a register to 64 bits of memory.
pub const fn add_to_memory(to: u8, from: u8, offset: i16) -> Instruction {
    op(0xdb, to, from, offset, 0)
}

/// A jump target, which may be placed after its jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction. It has only forward jumps, and omits unreachable instructions,
/// which the kernel rejects.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    /// Position of each label, once placed.
    places: Vec<Option<usize>>,
    /// Jump instructions and their labels.
    jumps: Vec<(usize, Label)>,
    /// Whether the current position is unreachable.
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

    /// Places a label at the current position.
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

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        let end = program.label();
        program.jump(skip_if_number(Compare::Equal, 1, 7), end);
        program.put(move_number(0, 1));
        program.put(move_number(0, 2));
        program.place(end);
        program.put(EXIT);
        assert_eq!(program.finish().expect("a program")[0].offset, 2);
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
        assert_eq!(program.finish().expect("a program"), [SKIP, EXIT]);
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

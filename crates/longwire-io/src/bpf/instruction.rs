//! Instructions of eBPF (RFC 9669), as many as the programs here need.

/// BPF_PSEUDO_MAP_FD: the immediate is a map's descriptor.
const MAP_DESCRIPTOR: u8 = 1;

/// One eBPF instruction, as `struct bpf_insn` lays it out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// Destination register in the low half, source in the high one.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

const fn op(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: to | from << 4,
        offset,
        immediate,
    }
}

/// Copies a register of 64 bits.
pub(crate) const fn move_register(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

/// Sets a register to a number, sign-extended.
pub(crate) const fn move_number(to: u8, value: i32) -> Instruction {
    op(0xb7, to, 0, 0, value)
}

/// Adds a number.
pub(crate) const fn add_number(to: u8, value: i32) -> Instruction {
    op(0x07, to, 0, 0, value)
}

/// Loads 32 bits from memory.
pub(crate) const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x61, to, from, offset, 0)
}

/// Stores 64 bits.
pub(crate) const fn store_double(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x7b, to, from, offset, 0)
}

/// Calls a helper of the kernel: arguments from register 1 on, result in register 0.
pub(crate) const fn call(helper: i32) -> Instruction {
    op(0x85, 0, 0, 0, helper)
}

/// Skips `distance` instructions if the register does not have that value.
pub(crate) const fn skip_unless(register: u8, value: i32, distance: i16) -> Instruction {
    op(0x55, register, 0, distance, value)
}

/// Skips `distance` instructions if `register` is above `other`.
pub(crate) const fn skip_above(register: u8, other: u8, distance: i16) -> Instruction {
    op(0x2d, register, other, distance, 0)
}

/// Returns register 0.
pub(crate) const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// Stores 32 bits of a register.
pub(crate) const fn store_word(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x63, to, from, offset, 0)
}

/// Applies a mask, sign-extended to 64 bits.
pub(crate) const fn and_number(to: u8, mask: i32) -> Instruction {
    op(0x57, to, 0, 0, mask)
}

/// Skips `distance` instructions if the low half of a register does not have that value.
pub(crate) const fn skip_unless_word(register: u8, value: u32, distance: i16) -> Instruction {
    op(0x56, register, 0, distance, value.cast_signed())
}

/// Skips `distance` instructions.
pub(crate) const fn skip(distance: i16) -> Instruction {
    op(0x05, 0, 0, distance, 0)
}

/// Loads 16 bits of the packet into register 0, in host byte order. Register 6 must be the
/// program's context; registers 1 to 5 are lost. Ends the program with 0 if the packet is
/// shorter.
pub(crate) const fn packet_half(offset: i32) -> Instruction {
    op(0x28, 0, 0, 0, offset)
}

/// Loads 32 bits of the packet as [`packet_half`] does.
pub(crate) const fn packet_word(offset: i32) -> Instruction {
    op(0x20, 0, 0, 0, offset)
}

/// Loads the address of a map, which takes two instruction slots.
pub(crate) const fn load_map(to: u8, map: i32) -> [Instruction; 2] {
    [op(0x18, to, MAP_DESCRIPTOR, 0, map), op(0, 0, 0, 0, 0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_eight_bytes() {
        assert_eq!(size_of::<Instruction>(), 8);
    }
}

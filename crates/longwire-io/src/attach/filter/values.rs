//! Numeric expressions over a frame.

use longwire_packet::filter::tree::{ARP, Expression, IpNumber, Layer, Operation, RARP};

use super::facts::{
    CONTEXT, FIRST, HEADER, IP_AT, LENGTH, PIECE, PROTOCOL, SCRATCH, SHIFT, STACK, TAGS,
    TRANSPORT_AT, TYPE, TYPE_AT, VERSION, VLAN_TAG, VLAN_TYPE, WAITING, WHOLE, jump_if, load,
    require,
};
use crate::bpf::instruction::{
    Alu, Assembler, Compare, Label, add_number, add_register, compute, compute_number, load_byte,
    load_double, load_half, load_word, move_number, move_register, skip_if_number, store_double,
    swap,
};

/// Maximum number of pending intermediate values. Each `(` in an expression needs one.
const WAITING_MAX: i16 = 40;
/// Offset of the outermost tag's EtherType.
const TAG_TYPE: u32 = 12;
/// Offset after the outermost tag.
const AFTER_TAG: u32 = 16;
/// Maximum frame offset: more than any frame's length, and too small to overflow the signed offset
/// of the kernel's helper.
const OFFSET_MAX: u32 = 0x00ff_ffff;

/// Appends code that leaves a value in register 0, or jumps to `otherwise` if the frame lacks it.
/// `depth` values are pending on the stack. Returns `None` if the kernel cannot evaluate the value.
pub(super) fn value(
    program: &mut Assembler,
    of: &Expression,
    depth: i16,
    otherwise: Label,
) -> Option<()> {
    match of {
        Expression::Number(number) => program.put(move_number(0, number.cast_signed())),
        Expression::Length | Expression::Captured => program.put_all([
            load_word(0, CONTEXT, LENGTH),
            load_double(1, STACK, SHIFT),
            compute(Alu::Add, 0, 1),
        ]),
        Expression::Ip(field) => ip_number(program, *field, otherwise),
        Expression::Load {
            layer,
            offset,
            size,
        } => return number_at(program, *layer, *offset, *size, otherwise),
        Expression::LoadAt {
            layer,
            offset,
            size,
        } => {
            value(program, offset, depth, otherwise)?;
            program.jump(skip_if_number(Compare::Above, 0, OFFSET_MAX), otherwise);
            let waiting = wait(program, depth)?;
            begin(program, *layer, otherwise)?;
            program.put_all([load_double(0, STACK, waiting), add_register(2, 0)]);
            return loaded(program, *size, otherwise);
        }
        Expression::Binary(operation, sides) => {
            value(program, &sides.0, depth, otherwise)?;
            let waiting = wait(program, depth)?;
            value(program, &sides.1, depth + 1, otherwise)?;
            program.put_all([move_register(2, 0), load_double(0, STACK, waiting)]);
            combined(program, *operation, otherwise);
        }
    }
    Some(())
}

/// Saves register 0 to the stack and returns the slot; `None` if the stack is full.
pub(super) fn wait(program: &mut Assembler, depth: i16) -> Option<i16> {
    if depth >= WAITING_MAX {
        return None;
    }
    let place = WAITING - 8 * depth;
    program.put(store_double(STACK, 0, place));
    Some(place)
}

/// Applies an operation to registers 0 and 2, in this order; the result is in register 0. Jumps to
/// `otherwise` on division by zero.
fn combined(program: &mut Assembler, operation: Operation, otherwise: Label) {
    let alu = match operation {
        Operation::Add => Alu::Add,
        Operation::Subtract => Alu::Subtract,
        Operation::Multiply => Alu::Multiply,
        Operation::Divide => Alu::Divide,
        Operation::Remainder => Alu::Remainder,
        Operation::And => Alu::And,
        Operation::Or => Alu::Or,
        Operation::Exclusive => Alu::Exclusive,
        Operation::Left => Alu::Left,
        Operation::Right => Alu::Right,
    };
    match operation {
        Operation::Divide | Operation::Remainder => {
            program.jump(skip_if_number(Compare::Equal, 2, 0), otherwise);
            program.put(compute(alu, 0, 2));
        }
        Operation::Left | Operation::Right => {
            let [within, done] = [(); 2].map(|()| program.label());
            program.jump(skip_if_number(Compare::Below, 2, 32), within);
            program.put(move_number(0, 0));
            program.go(done);
            program.place(within);
            program.put(compute(alu, 0, 2));
            program.place(done);
        }
        _ => program.put(compute(alu, 0, 2)),
    }
}

fn ip_number(program: &mut Assembler, field: IpNumber, otherwise: Label) {
    let [six, done] = [(); 2].map(|()| program.label());
    program.put(load_double(1, STACK, VERSION));
    program.jump(skip_if_number(Compare::Equal, 1, 0), otherwise);
    program.jump(skip_if_number(Compare::Equal, 1, 6), six);
    let bits = |program: &mut Assembler| match field {
        IpNumber::Ttl => {}
        IpNumber::Dscp => program.put(compute_number(Alu::Right, 0, 2)),
        IpNumber::Ecn => program.put(compute_number(Alu::And, 0, 3)),
    };
    let byte = if field == IpNumber::Ttl { 8 } else { 1 };
    program.put(load_byte(0, STACK, HEADER + byte));
    bits(program);
    program.go(done);
    program.place(six);
    if field == IpNumber::Ttl {
        program.put(load_byte(0, STACK, HEADER + 7));
    } else {
        // The traffic class spans two bytes.
        program.put_all([
            load_half(0, STACK, HEADER),
            swap(0, 16),
            compute_number(Alu::Right, 0, 4),
            compute_number(Alu::And, 0, 0xff),
        ]);
    }
    bits(program);
    program.place(done);
}

/// Leaves a layer's offset in register 2.
fn begin(program: &mut Assembler, layer: Layer, otherwise: Label) -> Option<()> {
    let mut require = |place, wanted: &[u32]| require(program, place, wanted, otherwise);
    match layer {
        // The offsets of these layers depend on the location of the outermost tag.
        Layer::Ether | Layer::Tag => return None,
        Layer::Resolution => require(TYPE, &[ARP.into(), RARP.into()]),
        Layer::Typed(wanted) => require(TYPE, &[wanted.into()]),
        Layer::Ip4 => require(VERSION, &[4]),
        Layer::Ip6 => require(VERSION, &[6]),
        Layer::Transport(protocol) => {
            require(PIECE, &[WHOLE, FIRST].map(i32::cast_unsigned));
            require(PROTOCOL, &[protocol.into()]);
        }
    }
    let (place, more) = match layer {
        Layer::Ip4 | Layer::Ip6 => (IP_AT, 0),
        Layer::Transport(_) => (TRANSPORT_AT, 0),
        _ => (TYPE_AT, 2),
    };
    program.put_all([load_double(2, STACK, place), add_number(2, more)]);
    Some(())
}

/// Leaves the number at a constant offset of a layer in register 0.
pub(super) fn number_at(
    program: &mut Assembler,
    layer: Layer,
    offset: u32,
    size: usize,
    otherwise: Label,
) -> Option<()> {
    if offset > OFFSET_MAX {
        program.go(otherwise);
        return Some(());
    }
    match layer {
        Layer::Ether => number_in_frame(program, offset, size, otherwise),
        Layer::Tag => {
            jump_if(program, TAGS, (Compare::Equal, 0), otherwise);
            number_in_frame(program, offset + 14, size, otherwise)
        }
        _ => {
            begin(program, layer, otherwise)?;
            program.put(add_number(2, offset.cast_signed()));
            loaded(program, size, otherwise)
        }
    }
}

/// Leaves the number at a frame offset in register 0.
fn number_in_frame(
    program: &mut Assembler,
    offset: u32,
    size: usize,
    otherwise: Label,
) -> Option<()> {
    let end = offset + size as u32;
    if end <= TAG_TYPE {
        program.put(move_number(2, offset.cast_signed()));
        return loaded(program, size, otherwise);
    }
    if offset >= AFTER_TAG {
        program.put_all([
            move_number(2, offset.cast_signed()),
            load_double(0, STACK, SHIFT),
            compute(Alu::Subtract, 2, 0),
        ]);
        return loaded(program, size, otherwise);
    }
    let [within, done] = [(); 2].map(|()| program.label());
    jump_if(program, SHIFT, (Compare::Equal, 0), within);
    // Load byte by byte, because each byte may be in the tag or in the frame.
    program.put(move_number(7, 0));
    for at in offset..end {
        match at {
            TAG_TYPE..AFTER_TAG => {
                if at < TAG_TYPE + 2 {
                    program.put_all([load_word(0, CONTEXT, VLAN_TYPE), swap(0, 16)]);
                } else {
                    program.put(load_word(0, CONTEXT, VLAN_TAG));
                }
                if at % 2 == 0 {
                    program.put(compute_number(Alu::Right, 0, 8));
                }
                program.put(compute_number(Alu::And, 0, 0xff));
            }
            _ => {
                let there = if at < TAG_TYPE { at } else { at - 4 };
                program.put(move_number(2, there.cast_signed()));
                load(program, SCRATCH, 1, otherwise);
                program.put(load_byte(0, STACK, SCRATCH));
            }
        }
        program.put_all([compute_number(Alu::Left, 7, 8), compute(Alu::Or, 7, 0)]);
    }
    program.put(move_register(0, 7));
    program.go(done);
    program.place(within);
    program.put(move_number(2, offset.cast_signed()));
    loaded(program, size, otherwise)?;
    program.place(done);
    Some(())
}

/// Loads the number at the offset in register 2 into register 0.
fn loaded(program: &mut Assembler, size: usize, otherwise: Label) -> Option<()> {
    load(program, SCRATCH, i32::try_from(size).ok()?, otherwise);
    match size {
        1 => program.put(load_byte(0, STACK, SCRATCH)),
        2 => program.put_all([load_half(0, STACK, SCRATCH), swap(0, 16)]),
        4 => program.put_all([load_word(0, STACK, SCRATCH), swap(0, 32)]),
        _ => return None,
    }
    Some(())
}

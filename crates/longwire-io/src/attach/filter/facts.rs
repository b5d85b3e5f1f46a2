//! Parses a frame's headers to the program's stack.

use crate::bpf::instruction::{
    Alu, Assembler, Compare, Label, add_number, call, compute, compute_number, load_byte,
    load_double, load_half, load_word, move_number, move_register, skip_if, skip_if_number,
    store_double, store_number, swap,
};

/// The frame pointer.
pub(in crate::attach) const STACK: u8 = 10;
/// The register with the program's context.
pub(in crate::attach) const CONTEXT: u8 = 6;

// Offsets in `struct __sk_buff`.
pub(super) const LENGTH: i16 = 0;
pub(super) const VLAN_PRESENT: i16 = 20;
pub(super) const VLAN_TAG: i16 = 24;
pub(super) const VLAN_TYPE: i16 = 28;

// Stack slots. Frame offsets are relative to the kernel's buffer, which may lack the
// outermost tag.
/// The last loaded bytes.
pub(super) const SCRATCH: i16 = -8;
/// The EtherType after all tags, or [`NO_TYPE`].
pub(super) const TYPE: i16 = -16;
/// Offset of the EtherType.
pub(super) const TYPE_AT: i16 = -24;
/// Number of VLAN tags.
pub(super) const TAGS: i16 = -32;
/// The IP version, or 0.
pub(super) const VERSION: i16 = -40;
/// Offset of the IP header.
pub(super) const IP_AT: i16 = -48;
/// Fragmentation: [`NO_PIECE`], [`WHOLE`], [`FIRST`] or [`LATER`].
pub(super) const PIECE: i16 = -56;
/// The transport protocol number.
pub(super) const PROTOCOL: i16 = -64;
/// Offset of the transport header.
pub(super) const TRANSPORT_AT: i16 = -72;
/// Bytes of the tag missing from the kernel's buffer: 0 or 4.
pub(super) const SHIFT: i16 = -80;
/// The IP header without options.
pub(super) const HEADER: i16 = -120;
/// First slot for intermediate values.
pub(super) const WAITING: i16 = -128;

/// The frame ends before the EtherType.
const NO_TYPE: i32 = 0x1_0000;

/// The frame has no IP payload, or the headers before it are truncated or too many.
pub(super) const NO_PIECE: i32 = 0;
/// An unfragmented packet.
pub(super) const WHOLE: i32 = 1;
/// A first fragment.
pub(super) const FIRST: i32 = 2;
/// A later fragment, without a transport header.
pub(super) const LATER: i32 = 3;

const V4_LEN: i32 = 20;
const V6_LEN: i32 = 40;
const TAG_LEN: i32 = 4;
const TAGS_MAX: i32 = 4;
const EXTENSIONS_MAX: usize = 8;

/// The helper `bpf_skb_load_bytes`.
const LOAD_BYTES: i32 = 26;

/// Appends a load from the offset in register 2 to a stack slot. Jumps to `otherwise` if the frame
/// is too short.
pub(in crate::attach) fn load(program: &mut Assembler, to: i16, len: i32, otherwise: Label) {
    program.put_all([
        move_register(1, CONTEXT),
        move_register(3, STACK),
        add_number(3, to.into()),
        move_number(4, len),
        call(LOAD_BYTES),
    ]);
    program.jump(skip_if_number(Compare::Unequal, 0, 0), otherwise);
}

/// Jumps to `to` if the comparison holds for the fact at `place`.
pub(super) fn jump_if(
    program: &mut Assembler,
    place: i16,
    (compare, number): (Compare, i32),
    to: Label,
) {
    program.put(load_double(0, STACK, place));
    program.jump(skip_if_number(compare, 0, number.cast_unsigned()), to);
}

/// Jumps to `otherwise` unless the fact at `place` is one of these numbers.
pub(super) fn require(program: &mut Assembler, place: i16, wanted: &[u32], otherwise: Label) {
    let found = program.label();
    program.put(load_double(0, STACK, place));
    for number in wanted {
        program.jump(skip_if_number(Compare::Equal, 0, *number), found);
    }
    program.go(otherwise);
    program.place(found);
}

/// Appends the header parser. Clobbers registers 0 to 5 and 7 to 9.
pub(super) fn read(program: &mut Assembler, with_transport: bool) {
    let places = (HEADER..0).step_by(8);
    program.put_all(places.map(|place| store_number(STACK, place, 0)));
    program.put(store_number(STACK, TYPE, NO_TYPE));
    let typed = program.label();
    let done = program.label();
    read_type(program, typed);
    program.place(typed);
    read_ip(program, done);
    if with_transport {
        read_transport(program, done);
    }
    program.place(done);
}

/// Finds the EtherType after all VLAN tags.
fn read_type(program: &mut Assembler, end: Label) {
    let (untagged, counted) = (program.label(), program.label());
    program.put_all([move_number(7, 12), move_number(8, 0)]);
    program.put(load_word(0, CONTEXT, VLAN_PRESENT));
    program.jump(skip_if_number(Compare::Equal, 0, 0), untagged);
    program.put_all([move_number(8, 1), store_number(STACK, SHIFT, TAG_LEN)]);
    program.place(untagged);
    for tag in 0..=TAGS_MAX {
        let tagged = program.label();
        program.put(store_double(STACK, 7, TYPE_AT));
        program.put(store_double(STACK, 8, TAGS));
        program.put(move_register(2, 7));
        load(program, SCRATCH, 2, end);
        program.put_all([load_half(0, STACK, SCRATCH), swap(0, 16)]);
        if tag == TAGS_MAX {
            break;
        }
        program.jump(
            skip_if_number(Compare::AtLeast, 8, TAGS_MAX.cast_unsigned()),
            counted,
        );
        for kind in [0x8100, 0x88a8, 0x9100] {
            program.jump(skip_if_number(Compare::Equal, 0, kind), tagged);
        }
        program.go(counted);
        program.place(tagged);
        program.put_all([add_number(7, TAG_LEN), add_number(8, 1)]);
        // A frame truncated after a tag has the tag but no EtherType.
        program.put(store_double(STACK, 7, TYPE_AT));
        program.put(store_double(STACK, 8, TAGS));
    }
    program.place(counted);
    program.put(store_double(STACK, 0, TYPE));
}

/// Loads the IP header if it is complete.
fn read_ip(program: &mut Assembler, done: Label) {
    let six = program.label();
    let read = program.label();
    program.put_all([
        load_double(7, STACK, TYPE_AT),
        add_number(7, 2),
        load_double(0, STACK, TYPE),
    ]);
    program.jump(skip_if_number(Compare::Equal, 0, 0x86dd), six);
    program.jump(skip_if_number(Compare::Unequal, 0, 0x0800), done);
    let version = |program: &mut Assembler, number: i32, len: i32| {
        program.put(move_register(2, 7));
        load(program, HEADER, len, done);
        program.put_all([
            load_byte(0, STACK, HEADER),
            compute_number(Alu::Right, 0, 4),
        ]);
        let other = skip_if_number(Compare::Unequal, 0, number.cast_unsigned());
        program.jump(other, done);
        program.put(store_number(STACK, VERSION, number));
    };
    version(program, 4, V4_LEN);
    program.go(read);
    program.place(six);
    version(program, 6, V6_LEN);
    program.place(read);
    program.put(store_double(STACK, 7, IP_AT));
}

/// Finds the transport header. Register 7 holds the IP header's offset.
fn read_transport(program: &mut Assembler, done: Label) {
    let (six, found) = (program.label(), program.label());
    // Register 8 holds the offset, register 9 the protocol, and a stack slot the fragmentation.
    program.put(move_register(8, 7));
    jump_if(program, VERSION, (Compare::Equal, 6), six);
    let long = program.label();
    program.put_all([
        load_byte(9, STACK, HEADER + 9),
        load_byte(0, STACK, HEADER),
        compute_number(Alu::And, 0, 15),
    ]);
    program.jump(skip_if_number(Compare::AtLeast, 0, 5), long);
    program.put(move_number(0, 5));
    program.place(long);
    program.put_all([
        compute_number(Alu::Left, 0, 2),
        compute(Alu::Add, 8, 0),
        load_word(0, CONTEXT, LENGTH),
    ]);
    program.jump(skip_if(Compare::Above, 8, 0), done);
    program.put_all([load_half(0, STACK, HEADER + 6), swap(0, 16)]);
    piece(program, 0x1fff, 0x2000);
    program.go(found);
    program.place(six);
    extensions(program, found, done);
    program.place(found);
    program.put_all([
        store_double(STACK, 9, PROTOCOL),
        store_double(STACK, 8, TRANSPORT_AT),
        load_double(0, STACK, SCRATCH),
        store_double(STACK, 0, PIECE),
    ]);
}

/// Skips IPv6 extension headers (RFC 8200, section 4).
fn extensions(program: &mut Assembler, found: Label, done: Label) {
    program.put_all([
        add_number(8, V6_LEN),
        load_byte(9, STACK, HEADER + 6),
        store_number(STACK, WAITING, WHOLE),
    ]);
    let last = program.label();
    for _ in 0..=EXTENSIONS_MAX {
        let [options, routing, fragment, authentication, next] = [(); 5].map(|()| program.label());
        program.put(load_word(0, CONTEXT, LENGTH));
        program.jump(skip_if(Compare::Above, 8, 0), done);
        for (protocol, kind) in [
            (0, options),
            (60, options),
            (43, routing),
            (44, fragment),
            (51, authentication),
        ] {
            program.jump(skip_if_number(Compare::Equal, 9, protocol), kind);
        }
        program.go(last);
        for (kind, loaded, more, shift) in [
            (options, 2, 1, 3),
            (routing, 4, 1, 3),
            (authentication, 2, 2, 2),
        ] {
            program.place(kind);
            header(program, loaded, done);
            skip_header(program, more, shift);
            program.go(next);
        }
        program.place(fragment);
        header(program, 4, done);
        program.put_all([
            load_byte(9, STACK, SCRATCH),
            add_number(8, 8),
            load_half(0, STACK, SCRATCH + 2),
            swap(0, 16),
        ]);
        piece(program, 0xfff8, 1);
        program.put_all([
            load_double(0, STACK, SCRATCH),
            store_double(STACK, 0, WAITING),
        ]);
        program.place(next);
        jump_if(program, WAITING, (Compare::Equal, LATER), last);
    }
    program.go(done);
    program.place(last);
    program.put_all([
        load_double(0, STACK, WAITING),
        store_double(STACK, 0, SCRATCH),
    ]);
    program.go(found);
}

/// Loads `len` bytes of an extension header into the scratch slot.
fn header(program: &mut Assembler, len: i32, done: Label) {
    program.put(move_register(2, 8));
    load(program, SCRATCH, len, done);
}

/// Skips an extension header. Its second byte plus `more` is its length in units of 2^`shift`
/// bytes.
fn skip_header(program: &mut Assembler, more: u32, shift: u32) {
    program.put_all([
        load_byte(9, STACK, SCRATCH),
        load_byte(0, STACK, SCRATCH + 1),
        compute_number(Alu::Add, 0, more),
        compute_number(Alu::Left, 0, shift),
        compute(Alu::Add, 8, 0),
    ]);
}

/// Derives the fragmentation from the field in register 0, which holds the offset and the
/// more-fragments flag. Leaves it in the scratch slot.
fn piece(program: &mut Assembler, offset: u32, more: u32) {
    let [later, first, known] = [(); 3].map(|()| program.label());
    program.put_all([
        move_register(1, 0),
        compute_number(Alu::And, 0, offset),
        compute_number(Alu::And, 1, more),
    ]);
    program.jump(skip_if_number(Compare::Unequal, 0, 0), later);
    program.jump(skip_if_number(Compare::Unequal, 1, 0), first);
    program.put(store_number(STACK, SCRATCH, WHOLE));
    program.go(known);
    program.place(first);
    program.put(store_number(STACK, SCRATCH, FIRST));
    program.go(known);
    program.place(later);
    program.put(store_number(STACK, SCRATCH, LATER));
    program.place(known);
}

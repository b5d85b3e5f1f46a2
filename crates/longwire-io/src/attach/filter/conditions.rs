//! Compiles a filter's tests.

use longwire_packet::filter::tree::{
    ARP, Carrier, FLAGS_AT, Group, Layer, Net, Node, RARP, Relation, Side, TCP, Test, WITH_PORTS,
};
use longwire_packet::header::IpVersion;

use super::facts::{
    FIRST, HEADER, LATER, NO_PIECE, PIECE, PROTOCOL, SCRATCH, STACK, TAGS, TRANSPORT_AT, TYPE,
    TYPE_AT, VERSION, jump_if, load, require,
};
use super::values::{number_at, value, wait};
use crate::bpf::instruction::{
    Alu, Assembler, Compare, Label, add_number, compute_number, load_byte, load_double, load_half,
    load_word, move_register, skip_if, skip_if_number, swap,
};

/// A test's branch targets.
#[derive(Clone, Copy)]
struct Ways {
    yes: Label,
    no: Label,
}

/// Appends tests that branch to `yes` for matching frames, else to `no`.
pub(in crate::attach) fn node(
    program: &mut Assembler,
    of: &Node,
    yes: Label,
    no: Label,
) -> Option<()> {
    match of {
        Node::Test(of) => test(program, of, Ways { yes, no })?,
        Node::Not(inner) => node(program, inner, no, yes)?,
        Node::All(inner) => {
            for one in inner {
                let next = program.label();
                node(program, one, next, no)?;
                program.place(next);
            }
            program.go(yes);
        }
        Node::Any(inner) => {
            for one in inner {
                let next = program.label();
                node(program, one, yes, next)?;
                program.place(next);
            }
            program.go(no);
        }
    }
    Some(())
}

fn test(program: &mut Assembler, of: &Test, ways: Ways) -> Option<()> {
    let Ways { yes, no } = ways;
    match of {
        Test::EtherType(wanted) => number_is(program, TYPE, (*wanted).into(), ways),
        Test::Vlan { nth, id } => vlan(program, *nth, *id, ways)?,
        Test::Protocol { version, number } => protocol(program, *version, *number, ways),
        Test::Port { side, low, high } => {
            has_ports(program, no);
            sides(program, *side, ways, |program, destination, ways| {
                port(program, destination, (*low, *high), ways)
            })?;
        }
        Test::Net { side, net, of } => {
            sides(program, *side, ways, |program, destination, ways| {
                in_net(program, destination, net, *of, ways)
            })?;
        }
        Test::Mac { side, address } => {
            sides(program, *side, ways, |program, destination, ways| {
                bytes(program, if destination { 0 } else { 6 }, address, ways)
            })?;
        }
        Test::Group(group) => is_for(program, *group, ways)?,
        Test::Relation(relation) => {
            let (left, relation, right) = &**relation;
            value(program, left, 0, no)?;
            let waiting = wait(program, 0)?;
            value(program, right, 1, no)?;
            program.put_all([move_register(2, 0), load_double(0, STACK, waiting)]);
            program.jump(skip_if(comparison(*relation), 0, 2), yes);
            program.go(no);
        }
        Test::Present(expression) => {
            value(program, expression, 0, no)?;
            program.go(yes);
        }
        Test::Flag(flags) => {
            number_at(program, Layer::Transport(TCP), FLAGS_AT, 1, no)?;
            program.put(compute_number(Alu::And, 0, (*flags).into()));
            program.jump(skip_if_number(Compare::Unequal, 0, 0), yes);
            program.go(no);
        }
        Test::Fragment => {
            jump_if(program, PIECE, (Compare::AtLeast, FIRST), yes);
            program.go(no);
        }
        Test::Bytes {
            offset,
            bytes: wanted,
        } => bytes(program, u32::try_from(*offset).ok()?, wanted, ways)?,
    }
    Some(())
}

fn comparison(relation: Relation) -> Compare {
    match relation {
        Relation::Equal => Compare::Equal,
        Relation::Unequal => Compare::Unequal,
        Relation::Less => Compare::Below,
        Relation::AtMost => Compare::AtMost,
        Relation::Greater => Compare::Above,
        Relation::AtLeast => Compare::AtLeast,
    }
}

/// Tests a stack slot for equality.
fn number_is(program: &mut Assembler, place: i16, wanted: u32, ways: Ways) {
    program.put(load_double(0, STACK, place));
    program.jump(skip_if_number(Compare::Equal, 0, wanted), ways.yes);
    program.go(ways.no);
}

/// Tests a condition on the source, the destination, either or both.
fn sides(
    program: &mut Assembler,
    side: Side,
    ways: Ways,
    mut one: impl FnMut(&mut Assembler, bool, Ways) -> Option<()>,
) -> Option<()> {
    let second = program.label();
    let (yes, no) = match side {
        Side::Source => return one(program, false, ways),
        Side::Destination => return one(program, true, ways),
        Side::Either => (ways.yes, second),
        Side::Both => (second, ways.no),
    };
    one(program, false, Ways { yes, no })?;
    program.place(second);
    one(program, true, ways)
}

fn vlan(program: &mut Assembler, nth: usize, id: Option<u16>, ways: Ways) -> Option<()> {
    let nth = u32::try_from(nth).ok().filter(|nth| *nth < 64)?;
    program.put(load_double(0, STACK, TAGS));
    program.jump(skip_if_number(Compare::AtMost, 0, nth), ways.no);
    number_at(program, Layer::Ether, 14 + 4 * nth, 2, ways.no)?;
    if let Some(id) = id {
        program.put(compute_number(Alu::And, 0, 0x0fff));
        program.jump(skip_if_number(Compare::Unequal, 0, id.into()), ways.no);
    }
    program.go(ways.yes);
    Some(())
}

/// Tests the first header after IP, or the transport protocol.
fn protocol(program: &mut Assembler, version: Option<IpVersion>, number: u8, ways: Ways) {
    let [six, transport] = [(); 2].map(|()| program.label());
    let is = |program: &mut Assembler, at: i16, otherwise: Label| {
        program.put(load_byte(0, STACK, HEADER + at));
        program.jump(skip_if_number(Compare::Equal, 0, number.into()), ways.yes);
        program.go(otherwise);
    };
    program.put(load_double(1, STACK, VERSION));
    program.jump(skip_if_number(Compare::Equal, 1, 0), ways.no);
    if let Some(version) = version {
        let number = if version == IpVersion::V4 { 4 } else { 6 };
        program.jump(skip_if_number(Compare::Unequal, 1, number), ways.no);
    }
    program.jump(skip_if_number(Compare::Equal, 1, 6), six);
    is(program, 9, transport);
    program.place(six);
    is(program, 6, transport);
    program.place(transport);
    jump_if(program, PIECE, (Compare::Equal, NO_PIECE), ways.no);
    number_is(program, PROTOCOL, number.into(), ways);
}

/// Jumps to `no` unless the frame has a transport header with ports.
fn has_ports(program: &mut Assembler, no: Label) {
    program.put(load_double(0, STACK, PIECE));
    for missing in [NO_PIECE, LATER] {
        let is = skip_if_number(Compare::Equal, 0, missing.cast_unsigned());
        program.jump(is, no);
    }
    require(program, PROTOCOL, &WITH_PORTS.map(u32::from), no);
}

fn port(
    program: &mut Assembler,
    destination: bool,
    (low, high): (u16, u16),
    ways: Ways,
) -> Option<()> {
    program.put_all([
        load_double(2, STACK, TRANSPORT_AT),
        add_number(2, if destination { 2 } else { 0 }),
    ]);
    load(program, SCRATCH, 2, ways.no);
    program.put_all([load_half(0, STACK, SCRATCH), swap(0, 16)]);
    program.jump(skip_if_number(Compare::Below, 0, low.into()), ways.no);
    program.jump(skip_if_number(Compare::Above, 0, high.into()), ways.no);
    program.go(ways.yes);
    Some(())
}

fn in_net(
    program: &mut Assembler,
    destination: bool,
    net: &Net,
    of: Carrier,
    ways: Ways,
) -> Option<()> {
    let second = i16::from(destination);
    let (version, at) = match net.version {
        IpVersion::V4 => (4, HEADER + 12 + 4 * second),
        IpVersion::V6 => (6, HEADER + 8 + 16 * second),
    };
    let resolution = program.label();
    if of != Carrier::Any && of != Carrier::Ip {
        program.go(resolution);
    } else {
        jump_if(program, VERSION, (Compare::Unequal, version), resolution);
        begins_with(program, net, at, ways);
    }
    program.place(resolution);
    let types: &[u32] = match of {
        Carrier::Ip => &[],
        _ if net.version == IpVersion::V6 => &[],
        Carrier::Any => &[ARP.into(), RARP.into()],
        Carrier::Arp(wanted) => &[wanted.into()],
    };
    if types.is_empty() {
        program.go(ways.no);
        return Some(());
    }
    require(program, TYPE, types, ways.no);
    program.put_all([
        load_double(2, STACK, TYPE_AT),
        add_number(2, if destination { 26 } else { 16 }),
    ]);
    load(program, SCRATCH, 4, ways.no);
    begins_with(program, net, SCRATCH, ways);
    Some(())
}

/// Tests whether an address on the stack is in a network.
fn begins_with(program: &mut Assembler, net: &Net, at: i16, ways: Ways) {
    let mut left = u32::from(net.prefix.min(Net::bits(net.version)));
    let (words, _) = net.address.as_chunks::<4>();
    for (word, place) in words.iter().zip((at..).step_by(4)) {
        let bits = left.min(32);
        if bits == 0 {
            break;
        }
        left -= bits;
        let mask = u32::MAX << (32 - bits);
        program.put_all([load_word(0, STACK, place), swap(0, 32)]);
        if bits < 32 {
            program.put(compute_number(Alu::And, 0, mask));
        }
        let wanted = u32::from_be_bytes(*word) & mask;
        program.jump(skip_if_number(Compare::Unequal, 0, wanted), ways.no);
    }
    program.go(ways.yes);
}

fn is_for(program: &mut Assembler, group: Group, ways: Ways) -> Option<()> {
    match group {
        Group::EtherBroadcast => return bytes(program, 0, &[0xff; 6], ways),
        Group::EtherMulticast => {
            number_at(program, Layer::Ether, 0, 1, ways.no)?;
            program.put(compute_number(Alu::And, 0, 1));
            program.jump(skip_if_number(Compare::Equal, 0, 1), ways.yes);
        }
        Group::Ip4Multicast => {
            number_at(program, Layer::Ip4, 16, 1, ways.no)?;
            program.jump(skip_if_number(Compare::AtLeast, 0, 224), ways.yes);
        }
        Group::Ip6Multicast => {
            number_at(program, Layer::Ip6, 24, 1, ways.no)?;
            program.jump(skip_if_number(Compare::Equal, 0, 0xff), ways.yes);
        }
    }
    program.go(ways.no);
    Some(())
}

/// Tests whether the frame contains these bytes at this offset.
fn bytes(program: &mut Assembler, offset: u32, wanted: &[u8], ways: Ways) -> Option<()> {
    if wanted.is_empty() {
        return None;
    }
    let mut at = offset;
    let mut rest = wanted;
    while !rest.is_empty() {
        let size = match rest.len() {
            1 => 1,
            2 | 3 => 2,
            _ => 4,
        };
        let (part, after) = rest.split_at(size);
        number_at(program, Layer::Ether, at, size, ways.no)?;
        let number = part.iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
        program.jump(skip_if_number(Compare::Unequal, 0, number), ways.no);
        rest = after;
        at += size as u32;
    }
    program.go(ways.yes);
    Some(())
}

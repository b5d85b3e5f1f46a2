//! Compiles filters to eBPF, to decide whether a link carries a frame.
//!
//! [`Filter::matches`](longwire_packet::filter::Filter::matches) defines the semantics; a test
//! compares both on random frames. The program evaluates the frame as on the wire, including the
//! outermost VLAN tag, which the kernel stores separately on reception.
//!
//! The program first parses the headers ([`facts`]), then runs the tests ([`conditions`]), each of
//! which branches to one of two labels. A kernel helper loads the bytes, because most of a frame
//! may be outside directly accessible memory.

use longwire_packet::filter::tree::{Expression, Layer, Node, Test};

use crate::bpf::instruction::{Assembler, Label};

pub(super) mod conditions;
pub(super) mod facts;
#[cfg(test)]
mod tests;
mod values;

/// Appends a program that branches to `selected` for matching frames, else to `passing`. Register 6
/// holds the context; clobbers registers 0 to 5 and 7 to 9.
///
/// Returns `None` if the kernel cannot evaluate a test.
pub(super) fn select(
    program: &mut Assembler,
    node: &Node,
    selected: Label,
    passing: Label,
) -> Option<()> {
    facts::read(program, needs_transport(node));
    conditions::node(program, node, selected, passing)
}

fn needs_transport(node: &Node) -> bool {
    match node {
        Node::Not(inner) => needs_transport(inner),
        Node::All(inner) | Node::Any(inner) => inner.iter().any(needs_transport),
        Node::Test(test) => match test {
            Test::Protocol { .. } | Test::Port { .. } | Test::Flag(_) | Test::Fragment => true,
            Test::Present(expression) => reads_transport(expression),
            Test::Relation(relation) => {
                reads_transport(&relation.0) || reads_transport(&relation.2)
            }
            _ => false,
        },
    }
}

fn reads_transport(expression: &Expression) -> bool {
    let is_transport = |layer: &Layer| matches!(layer, Layer::Transport(_));
    match expression {
        Expression::Load { layer, .. } => is_transport(layer),
        Expression::LoadAt { layer, offset, .. } => is_transport(layer) || reads_transport(offset),
        Expression::Binary(_, sides) => reads_transport(&sides.0) || reads_transport(&sides.1),
        _ => false,
    }
}

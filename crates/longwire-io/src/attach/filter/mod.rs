//! Filters as eBPF: whether a frame is one of those that a link carries.
//!
//! [`Filter::matches`](longwire_packet::filter::Filter::matches) defines the meaning of a
//! filter; a test compares both with random frames. The program looks at the frame as it is
//! on the wire. Where the kernel keeps the outermost VLAN tag outside of the frame, as it does
//! for all that arrives, the tag counts as one in the frame.
//!
//! First the headers are read ([`facts`]), then come the tests ([`tests_of`]): each goes on
//! at one of two labels. Bytes are read by a helper of the kernel, as most of a frame may lie
//! outside of the memory that programs see.

use longwire_packet::filter::tree::{Expression, Layer, Node, Test};

use crate::bpf::assembler::{Assembler, Label};

pub(super) mod facts;
#[cfg(test)]
mod oracle;
pub(super) mod tests_of;
mod values;

/// Appends a program that goes on at `selected` for frames that match, and at `passing` for
/// others. Register 6 must be the context; registers 0 to 5 are lost.
///
/// `None` if a test cannot be made in the kernel.
pub(super) fn select(
    program: &mut Assembler,
    node: &Node,
    selected: Label,
    passing: Label,
) -> Option<()> {
    facts::read(program, needs_transport(node));
    tests_of::node(program, node, selected, passing)
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

//! For every registered queue, each frame is decided exactly once, the occupancy equals offered
//! minus decided frames, and frames of one flow or class stay in order.

use longwire_engine::{Bytes, Packets};

use crate::queues::for_every_queue;
use crate::queues::link::{Fate, Run, link};
use crate::queues::traffic::{Kind, Packet};

/// Frame fields that determine its order.
type OrderKey = (Kind, u8, Option<(u16, u8)>);

/// Returns the order key of a packet: frames with equal keys must not overtake each other. Unlisted
/// queues are FIFOs.
fn order_key(text: &str, packet: &Packet) -> OrderKey {
    let (dscp, ecn) = packet.class();
    let one = |key| (Kind::Ipv4, key, None);
    let name = text.split(':').next().unwrap_or(text);
    match name {
        "fq-codel" => (packet.kind, packet.flow, packet.tag),
        "priority" | "drr" if text.contains("pcp") => one(packet.pcp()),
        "dualpi2" => one(ecn % 2),
        "priority" | "drr" => one(dscp),
        _ => one(0),
    }
}

#[test]
fn every_frame_is_decided_once_and_in_its_order() {
    for_every_queue(60, |text, pattern, seed| {
        let link = link(pattern.rate, text, seed);
        let mut run = Run::new(link, pattern.packets.len());
        let mut bytes_max = 0;
        for (offered, packet) in pattern.packets.iter().enumerate() {
            run.poll(packet.arrival);
            run.offer(packet);
            if !run.link.is_managed() {
                continue;
            }
            let held = offered + 1 - run.order.len();
            // Drops on arrival are only returned by the next poll.
            let (packets, bytes) = run.link.occupancy();
            assert!(packets.0 as usize <= held, "{text}, pattern {seed}");
            bytes_max = bytes_max.max(bytes.0);
            run.poll(packet.arrival);
            let held: Vec<&Packet> = undecided(&pattern.packets[..=offered], &run.order);
            let bytes_held = held.iter().map(|packet| u64::from(packet.len)).sum();
            let expected = (Packets(held.len() as u64), Bytes(bytes_held));
            assert_eq!(run.link.occupancy(), expected, "{text}, pattern {seed}");
        }
        assert!(run.link.occupancy_max().1.0 >= bytes_max);
        let (fates, order) = run.finish();
        assert_in_order(text, &pattern.packets, &fates, &order);
    });
}

fn undecided<'a>(offered: &'a [Packet], decided: &[usize]) -> Vec<&'a Packet> {
    let mut waits = vec![true; offered.len()];
    for frame in decided {
        waits[*frame] = false;
    }
    let waiting = offered.iter().filter(|packet| waits[packet.number]);
    waiting.collect()
}

fn assert_in_order(text: &str, packets: &[Packet], fates: &[Fate], order: &[usize]) {
    let mut departed = 0;
    let mut last: Vec<(OrderKey, usize)> = Vec::new();
    for frame in order {
        let Fate::Sent { departure, .. } = fates[*frame] else {
            continue;
        };
        assert!(
            departure >= departed,
            "{text}: the link sends one at a time"
        );
        assert!(departure >= packets[*frame].arrival);
        departed = departure;
        let key = order_key(text, &packets[*frame]);
        match last.iter_mut().find(|(other, _)| *other == key) {
            Some((_, before)) => {
                assert!(*before < *frame, "{text}: {frame} overtakes {before}");
                *before = *frame;
            }
            None => last.push((key, *frame)),
        }
    }
}

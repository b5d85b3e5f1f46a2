//! A network's counters agree at every moment: each frame and copy on a link has left, was dropped,
//! or is in flight.

use longwire_engine::{FrameMeta, LinkChange, LinkId, LinkState, Nanos, NoLoader};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::deciding::{Operation, Simulation, Target};
use longwire_testbed::support::frames::udp4;
use proptest::prelude::*;

use crate::common::network::{AllCells, link, pair, parts, rules, spec};

/// Links that queue, lose, duplicate, fragment, delay and reorder.
const LINKS: [&str; 7] = [
    "rate=2mbit queue=fq-codel duplicate=nth:every=3",
    "rate=1mbit queue=8p delay=30ms loss=nth:every=7",
    "delay=uniform:min=1ms,max=40ms order=reorder duplicate=20%",
    "rate=4mbit delay=25ms mtu=fragment:bytes=576",
    "rate=3mbit queue=codel duplicate=50% corrupt=10% mtu=fragment:bytes=700",
    "delay=80ms loss=10%,at=entry",
    "",
];

/// The network's next event.
#[derive(Clone, Debug)]
enum Step {
    /// A frame from a station, and the time before it in microseconds.
    Frame { after: u64, port: u16, len: usize },
    /// Replaces a link's options.
    Change { link: u32, to: usize },
    /// Sets a link's state.
    State { link: u32, state: LinkState },
    /// Time passes, in microseconds.
    Rest { after: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        Just(LinkState::Off),
        Just(LinkState::Paused),
        Just(LinkState::On),
        Just(LinkState::On),
    ];
    prop_oneof![
        8 => (0..9_000_u64, 0..2_u16, 60..1_500_usize)
            .prop_map(|(after, port, len)| Step::Frame { after, port, len }),
        1 => (0..3_u32, 0..LINKS.len()).prop_map(|(link, to)| Step::Change { link, to }),
        1 => (0..3_u32, state).prop_map(|(link, state)| Step::State { link, state }),
        1 => (0..60_000_u64).prop_map(|after| Step::Rest { after }),
    ]
}

fn changing(link: u32, change: LinkChange) -> Operation {
    Box::new(move |core, at| drop(core.change_link(LinkId(link), at, change)))
}

/// Two ports and three links. Frames from one port cross links 0 and 1; frames from the other cross
/// links 1 and 2.
struct Network {
    simulation: Simulation,
    cells: AllCells,
    now: Nanos,
    out: u64,
}

impl Network {
    fn new(links: [usize; 3]) -> Network {
        let rules = rules(Target::Drop, &[("src=10.0.0.1", 0), ("src=10.0.0.2", 1)]);
        let links = links.map(|number| link(LINKS[number]));
        let (parts, cells) = parts(pair(), rules, links, &[&[0, 1], &[1, 2]]);
        let simulation = Simulation::new(&["a", "b"], parts, 7, Nanos::ZERO, None);
        Network {
            simulation: simulation.expect("it starts"),
            cells,
            now: Nanos::ZERO,
            out: 0,
        }
    }

    fn take(&mut self, step: Step) {
        let Network {
            simulation,
            now,
            out,
            ..
        } = self;
        let mut leave = |_: longwire_runtime::deciding::OutputFrame<'_>| {
            *out += 1;
            Ok::<_, ()>(())
        };
        match step {
            Step::Frame { after, port, len } => {
                *now = now.saturating_add(Nanos::from_micros(after));
                let station = port as u8 + 1;
                let payload = vec![0; len - 42];
                let bytes = udp4([10, 0, 0, station], [10, 0, 0, 9], (1, 2), &payload);
                let meta = FrameMeta::new(*now, bytes.len() as u32);
                let entered = simulation.frame(PortIndex(port), meta, &bytes, &mut leave);
                entered.expect("nothing refuses it");
            }
            Step::Change { link, to } => {
                let change = spec(LINKS[to]).build_change(&NoLoader);
                simulation.order(*now, changing(link, change.expect("no plugins")));
            }
            Step::State { link, state } => {
                let change = LinkChange {
                    state: Some(state),
                    ..LinkChange::default()
                };
                simulation.order(*now, changing(link, change));
            }
            Step::Rest { after } => {
                *now = now.saturating_add(Nanos::from_micros(after));
                simulation
                    .advance(*now, &mut leave)
                    .expect("nothing refuses it");
            }
        }
    }

    /// Checks the sums.
    fn check(&self) -> Result<(), TestCaseError> {
        let totals: Vec<_> = self.cells.iter().map(|cells| cells.totals()).collect();
        let gone = |link: usize| totals[link].traffic.packets_out + totals[link].drops.total();
        for (link, found) in totals.iter().enumerate() {
            let came = found.traffic.packets_in + found.effects.duplicated;
            prop_assert!(gone(link) <= came, "link {link}: {found:?}");
            prop_assert!(found.queued() <= found.held(), "link {link}: {found:?}");
        }
        let held: u64 = totals.iter().map(|link| link.held()).sum();
        prop_assert_eq!(held, self.simulation.frames());
        let exits = totals[1].traffic.packets_out + totals[2].traffic.packets_out;
        prop_assert!(self.out <= exits, "{} of {}", self.out, exits);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_frame_has_left_was_dropped_or_is_inside(
        links in prop::array::uniform3(0..LINKS.len()),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut network = Network::new(links);
        for step in steps {
            network.take(step);
            network.check()?;
        }
        for link in 0..3 {
            network.take(Step::State { link, state: LinkState::On });
        }
        network.take(Step::Rest { after: 600_000_000 });
        network.check()?;
        let left: u64 = network.cells.iter().map(|cells| cells.totals().held()).sum();
        prop_assert_eq!(left, 0, "all have left");
    }
}

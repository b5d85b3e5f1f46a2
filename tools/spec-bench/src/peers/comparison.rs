//! The ratio table: figures of Longwire, a witness and the peers, over alternating rounds.

use std::path::PathBuf;

use longwire::Error;
use longwire::bench::harness::median;
use serde::{Deserialize, Serialize};

use super::programs::Peer;
use crate::program::failed;

/// A compared program, or the witness: the baseline without an emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Witness,
    Longwire,
    Peer(Peer),
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Contender::Witness => "witness",
            Contender::Longwire => "Longwire",
            Contender::Peer(peer) => peer.name(),
        }
    }
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    More,
    Less,
}

/// A measured figure of one contender in one round.
#[derive(Clone, Debug)]
pub struct Reading {
    pub figure: String,
    pub unit: &'static str,
    pub better: Better,
    pub value: f64,
}

impl Reading {
    pub fn more(figure: impl Into<String>, unit: &'static str, value: f64) -> Reading {
        Reading {
            figure: figure.into(),
            unit,
            better: Better::More,
            value,
        }
    }

    pub fn less(figure: impl Into<String>, unit: &'static str, value: f64) -> Reading {
        Reading {
            better: Better::Less,
            ..Reading::more(figure, unit, value)
        }
    }
}

/// A row: one figure of Longwire and one peer. Values are medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    pub figure: String,
    pub unit: String,
    better: Better,
    witness: Option<f64>,
    pub longwire: f64,
    longwire_range: [f64; 2],
    pub peer: Option<Peer>,
    pub peer_median: Option<f64>,
    peer_range: Option<[f64; 2]>,
    /// Median of the ratios within each round: above 1, Longwire is better. `None` without a
    /// finite ratio.
    pub times_better: Option<f64>,
}

/// The measured tables.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeersFindings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<ComparisonRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<ComparisonRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replay: Vec<ComparisonRow>,
    /// Missing programs, and the machine.
    pub remarks: Vec<Remark>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    pub remark: String,
}

impl PeersFindings {
    /// Reads the JSON output of earlier runs, which may have measured different tables.
    ///
    /// # Errors
    /// If a file cannot be read or is not such an output.
    pub fn read(files: &[PathBuf]) -> Result<PeersFindings, Error> {
        let mut findings = PeersFindings::default();
        for file in files {
            let name = file.display();
            let text = std::fs::read(file);
            let text = text.map_err(|error| failed(format!("cannot read {name}: {error}")))?;
            let found: PeersFindings = serde_json::from_slice(&text).map_err(|error| {
                failed(format!("{name} is not an output of peers --json: {error}"))
            })?;
            findings.memory.extend(found.memory);
            findings.live.extend(found.live);
            findings.replay.extend(found.replay);
            for remark in found.remarks {
                if !findings.remarks.contains(&remark) {
                    findings.remarks.push(remark);
                }
            }
        }
        Ok(findings)
    }
}

/// Returns the rows from the readings of each contender and round. Figures are those of Longwire,
/// in its order.
pub fn rows(contenders: &[Contender], found: &[Vec<Vec<Reading>>]) -> Vec<ComparisonRow> {
    let of = |wanted: Contender| -> &[Vec<Reading>] {
        let index = contenders.iter().position(|contender| *contender == wanted);
        index.map_or(&[], |index| &found[index])
    };
    let own = of(Contender::Longwire);
    let mut rows = Vec::new();
    for reading in own.iter().take(1).flatten() {
        let figure = |rounds| values(rounds, &reading.figure);
        let own = figure(own);
        let witness = figure(of(Contender::Witness));
        let row = |peer: Option<(Peer, Vec<f64>)>| ComparisonRow {
            figure: reading.figure.clone(),
            unit: reading.unit.to_owned(),
            better: reading.better,
            witness: (!witness.is_empty()).then(|| median(witness.iter().copied())),
            longwire: median(own.iter().copied()),
            longwire_range: range(&own),
            peer: peer.as_ref().map(|(peer, _)| *peer),
            peer_median: peer.as_ref().map(|(_, peer)| median(peer.iter().copied())),
            peer_range: peer.as_ref().map(|(_, peer)| range(peer)),
            times_better: peer.and_then(|(_, peer)| times_better(reading.better, &own, &peer)),
        };
        let peers = contenders.iter().filter_map(|contender| match contender {
            Contender::Peer(peer) => Some((*peer, figure(of(*contender)))),
            _ => None,
        });
        let before = rows.len();
        rows.extend(
            peers
                .filter(|(_, values)| !values.is_empty())
                .map(|peer| row(Some(peer))),
        );
        if rows.len() == before {
            rows.push(row(None));
        }
    }
    rows
}

/// Returns a figure's value in each round.
fn values(rounds: &[Vec<Reading>], figure: &str) -> Vec<f64> {
    let readings = rounds.iter().flatten();
    let readings = readings.filter(|reading| reading.figure == figure);
    readings.map(|reading| reading.value).collect()
}

fn range(values: &[f64]) -> [f64; 2] {
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    [least, values.iter().copied().fold(f64::NAN, f64::max)]
}

/// Returns the median over the rounds of how many times better `own` is.
fn times_better(better: Better, own: &[f64], peer: &[f64]) -> Option<f64> {
    let ratios = own.iter().zip(peer).map(|(own, peer)| match better {
        Better::More => own / peer,
        Better::Less => peer.abs() / own.abs(),
    });
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Folder;

    use super::*;

    fn rounds(readings: &[&[(&str, f64)]]) -> Vec<Vec<Reading>> {
        let reading = |(figure, value): &(&str, f64)| match *figure {
            "speed" => Reading::more(*figure, "Gbit/s", *value),
            _ => Reading::less(*figure, "us", *value),
        };
        let round = |round: &&[(&str, f64)]| round.iter().map(reading).collect();
        readings.iter().map(round).collect()
    }

    #[test]
    fn ratios_are_within_rounds_and_say_how_many_times_longwire_is_better() {
        let contenders = [
            Contender::Witness,
            Contender::Longwire,
            Contender::Peer(Peer::Mahimahi),
            Contender::Peer(Peer::Rattan),
        ];
        // The machine is half as fast in the last two rounds; the ratios do not change.
        let found = [
            rounds(&[&[("speed", 20.0)], &[("speed", 10.0)], &[("speed", 10.0)]]),
            rounds(&[
                &[("speed", 8.0), ("error", 20.0), ("lost", 0.0)],
                &[("speed", 4.0), ("error", -40.0), ("lost", 0.0)],
                &[("speed", 4.0), ("error", 40.0), ("lost", 0.0)],
            ]),
            rounds(&[
                &[("speed", 2.0), ("error", 10.0), ("lost", 5.0)],
                &[("speed", 1.0), ("error", 20.0), ("lost", 5.0)],
                &[("speed", 1.0), ("error", 20.0), ("lost", 5.0)],
            ]),
            rounds(&[&[("speed", 4.0)], &[("speed", 2.0)], &[("speed", 2.0)]]),
        ];
        let rows = rows(&contenders, &found);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (&*row.figure, row.peer, row.times_better))
            .collect();
        assert_eq!(
            shown,
            [
                ("speed", Some(Peer::Mahimahi), Some(4.0)),
                ("speed", Some(Peer::Rattan), Some(2.0)),
                ("error", Some(Peer::Mahimahi), Some(0.5)),
                // 0 against 5 has no ratio.
                ("lost", Some(Peer::Mahimahi), None),
            ]
        );
        assert_eq!(rows[0].witness, Some(10.0));
        assert_eq!(
            (rows[0].longwire, rows[0].longwire_range),
            (4.0, [4.0, 8.0])
        );
        assert_eq!(rows[0].peer_range, Some([1.0, 2.0]));
        assert_eq!(rows[2].witness, None);
    }

    #[test]
    fn figures_without_a_peer_are_still_shown() {
        let found = [rounds(&[&[("speed", 8.0)]])];
        let rows = rows(&[Contender::Longwire], &found);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].peer, rows[0].times_better), (None, None));
    }

    #[test]
    fn outputs_of_several_runs_are_read_as_one() {
        let contenders = [Contender::Longwire, Contender::Peer(Peer::Tlem)];
        let found = [rounds(&[&[("speed", 8.0)]]), rounds(&[&[("speed", 2.0)]])];
        let rows = rows(&contenders, &found);
        let remarks = || {
            let remark = "2 cores".to_owned();
            vec![Remark { remark }]
        };
        let memory = PeersFindings {
            memory: rows.clone(),
            remarks: remarks(),
            ..PeersFindings::default()
        };
        let live = PeersFindings {
            live: rows.clone(),
            remarks: remarks(),
            ..PeersFindings::default()
        };
        let folder = Folder::new();
        let files = ["memory.json", "live.json"].map(|name| folder.path().join(name));
        for (file, findings) in files.iter().zip([memory, live]) {
            let text = serde_json::to_string(&findings).expect("JSON");
            std::fs::write(file, text).expect("written");
        }
        let expected = PeersFindings {
            memory: rows.clone(),
            live: rows,
            replay: Vec::new(),
            remarks: remarks(),
        };
        assert_eq!(PeersFindings::read(&files).expect("read"), expected);

        std::fs::write(&files[0], r#"{"rows": []}"#).expect("written");
        let error = PeersFindings::read(&files)
            .expect_err("another bench")
            .to_string();
        assert!(error.contains("not an output of peers --json"), "{error}");
    }
}

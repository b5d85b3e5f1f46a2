//! The integral of a varying rate, in exact fractions.

/// A rate in bit/s, and its start in nanoseconds after the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub time: u64,
    pub rate: u64,
}

/// Behaviour after the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// Holds the last rate.
    Hold,
    /// Stops at this time.
    Stop(u64),
    /// Repeats from this time.
    Again(u64),
}

/// A rate over time.
#[derive(Clone, Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    pub after: After,
    pub linear: bool,
}

/// Halves of a billionth of a bit, per bit.
pub const HALVES: u128 = 2_000_000_000;

/// A number of halves, with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halves {
    whole: u128,
    part: u128,
    of: u128,
}

impl Halves {
    pub fn whole(whole: u128) -> Halves {
        Halves {
            whole,
            part: 0,
            of: 1,
        }
    }

    /// Whether this is at least `other`.
    fn reaches(&self, other: &Halves) -> bool {
        let (mine, others) = (self.part * other.of, other.part * self.of);
        (self.whole, mine) >= (other.whole, others)
    }
}

impl Program {
    /// Returns the work sent by `time`.
    fn sent(&self, time: u64) -> Halves {
        let (laps, inside) = match self.after {
            After::Again(period) => (time / period, time % period),
            After::Hold => (0, time),
            After::Stop(end) => (0, time.min(end)),
        };
        let lap = match self.after {
            After::Again(period) => self.within(period).whole,
            _ => 0,
        };
        let part = self.within(inside);
        Halves {
            whole: u128::from(laps) * lap + part.whole,
            ..part
        }
    }

    fn within(&self, time: u64) -> Halves {
        let mut sum = 0;
        for (index, step) in self.steps.iter().enumerate() {
            if step.time >= time {
                break;
            }
            let next = self.next(index);
            let passed = u128::from(time.min(next.map_or(time, |next| next.time)) - step.time);
            let from = u128::from(step.rate);
            let Some(next) = next.filter(|_| self.linear) else {
                sum += 2 * from * passed;
                continue;
            };
            // 2 from t + (to - from) t² / span
            let span = u128::from(next.time - step.time);
            let scaled = 2 * from * passed * span + u128::from(next.rate) * passed * passed;
            let scaled = scaled - from * passed * passed;
            if passed < span {
                return Halves {
                    whole: sum + scaled / span,
                    part: scaled % span,
                    of: span,
                };
            }
            sum += scaled / span;
        }
        Halves::whole(sum)
    }

    /// Returns the step after this one.
    fn next(&self, index: usize) -> Option<Step> {
        let back = match self.after {
            After::Again(period) => Some(Step {
                time: period,
                rate: self.steps[0].rate,
            }),
            _ => None,
        };
        self.steps.get(index + 1).copied().or(back)
    }

    /// Returns the end of the line segment that contains `time`.
    fn line_end(&self, time: u64) -> u64 {
        let (lap, inside) = match self.after {
            After::Again(period) => (time / period * period, time % period),
            _ => (0, time),
        };
        let ends = (0..self.steps.len()).filter_map(|index| self.next(index));
        let end = ends.map(|next| next.time).find(|end| *end > inside);
        end.map_or(u64::MAX, |end| lap + end)
    }

    /// Returns the instant, rounded down, at which `wanted` has been sent; drops a fraction at the
    /// end of the segment that contains `at`. `None` means never.
    pub fn instant(&self, wanted: &mut Halves, at: u64) -> Option<u64> {
        let end = self.line_end(at);
        if wanted.part > 0 && !self.sent(end).reaches(wanted) {
            *wanted = Halves::whole(wanted.whole);
        }
        let mut high = 1u64;
        while !self.sent(high).reaches(&Halves::whole(wanted.whole + 1)) {
            match high.checked_mul(2).filter(|high| *high < 1 << 60) {
                Some(higher) => high = higher,
                // Exactly `wanted` may have been sent at the end.
                None if self.sent(high).reaches(wanted) => break,
                None => return None,
            }
        }
        // The first whole nanosecond at which it has been sent.
        let mut low = at;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.sent(middle).reaches(wanted) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let on_the_dot = wanted.reaches(&self.sent(low));
        Some(if on_the_dot { low } else { low - 1 })
    }

    pub fn departures(&self, epoch: u64, frames: &[(u64, u32)]) -> Vec<u64> {
        let (mut sent, mut free) = (Halves::whole(0), 0);
        let mut departures = Vec::new();
        for (arrival, len) in frames {
            let at = arrival.saturating_sub(epoch).max(free);
            // The link is idle only after the exact instant.
            if at > free || departures.is_empty() {
                sent = self.sent(at);
            }
            sent.whole += u128::from(*len) * 8 * HALVES;
            let Some(instant) = self.instant(&mut sent, at) else {
                break;
            };
            free = instant;
            departures.push(epoch + instant);
        }
        departures
    }

    pub fn written(&self) -> String {
        let steps = self.steps.iter();
        let steps = steps.map(|step| match step.rate {
            0 => format!("{}ns/0", step.time),
            rate => format!("{}ns/{rate}bit", step.time),
        });
        let steps: Vec<String> = steps.collect();
        let change = if self.linear { "linear" } else { "step" };
        let period = match self.after {
            After::Again(period) => format!(",period={period}ns"),
            _ => String::new(),
        };
        format!("steps:at={},change={change}{period}", steps.join(";"))
    }

    /// Returns the program as a table.
    pub fn table(&self) -> String {
        let rows = self.steps.iter();
        let rows = rows.map(|step| format!("{},{}\n", step.time, step.rate));
        format!("time_ns,rate_bps\n{}", rows.collect::<String>())
    }
}

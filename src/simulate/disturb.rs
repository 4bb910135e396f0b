//! Many steps of a disturbed job, each with its own delays drawn from their laws: how long a step takes then.
//!
//! The seed decides every draw, whatever the machine: whole numbers mixed, then a law's quantile.

use crate::analyse::Compiled;
use crate::elaborate::{Delayed, Disturbance};
use crate::pipeline::{self, ScheduleOp};

/// Times of a step, seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Disturbed {
    /// How many steps were drawn.
    pub samples: u32,
    /// Their seed.
    pub seed: u64,
    /// Without a disturbance.
    pub calm: f64,
    /// In the mean.
    pub mean: f64,
    /// The drawn times, in increasing order.
    pub times: Vec<f64>,
}

impl Disturbed {
    /// The time below which a share `q` of the steps lies.
    pub fn quantile(&self, q: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let at = (q * self.times.len() as f64).ceil() as usize;
        self.times.get(at.saturating_sub(1).min(last)).copied().unwrap_or(self.calm)
    }
}

/// Draws `samples` steps of `c`; none where nothing disturbs it.
pub fn disturbed(c: &Compiled<'_>, samples: u32, seed: u64) -> Option<Disturbed> {
    if c.job.disturb.is_empty() || samples == 0 {
        return None;
    }
    let calm = c.value(c.roots.step_time);
    let after = calm - c.facts.run.makespan;
    let mut times = Vec::with_capacity(samples as usize);
    for sample in 0..samples {
        let mut draw = Draws { state: mixed(seed ^ mixed(u64::from(sample) + 1)) };
        let mut late = |rank: u32, from: Option<u32>, _: ScheduleOp| {
            let mut delay = (0.0, 0.0);
            for d in &c.job.disturb {
                match d.on {
                    Delayed::Messages if from.is_some() => delay.0 += draw.delay(d),
                    Delayed::Message(a, b) if from == Some(a) && rank == b => delay.0 += draw.delay(d),
                    Delayed::Stage(s) if s == rank => delay.1 += draw.delay(d),
                    Delayed::Messages | Delayed::Message(..) | Delayed::Stage(_) => {}
                }
            }
            delay
        };
        times.push(after + pipeline::makespan(&c.facts.orders, &c.facts.durations, &mut late));
    }
    let mean = times.iter().sum::<f64>() / f64::from(samples);
    times.sort_by(f64::total_cmp);
    Some(Disturbed { samples, seed, calm, mean, times })
}

/// A stream of numbers.
struct Draws {
    state: u64,
}

impl Draws {
    /// Between 0 and 1, neither of them.
    fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((mixed(self.state) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// One delay: mostly none, where its chance is small.
    fn delay(&mut self, d: &Disturbance) -> f64 {
        let met = self.unit() < d.chance;
        let q = self.unit();
        if met { d.by.quantile(q).unwrap_or(0.0).max(0.0) } else { 0.0 }
    }
}

/// The mixing step of `SplitMix64` (Steele, Lea and Flood 2014).
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

//! Why no point is legal: the smallest set of rules of which every point breaks one.

use super::shaped::Shaped;
use super::{Answer, Region, Space, Task, errors};
use crate::analyse::rules::{Rule, RuleKind};
use crate::diagnostics::Diagnostic;
use crate::elaborate;
use crate::expr;
use crate::syntax::ast::BinaryOp;
use crate::units::{Unit, show};

/// Rules among which sets of more than two are looked for.
const CANDIDATES: usize = 24;
/// Points over which a requirement's reach is told.
const REACH: u64 = 65_536;

/// Says why `answer` holds no legal point.
pub fn explain(task: Task<'_>, space: &Space, answer: &Answer) -> Diagnostic {
    let only_refused = answer.rejected.iter().all(|r| r.rule.name.starts_with("no error: "));
    if let (Some(d), true) = (&answer.refused, only_refused) {
        return d.clone();
    }
    let set: Vec<Rule> = smallest(&answer.ways).into_iter().filter_map(|i| answer.rules.get(i).cloned()).collect();
    if let [Rule { kind: RuleKind::Batch, .. }] = &set[..]
        && let Some(d) = micro_batches(task, space)
    {
        return d;
    }
    let notes = reach(task, space, &set);
    errors::nothing_legal(&set, answer.points, notes)
}

/// The smallest set that meets every way of failing; of equally small ones the first in the order of rules.
fn smallest(ways: &[Vec<usize>]) -> Vec<usize> {
    let mut rules: Vec<usize> = ways.iter().flatten().copied().collect();
    rules.sort_unstable();
    rules.dedup();
    let hits = |set: &[usize]| ways.iter().all(|w| w.iter().any(|r| set.contains(r)));
    for size in 1..=4 {
        if size > 2 && rules.len() > CANDIDATES {
            break;
        }
        if let Some(found) = subsets(&rules, size, &hits) {
            return found;
        }
    }
    // The rule that most of the rest breaks, until none is left.
    let mut left: Vec<&Vec<usize>> = ways.iter().collect();
    let mut out = Vec::new();
    while !left.is_empty() {
        let count = |r: &usize| left.iter().filter(|w| w.contains(r)).count();
        let Some(best) = rules.iter().copied().max_by_key(|r| (count(r), std::cmp::Reverse(*r))) else { break };
        left.retain(|w| !w.contains(&best));
        if out.contains(&best) {
            break;
        }
        out.push(best);
    }
    out.sort_unstable();
    out
}

fn subsets(rules: &[usize], size: usize, hits: &dyn Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    fn go(
        rules: &[usize],
        from: usize,
        size: usize,
        set: &mut Vec<usize>,
        hits: &dyn Fn(&[usize]) -> bool,
    ) -> Option<Vec<usize>> {
        if set.len() == size {
            return hits(set).then(|| set.clone());
        }
        for i in from..rules.len() {
            set.push(rules[i]);
            let found = go(rules, i + 1, size, set, hits);
            set.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }
    go(rules, 0, size, &mut Vec::new(), hits)
}

/// How near each requirement of `set` comes where the others hold.
fn reach(task: Task<'_>, space: &Space, set: &[Rule]) -> Vec<String> {
    if space.points > REACH {
        return Vec::new();
    }
    let mut nearest: Vec<Option<(f64, f64)>> = vec![None; set.len()];
    let mut shown: Vec<Option<(BinaryOp, Unit, String)>> = vec![None; set.len()];
    for region in &space.regions {
        for (shaped, points) in shapes(task, region) {
            let of = |r: &Rule| shaped.rules.iter().position(|x| x.name == r.name);
            let places: Vec<Option<usize>> = set.iter().map(of).collect();
            for (i, place) in places.iter().enumerate() {
                let Some((a, b, op, unit, text)) = place.and_then(|p| shaped.rules[p].sides.clone()) else { continue };
                let others = places.iter().enumerate().filter(|(j, _)| *j != i).filter_map(|(_, p)| *p);
                let conds: Vec<expr::Id> = others.map(|p| shaped.rules[p].cond).collect();
                let mut ids = vec![a, b];
                ids.extend(conds);
                let Some(columns) = shaped.values(region, &points, &ids) else { continue };
                for row in 0..points.len() {
                    if columns[2..].iter().any(|c| c[row] <= 0.0) {
                        continue;
                    }
                    let (x, y) = (columns[0][row], columns[1][row]);
                    let better = |old: (f64, f64)| match op {
                        BinaryOp::Le | BinaryOp::Lt => x - y < old.0 - old.1,
                        _ => x - y > old.0 - old.1,
                    };
                    if nearest[i].is_none_or(better) {
                        nearest[i] = Some((x, y));
                    }
                }
                shown[i] = Some((op, unit, text));
            }
        }
    }
    let told = nearest.iter().zip(shown).filter_map(|(near, shown)| {
        let ((x, y), (op, unit, text)) = ((*near)?, shown?);
        let (word, need) = match op {
            BinaryOp::Le => ("at least", "at most"),
            BinaryOp::Lt => ("at least", "less than"),
            BinaryOp::Ge => ("at most", "at least"),
            BinaryOp::Gt => ("at most", "more than"),
            _ => return None,
        };
        let place = if set.len() > 1 { "where the others hold" } else { "at every point" };
        Some(format!("`{text}` is {word} {} {place}, {need} {} is required", show(x, &unit), show(y, &unit)))
    });
    told.collect()
}

/// The shapes of a region, each with its points.
fn shapes<'p>(task: Task<'p>, region: &Region) -> Vec<(Shaped<'p>, Vec<u64>)> {
    let mut left: Vec<u64> = (0..region.points).collect();
    let mut out = Vec::new();
    while let Some(witness) = left.first().copied() {
        match Shaped::new(task, region, witness) {
            Ok(shaped) => {
                let (own, rest) = shaped.divide(region, &left);
                left = rest;
                out.push((shaped, own));
            }
            Err(_) => left.retain(|n| *n != witness),
        }
        if out.len() >= 64 {
            break;
        }
    }
    out
}

/// The sizes of `micro_batch` that are open, where the batch on a rank is one number.
fn micro_batches(task: Task<'_>, space: &Space) -> Option<Diagnostic> {
    let [region] = &space.regions[..] else { return None };
    let axis = region.axes.iter().find(|a| a.name == "micro_batch")?;
    let mut graph = expr::Graph::new();
    let mut sink = crate::diagnostics::Sink::new();
    let settings = region.settle(task.settings, 0);
    let job = elaborate::elaborate(task.program, task.job, &settings, &mut graph, &mut sink)?;
    let read = |id| graph.eval(&job.point, &[id])[0] as i64;
    // Where the ranks differ from point to point, one number says nothing.
    if region.axes.iter().any(|a| a.name != "micro_batch" && a.len() > 1) {
        return None;
    }
    let sizes: Vec<i64> = (0..axis.len()).map(|i| axis.value(i)).collect();
    Some(errors::micro_batches(&sizes, read(job.batch), read(job.replicas), axis.span))
}

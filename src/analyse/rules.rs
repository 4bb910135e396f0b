//! What every legal point of a search obeys: conditions of the graph, each with the words for it.

use super::legality::sequence_axes;
use crate::elaborate::{Claim, ClaimKind, DutyKind, Job};
use crate::eval::{Env, Evaluator, Quantity, Truth, Value, Wanted};
use crate::expr::{self, Graph, Node};
use crate::limits;
use crate::partition::{Broken, ShardedGraph};
use crate::source::{Sources, Span};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};
use crate::units::Unit;
use smol_str::SmolStr;
use std::rc::Rc;

/// A condition a point may break.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// A Bool node, true where the point is legal.
    pub cond: expr::Id,
    /// Sort.
    pub kind: RuleKind,
    /// As a report names it.
    pub name: String,
    /// Where it comes from.
    pub span: Span,
    /// The sides of a requirement that compares two numbers, with their unit and the text of the left one.
    pub sides: Option<(expr::Id, expr::Id, BinaryOp, Unit, String)>,
}

/// Sorts of [`Rule`], in the order a point is held to them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RuleKind {
    /// A division is whole.
    Division,
    /// The mesh uses the devices exactly.
    Mesh,
    /// An axis lies where it is placed.
    Place,
    /// The batch is a whole number of microbatches.
    Batch,
    /// Dimensions divide over their axes.
    Divides,
    /// Costs are times and sizes.
    Cost,
    /// A `require` of the job or layout.
    Require,
    /// The schedule runs with so many stages and microbatches.
    Schedule,
    /// The layers split over the stages.
    Split,
    /// Every stage fits in memory.
    Fits,
}

/// The rules of the layout and the batch, in the order of [`RuleKind`]. `costs` are values of cost functions.
pub fn rules(
    job: &Job<'_>,
    sharded: &ShardedGraph,
    costs: &[expr::Id],
    graph: &mut Graph,
    sources: &Sources,
) -> Vec<Rule> {
    let mut out: Vec<Rule> = Vec::new();
    for duty in &job.duties {
        let (kind, name) = match &duty.kind {
            DutyKind::Division { .. } => {
                (RuleKind::Division, format!("`{}` is a whole number", sources.snippet(duty.span)))
            }
            // Outside of a table that clamps there is a value too.
            DutyKind::Inside(inside) if !inside.is_error() => continue,
            DutyKind::Inside(_) => (RuleKind::Cost, format!("`{}` lies inside its table", sources.snippet(duty.span))),
            DutyKind::Mesh => (RuleKind::Mesh, format!("the mesh uses all {} devices", job.cluster.devices)),
            DutyKind::Place { axis, level, .. } => {
                (RuleKind::Place, format!("`{}` lies inside a {level}", job.layout.named(*axis).name))
            }
            DutyKind::Along { along, .. } => {
                (RuleKind::Place, format!("what lies along {} fills its lines", along.join(" × ")))
            }
            DutyKind::Batch => (RuleKind::Batch, "the batch is a whole number of microbatches".into()),
            DutyKind::Fold { .. } => (RuleKind::Mesh, "both sides of the fold have as many ranks".into()),
            DutyKind::Nest(_) => (RuleKind::Mesh, "the two sides of the fold nest".into()),
            DutyKind::Copies => (RuleKind::Division, "heads are copied along whole pieces of their axis".into()),
        };
        out.push(Rule { cond: duty.cond, kind, name, span: duty.span, sides: None });
    }
    for o in &sharded.obligations {
        let (name, span) = match &o.what {
            Broken::Indivisible { dim, axes, rule } => {
                let axes = job.layout.names(axes);
                (format!("`{}` divides over {}", job.ops.dim(*dim).name, axes.join(" · ")), *rule)
            }
            Broken::Other(_, text) => (text.clone(), o.span),
        };
        out.push(Rule { cond: o.cond, kind: RuleKind::Divides, name, span, sides: None });
    }
    for via in job.layout.attention.iter().filter(|v| v.zigzag) {
        // Two blocks a rank, one from each end of the sequence.
        if !sequence_axes(&job.layout, &job.ops).any(|a| via.axes.contains(&a)) {
            continue;
        }
        let ranks: Vec<_> = via.axes.iter().map(|a| job.layout.axis(*a).size).collect();
        let ranks = graph.product(ranks);
        let (one, two, zero) = (graph.int(1), graph.int(2), graph.int(0));
        let blocks = graph.mul(ranks, two);
        let rest = graph.put(Node::Mod(job.sequence, blocks));
        let (whole, alone) = (graph.eq(rest, zero), graph.eq(ranks, one));
        let cond = graph.or(whole, alone);
        let name = "the sequence divides into two blocks a rank".to_string();
        out.push(Rule { cond, kind: RuleKind::Divides, name, span: via.span, sides: None });
    }
    let (low, high) = (graph.real(0.0), graph.real(limits::MAGNITUDE as f64));
    for cost in costs {
        let value = graph.to_real(*cost);
        let (above, below) = (graph.le(low, value), graph.le(value, high));
        let cond = graph.and(above, below);
        let span = job.places.get("cost").copied().unwrap_or(job.span);
        let name = "costs are neither negative nor endless".to_string();
        out.push(Rule { cond, kind: RuleKind::Cost, name, span, sides: None });
    }
    out.retain(|r| graph.as_bool(r.cond) != Some(true));
    // One rule for all conditions that are said alike.
    let mut merged: Vec<Rule> = Vec::new();
    for r in out {
        match merged.iter_mut().find(|m| m.kind == r.kind && m.name == r.name) {
            Some(m) => m.cond = graph.and(m.cond, r.cond),
            None => merged.push(r),
        }
    }
    merged.sort_by_key(|r| r.kind);
    merged
}

/// The `require`s of the job and its layout as rules; what is wrong with one is reported. `lenient` leaves out those
/// of metrics that are not computed yet.
pub fn requirements<'p>(
    eval: &mut Evaluator<'p, '_>,
    claims: &[Claim<'p>],
    vars: &[(SmolStr, Value<'p>)],
    sources: &Sources,
    lenient: bool,
) -> Option<Vec<Rule>> {
    let mut out = Vec::new();
    for claim in claims.iter().filter(|c| c.kind == ClaimKind::Require) {
        let env = Env::with(&claim.env, vars.to_vec());
        if let Some((name, span)) = super::claims::not_computed(claim.value, &env) {
            if lenient {
                continue;
            }
            eval.sink.error(crate::eval::errors::not_supported(&format!("the metric `{name}`"), span));
            return None;
        }
        let cond = match eval.eval(claim.value, &env, &Wanted::Any) {
            Value::Bool(Truth::Known(b)) => eval.graph.bool(b),
            Value::Bool(Truth::Sym(id)) => id,
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                let e = claim.value;
                eval.sink.error(crate::eval::errors::wrong_kind("a claim", "true or false", &noun, e.span));
                return None;
            }
        };
        let sides = sides(eval, claim.value, &env, sources);
        let text = sources.snippet(claim.value.span).split_whitespace().collect::<Vec<_>>().join(" ");
        out.push(Rule { cond, kind: RuleKind::Require, name: format!("`require {text}`"), span: claim.span, sides });
    }
    Some(out)
}

/// The sides of a comparison of numbers.
fn sides<'p>(
    eval: &mut Evaluator<'p, '_>,
    e: &'p Expr,
    env: &Rc<Env<'p>>,
    sources: &Sources,
) -> Option<(expr::Id, expr::Id, BinaryOp, Unit, String)> {
    let ExprKind::Binary(op @ (BinaryOp::Le | BinaryOp::Lt | BinaryOp::Ge | BinaryOp::Gt), _, a, b) = &e.kind else {
        return None;
    };
    let text = sources.snippet(a.span).split_whitespace().collect::<Vec<_>>().join(" ");
    match (eval.eval(a, env, &Wanted::Any), eval.eval(b, env, &Wanted::Any)) {
        (Value::Num(Quantity { num: x, unit }), Value::Num(Quantity { num: y, .. })) => {
            Some((eval.node(x), eval.node(y), *op, unit, text))
        }
        _ => None,
    }
}

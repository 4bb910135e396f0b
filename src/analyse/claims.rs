//! `require` and `expect` at the point: the metrics they speak of, and whether they hold.

use super::errors;
use crate::analyse::Compiled;
use crate::diagnostics::{Diagnostic, Sink};
use crate::elaborate::{Claim, ClaimKind};
use crate::eval::{Env, Evaluator, Num, Quantity, Record, Truth, Value, Wanted, metric_of};
use crate::hir::Program;
use crate::source::{Sources, Span};
use crate::syntax::ast::{self, BinaryOp, Expr, ExprKind, Tolerance};
use crate::units::{Unit, show};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// What became of one claim.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Which.
    pub kind: ClaimKind,
    /// As written, after the keyword.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// The value found.
    pub found: String,
    /// The item.
    pub span: Span,
    /// Whether it speaks of fitting in memory only.
    pub about_fit: bool,
}

/// Metrics the language has and this compiler does not compute.
const LATER: &[&str] = &["exposed_comm", "ttft", "tpot", "utilization", "goodput", "bytes", "reshard"];

/// Evaluates every claim of `compiled`; failed requirements and expectations are reported.
pub fn verdicts<'p>(
    compiled: &mut Compiled<'p>,
    program: &'p Program,
    sources: &Sources,
    sink: &mut Sink,
) -> Vec<Verdict> {
    let claims = std::mem::take(&mut compiled.job.claims);
    let vars = environment(compiled);
    let mut out = Vec::new();
    let inputs = compiled.inputs.clone();
    for claim in &claims {
        let applied = counts(claim, compiled, sink);
        let mut eval = Evaluator::new(program, &mut compiled.graph, sink);
        eval.applied = applied;
        let env = Env::with(&claim.env, vars.clone());
        let mut at = At { eval: &mut eval, inputs: &inputs, env };
        if let Some(verdict) = at.verdict(claim, sources) {
            if !verdict.holds && !verdict.about_fit {
                sink.error(failed(claim, &verdict));
            }
            out.push(verdict);
        }
    }
    compiled.job.claims = claims;
    out
}

fn failed(claim: &Claim<'_>, verdict: &Verdict) -> Diagnostic {
    match claim.kind {
        ClaimKind::Require => {
            errors::require_failed(claim.message.as_deref(), &verdict.text, &verdict.found, claim.span)
        }
        ClaimKind::Expect => errors::expect_failed(&verdict.text, &verdict.found, claim.span),
    }
}

/// Parameters of pieces of the model that a claim asks for: `params(mtp)`, `params_active(decoder.moe)`.
fn counts<'p>(claim: &Claim<'p>, c: &Compiled<'p>, sink: &mut Sink) -> IndexMap<(SmolStr, Vec<String>), Value<'p>> {
    let mut out = IndexMap::new();
    let mut all = vec![claim.value];
    if let Some((about, tolerance)) = claim.about {
        all.push(about);
        all.extend(tolerance.iter().map(|t| match t {
            Tolerance::Absolute(e) | Tolerance::Relative(e) => &**e,
        }));
    }
    let (ops, graph) = (&c.job.ops, &c.graph);
    for e in all {
        crate::hir::walk_expr(e, &mut |e| {
            let ExprKind::Call(callee, args) = &e.kind else { return };
            let Some((metric, path)) = metric_of(callee, args) else { return };
            if !matches!(metric.as_str(), "params" | "params_active" | "params_trainable") {
                return;
            }
            let within = |p: &crate::graph::Parameter| ops.is_within(p, &path);
            if !ops.params.iter().any(within) {
                sink.error(super::errors::no_parameters(&path.join("."), e.span, ops));
            }
            let count = match metric.as_str() {
                "params_active" => ops.params_active(graph, &within),
                _ => ops.params(graph, &within),
            };
            out.insert((metric, path), Value::int(i128::from(count)));
        });
    }
    out
}

/// Names every claim sees, with their values at the point.
fn environment<'p>(c: &Compiled<'p>) -> Vec<(SmolStr, Value<'p>)> {
    let known = |v: Value<'p>| match v {
        Value::Num(Quantity { num: Num::Sym(id), unit }) => {
            let v = c.value(id);
            if v.fract().abs() < f64::EPSILON && v.abs() < 9e15 {
                Value::Num(Quantity { num: Num::Int(v as i128), unit })
            } else {
                Value::real(v, unit)
            }
        }
        Value::Bool(Truth::Sym(id)) => Value::Bool(Truth::Known(c.value(id) > 0.0)),
        other => other,
    };
    let names = c.metrics.names(&c.job).into_iter();
    names
        .map(|(name, v)| match v {
            Value::Record(r) if name == "layout" => {
                let fields = r.fields.iter().map(|(n, v)| (n.clone(), known(v.clone()))).collect();
                (name, Value::Record(Rc::new(Record { fields, ..(*r).clone() })))
            }
            v => (name, known(v)),
        })
        .collect()
}

struct At<'p, 'e, 's, 'i> {
    eval: &'e mut Evaluator<'p, 's>,
    inputs: &'i [f64],
    env: Rc<Env<'p>>,
}

impl<'p> At<'p, '_, '_, '_> {
    fn verdict(&mut self, claim: &Claim<'p>, sources: &Sources) -> Option<Verdict> {
        let text = sources.snippet(claim.span).trim();
        let text = text.strip_prefix("require").or_else(|| text.strip_prefix("expect")).unwrap_or(text).trim();
        // The part after `else` is the message.
        let text = if claim.message.is_some() { sources.snippet(claim.value.span) } else { text };
        let (holds, found) = match claim.about {
            None => self.condition(claim.value)?,
            Some((about, tolerance)) => self.about(claim.value, about, tolerance.as_ref())?,
        };
        Some(Verdict {
            kind: claim.kind,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            holds,
            found,
            span: claim.span,
            about_fit: claim.about.is_none() && mentions_fit(claim.value),
        })
    }

    /// A condition and what its left side was.
    fn condition(&mut self, e: &'p Expr) -> Option<(bool, String)> {
        if self.later(e) {
            return None;
        }
        let truth = match self.eval.eval(e, &Rc::clone(&self.env), &Wanted::Any) {
            Value::Bool(Truth::Known(b)) => b,
            Value::Bool(Truth::Sym(id)) => self.eval.graph.eval(self.inputs, &[id])[0] != 0.0,
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(crate::eval::errors::wrong_kind("a claim", "true or false", &noun, e.span));
                return None;
            }
        };
        let found = match &e.kind {
            ExprKind::Binary(
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge,
                _,
                a,
                b,
            ) => match (self.number(a), self.number(b)) {
                (Some((x, u)), Some((y, _))) if !truth => {
                    format!("{} against {}", percent(x, &u, b), percent(y, &u, b))
                }
                (Some((x, u)), _) => percent(x, &u, b),
                _ => truth.to_string(),
            },
            _ => truth.to_string(),
        };
        Some((truth, found))
    }

    /// `a ~ b` within a tolerance.
    fn about(&mut self, a: &'p Expr, b: &'p Expr, tolerance: Option<&'p Tolerance>) -> Option<(bool, String)> {
        if self.later(a) || self.later(b) {
            return None;
        }
        let (x, unit) = self.number(a)?;
        let (y, other) = self.number(b)?;
        if unit != other {
            self.eval.sink.error(crate::eval::errors::unit_mismatch(
                BinaryOp::Eq,
                a.span.to(b.span),
                (&unit, a.span),
                (&other, b.span),
            ));
            return None;
        }
        let allowed = match tolerance {
            None => y.abs() * 1e-9,
            Some(Tolerance::Absolute(t)) => {
                let (t, u) = self.number(t)?;
                if u != unit {
                    self.eval.sink.error(crate::eval::errors::unit_mismatch(
                        BinaryOp::Eq,
                        a.span,
                        (&unit, a.span),
                        (&u, b.span),
                    ));
                    return None;
                }
                t
            }
            Some(Tolerance::Relative(t)) => self.number(t)?.0 * y.abs(),
        };
        Some(((x - y).abs() <= allowed, percent(x, &unit, b)))
    }

    fn number(&mut self, e: &'p Expr) -> Option<(f64, Unit)> {
        match self.eval.eval(e, &Rc::clone(&self.env), &Wanted::Any) {
            Value::Num(q) => {
                let v = match q.num {
                    Num::Int(v) => v as f64,
                    Num::Real(v) => v,
                    Num::Sym(id) => self.eval.graph.eval(self.inputs, &[id])[0],
                };
                Some((v, q.unit))
            }
            _ => None,
        }
    }

    /// Reports a metric that is not computed yet.
    fn later(&mut self, e: &'p Expr) -> bool {
        let found = not_computed(e, &self.env);
        if let Some((name, span)) = &found {
            self.eval.sink.error(crate::eval::errors::not_supported(&format!("the metric `{name}`"), *span));
        }
        found.is_some()
    }
}

/// The first metric in `e` that is not computed yet.
pub(super) fn not_computed(e: &Expr, env: &Env<'_>) -> Option<(SmolStr, Span)> {
    let mut found = None;
    crate::hir::walk_expr(e, &mut |x| {
        if let ExprKind::Path(p) = &x.kind
            && p.len() == 1
            && LATER.contains(&p[0].text.as_str())
            && env.find(&p[0].text).is_none()
        {
            found = Some((p[0].text.clone(), x.span));
        }
    });
    found
}

/// A value as its neighbour is written: a ratio compared with a percentage is shown as one.
fn percent(x: f64, unit: &Unit, like: &Expr) -> String {
    let mut is_percent = false;
    crate::hir::walk_expr(like, &mut |e| {
        if let ExprKind::Number { unit: Some((u, _)), .. } = &e.kind {
            is_percent |= u == "%";
        }
    });
    if is_percent && unit.is_none() { format!("{:.1}%", 100.0 * x) } else { show(x, unit) }
}

/// `fits`, or a bound on `peak_memory`: the report of memory says the same, better.
fn mentions_fit(e: &Expr) -> bool {
    let names = |e: &Expr, name: &str| matches!(&e.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == name);
    match &e.kind {
        ExprKind::Path(_) => names(e, "fits"),
        ExprKind::Binary(BinaryOp::Le, _, a, b) => {
            let field = |kind: ast::Kind, name: &str| {
                matches!(&b.kind, ExprKind::Field(base, f) if f.text == name
                    && matches!(&base.kind, ExprKind::Kind(k) if *k == kind))
            };
            (names(a, "peak_memory") && field(ast::Kind::Device, "usable"))
                || (names(a, "host_memory") && field(ast::Kind::Host, "memory"))
        }
        _ => false,
    }
}

/// Whether a job says itself that it does not fit.
pub fn expects_no_fit(claims: &[Claim<'_>]) -> bool {
    claims.iter().any(|c| {
        let ExprKind::Binary(BinaryOp::Eq, _, a, b) = &c.value.kind else { return false };
        c.kind == ClaimKind::Expect
            && matches!(&a.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == "fits")
            && matches!(b.kind, ExprKind::Bool(false))
    })
}

//! `pipeline over AXIS { schedule, split, p2p }`.

use super::super::{Builder, PipelineItem, Split};
use super::{Fields, word};
use crate::elaborate::errors;
use crate::elaborate::flatten::Flat;
use crate::eval::{Env, Instance, Value, Wanted};
use crate::source::Span;
use crate::syntax::ast::{self, Arg, AxisRef, Expr, ExprKind};
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_, '_> {
    pub(super) fn pipeline(
        &mut self,
        axes: &[AxisRef],
        fields: &Fields<'p>,
        flat: &Flat<'p>,
    ) -> Option<PipelineItem<'p>> {
        let list = self.axes(axes)?;
        let [axis] = list[..] else {
            self.eval.sink.error(errors::not_supported("a pipeline over several axes", flat.item.span));
            return None;
        };
        let span = flat.item.span;
        let (mut split, mut split_span) = (Split::Balanced(Vec::new()), span);
        let (mut schedule, mut schedule_span) = (None, span);
        let (mut scatter_gather, mut in_turns) = (Vec::new(), false);
        for (name, (e, at)) in fields {
            match name.as_str() {
                "schedule" => {
                    schedule_span = self.given_at(e);
                    schedule = Some(self.schedule(e, &flat.env)?);
                }
                "split" => {
                    split_span = e.span;
                    split = self.split(e, &flat.env)?;
                }
                "p2p" => match &e.kind {
                    ExprKind::Path(_) if word(e) == Some("direct") => {}
                    ExprKind::Call(f, args) if matches!(word(f), Some("scatter_gather" | "temporal_sharing")) => {
                        in_turns = word(f) == Some("temporal_sharing");
                        for arg in args {
                            if let Arg::Positional(e) = arg
                                && let Some(name) = e.name()
                            {
                                scatter_gather.extend(self.names(&[AxisRef { part: None, name: name.clone() }])?);
                            }
                        }
                    }
                    _ => {
                        self.later("this way of sending between stages", e.span);
                    }
                },
                "inner" if matches!(e.kind, ExprKind::Bool(false)) => {}
                "inner" => {
                    self.later("pipelines over inner repeats", e.span);
                }
                _ => {
                    let known: Vec<_> = ["schedule", "split", "p2p", "inner"].iter().map(ToString::to_string).collect();
                    self.eval.sink.error(crate::eval::errors::unknown_field(name, *at, "`pipeline`", &known));
                    return None;
                }
            }
        }
        let schedule = match schedule {
            Some(s) => s,
            None => self.default_schedule(span)?,
        };
        self.layout.pipeline = Some(axis);
        Some(PipelineItem { axis, schedule, split, scatter_gather, in_turns, split_span, schedule_span, span })
    }

    /// Where a value is given: the argument, where `e` is only the name of the layout's parameter; else `e`. In a layout
    /// of the library that nobody gave an argument, the use of the layout.
    fn given_at(&self, e: &Expr) -> Span {
        let argument = match &e.kind {
            ExprKind::Path(p) if p.len() == 1 => self.given.get(&p[0].text).copied(),
            _ => None,
        };
        argument.or_else(|| self.library.then_some(self.used_at)).unwrap_or(e.span)
    }

    pub(in crate::elaborate::layout) fn default_schedule(&mut self, span: Span) -> Option<Rc<Instance<'p>>> {
        let id = self.eval.program.std_entry("one_f_one_b")?;
        match self.eval.entry(id, span) {
            Value::Instance(i) => Some(i),
            _ => None,
        }
    }

    /// A schedule value. Arguments over layout parameters are taken at the point: they shape its order.
    pub(in crate::elaborate::layout) fn schedule(
        &mut self,
        e: &'p Expr,
        env: &Rc<Env<'p>>,
    ) -> Option<Rc<Instance<'p>>> {
        let value = match self.eval.eval(e, env, &Wanted::Any) {
            Value::Hole(hole) => self.eval.choose("schedule", &hole, None),
            v => v,
        };
        match value {
            Value::Instance(i) if i.decl.kind == ast::Kind::Schedule => {
                let mut at_point = (*i).clone();
                for (name, (value, _)) in &mut at_point.args {
                    if let Value::Hole(hole) = value {
                        let hole = Rc::clone(hole);
                        *value = self.eval.choose(name, &hole, None);
                    }
                    *value = self.eval.known(value.clone());
                }
                at_point.span = e.span;
                Some(Rc::new(at_point))
            }
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("`schedule`", "a schedule", &noun, e.span));
                None
            }
        }
    }

    fn split(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Split> {
        let (name, args) = match &e.kind {
            ExprKind::Call(f, args) => (word(f), args.as_slice()),
            ExprKind::Path(_) => (word(e), &[][..]),
            _ => (None, &[][..]),
        };
        match name {
            Some("even") => Some(Split::Even(self.counting(args, e)?)),
            Some("balanced") => Some(Split::Balanced(self.counting(args, e)?)),
            _ => match self.eval.eval(e, env, &Wanted::Any) {
                Value::List(l) => {
                    let counts: Option<Vec<u32>> = l
                        .iter()
                        .map(|v| self.eval.known(v.clone()).as_int().and_then(|n| u32::try_from(n).ok()))
                        .collect();
                    if counts.is_none() {
                        self.one_of("`split`", "a list of whole numbers", e);
                    }
                    counts.map(Split::Listed)
                }
                Value::Error(_) => None,
                other => {
                    let noun = other.noun();
                    self.eval.sink.error(errors::wrong_value("`split`", "`even`, `balanced` or a list", &noun, e.span));
                    None
                }
            },
        }
    }

    /// `counting = [embed, head]`: names of regions.
    fn counting(&mut self, args: &'p [Arg], e: &Expr) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for arg in args {
            match arg {
                Arg::Named(n, value) if n.text == "counting" && value.list().is_some() => {
                    for x in value.list().unwrap_or_default() {
                        match word(x) {
                            Some(w) => out.push(w.to_string()),
                            None => {
                                self.one_of("`counting`", "names of regions", x)?;
                            }
                        }
                    }
                }
                Arg::Named(n, x) if n.text == "by" && word(x) == Some("time") => {}
                _ => {
                    self.one_of("a split", "`counting = […]`", e)?;
                }
            }
        }
        Some(out)
    }
}

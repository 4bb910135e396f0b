//! `disturb` of a job: what comes late, how late and how often.

use super::super::errors;
use super::Builder;
use crate::eval::{Distribution, Env, Wanted};
use crate::syntax::ast::{Arg, Expr, ExprKind};
use crate::units::{Base, Unit};
use std::rc::Rc;

/// One entry of `disturb`.
#[derive(Clone, PartialEq, Debug)]
pub struct Disturbance {
    /// What comes late.
    pub on: Delayed,
    /// How late, seconds.
    pub by: Distribution,
    /// How often: a share of the times.
    pub chance: f64,
}

/// What a [`Disturbance`] delays.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Delayed {
    /// Each message from one stage to another.
    Message(u32, u32),
    /// Each message between stages.
    Messages,
    /// Each operation of a stage.
    Stage(u32),
}

impl<'p> Builder<'p, '_, '_> {
    /// The entries of `disturb`; `None` if one is wrong, which is reported.
    pub(super) fn disturbances(&mut self) -> Option<Vec<Disturbance>> {
        let Some(field) = self.values.get("disturb").cloned() else { return Some(Vec::new()) };
        let Some(list) = field.expr.list() else {
            return self.wrong_disturbance(field.expr, "a list of delays");
        };
        list.iter().map(|e| self.disturbance(e, &field.env)).collect()
    }

    fn disturbance(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Disturbance> {
        let args = match &e.kind {
            ExprKind::Call(f, args) if f.name().is_some_and(|n| n.text == "delay") => args,
            _ => return self.wrong_disturbance(e, FORM),
        };
        let mut on = None;
        let mut by = None;
        let mut chance = 1.0;
        for arg in args {
            let Arg::Named(name, value) = arg else { return self.wrong_disturbance(e, FORM) };
            let value: &'p Expr = value;
            match name.text.as_str() {
                "on" => on = Some(self.delayed(value, env)?),
                "by" => {
                    let v = self.eval.eval(value, env, &Wanted::Any);
                    let law = self.eval.distribution(&v, value.span)?;
                    if law.unit != Unit::base(Base::Second) {
                        return self.wrong_disturbance(value, "a time or a distribution of times");
                    }
                    by = Some(law);
                }
                "chance" => {
                    let v = self.eval.eval(value, env, &Wanted::Any);
                    match v.as_f64() {
                        Some(x) if (0.0..=1.0).contains(&x) => chance = x,
                        _ => return self.wrong_disturbance(value, "a share from 0% to 100%"),
                    }
                }
                _ => return self.wrong_disturbance(e, FORM),
            }
        }
        match (on, by) {
            (Some(on), Some(by)) => Some(Disturbance { on, by, chance }),
            _ => self.wrong_disturbance(e, FORM),
        }
    }

    /// `p2p`, `p2p(1, 2)`, `stage(3)`.
    fn delayed(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Delayed> {
        const WANTED: &str = "`p2p`, `p2p(FROM, TO)` or `stage(S)`, stages counted from 0";
        let (name, args) = match &e.kind {
            ExprKind::Call(f, args) => (f.name(), args.as_slice()),
            _ => (e.name(), &[][..]),
        };
        let mut numbers = Vec::new();
        for arg in args {
            let Arg::Positional(x) = arg else { return self.wrong_disturbance(e, WANTED) };
            let x: &'p Expr = x;
            let n = self.eval.eval(x, env, &Wanted::Int).as_int().and_then(|n| u32::try_from(n).ok());
            numbers.push(match n {
                Some(n) => n,
                None => return self.wrong_disturbance(x, "a stage, counted from 0"),
            });
        }
        match (name.map(|n| n.text.as_str()), numbers.as_slice()) {
            (Some("p2p"), []) => Some(Delayed::Messages),
            (Some("p2p"), [a, b]) => Some(Delayed::Message(*a, *b)),
            (Some("stage"), [s]) => Some(Delayed::Stage(*s)),
            _ => self.wrong_disturbance(e, WANTED),
        }
    }

    fn wrong_disturbance<T>(&mut self, e: &Expr, wanted: &str) -> Option<T> {
        self.eval.sink.error(errors::disturbance(wanted, e.span));
        None
    }
}

/// What an entry looks like.
const FORM: &str = "`delay(on = p2p(1, 2), by = TIME or a distribution of times, chance = 10%)`";

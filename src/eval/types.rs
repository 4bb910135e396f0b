//! Types as written to what an expression is expected to be.

use super::errors;
use super::{Evaluator, Num, Quantity, Value};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::{Base, Unit};
use smol_str::SmolStr;

/// What an expression is expected to be.
#[derive(Clone, PartialEq, Debug)]
pub enum Wanted {
    /// Anything.
    Any,
    /// A whole plain number: `/` must be exact.
    Int,
    /// A number of this unit.
    Quantity(Unit),
}

/// The unit a type name stands for; none for types that are not numbers.
pub fn type_unit(name: &str) -> Option<Unit> {
    let per = |a: Base, b: Base| Unit::base(a).div(&Unit::base(b));
    Some(match name {
        "Real" | "Ratio" | "Int" => Unit::none(),
        "Bytes" => Unit::bytes(),
        "Time" => Unit::time(),
        "Flop" => Unit::flop(),
        "Energy" => Unit::base(Base::Joule),
        "Power" => per(Base::Joule, Base::Second),
        "Money" => Unit::base(Base::Dollar),
        "Bandwidth" => Unit::bandwidth(),
        "FlopRate" => Unit::flop_rate(),
        "Frequency" => Unit::none().div(&Unit::time()),
        "Price" => per(Base::Dollar, Base::Second),
        "PricePerByte" => per(Base::Dollar, Base::Byte),
        "EnergyPerByte" => per(Base::Joule, Base::Byte),
        "Tok" => Unit::base(Base::Tok),
        "Seq" => Unit::base(Base::Seq),
        "Req" => Unit::base(Base::Req),
        "Step" => Unit::base(Base::Step),
        _ => return None,
    })
}

/// What a value of type `ty` is expected to be.
pub fn type_wanted(ty: &ast::Type) -> Wanted {
    wanted_of(&ty.name.text)
}

/// What a value of the type called `name` is expected to be.
pub(super) fn wanted_of(name: &str) -> Wanted {
    match name {
        "Int" => Wanted::Int,
        name => type_unit(name).map_or(Wanted::Any, Wanted::Quantity),
    }
}

impl<'p> Evaluator<'p, '_> {
    /// Whether `value` is what `wanted` says, or was reported or left open already.
    pub(super) fn fits(&self, value: &Value<'p>, wanted: &Wanted) -> bool {
        match (wanted, value) {
            (Wanted::Any, _) | (_, Value::Error(_) | Value::Hole(_)) => true,
            (Wanted::Int, Value::Num(Quantity { num, unit })) => {
                let whole = match num {
                    Num::Int(_) => true,
                    Num::Real(_) => false,
                    Num::Sym(id) => self.graph.kind(*id) == crate::expr::Kind::Int,
                };
                whole && unit.is_none()
            }
            (Wanted::Quantity(u), Value::Num(q)) => q.unit == *u,
            (Wanted::Int | Wanted::Quantity(_), _) => false,
        }
    }

    /// `value` if it is what `wanted` says, else the error; `what` names it in the message.
    pub fn require(&mut self, value: Value<'p>, wanted: &Wanted, what: &str, span: Span) -> Value<'p> {
        if self.fits(&value, wanted) {
            return value;
        }
        match (wanted, &value) {
            (Wanted::Any, _) => value,
            (Wanted::Int, Value::Num(q)) if !q.unit.is_none() => {
                self.error(errors::wrong_unit(what, &Unit::none(), &q.unit, span))
            }
            (Wanted::Int, Value::Num(Quantity { num: Num::Sym(id), .. }))
                if self.graph.range(*id).hi > crate::expr::INT_LIMIT as f64 =>
            {
                self.error(errors::may_overflow(what, span))
            }
            (Wanted::Quantity(u), Value::Num(q)) => self.error(errors::wrong_unit(what, u, &q.unit, span)),
            (Wanted::Int, _) => self.error(errors::wrong_kind(what, "a whole number", &value.noun(), span)),
            (Wanted::Quantity(u), _) => self.error(errors::wrong_kind(what, &u.noun(), &value.noun(), span)),
        }
    }

    /// Units a program may declare become types in `UpperCamel`: `Img` for `unit img`.
    pub(super) fn user_type(&self, name: &str) -> Option<SmolStr> {
        self.program
            .units
            .iter()
            .find(|u| {
                let mut chars = u.chars();
                let camel = chars.next().map(|c| c.to_ascii_uppercase().to_string() + chars.as_str());
                camel.as_deref() == Some(name)
            })
            .cloned()
    }
}

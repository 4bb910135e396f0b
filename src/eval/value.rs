//! What expressions evaluate to.

use super::Hole;
use crate::diagnostics::Reported;
use crate::expr;
use crate::hir::{DeclId, ModuleId};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// A number: known now, or a node over the layout's parameters.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Num {
    /// A whole number.
    Int(i128),
    /// Any other.
    Real(f64),
    /// A node of the expression graph.
    Sym(expr::Id),
}

/// A number and its unit, in base units.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantity {
    /// The number.
    pub num: Num,
    /// Its unit.
    pub unit: Unit,
}

/// True or false, now or at a point.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Truth {
    /// Known.
    Known(bool),
    /// A Bool node.
    Sym(expr::Id),
}

/// A value. `'p` is the program's lifetime: values point into its trees.
#[derive(Clone, Debug)]
pub enum Value<'p> {
    /// A number with its unit.
    Num(Quantity),
    /// True or false.
    Bool(Truth),
    /// Text.
    Str(SmolStr),
    /// A list.
    List(Rc<Vec<Value<'p>>>),
    /// `{…}`, or an evaluated device, link, host, dtype, precision, optimizer, group, …
    Record(Rc<Record<'p>>),
    /// A cluster, model, layout, schedule, cost or job: a declaration with the arguments and blocks given so far.
    Instance(Rc<Instance<'p>>),
    /// A function with what it closes over.
    Func(Rc<Closure<'p>>),
    /// A fixed word of the language, perhaps applied: `switch`, `fat_tree(rails = 8)`.
    Word(Rc<Word<'p>>),
    /// `n * LINK`
    Links {
        /// How many.
        count: Num,
        /// Of which.
        link: Rc<Record<'p>>,
    },
    /// An operation of a schedule, or two issued together.
    Op(ScheduleOp, Option<ScheduleOp>),
    /// `a..b` of whole numbers.
    Range(i128, i128),
    /// `?`, or a domain: a choice is open here.
    Hole(Rc<Hole<'p>>),
    /// Already reported.
    Error(Reported),
}

/// `F(i, c)` and its kin, as a schedule's `order` lists them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ScheduleOp {
    /// `F`, `B`, `W` or `U`.
    pub kind: char,
    /// The microbatch; 0 for `U`.
    pub microbatch: i128,
    /// The chunk.
    pub chunk: i128,
}

/// A fixed word, perhaps applied.
#[derive(Clone, Debug)]
pub struct Word<'p> {
    /// The word.
    pub name: SmolStr,
    /// Its arguments; a name for named ones.
    pub args: Vec<(Option<SmolStr>, Value<'p>)>,
}

/// Named fields.
#[derive(Clone, Debug)]
pub struct Record<'p> {
    /// `device`, `link`, `group`, …; empty for a record literal.
    pub kind: &'static str,
    /// Name of the declaration.
    pub name: SmolStr,
    /// The fields, evaluated.
    pub fields: IndexMap<SmolStr, Value<'p>>,
    /// Where each field came from, so that `with` can replace one and what follows from it.
    pub given: Vec<Given<'p>>,
    /// The declaration or literal.
    pub span: Span,
}

/// Items given to a declaration: its own block or one of `with`, and the names they see.
#[derive(Clone, Debug)]
pub struct Given<'p> {
    /// The items.
    pub block: &'p ast::Block,
    /// The names in scope.
    pub env: Rc<Env<'p>>,
}

/// A declaration and what was given to it so far. Defaults are not filled in: they may need what only the user of
/// the instance knows (`devices`, `p`, `m`).
#[derive(Clone, Debug)]
pub struct Instance<'p> {
    /// The declaration.
    pub decl: &'p ast::Decl,
    /// Its id, for messages and hashes.
    pub id: DeclId,
    /// Arguments by parameter name, with the place of each.
    pub args: IndexMap<SmolStr, (Value<'p>, Span)>,
    /// `with` blocks, oldest first.
    pub with: Vec<Given<'p>>,
    /// The expression that made it.
    pub span: Span,
}

/// A function and the names it closes over.
#[derive(Clone, Debug)]
pub struct Closure<'p> {
    /// The declaration.
    pub decl: &'p ast::Decl,
    /// The names in scope.
    pub env: Rc<Env<'p>>,
}

/// Names in scope, innermost last.
#[derive(Clone, Debug)]
pub struct Env<'p> {
    /// The module whose top-level names are seen.
    pub module: ModuleId,
    /// Local names.
    pub vars: Vec<(SmolStr, Value<'p>)>,
    /// The scope around this one.
    pub outer: Option<Rc<Env<'p>>>,
}

impl<'p> Env<'p> {
    /// The top level of `module`.
    pub fn top(module: ModuleId) -> Rc<Self> {
        Rc::new(Self { module, vars: Vec::new(), outer: None })
    }

    /// A scope inside `outer`.
    pub fn inside(outer: &Rc<Self>) -> Self {
        Self { module: outer.module, vars: Vec::new(), outer: Some(Rc::clone(outer)) }
    }

    /// A scope inside `outer` with these names.
    pub fn with(outer: &Rc<Self>, vars: Vec<(SmolStr, Value<'p>)>) -> Rc<Self> {
        Rc::new(Self { module: outer.module, vars, outer: Some(Rc::clone(outer)) })
    }

    /// Adds a name.
    pub fn bind(&mut self, name: impl Into<SmolStr>, value: Value<'p>) {
        self.vars.push((name.into(), value));
    }

    /// What `name` means here; top-level names are not looked at.
    pub fn find(&self, name: &str) -> Option<&Value<'p>> {
        let mut at = Some(self);
        while let Some(env) = at {
            if let Some((_, v)) = env.vars.iter().rev().find(|(n, _)| n == name) {
                return Some(v);
            }
            at = env.outer.as_deref();
        }
        None
    }

    /// Every local name, for suggestions.
    pub fn names(&self) -> Vec<SmolStr> {
        let mut out = Vec::new();
        let mut at = Some(self);
        while let Some(env) = at {
            out.extend(env.vars.iter().map(|(n, _)| n.clone()));
            at = env.outer.as_deref();
        }
        out
    }
}

impl Value<'_> {
    /// A whole plain number.
    pub fn int(value: i128) -> Self {
        Self::Num(Quantity { num: Num::Int(value), unit: Unit::none() })
    }

    /// A number with a unit.
    pub fn real(value: f64, unit: Unit) -> Self {
        Self::Num(Quantity { num: Num::Real(value), unit })
    }

    /// A node with a unit.
    pub fn sym(id: expr::Id, unit: Unit) -> Self {
        Self::Num(Quantity { num: Num::Sym(id), unit })
    }

    /// A word.
    pub fn word(name: impl Into<SmolStr>) -> Self {
        Self::Word(Rc::new(Word { name: name.into(), args: Vec::new() }))
    }

    /// The word, if this is one without arguments.
    pub fn as_word(&self) -> Option<&str> {
        if let Self::Word(w) = self { Some(&w.name) } else { None }
    }

    /// The known number in base units, as a double.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Num(q) => match q.num {
                Num::Int(v) => Some(v as f64),
                Num::Real(v) => Some(v),
                Num::Sym(_) => None,
            },
            _ => None,
        }
    }

    /// The known whole number.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Self::Num(Quantity { num: Num::Int(v), .. }) => Some(*v),
            _ => None,
        }
    }

    /// What a user calls it: "a list", "bytes", "the device `H100_SXM`".
    pub fn noun(&self) -> String {
        match self {
            Self::Num(q) if q.unit.is_none() => match q.num {
                Num::Int(_) => "a whole number".into(),
                Num::Real(_) | Num::Sym(_) => "a number".into(),
            },
            Self::Num(q) => q.unit.noun(),
            Self::Bool(_) => "true or false".into(),
            Self::Str(_) => "text".into(),
            Self::List(_) => "a list".into(),
            Self::Record(r) if r.kind.is_empty() => "a record".into(),
            Self::Record(r) => format!("the {} `{}`", r.kind, r.name),
            Self::Instance(i) => format!("the {} `{}`", i.decl.kind.keyword(), i.decl.name.text),
            Self::Func(f) => format!("the function `{}`", f.decl.name.text),
            Self::Word(w) => format!("the word `{}`", w.name),
            Self::Links { link, .. } => format!("links `{}`", link.name),
            Self::Op(..) => "a schedule operation".into(),
            Self::Range(..) => "a range".into(),
            Self::Hole(_) => "an open choice".into(),
            Self::Error(_) => "an error".into(),
        }
    }
}

impl Record<'_> {
    /// A record made by the compiler, such as a group.
    pub fn made(kind: &'static str, name: impl Into<SmolStr>, span: Span) -> Self {
        Self { kind, name: name.into(), fields: IndexMap::new(), given: Vec::new(), span }
    }
}

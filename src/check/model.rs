//! Models and blocks: statements in order, tensors, dimensions. What dimensions fit is left to elaboration.

use super::items::{self, Place};
use super::scope::{Local, Sort};
use super::ty::{Ty, Whole};
use super::{Checker, MAX_DEPTH, errors};
use crate::syntax::ast::{
    Block, Decl, DimDef, DimRef, Index, ItemKind, LetValue, ParamKind, Ret, Target, TargetSuffix,
};

impl<'p> Checker<'p, '_> {
    pub(super) fn model(&mut self, decl: &'p Decl, block: &'p Block) {
        for param in decl.params.as_deref().unwrap_or_default() {
            if let ParamKind::Tensor(dims) = &param.kind {
                self.dims_seen(dims);
            }
        }
        if let Some(Ret::Dims(list, _)) = &decl.ret {
            for t in list {
                self.scope.put_new(&t.name.text, dim());
            }
        }
        self.dims_declared(block, 0);
        self.statements(decl, block, Place::Decl(decl.kind), 0);
    }

    fn dims_seen(&mut self, dims: &'p [DimRef]) {
        for d in dims {
            self.scope.put_new(&d.name.text, dim());
        }
    }

    /// Dimensions and region names of the whole body: they are known from the first statement on.
    fn dims_declared(&mut self, block: &'p Block, depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        for item in &block.items {
            match &item.kind {
                ItemKind::Dims(defs) => {
                    for def in defs {
                        self.declare(&def.name, Sort::Dim, Ty::Unknown);
                    }
                }
                ItemKind::Input { dims, .. } => self.dims_seen(dims),
                ItemKind::Region { name, block } | ItemKind::Repeat { name, block, .. } => {
                    self.regions.insert(name.text.clone());
                    self.dims_declared(block, depth + 1);
                }
                ItemKind::If { then, otherwise, .. } => {
                    self.dims_declared(then, depth + 1);
                    if let Some(b) = otherwise {
                        self.dims_declared(b, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn statements(&mut self, decl: &'p Decl, block: &'p Block, place: Place, depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        for item in &block.items {
            if items::misplaced(item, place).is_some() {
                continue;
            }
            match &item.kind {
                ItemKind::Dims(defs) => self.dims(defs),
                ItemKind::Input { name, .. } => self.declare(name, Sort::Tensor, Ty::Tensor),
                ItemKind::Let(l) => {
                    let ty = match &l.value {
                        LetValue::Is(e) => self.let_ty(l, e),
                        LetValue::In(e) => self.domain_ty(e),
                    };
                    self.declare(&l.name, Sort::Value, ty);
                }
                ItemKind::Assign { target, value } => {
                    self.infer(value, Whole::Maybe);
                    self.assigned(target);
                }
                ItemKind::Return(e) => {
                    self.infer(e, Whole::Maybe);
                }
                ItemKind::Require { cond, .. } => self.condition(cond, "`require`"),
                ItemKind::If { cond, then, otherwise } => {
                    self.condition(cond, "a condition");
                    for b in std::iter::once(then).chain(otherwise) {
                        self.block_items(b, place);
                        self.statements(decl, b, place, depth + 1);
                    }
                }
                ItemKind::Region { block: b, .. } => {
                    self.block_items(b, Place::Region(decl.kind));
                    self.statements(decl, b, Place::Region(decl.kind), depth + 1);
                }
                ItemKind::Repeat { count, index, block: b, .. } => {
                    self.whole(count, "the count of a repeat");
                    self.block_items(b, Place::Region(decl.kind));
                    if let Some(i) = index {
                        // Several repeats may count with the same name.
                        self.give(&i.text, Sort::Field, Ty::int());
                    }
                    self.statements(decl, b, Place::Region(decl.kind), depth + 1);
                }
                ItemKind::Section { head, block, .. } => self.section(head, block, place),
                _ => {}
            }
        }
    }

    fn dims(&mut self, defs: &'p [DimDef]) {
        for def in defs {
            let known = |c: &Self, n: &str| c.scope.find(n).is_some_and(|l| l.sort == Sort::Dim);
            for other in def.grouped.iter().chain(&def.ragged) {
                if !known(self, &other.text) {
                    let mut names: Vec<String> = defs.iter().map(|d| d.name.text.to_string()).collect();
                    names.retain(|n| *n != *def.name.text);
                    self.error(errors::unknown_dimension(other, &names));
                }
            }
            if def.ragged.is_some() {
                self.infer(&def.extent, Whole::Maybe);
            } else {
                // A dimension computed from one of the data carries its unit.
                let found = self.infer(&def.extent, Whole::Yes);
                if !matches!(&found, Ty::Number { unit, .. } if !unit.is_none()) {
                    self.expect(&Ty::int(), &found, &format!("the extent of `{}`", def.name.text), &def.extent);
                }
            }
        }
    }

    /// The left side of a statement: its dimensions may be new, its variable may be assigned again.
    fn assigned(&mut self, target: &'p Target) {
        for suffix in &target.suffixes {
            let TargetSuffix::Index(list) = suffix else { continue };
            for index in list {
                if let Index::Expr(e) = index
                    && let Some(name) = e.name()
                {
                    self.scope.put_new(&name.text, dim());
                }
            }
        }
        self.declare(&target.name, Sort::Tensor, Ty::Tensor);
    }
}

fn dim<'p>() -> Local<'p> {
    Local { ty: Ty::Unknown, sort: Sort::Dim, span: None }
}

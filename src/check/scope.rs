//! Names in scope, innermost last.

use super::ty::Ty;
use crate::source::Span;
use indexmap::IndexMap;
use smol_str::SmolStr;

/// What sort of name this is; decides what may hide or reuse it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// A parameter, `let`, index or nested function: may not be hidden.
    Value,
    /// A tensor of a model: may be assigned again.
    Tensor,
    /// A dimension.
    Dim,
    /// A mesh axis; may pun a parameter.
    Axis,
    /// What the language puts in scope (`p`, `m`, `devices`): may not be hidden.
    Given,
    /// A field or metric: readable, but a `let` of that name wins.
    Field,
}

/// One name.
#[derive(Clone, Debug)]
pub(super) struct Local<'p> {
    pub(super) ty: Ty<'p>,
    pub(super) sort: Sort,
    /// Where it is declared; none for what the language gives.
    pub(super) span: Option<Span>,
}

/// The names of one declaration and what is nested in it.
#[derive(Default, Debug)]
pub(super) struct Scope<'p> {
    frames: Vec<IndexMap<SmolStr, Local<'p>>>,
}

impl<'p> Scope<'p> {
    pub(super) fn push(&mut self) {
        self.frames.push(IndexMap::new());
    }

    pub(super) fn pop(&mut self) {
        self.frames.pop();
    }

    pub(super) fn find(&self, name: &str) -> Option<&Local<'p>> {
        self.frames.iter().rev().find_map(|f| f.get(name))
    }

    /// Adds or replaces `name` in the innermost frame.
    pub(super) fn put(&mut self, name: &SmolStr, local: Local<'p>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.insert(name.clone(), local);
        }
    }

    /// Adds `name` unless something of that name is in scope.
    pub(super) fn put_new(&mut self, name: &SmolStr, local: Local<'p>) {
        if self.find(name).is_none() {
            self.put(name, local);
        }
    }

    /// Replaces what is known of a name that is in scope.
    pub(super) fn retype(&mut self, name: &str, ty: Ty<'p>) {
        if let Some(local) = self.frames.iter_mut().rev().find_map(|f| f.get_mut(name)) {
            local.ty = ty;
        }
    }

    /// Every name, for suggestions.
    pub(super) fn names(&self) -> impl Iterator<Item = &SmolStr> {
        self.frames.iter().rev().flat_map(|f| f.keys())
    }
}

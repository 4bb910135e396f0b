//! The resolved program: modules with their trees, and what each top-level name means in each of them.
//!
//! Data only. A declaration is named by a [`DeclId`] and stays where it was parsed.

pub mod schema;
mod visit;

pub use visit::{csv_call, exprs_of_decl, walk_expr, walk_file};

use crate::source::{FileId, Span};
use crate::syntax::ast;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// A module, by position in [`Program::modules`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleId(pub u32);

/// A top-level declaration or `let`: its module and its place among the entries.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeclId {
    /// The module.
    pub module: ModuleId,
    /// Index into [`ast::File::entries`].
    pub entry: u32,
}

/// One file of the program.
#[derive(Debug)]
pub struct Module {
    /// Its text.
    pub file: FileId,
    /// Its tree.
    pub ast: ast::File,
    /// Top-level names: its own and those it imports.
    pub scope: IndexMap<SmolStr, Binding>,
    /// Whether it belongs to the standard library.
    pub std: bool,
    /// The library's group it belongs to: `hardware` of `std/hardware/hosts.par`.
    pub group: Option<SmolStr>,
}

/// What a top-level name means.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Binding {
    /// A declaration.
    Decl(DeclId),
    /// A whole file, imported with `as`.
    Module(ModuleId),
}

/// A declaration or a top-level `let`.
#[derive(Copy, Clone, Debug)]
pub enum Entry<'a> {
    /// `device …`, `model …`, …
    Decl(&'a ast::Decl),
    /// `let NAME = …`
    Let(&'a ast::Let),
}

impl<'a> Entry<'a> {
    /// Its name.
    pub fn name(self) -> &'a ast::Name {
        match self {
            Self::Decl(d) => &d.name,
            Self::Let(l) => &l.name,
        }
    }

    /// Its keyword; none for a `let`.
    pub fn kind(self) -> Option<ast::Kind> {
        match self {
            Self::Decl(d) => Some(d.kind),
            Self::Let(_) => None,
        }
    }

    /// `///` lines above it.
    pub fn docs(self) -> &'a [SmolStr] {
        match self {
            Self::Decl(d) => &d.docs,
            Self::Let(l) => &l.docs,
        }
    }

    /// The whole entry.
    pub fn span(self) -> Span {
        match self {
            Self::Decl(d) => d.span,
            Self::Let(l) => l.span,
        }
    }
}

/// The resolved program.
#[derive(Default, Debug)]
pub struct Program {
    /// Every file read.
    pub modules: Vec<Module>,
    /// The files the user named, in that order.
    pub roots: Vec<ModuleId>,
    /// Names of the standard library in scope without `use`, for what was loaded.
    pub prelude: IndexMap<SmolStr, DeclId>,
    /// Every name the prelude could offer, for suggestions.
    pub prelude_names: Vec<SmolStr>,
    /// Units the program declares.
    pub units: Vec<SmolStr>,
    /// Text of the files that tables read, by the place of the string that names each.
    pub data: IndexMap<Span, Arc<str>>,
}

impl Program {
    /// The module `id` names.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// The declaration `id` names.
    pub fn entry(&self, id: DeclId) -> Entry<'_> {
        match &self.module(id.module).ast.entries[id.entry as usize] {
            ast::Entry::Decl(d) => Entry::Decl(d),
            ast::Entry::Let(l) => Entry::Let(l),
            ast::Entry::Use(_) => unreachable!("ids are given to declarations only"),
        }
    }

    /// What `name` means at the top level of `module`: its own names first, then the prelude.
    pub fn lookup(&self, module: ModuleId, name: &str) -> Option<Binding> {
        let own = self.module(module).scope.get(name).copied();
        own.or_else(|| self.prelude.get(name).map(|d| Binding::Decl(*d)))
    }

    /// Declarations and lets of `module`, in order.
    pub fn entries(&self, module: ModuleId) -> impl Iterator<Item = (DeclId, Entry<'_>)> {
        let list = self.module(module).ast.entries.iter().enumerate();
        list.filter_map(move |(i, e)| {
            let id = DeclId { module, entry: i as u32 };
            match e {
                ast::Entry::Decl(d) => Some((id, Entry::Decl(d))),
                ast::Entry::Let(l) => Some((id, Entry::Let(l))),
                ast::Entry::Use(_) => None,
            }
        })
    }

    /// The standard library's declaration called `name`, if it was loaded.
    pub fn std_entry(&self, name: &str) -> Option<DeclId> {
        self.prelude.get(name).copied().or_else(|| {
            let mut all = (0..self.modules.len() as u32).map(ModuleId).filter(|m| self.module(*m).std);
            all.find_map(|m| match self.module(m).scope.get(name) {
                Some(Binding::Decl(id)) if id.module == m => Some(*id),
                _ => None,
            })
        })
    }

    /// The declaration behind `std::GROUP::NAME`, if its file was loaded.
    pub fn std_path(&self, group: &str, name: &str) -> Option<DeclId> {
        let mut all = self.modules.iter().filter(|m| m.group.as_deref() == Some(group));
        all.find_map(|m| match m.scope.get(name) {
            Some(Binding::Decl(id)) if self.module(id.module).group.as_deref() == Some(group) => Some(*id),
            _ => None,
        })
    }

    /// Every job of the files the user named, in order.
    pub fn jobs(&self) -> Vec<DeclId> {
        use ast::Kind::{Finetune, Serve, Train, Workflow};
        let all = self.roots.iter().flat_map(|m| self.entries(*m));
        all.filter(|(_, e)| matches!(e.kind(), Some(Train | Finetune | Serve | Workflow))).map(|(id, _)| id).collect()
    }
}

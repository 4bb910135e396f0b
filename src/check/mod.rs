//! The static check: names, fields, kinds and units of every declaration, without evaluating anything.
//!
//! In: the resolved program. Out: diagnostics only. What cannot be known without values is `Unknown` and silences, so
//! a file that is right never gets an error here; evaluation, which runs only if there was none, finds the rest.

mod adapters;
mod cluster;
mod decl;
mod errors;
mod expr;
mod fields;
mod hardware;
mod items;
mod job;
mod layout;
mod model;
mod scope;
mod table;
mod torn;
mod ty;

use crate::diagnostics::{Diagnostic, Sink};
use crate::hir::{Binding, DeclId, Entry, ModuleId, Program};
use crate::source::{Sources, Span};
use crate::syntax::ast::{self, Body, Decl, Expr, ExprKind, Kind, LetValue, Name};
use indexmap::{IndexMap, IndexSet};
use scope::{Local, Scope, Sort};
use smol_str::SmolStr;
use ty::{Thing, Ty};

/// How deep expressions and chains of declarations are followed; deeper ones are `Unknown`.
const MAX_DEPTH: u32 = 160;

/// Checks every declaration of `program`.
pub fn check(program: &Program, sources: &Sources, sink: &mut Sink) {
    let modules = || (0..program.modules.len() as u32).map(ModuleId);
    let mut checker = Checker {
        program,
        sources,
        sink,
        module: ModuleId(0),
        scope: Scope::default(),
        open: 0,
        depth: 0,
        quiet: false,
        workflows: modules().any(|m| program.entries(m).any(|(_, e)| e.kind() == Some(Kind::Workflow))),
        types: IndexMap::new(),
        active: Vec::new(),
        owner: None,
        uses: IndexMap::new(),
        told: IndexSet::new(),
        axes: None,
        job_layout: None,
        inside: Inside::Declaration,
        told_field: None,
        batch: None,
        meant: IndexSet::new(),
        regions: IndexSet::new(),
        imports: program.modules.iter().map(|m| imported(&m.ast)).collect(),
    };
    for id in modules() {
        for (decl, entry) in program.entries(id) {
            match entry {
                Entry::Let(_) => {
                    checker.entry_ty(decl);
                }
                Entry::Decl(d) => checker.at(decl, |c| c.decl(d)),
            }
        }
    }
    checker.report_cycles();
    torn::withhold(program, sources, sink);
}

/// What decides which names mean something.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Inside {
    /// Fields and functions.
    Declaration,
    /// A model or block: operators may be called.
    Model,
    /// A claim or an objective of a job: metrics are meant.
    Claim,
}

/// The state of one check.
struct Checker<'p, 's> {
    program: &'p Program,
    sources: &'s Sources,
    sink: &'s mut Sink,
    /// Whose top-level names are seen.
    module: ModuleId,
    scope: Scope<'p>,
    /// Above 0, unknown names are silent: names that mean something only to the item they stand in.
    open: u32,
    depth: u32,
    /// Whether what is reported is thrown away.
    quiet: bool,
    /// Whether the program has a workflow, so that jobs may do without a cluster.
    workflows: bool,
    /// Types of top-level `let`s.
    types: IndexMap<DeclId, Ty<'p>>,
    active: Vec<DeclId>,
    /// The name of the declaration being looked at.
    owner: Option<Span>,
    /// Declaration to the declarations it needs, by the span of the name, with the place of the use.
    uses: IndexMap<Span, Vec<(Span, Span)>>,
    /// Unknown names told already, by declaration: one mistake, one diagnostic.
    told: IndexSet<(Option<Span>, SmolStr)>,
    /// Mesh axes in scope; none outside layouts and where they are not known.
    axes: Option<Vec<SmolStr>>,
    /// The layout of the job being looked at.
    job_layout: Option<Thing<'p>>,
    /// What kind of text is being looked at.
    inside: Inside,
    /// A field's value that was told already.
    told_field: Option<Span>,
    /// Where the job at hand, or the one it copies, gives its batch.
    batch: Option<Span>,
    /// Fields that unknown ones of this block were taken for: they are not missing as well.
    meant: IndexSet<SmolStr>,
    /// Regions and repeats of the model being looked at.
    regions: IndexSet<SmolStr>,
    /// By module: names its `use`s bring in, found or not, with their place.
    imports: Vec<IndexMap<SmolStr, Span>>,
}

/// Names that `use` entries bring into a file.
fn imported(file: &ast::File) -> IndexMap<SmolStr, Span> {
    let mut out = IndexMap::new();
    for entry in &file.entries {
        let ast::Entry::Use(u) = entry else { continue };
        for (name, alias) in u.names.iter().flatten() {
            let bound = alias.as_ref().unwrap_or(name);
            out.insert(bound.text.clone(), bound.span);
        }
        if u.names.is_none()
            && let Some(bound) = u.alias.as_ref().or(u.path.last())
        {
            out.insert(bound.text.clone(), bound.span);
        }
    }
    out
}

impl<'p> Checker<'p, '_> {
    fn error(&mut self, diagnostic: Diagnostic) -> Ty<'p> {
        self.sink.error(diagnostic);
        Ty::Unknown
    }

    /// Runs `work` at the top level of the module of `id`, and comes back to where it was.
    fn at<R>(&mut self, id: DeclId, work: impl FnOnce(&mut Self) -> R) -> R {
        let scope = std::mem::take(&mut self.scope);
        let owner = self.owner.replace(self.program.entry(id).name().span);
        let module = std::mem::replace(&mut self.module, id.module);
        let open = std::mem::replace(&mut self.open, 0);
        let axes = self.axes.take();
        let layout = self.job_layout.take();
        let inside = std::mem::replace(&mut self.inside, Inside::Declaration);
        let regions = std::mem::take(&mut self.regions);
        let out = work(self);
        self.scope = scope;
        self.owner = owner;
        self.module = module;
        self.open = open;
        self.axes = axes;
        self.job_layout = layout;
        self.inside = inside;
        self.regions = regions;
        out
    }

    /// The type of a top-level declaration or `let`.
    fn entry_ty(&mut self, id: DeclId) -> Ty<'p> {
        match self.program.entry(id) {
            Entry::Decl(d) => self.decl_ty(d, id.module),
            Entry::Let(l) => {
                if let Some(ty) = self.types.get(&id) {
                    return ty.clone();
                }
                if self.active.contains(&id) || self.active.len() as u32 >= MAX_DEPTH {
                    return Ty::Unknown;
                }
                self.active.push(id);
                let ty = self.at(id, |c| match &l.value {
                    LetValue::Is(e) => c.let_ty(l, e),
                    LetValue::In(e) => c.domain_ty(e),
                });
                self.active.pop();
                self.types.insert(id, ty.clone());
                ty
            }
        }
    }

    /// What the name of `decl` stands for.
    fn decl_ty(&mut self, decl: &'p Decl, module: ModuleId) -> Ty<'p> {
        match decl.kind {
            Kind::Fn => Ty::Func { decl, module },
            // `table wide = busbw with {…}` has the keys of what it is made from.
            Kind::Table => match self.base(decl, module) {
                (Some(decl), module) => Ty::Func { decl, module },
                (None, _) => Ty::Unknown,
            },
            Kind::Op | Kind::Unit => Ty::Unknown,
            kind => {
                let base = self.base(decl, module).0;
                let own = matches!(decl.body, Body::Block(_));
                let params = base.and_then(|b| b.params.as_deref()).unwrap_or_default();
                // `layout Titan = HSDP(shard_size = 8)` has its arguments; `= HSDP with {…}` keeps the parameters.
                let applied = params.is_empty() || (!own && calls(decl));
                let made = Some((decl, module));
                Ty::Thing(Thing { kind, decl: base, name: Some(&decl.name.text), applied, made })
            }
        }
    }

    /// The declaration with the block that `decl` is made from, through `=`, `with` and calls.
    fn base(&self, decl: &'p Decl, module: ModuleId) -> (Option<&'p Decl>, ModuleId) {
        let (mut at, mut module) = (decl, module);
        for _ in 0..MAX_DEPTH {
            let Body::Expr(e) = &at.body else { return (Some(at), module) };
            match self.base_name(e, module) {
                Some(id) => match self.program.entry(id) {
                    Entry::Decl(d) => (at, module) = (d, id.module),
                    Entry::Let(_) => return (None, module),
                },
                None => return (None, module),
            }
        }
        (None, module)
    }

    /// Whether a declaration that `made` comes from gives the argument `name`: `model Mine = Base with { name = … }`.
    fn gives(&self, made: Option<(&'p Decl, ModuleId)>, name: &str) -> bool {
        let Some((mut at, mut module)) = made else { return false };
        for _ in 0..MAX_DEPTH {
            let Body::Expr(e) = &at.body else { return false };
            if gives(e, name) {
                return true;
            }
            match self.base_name(e, module).map(|id| (id, self.program.entry(id))) {
                Some((id, Entry::Decl(d))) => (at, module) = (d, id.module),
                Some((_, Entry::Let(_))) | None => return false,
            }
        }
        false
    }

    /// The declaration an expression is made from.
    fn base_name(&self, expr: &'p Expr, module: ModuleId) -> Option<DeclId> {
        let mut e = expr;
        loop {
            match &e.kind {
                ExprKind::With(inner, _) | ExprKind::Call(inner, _) => e = inner,
                ExprKind::Path(path) => {
                    let name = path.last()?;
                    let found = match (path.len(), self.program.lookup(module, &name.text)) {
                        (1, Some(Binding::Decl(id))) => Some(id),
                        (1, _) => None,
                        _ => self.program.std_entry(&name.text),
                    };
                    return found;
                }
                ExprKind::Field(inner, name) => {
                    let ExprKind::Path(path) = &inner.kind else { return None };
                    let [alias] = &path[..] else { return None };
                    let Some(Binding::Module(m)) = self.program.lookup(module, &alias.text) else { return None };
                    return match self.program.module(m).scope.get(&name.text) {
                        Some(Binding::Decl(id)) => Some(*id),
                        Some(Binding::Module(_)) | None => None,
                    };
                }
                _ => return None,
            }
        }
    }

    /// Adds a name to the innermost scope; an outer name may not be hidden.
    fn declare(&mut self, name: &Name, sort: Sort, ty: Ty<'p>) {
        let outer = match self.scope.find(&name.text) {
            // A parameter may pun an axis; a field is no name of one's own.
            Some(l) if matches!(l.sort, Sort::Field | Sort::Axis) => self.top_name(&name.text).map(Some),
            Some(l) if l.sort == Sort::Tensor && sort == Sort::Tensor => None,
            Some(l) => Some(l.span),
            None => self.top_name(&name.text).map(Some),
        };
        match outer {
            Some(span) if span != Some(name.span) => {
                self.sink.error(errors::hides(name, span));
                self.scope.put(&name.text, Local { ty: Ty::Unknown, sort, span: Some(name.span) });
            }
            _ => self.scope.put(&name.text, Local { ty, sort, span: Some(name.span) }),
        }
    }

    /// Where this file declares or imports `name`.
    fn top_name(&self, name: &str) -> Option<Span> {
        let id = self.module;
        match self.program.module(id).scope.get(name)? {
            Binding::Decl(d) if d.module == id => Some(self.program.entry(*d).name().span),
            _ => self.imports[id.0 as usize].get(name).copied(),
        }
    }

    /// Whether a `use` of this file promised `name` and could not keep it; reported there.
    fn import_failed(&self, name: &str) -> bool {
        self.imports[self.module.0 as usize].contains_key(name)
    }

    fn uses(&mut self, target: Span, at: Span) {
        if let Some(owner) = self.owner {
            self.uses.entry(owner).or_default().push((target, at));
        }
    }

    /// Declarations that need themselves, each circle once.
    fn report_cycles(&mut self) {
        let mut done: IndexSet<Span> = IndexSet::new();
        for start in self.uses.keys().copied().collect::<Vec<_>>() {
            // Depth first without recursion: the path and, for each on it, the next use to follow.
            let mut path: Vec<(Span, usize)> = vec![(start, 0)];
            let mut on_path: IndexSet<Span> = IndexSet::from([start]);
            while let Some((node, next)) = path.last_mut() {
                let (node, i) = (*node, *next);
                *next += 1;
                let step = self.uses.get(&node).and_then(|u| u.get(i)).copied();
                match step {
                    _ if done.contains(&node) => {
                        path.pop();
                        on_path.swap_remove(&node);
                    }
                    None => {
                        path.pop();
                        on_path.swap_remove(&node);
                        done.insert(node);
                    }
                    Some((target, at)) if on_path.contains(&target) => {
                        let from = path.iter().position(|(n, _)| *n == target).unwrap_or(0);
                        let circle: Vec<Span> = path[from..].iter().map(|(n, _)| *n).collect();
                        let names: Vec<String> = circle.iter().map(|s| self.sources.snippet(*s).to_string()).collect();
                        self.sink.error(errors::recursion(at, self.sources.snippet(target), &names));
                        done.extend(circle);
                    }
                    Some((target, _)) if done.contains(&target) => {}
                    Some((target, _)) => {
                        path.push((target, 0));
                        on_path.insert(target);
                    }
                }
            }
        }
    }
}

/// Whether a `with` or a call in `e` gives the argument `name`.
fn gives(e: &Expr, name: &str) -> bool {
    let assigns = |item: &ast::Item| match &item.kind {
        ast::ItemKind::Assign { target, .. } => target.suffixes.is_empty() && target.name.text == name,
        ast::ItemKind::Domain { name: n, .. } => n.text == name,
        _ => false,
    };
    let named = |a: &ast::Arg| matches!(a, ast::Arg::Named(n, _) | ast::Arg::Domain(n, _) if n.text == name);
    match &e.kind {
        ExprKind::With(inner, block) => block.items.iter().any(assigns) || gives(inner, name),
        ExprKind::Call(inner, args) => args.iter().any(named) || gives(inner, name),
        _ => false,
    }
}

/// Whether `decl = NAME(…)` gives arguments somewhere on its way.
fn calls(decl: &Decl) -> bool {
    let Body::Expr(start) = &decl.body else { return false };
    let mut e = start;
    loop {
        match &e.kind {
            ExprKind::With(inner, _) => e = inner,
            ExprKind::Call(..) => return true,
            _ => return false,
        }
    }
}

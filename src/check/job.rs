//! Jobs: fields, metrics, requirements and claims.

use super::expr::literal;
use super::fields::callee;
use super::items::{self, Place};
use super::scope::{Local, Sort};
use super::ty::{Thing, Ty, Whole};
use super::{Checker, Inside, errors};
use crate::diagnostics::Edit;
use crate::eval::errors as said;
use crate::hir::schema;
use crate::source::Span;
use crate::syntax::ast::{Arg, BinaryOp, Block, Body, Decl, Expr, ExprKind, ItemKind, Kind, Name, Number, Tolerance};
use crate::units::{Base, Unit};

/// Metrics of `docs/reference`, with the type that says their unit.
const METRICS: &[(&str, &str)] = &[
    ("step_time", "Time"),
    ("tokens_per_s", "TokRate"),
    ("flops", "Flop"),
    ("mfu", "Share"),
    ("hfu", "Share"),
    ("peak_memory", "Bytes"),
    ("fits", "Bool"),
    ("bubble", "Share"),
    ("idle", "Share"),
    ("exposed_comm", "Time"),
    ("microbatches", "Int"),
    ("accumulation", "Int"),
    ("params", "Share"),
    ("params_active", "Share"),
    ("params_trainable", "Share"),
    ("bytes", "Bytes"),
    ("reshard", ""),
    ("energy", "Energy"),
    ("price", "Money"),
    ("total_time", "Time"),
    ("price_per_token", ""),
    ("ttft", "Time"),
    ("tpot", "Time"),
    ("utilization", "Share"),
    ("devices", "Int"),
    ("host_memory", "Bytes"),
    ("staleness", "Step"),
    ("goodput", "Share"),
];

/// The type of the metric `name`.
pub(super) fn metric<'p>(name: &str) -> Option<Ty<'p>> {
    let (_, ty) = METRICS.iter().find(|(n, _)| *n == name)?;
    Some(match *ty {
        "TokRate" => Ty::number(Unit::base(Base::Tok).div(&Unit::time())),
        "Share" => Ty::number(Unit::none()),
        name => super::ty::named(name, None, &[]).unwrap_or(Ty::Unknown),
    })
}

impl<'p> Checker<'p, '_> {
    /// Names a job has: what its cluster gives, its fields, the metrics.
    pub(super) fn job_names(&mut self, kind: Kind) {
        for f in schema::fields(kind) {
            let ty = super::ty::named(f.ty, None, &[]).unwrap_or(Ty::Unknown);
            self.give(f.name, Sort::Field, ty);
        }
        for (name, _) in METRICS {
            self.give(name, Sort::Field, metric(name).unwrap_or(Ty::Unknown));
        }
        self.give("cluster", Sort::Field, Ty::thing(Kind::Cluster));
        self.give("device", Sort::Field, Ty::thing(Kind::Device));
        self.give("host", Sort::Field, Ty::thing(Kind::Host));
        self.give("layout", Sort::Field, Ty::thing(Kind::Layout));
    }

    pub(super) fn job(&mut self, decl: &'p Decl, block: &'p Block) {
        let place = Place::Decl(decl.kind);
        let thing = Thing { kind: decl.kind, decl: Some(decl), name: None, applied: true, made: None };
        self.job_items(thing, block, place);
        let known = schema::fields(decl.kind);
        let of = format!("{} `{}`", decl.kind.keyword(), decl.name.text);
        let mut optional = Vec::new();
        let dims = block.items.iter().any(|i| matches!(i.kind, ItemKind::Dims(_)));
        if dims || !self.has_tokens(block) {
            optional.push("sequence");
        }
        // A job without a cluster is a role of a workflow.
        if self.workflows {
            optional.push("cluster");
        }
        self.missing(block, known, &of, decl.name.span, &optional);
    }

    /// Whether the job's model has one dimension that counts tokens, so that `sequence` must say how many.
    fn has_tokens(&self, block: &'p Block) -> bool {
        let Some(model) = field(block, "model").and_then(|e| self.declaration(e)) else { return false };
        let Body::Block(body) = &model.body else { return false };
        let inputs = body
            .items
            .iter()
            .filter_map(|i| if let ItemKind::Input { dims, .. } = &i.kind { Some(dims) } else { None });
        let count = inputs.flatten().filter(|d| d.unit.as_ref().is_some_and(|u| u.text == "tok")).count();
        count == 1
    }

    /// The declaration with the block that `e` is made from; `let`s are followed.
    fn declaration(&self, e: &'p Expr) -> Option<&'p Decl> {
        let (mut e, mut module) = (e, self.module);
        for _ in 0..32 {
            let id = self.base_name(callee(e), module)?;
            match self.program.entry(id) {
                crate::hir::Entry::Decl(d) => return self.base(d, id.module).0,
                crate::hir::Entry::Let(l) => match &l.value {
                    crate::syntax::ast::LetValue::Is(inner) => (e, module) = (inner, id.module),
                    crate::syntax::ast::LetValue::In(_) => return None,
                },
            }
        }
        None
    }

    /// The items of a job or of `JOB with {…}`.
    pub(super) fn job_items(&mut self, base: Thing<'p>, block: &'p Block, place: Place) {
        let before = self.job_layout;
        self.names_of_sections(block);
        if let Some(decl) = base.decl
            && let Body::Block(own) = &decl.body
            && !std::ptr::eq(own, block)
        {
            self.inherited(own);
        }
        self.lets(block);
        self.find_layout(base, block);
        let batch = field(block, "batch");
        let copied = base.decl.filter(|d| matches!(&d.body, Body::Block(b) if !std::ptr::eq(b, block)));
        self.batch = batch.map(|b| b.span).or(copied.map(|d| d.name.span));
        self.told_field = batch.filter(|b| self.batch_in_tokens(block, b)).map(|b| b.span);
        self.fields(block, place, schema::fields(base.kind), &[]);
        self.one_load(block);
        self.packs(block);
        if base.kind == Kind::Finetune {
            self.adapters(block);
        }
        let objective = |c: &mut Self, e: &'p Expr| {
            let parts: &[Expr] = if let ExprKind::List(list) = &e.kind { list } else { std::slice::from_ref(e) };
            for part in parts {
                let ty = c.infer(part, Whole::Maybe);
                if let Ty::Bool | Ty::Text | Ty::Thing(_) | Ty::Op = ty {
                    let noun = ty.noun();
                    c.error(said::wrong_kind("an objective", "a number", &noun, part.span));
                }
            }
        };
        for item in &block.items {
            if items::misplaced(item, place).is_some() {
                continue;
            }
            match &item.kind {
                // What jobs say of each other is no need: `a` may be compared with `b` and `b` with `a`.
                ItemKind::Require { cond, .. } => self.apart(|c| c.condition(cond, "`require`")),
                ItemKind::Expect { value, about } => self.apart(|c| match about {
                    None => c.condition(value, "`expect`"),
                    Some((other, tolerance)) => c.about(value, other, tolerance.as_ref()),
                }),
                ItemKind::Objective { value, .. } => self.apart(|c| objective(c, value)),
                ItemKind::Dims(defs) => {
                    for def in defs {
                        self.infer(&def.extent, Whole::Maybe);
                    }
                }
                ItemKind::In { selectors, block: inner } => {
                    self.selectors(selectors);
                    self.block_items(inner, Place::Within(base.kind));
                    self.fields(inner, Place::Within(base.kind), schema::fields(base.kind), &[]);
                }
                ItemKind::Section { head, name, block: inner } => {
                    self.section(head, inner, place);
                    match (head.text.as_str(), name) {
                        ("edge", _) => self.edge_ends(base, block, inner),
                        ("role", Some(name)) => self.role_job(name, inner, block),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self.job_layout = before;
    }

    /// Requests come in a closed batch or arrive one after another.
    fn one_load(&mut self, block: &'p Block) {
        let named = |field: &str| {
            block.items.iter().find_map(|i| match &i.kind {
                ItemKind::Assign { target, .. } if target.name.text == field => Some(&target.name),
                _ => None,
            })
        };
        if let (Some(batch), Some(arrivals)) = (named("batch"), named("arrivals")) {
            self.error(errors::load_twice(batch.span, arrivals.span));
        }
    }

    /// No sample is longer than the rows that samples are packed into.
    fn packs(&mut self, block: &'p Block) {
        let limit = |e: &'p Expr, word: &str, name: &str| match &e.kind {
            ExprKind::Call(f, args) if is_named(f, word) => args.iter().find_map(|a| match a {
                Arg::Named(n, e) if n.text == name => Some(e),
                _ => None,
            }),
            _ => None,
        };
        let Some(to) = field(block, "packing").and_then(|e| limit(e, "first_fit", "to")) else { return };
        let Some(max) = field(block, "sequence").and_then(|e| limit(e, "lognormal", "max")) else { return };
        if let (Some(row), Some(longest)) = (tokens(to), tokens(max))
            && longest > row
        {
            let text = self.sources.snippet(max.span).to_string();
            self.error(errors::pack_short(to.span, row, max.span, longest, &text));
        }
    }

    /// An edge runs between pools or roles of its job.
    fn edge_ends(&mut self, base: Thing<'p>, job: &'p Block, edge: &'p Block) {
        let own = base.decl.and_then(|d| if let Body::Block(b) = &d.body { Some(b) } else { None });
        let blocks = own.into_iter().chain(std::iter::once(job));
        let ends: Vec<String> = blocks
            .flat_map(|b| &b.items)
            .filter_map(|i| match &i.kind {
                ItemKind::Section { head, name: Some(name), .. } if head.text != "edge" => Some(name.text.to_string()),
                _ => None,
            })
            .collect::<indexmap::IndexSet<_>>()
            .into_iter()
            .collect();
        let what = if base.kind == Kind::Workflow { "role" } else { "pool" };
        for e in ["from", "to"].iter().filter_map(|n| field(edge, n)) {
            let names: &[Expr] = if let ExprKind::List(list) = &e.kind { list } else { std::slice::from_ref(e) };
            for n in names {
                if let ExprKind::Path(path) = &n.kind
                    && let [name] = &path[..]
                    && base.decl.is_some()
                    && !ends.iter().any(|x| *x == *name.text)
                {
                    self.error(errors::no_such_end(name, what, &ends));
                }
            }
        }
    }

    /// A role runs the job of its name, unless `job` says another.
    fn role_job(&mut self, role: &'p Name, block: &'p Block, job: &'p Block) {
        let name = match field(block, "job").map(|e| &e.kind) {
            Some(ExprKind::Path(path)) if path.len() == 1 => &path[0],
            Some(_) => return,
            None => role,
        };
        if let Some(crate::hir::Binding::Decl(id)) = self.program.lookup(self.module, &name.text)
            && self.program.entry(id).kind().is_some_and(items::is_job)
        {
            return;
        }
        let jobs: Vec<String> = self
            .program
            .module(self.module)
            .scope
            .iter()
            .filter(|(_, b)| match b {
                crate::hir::Binding::Decl(id) => self.program.entry(*id).kind().is_some_and(items::is_job),
                crate::hir::Binding::Module(_) => false,
            })
            .map(|(n, _)| n.to_string())
            .collect();
        if !self.import_failed(&name.text) {
            let mut d = errors::no_such_end(name, "job", &jobs);
            // The role goes by another name, and so do the ends of its edges.
            let ends = edge_names(job).filter(|n| n.text == name.text);
            let places: Vec<Span> = ends.map(|n| n.span).collect();
            for fix in &mut d.fixes {
                let text = fix.edits.first().map(|e| e.text.clone()).unwrap_or_default();
                fix.edits.extend(places.iter().map(|at| Edit { span: *at, text: text.clone() }));
            }
            self.error(d);
        }
    }

    fn apart(&mut self, work: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.inside, Inside::Claim);
        let count = self.owner.and_then(|o| self.uses.get(&o)).map_or(0, Vec::len);
        work(self);
        if let Some(list) = self.owner.and_then(|o| self.uses.get_mut(&o)) {
            list.truncate(count);
        }
        self.inside = outer;
    }

    /// Pools, roles and edges may be named in metrics.
    fn names_of_sections(&mut self, block: &'p Block) {
        for item in &block.items {
            if let ItemKind::Section { name: Some(name), .. } = &item.kind {
                self.scope.put(&name.text, Local { ty: Ty::Unknown, sort: Sort::Field, span: None });
            }
        }
    }

    /// `let`s and sections of the job that is copied are names of the copy.
    fn inherited(&mut self, own: &'p Block) {
        self.names_of_sections(own);
        for item in &own.items {
            if let ItemKind::Let(l) = &item.kind {
                self.scope.put(&l.name.text, Local { ty: Ty::Unknown, sort: Sort::Field, span: None });
            }
        }
    }

    /// Finds the layout of the job, so that `layout.tp` can be checked.
    fn find_layout(&mut self, base: Thing<'p>, block: &'p Block) {
        let own = field(block, "layout");
        let chosen = block.items.iter().any(|i| match &i.kind {
            ItemKind::Domain { name, .. } => name.text == "layout",
            ItemKind::Section { head, .. } => head.text == "layout",
            _ => false,
        });
        let inherited = || match base.decl.map(|d| &d.body) {
            Some(Body::Block(b)) if !std::ptr::eq(b, block) => field(b, "layout"),
            _ => None,
        };
        // A copy of a copy: the layout in between is not looked for.
        let direct = base.decl.is_some_and(|d| base.name.is_none_or(|n| *n == d.name.text));
        let e = if chosen { None } else { own.or_else(|| inherited().filter(|_| direct)) };
        let Some(e) = e else {
            self.job_layout = None;
            return;
        };
        // `HSDP() with { mesh […] }` has other axes; it is not followed.
        let with_mesh = matches!(&e.kind, ExprKind::With(_, b) if b.items.iter().any(|i| matches!(i.kind, ItemKind::Mesh(_) | ItemKind::Fold { .. })));
        let decl = self.declaration(e).filter(|d| d.kind == Kind::Layout && !with_mesh);
        let plain = match self.base_name(callee(e), self.module).map(|id| self.program.entry(id)) {
            Some(crate::hir::Entry::Decl(d)) => matches!(d.body, Body::Block(_)),
            _ => false,
        };
        self.job_layout = decl.filter(|_| plain).map(|d| Thing {
            kind: Kind::Layout,
            decl: Some(d),
            name: Some(&d.name.text),
            applied: true,
            made: None,
        });
        if let Some(layout) = self.job_layout {
            self.give("layout", Sort::Field, Ty::Thing(layout));
        }
    }

    /// `batch = 4194304 tok`: says so, with the sequences it would be.
    fn batch_in_tokens(&mut self, block: &'p Block, batch: &'p Expr) -> bool {
        let Some(found) = tokens(batch) else { return false };
        let sequence = field(block, "sequence").and_then(tokens);
        let written = self.sources.snippet(batch.span).to_string();
        self.error(errors::batch_in_tokens(batch.span, &written, Some(found), sequence));
        true
    }

    /// `expect a ~ b +- c` and `within r`.
    fn about(&mut self, value: &'p Expr, other: &'p Expr, tolerance: Option<&'p Tolerance>) {
        let a = self.claim(value);
        let b = self.claim(other);
        if let (Ty::Number { unit: u, .. }, Ty::Number { unit: v, .. }) = (&a, &b)
            && u != v
        {
            let d = said::unit_mismatch(BinaryOp::Eq, other.span, (u, value.span), (v, other.span));
            self.error(d);
            return;
        }
        let unit = match (&a, &b) {
            (Ty::Number { unit, .. }, _) | (_, Ty::Number { unit, .. }) => Some(unit.clone()),
            _ => None,
        };
        match tolerance {
            Some(Tolerance::Absolute(e)) => self.absolute(other, e, unit.as_ref()),
            Some(Tolerance::Relative(e)) => self.plain(e, "`within`"),
            None => {}
        }
    }

    fn absolute(&mut self, other: &'p Expr, e: &'p Expr, unit: Option<&Unit>) {
        let written = if let ExprKind::Number { unit: Some((u, _)), .. } = &e.kind { u.as_str() } else { "" };
        match written {
            "%" => {
                let text = self.sources.snippet(e.span);
                let percent = |e: &Expr| match &e.kind {
                    ExprKind::Number { unit: Some((u, _)), .. } if u == "%" => literal(e),
                    _ => None,
                };
                let value = percent(other).map(|v| (self.sources.snippet(other.span), v));
                // From the operator on: `+-` stands between the two.
                let between = Span { start: other.span.end, end: e.span.start, ..e.span };
                let gap = self.sources.snippet(between);
                let lead = gap.find("+-").unwrap_or(0) as u32;
                let operator = Span { start: between.start + lead, ..between };
                let d = errors::tolerance_in_percent(e.span, text, value, literal(e).unwrap_or(0.0), operator);
                self.error(d);
            }
            "pp" => {
                if let Some(u) = unit.filter(|u| !u.is_none()) {
                    let d = said::wrong_unit("the tolerance", u, &Unit::none(), e.span);
                    self.error(d);
                }
            }
            _ => {
                let found = self.infer(e, Whole::Maybe);
                if let (Some(u), Ty::Number { unit: v, .. }) = (unit, &found)
                    && u != v
                {
                    let wanted = Ty::number(u.clone());
                    self.expect(&wanted, &found, "the tolerance", e);
                }
            }
        }
    }
}

/// The value of the field `name`, if the block gives it.
pub(super) fn field<'p>(block: &'p Block, name: &str) -> Option<&'p Expr> {
    block.items.iter().find_map(|i| match &i.kind {
        ItemKind::Assign { target, value } if target.suffixes.is_empty() && target.name.text == name => Some(&**value),
        _ => None,
    })
}

/// Whether `e` is the bare name `word`.
fn is_named(e: &Expr, word: &str) -> bool {
    matches!(&e.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == word)
}

/// A literal number of tokens.
fn tokens(e: &Expr) -> Option<i128> {
    let ExprKind::Number { value, unit: Some((unit, _)) } = &e.kind else { return None };
    let (scale, unit) = crate::units::lookup(unit, &|_| false).ok()?;
    if unit != Unit::base(Base::Tok) {
        return None;
    }
    match value {
        Number::Int(v) => v.checked_mul(scale.num).map(|v| v / scale.den),
        Number::Real(v) => Some((v * scale.num as f64 / scale.den as f64) as i128),
    }
}

/// The names in `from` and `to` of the edges of `job`.
fn edge_names(job: &Block) -> impl Iterator<Item = &Name> {
    let edges = job.items.iter().filter_map(|i| match &i.kind {
        ItemKind::Section { head, block, .. } if head.text == "edge" => Some(block),
        _ => None,
    });
    let ends = edges.flat_map(|b| ["from", "to"].into_iter().filter_map(|n| field(b, n)));
    let names =
        ends.flat_map(|e| if let ExprKind::List(list) = &e.kind { list.as_slice() } else { std::slice::from_ref(e) });
    names.filter_map(|e| match &e.kind {
        ExprKind::Path(path) if path.len() == 1 => path.first(),
        _ => None,
    })
}

//! Fields of a block against the schema, and values against what is expected of them.

use super::items::{self, Place};
use super::ty::{self, Ty, Whole, article};
use super::{Checker, errors};
use crate::diagnostics::{Applicability, Diagnostic};
use crate::eval::errors as said;
use crate::hir::schema::{self, Field};
use crate::source::Span;
use crate::syntax::ast::{
    self, Block, Expr, ExprKind, Item, ItemKind, Kind, Let, Name, Param, ParamKind, TargetSuffix,
};
use crate::units::{self, Base, Unit};
use crate::words::{self, Instead};
use indexmap::IndexMap;
use smol_str::SmolStr;

/// Fields whose values name what only elaboration knows: regions, tensors, roles, kinds of operation.
const OPEN: &[&str] = &[
    "Names",
    "Selectors",
    "Phases",
    "Split",
    "Transfer",
    "Balance",
    "List",
    "Rows",
    "Source",
    "Placement",
    "Share",
    "Bucket",
    "Hold",
    "Keep",
    "Moment",
    "Outside",
    "Interpolation",
    "Adapter",
    "Speculation",
    "Place",
    "Mask",
    "Packing",
    "Passes",
];

impl<'p> Checker<'p, '_> {
    /// The type a written type stands for; an unknown one is reported.
    pub(super) fn type_of(&mut self, written: &'p ast::Type) -> Ty<'p> {
        let mut inner = None;
        let mut at = written;
        let mut depth = 0;
        // `List<List<Int>>`: only the outermost two levels tell anything.
        while let Some(arg) = &at.arg {
            at = arg;
            depth += 1;
            if depth > 8 {
                return Ty::Unknown;
            }
        }
        if let Some(arg) = &written.arg {
            inner = ty::named(&arg.name.text, None, &self.program.units).filter(|_| arg.arg.is_none());
        }
        for t in std::iter::once(written).chain(written.arg.as_deref()) {
            if ty::named(&t.name.text, None, &self.program.units).is_none() {
                let known: Vec<String> = ty::type_names().map(String::from).collect();
                return self.error(errors::unknown_type(&t.name, &known));
            }
        }
        ty::named(&written.name.text, inner.as_ref(), &self.program.units).unwrap_or(Ty::Unknown)
    }

    /// The type of a parameter; its own mistakes were reported where it is declared.
    pub(super) fn param_ty(&self, param: &'p Param) -> Ty<'p> {
        match &param.kind {
            ParamKind::Value { ty: Some(t), .. } => {
                let inner = t.arg.as_ref().and_then(|a| ty::named(&a.name.text, None, &self.program.units));
                ty::named(&t.name.text, inner.as_ref(), &self.program.units).unwrap_or(Ty::Unknown)
            }
            ParamKind::Dim { .. } => Ty::int(),
            ParamKind::Value { ty: None, .. } => Ty::Unknown,
            ParamKind::Tensor(_) => Ty::Tensor,
        }
    }

    pub(super) fn let_ty(&mut self, l: &'p Let, e: &'p Expr) -> Ty<'p> {
        let Some(written) = &l.ty else { return self.infer(e, Whole::Maybe) };
        let wanted = self.type_of(written);
        let want = if let Ty::Number { whole, .. } = &wanted { *whole } else { Whole::Maybe };
        let found = self.infer(e, want);
        self.expect(&wanted, &found, &format!("`{}`", l.name.text), e);
        wanted
    }

    /// The type of one choice out of a domain.
    pub(super) fn domain_ty(&mut self, domain: &'p Expr) -> Ty<'p> {
        match &domain.kind {
            ExprKind::Set(choices) => {
                let mut out = Ty::Unknown;
                for (i, c) in choices.iter().enumerate() {
                    let ty = self.infer(c, Whole::Maybe);
                    if i == 0 {
                        out = ty;
                    }
                }
                if matches!(out, Ty::Number { .. }) { out } else { Ty::Unknown }
            }
            _ => match self.infer(domain, Whole::Maybe) {
                Ty::Range => Ty::int(),
                Ty::List(inner) => (*inner).clone(),
                _ => Ty::Unknown,
            },
        }
    }

    /// Reports where `found` cannot be what `wanted` says; `what` names it, as evaluation does.
    pub(super) fn expect(&mut self, wanted: &Ty<'p>, found: &Ty<'p>, what: &str, e: &'p Expr) {
        let free = |t: &Ty<'_>| t.is_unknown() || matches!(t, Ty::Word(w) if w == "none" || w == "self");
        if wanted.is_unknown() || free(found) {
            return;
        }
        let span = e.span;
        let d = match (wanted, found) {
            (Ty::Number { unit: u, .. } | Ty::Dist(u), Ty::Number { unit: v, .. } | Ty::Dist(v)) if u != v => {
                self.wrong_unit(what, u, v, e)
            }
            (Ty::Number { whole: Whole::Yes, .. }, Ty::Number { unit, whole: Whole::No }) if unit.is_none() => {
                let noun = if super::expr::literal(e).is_some() { "a fraction" } else { "a number" };
                said::wrong_kind(what, "a whole number", noun, span)
            }
            // A number may stand for a law; where only a number may stand, evaluation says so.
            (Ty::Dist(_) | Ty::Number { .. }, Ty::Number { .. } | Ty::Dist(_))
            | (Ty::Bool, Ty::Bool)
            | (Ty::Text, Ty::Text)
            | (Ty::Op, Ty::Op)
            | (Ty::List(_), Ty::List(_) | Ty::Range)
            | (Ty::Links, Ty::Links) => return,
            (Ty::Thing(w), Ty::Thing(f)) if w.kind == f.kind => return,
            (Ty::Made(w), Ty::Made(f)) if w == f => return,
            (Ty::Number { unit, whole }, _) => {
                let noun =
                    if *whole == Whole::Yes && unit.is_none() { "a whole number".to_string() } else { unit.noun() };
                said::wrong_kind(what, &noun, &found.noun(), span)
            }
            (Ty::Thing(w), _) => {
                let kind = w.kind.keyword();
                let d = said::wrong_kind(what, &format!("{} {kind}", article(kind)), &found.noun(), span);
                self.offer(d, w.kind, found, e)
            }
            _ => said::wrong_kind(what, &wanted.noun(), &found.noun(), span),
        };
        self.error(d);
    }

    /// A unit that does not fit, with the unit that would.
    fn wrong_unit(&self, what: &str, wanted: &Unit, found: &Unit, e: &Expr) -> Diagnostic {
        let d = said::wrong_unit(what, wanted, found, e.span);
        let ExprKind::Number { unit, .. } = &e.kind else { return d };
        let text = self.sources.snippet(e.span);
        let counts = [("tok", Base::Tok), ("seq", Base::Seq), ("req", Base::Req), ("step", Base::Step)];
        let write = match unit {
            None => {
                counts.iter().find(|(_, b)| *wanted == Unit::base(b.clone())).map(|(name, _)| format!("{text} {name}"))
            }
            Some(_) if !wanted.is_none() && *wanted == found.div(&Unit::time()) => Some(format!("{text}/s")),
            // `256 tok` where sequences are counted, `1 s` where a plain number is needed: the number stays.
            Some((unit, _)) => {
                let digits = text.strip_suffix(unit.as_str()).unwrap_or(text).trim_end();
                let counted = counts.iter().any(|(name, b)| unit == name && *found == Unit::base(b.clone()));
                let count = counts.iter().find(|(_, b)| counted && *wanted == Unit::base(b.clone()));
                let plain = wanted.is_none().then(|| digits.to_owned());
                count.map(|(name, _)| format!("{digits} {name}")).or(plain)
            }
        };
        match write {
            Some(write) => {
                d.help(format!("write `{write}`")).fix(format!("write `{write}`"), e.span, write, Applicability::Unsure)
            }
            None if unit.is_none() && !wanted.is_none() => {
                d.help(format!("`{text}` needs a unit of {}", wanted.noun()))
            }
            None => d,
        }
    }

    /// Declarations of the kind that is needed, named after what was given: `bf16_mixed` for `bf16`.
    fn offer(&self, d: Diagnostic, kind: Kind, found: &Ty<'p>, e: &Expr) -> Diagnostic {
        let Ty::Thing(found) = found else { return d };
        let Some(name) = found.name else { return d };
        let mut near: Vec<&str> = Vec::new();
        for module in (0..self.program.modules.len() as u32).map(crate::hir::ModuleId) {
            for (_, entry) in self.program.entries(module) {
                let other = entry.name().text.as_str();
                if entry.kind() == Some(kind) && other.starts_with(name.as_str()) {
                    near.push(other);
                }
            }
        }
        let Some(first) = near.first().copied() else { return d };
        let verb = if near.len() == 1 { "exists" } else { "exist" };
        d.note(format!("`{name}` is {} {}", article(found.kind.keyword()), found.kind.keyword()))
            .help(format!("{} {verb}", errors::listed(&near, "and")))
            .fix(format!("use `{first}`"), e.span, first.to_string(), Applicability::Unsure)
    }

    /// The fields of `block`: known, once, of the right kind. `extra` are names of parameters that `with` may replace.
    pub(super) fn fields(&mut self, block: &'p Block, place: Place, known: &'static [Field], extra: &[&'p Param]) {
        let mut seen: IndexMap<&SmolStr, Span> = IndexMap::new();
        self.meant.clear();
        for item in &block.items {
            let (name, whole) = match &item.kind {
                ItemKind::Assign { target, .. } => {
                    if target.suffixes.iter().any(|s| matches!(s, TargetSuffix::Index(_))) {
                        continue;
                    }
                    (&target.name, target.suffixes.is_empty())
                }
                ItemKind::Domain { name, .. } => (name, true),
                _ => continue,
            };
            if whole {
                if let Some(first) = seen.get(&name.text) {
                    self.error(errors::field_twice(name, *first));
                    continue;
                }
                seen.insert(&name.text, name.span);
            }
            let of = place.word();
            if let Some(renamed) = schema::renamed(of, &name.text) {
                self.sink.warn(errors::field_renamed(name, of, renamed.new, renamed.until));
            }
            let present = schema::present(of, &name.text);
            let field = known.iter().find(|f| f.name == present);
            let param = extra.iter().find(|p| p.name.text == name.text);
            match (&item.kind, field, param) {
                (_, None, None) => self.field_unknown(item, name, place, known, extra),
                (ItemKind::Assign { value, .. }, Some(f), _) if whole => self.field_value(f, value, place),
                (ItemKind::Assign { value, .. }, _, Some(p)) if whole => {
                    let wanted = self.param_ty(p);
                    let found = self.infer(value, Whole::Maybe);
                    self.expect(&wanted, &found, &format!("`{}`", name.text), value);
                }
                (ItemKind::Assign { value, .. }, ..) => {
                    self.infer_open(value);
                }
                (ItemKind::Domain { domain, .. }, ..) => {
                    self.domain_ty(domain);
                }
                _ => {}
            }
        }
    }

    fn field_value(&mut self, field: &Field, value: &'p Expr, place: Place) {
        let what = format!("`{}`", field.name);
        if self.told_field == Some(value.span) {
            return;
        }
        if let ExprKind::Hole = value.kind
            && matches!(place, Place::Decl(k) if items::is_job(k))
            && !matches!(field.name, "micro_batch" | "max_batch")
            && field.ty != "Bool"
        {
            self.error(errors::hole_unbounded(field.name, value.span));
            return;
        }
        if self.word_unknown(field, value) {
            return;
        }
        if OPEN.contains(&field.ty) {
            self.infer_open(value);
            return;
        }
        if field.ty == "Peaks" {
            self.peaks(value);
            return;
        }
        if field.ty == "FlopRate" && self.rate_told(value) || field.ty == "Schedule" && self.schedule_meant(value) {
            return;
        }
        let wanted = match field.ty {
            "Links" => Ty::Links,
            "Dtype" | "Host" | "Model" | "Cluster" | "Layout" | "Precision" | "Optimizer" | "Cost" | "Schedule" => {
                ty::named(field.ty, None, &[]).unwrap_or(Ty::Unknown)
            }
            "Bool" => Ty::Bool,
            name => match crate::eval::type_unit(name) {
                Some(unit) => Ty::Number { unit, whole: if name == "Int" { Whole::Yes } else { Whole::Maybe } },
                None => Ty::Unknown,
            },
        };
        let want = if let Ty::Number { whole, .. } = &wanted { *whole } else { Whole::Maybe };
        let found = self.infer(value, want);
        match (&wanted, &found) {
            (Ty::Links, Ty::Thing(t)) if t.kind == Kind::Link => {}
            (Ty::Links, Ty::Links | Ty::Unknown) => {}
            (Ty::Links, Ty::Word(w)) if w == "none" => {}
            (Ty::Links, other) => {
                let d = said::wrong_kind(&what, "a link", &other.noun(), value.span);
                self.error(d);
            }
            // A word may stand where the language has one beside numbers; evaluation knows which.
            (Ty::Number { .. } | Ty::Bool, Ty::Word(_)) if place != Place::Decl(Kind::Device) => {}
            _ => self.expect(&wanted, &found, &what, value),
        }
        if let Ty::Thing(thing) = &found {
            self.needs_arguments(thing, value.span);
        }
    }

    /// A word that the field does not take, told with those it does.
    fn word_unknown(&mut self, field: &Field, value: &'p Expr) -> bool {
        let words = schema::type_of(field.ty).map(|t| t.words).unwrap_or_default();
        let callee = if let ExprKind::Call(f, _) = &value.kind { f } else { value };
        let ExprKind::Path(path) = &callee.kind else { return false };
        let [name] = &path[..] else { return false };
        let fixed = words.contains(&name.text.as_str()) || name.text == "none" || words.is_empty();
        // A name in scope may stand for one of the words.
        if fixed || self.scope.find(&name.text).is_some() || self.program.lookup(self.module, &name.text).is_some() {
            return false;
        }
        self.error(errors::word_unknown(field.name, name, words));
        true
    }

    /// Every peak is a rate, alone or by accumulator.
    fn peaks(&mut self, value: &'p Expr) {
        let ExprKind::Record(fields) = &value.kind else {
            if let Some((_, rate)) = self.rate_meant(value) {
                self.error(errors::peak_plain(&rate, value.span));
            } else if let Ty::Number { .. } = self.infer(value, Whole::Maybe) {
                let text = self.sources.snippet(value.span).to_owned();
                self.error(errors::peak_plain(&text, value.span));
            }
            return;
        };
        for (name, e) in fields {
            if let ExprKind::Record(_) = &e.kind {
                self.depth += 1;
                if self.depth < super::MAX_DEPTH {
                    self.peaks(e);
                }
                self.depth -= 1;
                continue;
            }
            if !self.rate_told(e) {
                let found = self.infer(e, Whole::Maybe);
                self.expect(&Ty::number(Unit::flop_rate()), &found, &format!("the peak of `{}`", name.text), e);
            }
        }
    }

    /// `989 TFLOPS`, an unknown unit, where a rate is wanted: the place of the unit, and the number with the right one.
    fn rate_meant(&self, e: &Expr) -> Option<(Span, String)> {
        let ExprKind::Number { unit: Some((unit, at)), .. } = &e.kind else { return None };
        let error = units::lookup(unit, &|n| self.program.units.iter().any(|u| u == n)).err()?;
        let rate = format!("{}/s", error.meant.filter(|m| m.ends_with("FLOP"))?);
        let digits = self.sources.snippet(e.span).strip_suffix(unit.as_str())?.trim_end().to_owned();
        Some((*at, format!("{digits} {rate}")))
    }

    /// Reports [`rate_meant`](Self::rate_meant).
    fn rate_told(&mut self, e: &Expr) -> bool {
        let Some((at, number)) = self.rate_meant(e) else { return false };
        let error = units::UnitError {
            piece: self.sources.snippet(at).to_owned(),
            meant: number.rsplit(' ').next().map(str::to_owned),
            note: Some("a rate: operations a second"),
        };
        self.error(said::unknown_unit(&error, at));
        true
    }

    /// `schedule = 1f1b`: another tool's word for a schedule.
    fn schedule_meant(&mut self, value: &Expr) -> bool {
        let word = match &value.kind {
            ExprKind::Path(path) if path.len() == 1 => {
                let known = self.scope.find(&path[0].text).is_some()
                    || self.program.lookup(self.module, &path[0].text).is_some()
                    || self.import_failed(&path[0].text);
                if known { None } else { Some(path[0].text.as_str()) }
            }
            ExprKind::Number { unit: Some(_), .. } => Some(self.sources.snippet(value.span)),
            _ => None,
        };
        let advice = word.and_then(|w| words::advice(w, "", words::Place::Schedule));
        let (Some(word), Some(Instead::Name(meant))) = (word, advice.map(|a| a.instead)) else { return false };
        let d = errors::called(word, "schedule", meant, value.span);
        self.error(d);
        true
    }

    /// Where the keyword of a declaration stands: right before its name.
    fn keyword_before(&self, name: Span, keyword: &str) -> Option<Span> {
        let before = self.sources.file(name.file).text.get(..name.start as usize)?.trim_end();
        let start = before.strip_suffix(keyword)?.len();
        Some(Span::new(name.file, start, start + keyword.len()))
    }

    fn field_unknown(&mut self, item: &'p Item, name: &'p Name, place: Place, known: &[Field], extra: &[&'p Param]) {
        // Looked at for its own mistakes, in silence about names.
        let value = match &item.kind {
            ItemKind::Assign { value, .. } | ItemKind::Domain { domain: value, .. } => Some(value),
            _ => None,
        };
        let kind = match place {
            Place::Decl(k) | Place::Within(k) | Place::Region(k) => Some(k),
            Place::Part => Some(Kind::Layout),
            Place::Section(_) => None,
        };
        let mut names: Vec<String> = known.iter().map(|f| f.name.to_string()).collect();
        names.extend(extra.iter().map(|p| p.name.text.to_string()));
        names.extend(
            match kind {
                Some(Kind::Layout) => items::LAYOUT_ITEMS,
                Some(k) if items::is_job(k) => items::JOB_ITEMS,
                _ => &[],
            }
            .iter()
            .map(ToString::to_string),
        );
        // In place of the batch: which batch is meant is known once the layout is.
        if matches!(place, Place::Decl(k) if items::is_job(k))
            && matches!(name.text.as_str(), "accumulation" | "microbatches")
            && self.batch.is_none()
        {
            self.meant.insert("batch".into());
            return;
        }
        let d = said::unknown_field(&name.text, name.span, &place.noun(), &names);
        if names.iter().any(|w| *w == *name.text) {
            // `mesh = [dp, tp]`: an item, written as a field.
            self.error(errors::item_not_field(name));
            return;
        }
        let text = value.map(|v| self.sources.snippet(v.span).to_string()).unwrap_or_default();
        if let Some(k) = kind.filter(|k| items::is_job(*k))
            && let Some(home) = job_with(&name.text)
        {
            let of = Place::Decl(k).noun();
            let d = Diagnostic::new(d.code, d.message, name.span, format!("not a field of {of}"));
            let d = d.help(format!("`{}` belongs in a `{}` job", name.text, home.keyword()));
            let keyword = self.owner.and_then(|name| self.keyword_before(name, k.keyword()));
            self.error(match keyword.filter(|_| k == Kind::Train && home == Kind::Finetune) {
                Some(at) => d.fix("make it a `finetune` job", at, home.keyword(), Applicability::Unsure),
                None => d,
            });
            return;
        }
        if let Some(advice) = kind.and_then(place_of_words).and_then(|at| words::advice(&name.text, &text, at)) {
            let d = Diagnostic::new(d.code, d.message, name.span, "not known here");
            let d = match advice.instead {
                Instead::Name(to) if advice.help.is_empty() => d.help(format!("`{}` is `{to}` here", name.text)),
                Instead::Name(_) | Instead::Nothing | Instead::Line(_) | Instead::Remove => d.help(advice.help),
            };
            let d = match advice.instead {
                Instead::Nothing => d,
                Instead::Name(to) => {
                    self.meant.insert(to.into());
                    match known.iter().find(|f| f.name == to).and_then(|f| counted(f.ty)) {
                        // A bare number gets its unit in the same edit.
                        Some(unit) if value.is_some_and(|v| is_bare(v)) => {
                            let line = format!("{to} = {text} {unit}");
                            d.fix(format!("write `{line}`"), item.span, line, Applicability::Unsure)
                        }
                        _ => d.fix(format!("use `{to}`"), name.span, to, Applicability::Unsure),
                    }
                }
                Instead::Line(line) => {
                    let line = line.replace("AXIS", &self.data_axis());
                    d.fix(format!("write `{line}`"), item.span, line, Applicability::Unsure)
                }
                Instead::Remove => {
                    // Who sets the accumulation leaves the batch to follow.
                    self.meant.insert("batch".into());
                    d.fix("remove the line", self.sources.whole_lines(item.span), "", Applicability::Unsure)
                }
            };
            self.error(d);
            return;
        }
        if let Some(fix) = d.fixes.first() {
            self.meant.extend(fix.edits.iter().map(|e| SmolStr::new(&e.text)));
        }
        self.error(d);
    }

    /// The axis that shards the batch, as far as the names tell.
    fn data_axis(&self) -> String {
        let axes = self.axes.as_deref().unwrap_or_default();
        let found = ["dp", "fsdp", "data"].iter().find(|n| axes.iter().any(|a| a == *n));
        found.map_or_else(|| axes.first().map_or("dp".to_string(), ToString::to_string), ToString::to_string)
    }

    /// Required fields that `block` lacks, all at once.
    pub(super) fn missing(&mut self, block: &'p Block, known: &[Field], of: &str, span: Span, optional: &[&str]) {
        let has = |name: &str| {
            block.items.iter().any(|i| match &i.kind {
                ItemKind::Assign { target, .. } => {
                    let given = &target.name.text;
                    given == name || schema::RENAMED.iter().any(|r| r.old == given && r.new == name)
                }
                ItemKind::Domain { name: n, .. } => n.text == name,
                ItemKind::Section { head, .. } => head.text == name,
                // What could not be read may be the missing one.
                ItemKind::Error => true,
                _ => false,
            })
        };
        let required = known.iter().filter(|f| f.default.is_none() && !optional.contains(&f.name));
        let names: Vec<&str> = required.map(|f| f.name).filter(|n| !has(n) && !self.meant.contains(*n)).collect();
        if !names.is_empty() {
            self.error(errors::missing_fields(&names, of, span));
        }
    }

    /// A section such as `role rollout {…}`.
    pub(super) fn section(&mut self, head: &'p Name, block: &'p Block, place: Place) {
        let known = items::sections(place);
        if !known.contains(&head.text.as_str()) {
            let mut words: Vec<String> = known.iter().map(ToString::to_string).collect();
            if let Place::Decl(k) = place {
                words.extend(schema::fields(k).iter().map(|f| f.name.to_string()));
            }
            let d = said::unknown_field(&head.text, head.span, &place.noun(), &words);
            self.error(d);
            return;
        }
        if head.text == "layout" {
            self.inline_layout(block);
            return;
        }
        let Some(fields) = schema::block_fields(&head.text) else { return };
        let word = known.iter().find(|k| **k == head.text).copied().unwrap_or("section");
        self.block_items(block, Place::Section(word));
        self.fields(block, Place::Section(word), fields, &[]);
    }

    /// The block of an item: `store … { bucket = layer }`.
    pub(super) fn item_block(&mut self, word: &'static str, block: Option<&'p Block>) {
        let (Some(block), Some(fields)) = (block, schema::block_fields(word)) else { return };
        self.block_items(block, Place::Section(word));
        self.fields(block, Place::Section(word), fields, &[]);
    }

    /// Items that do not belong in `place`; the rest of a misplaced item is not looked at.
    pub(super) fn block_items(&mut self, block: &'p Block, place: Place) {
        for item in &block.items {
            if let Some(wrong) = items::misplaced(item, place) {
                self.error(errors::misplaced(&wrong, place));
            } else if let ItemKind::Section { head, block, .. } = &item.kind
                && matches!(place, Place::Section(_))
            {
                self.section(head, block, place);
            }
        }
    }
}

/// The unit of a field that counts.
fn counted(ty: &str) -> Option<&'static str> {
    match ty {
        "Seq" => Some("seq"),
        "Tok" => Some("tok"),
        "Step" => Some("step"),
        _ => None,
    }
}

/// A whole number without a unit.
fn is_bare(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Number { value: ast::Number::Int(_), unit: None })
}

/// Where in the dictionary the words of `kind` are.
fn place_of_words(kind: Kind) -> Option<words::Place> {
    match kind {
        Kind::Layout => Some(words::Place::Layout),
        Kind::Device => Some(words::Place::Device),
        Kind::Host => Some(words::Place::Host),
        Kind::Link => Some(words::Place::Link),
        Kind::Dtype => Some(words::Place::Dtype),
        k => items::is_job(k).then_some(words::Place::Job),
    }
}

/// The kind of job that has the field `name`.
fn job_with(name: &str) -> Option<Kind> {
    let jobs = [Kind::Train, Kind::Finetune, Kind::Serve, Kind::Workflow];
    jobs.into_iter().find(|k| schema::fields(*k).iter().any(|f| f.name == name))
}

/// The layout a job names: `Mine`, `Mine(tp = 4)`, `Mine(…) with {…}`.
pub(super) fn callee(e: &Expr) -> &Expr {
    let mut at = e;
    while let ExprKind::Call(inner, _) | ExprKind::With(inner, _) = &at.kind {
        at = inner;
    }
    at
}

//! Trees to pages.

use super::prose::paragraphs;
use super::{Book, Field, Item, Page, Param, Part, Place};
use crate::hir::schema;
use crate::source::{FileId, Sources, Span};
use crate::syntax::ast::{self, Body, Decl, Entry, ItemKind, Kind, Let, LetValue, ParamKind};
use std::collections::BTreeMap;

/// The book of `files`: each with its tree. `only`, where given, names the declarations that are wanted.
pub fn build(title: &str, sources: &Sources, files: &[(FileId, ast::File)], only: Option<&str>) -> Book {
    let mut pages: Vec<Page> = files.iter().map(|(file, tree)| page(sources, *file, tree, only)).collect();
    pages.retain(|p| only.is_none() || !p.items.is_empty());
    let mut places = BTreeMap::new();
    for page in &pages {
        for item in &page.items {
            // Of two of a name the first is meant; the library has none.
            let place = Place { page: page.name.clone(), anchor: item.name.clone() };
            places.entry(item.name.clone()).or_insert(place);
        }
    }
    Book { title: title.to_string(), pages, places }
}

fn page(sources: &Sources, file: FileId, tree: &ast::File, only: Option<&str>) -> Page {
    let source = sources.file(file);
    let path = source.name.strip_suffix(".par").unwrap_or(&source.name);
    let short = path.strip_prefix("std/").filter(|_| source.std).unwrap_or(path);
    let module = source.std.then(|| format!("std::{}", short.split('/').next().unwrap_or(short)));
    // A name on every file system, and in every link.
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let items = tree.entries.iter().filter_map(|e| match e {
        Entry::Use(_) => None,
        Entry::Decl(d) => Some(declared(sources, d)),
        Entry::Let(l) => Some(named(sources, l)),
    });
    let public = |i: &Item| !(source.std && i.name.starts_with('_'));
    Page {
        name: short.chars().map(safe).collect::<String>().trim_matches('-').to_string(),
        file: source.name.clone(),
        module,
        about: paragraphs(&tree.docs),
        items: items.filter(|i| public(i) && only.is_none_or(|name| i.name == name)).collect(),
    }
}

fn declared(sources: &Sources, d: &Decl) -> Item {
    let (body, items) = match &d.body {
        Body::Block(b) => (b.span, b.items.as_slice()),
        Body::Expr(e) => (Some(e.span), &[][..]),
        Body::None => (None, &[][..]),
    };
    let params = d.params.as_deref().unwrap_or_default();
    let fields = items.iter().filter_map(|item| field(sources, d.kind, item)).collect();
    Item {
        kind: d.kind.keyword(),
        name: d.name.text.to_string(),
        signature: head(sources, d.span, body),
        about: paragraphs(&d.docs),
        params: params.iter().map(|p| param(sources, p)).collect(),
        fields,
        parts: items.iter().filter_map(|item| part(sources, item)).collect(),
        source: text(sources, d.span),
        line: sources.line_col(d.name.span).0,
    }
}

fn named(sources: &Sources, l: &Let) -> Item {
    let (LetValue::Is(value) | LetValue::In(value)) = &l.value;
    Item {
        kind: "let",
        name: l.name.text.to_string(),
        signature: text(sources, l.span),
        about: paragraphs(&l.docs),
        params: Vec::new(),
        fields: Vec::new(),
        parts: Vec::new(),
        source: text(sources, l.span.to(value.span)),
        line: sources.line_col(l.name.span).0,
    }
}

/// What is written at `span`.
fn text(sources: &Sources, span: Span) -> String {
    sources.snippet(span).trim().to_string()
}

/// A declaration up to its body.
fn head(sources: &Sources, whole: Span, body: Option<Span>) -> String {
    let end = body.map_or(whole.end, |b| b.start);
    text(sources, Span { end, ..whole }).trim_end_matches(['=', '{', ' ', '\n']).to_string()
}

fn param(sources: &Sources, p: &ast::Param) -> Param {
    let shown = |e: &Option<Box<ast::Expr>>| e.as_ref().map(|e| text(sources, e.span)).unwrap_or_default();
    let name = p.name.text.to_string();
    match &p.kind {
        ParamKind::Value { ty, domain, default } => Param {
            name,
            ty: ty.as_ref().map(|t| text(sources, t.span)).unwrap_or_default(),
            domain: shown(domain),
            default: shown(default),
        },
        ParamKind::Dim { default } => Param { name, ty: "dim".into(), domain: String::new(), default: shown(default) },
        ParamKind::Tensor(_) => {
            Param { name, ty: text(sources, p.span), domain: String::new(), default: String::new() }
        }
    }
}

fn field(sources: &Sources, kind: Kind, item: &ast::Item) -> Option<Field> {
    let (name, value) = match &item.kind {
        ItemKind::Assign { target, value } => (&target.name.text, value),
        ItemKind::Domain { name, domain } => (&name.text, domain),
        _ => return None,
    };
    let known = schema::fields(kind).iter().find(|f| f.name == name.as_str())?;
    Some(Field { name: name.to_string(), value: text(sources, value.span), meaning: known.doc, ty: known.ty })
}

fn part(sources: &Sources, item: &ast::Item) -> Option<Part> {
    let (signature, docs) = match &item.kind {
        ItemKind::Decl(d) => {
            let body = match &d.body {
                Body::Block(b) => b.span,
                Body::Expr(e) => Some(e.span),
                Body::None => None,
            };
            (head(sources, d.span, body), if d.docs.is_empty() { &item.docs } else { &d.docs })
        }
        ItemKind::Level { block, .. } => (head(sources, item.span, block.as_ref().and_then(|b| b.span)), &item.docs),
        _ => return None,
    };
    Some(Part { signature, about: paragraphs(docs) })
}

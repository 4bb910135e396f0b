//! Names to declarations: reads files, follows `use`, builds each module's scope.
//!
//! Standard library files are parsed only where a name of theirs occurs, so a small program stays fast.

pub mod errors;
mod library;

use crate::diagnostics::{Diagnostic, Edit, Sink};
use crate::hir::{Binding, DeclId, Module, ModuleId, Program, csv_call, walk_file};
use crate::source::{FileId, ReadError, Sources, Span, World};
use crate::syntax::{self, ast};
use indexmap::IndexMap;
use library::Library;
use smol_str::SmolStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What jobs fall back to.
const DEFAULTS: &[(&str, &str)] = &[
    ("numerics", "bf16_mixed"),
    ("numerics", "AdamW"),
    ("numerics", "bf16"),
    ("numerics", "fp32"),
    ("schedules", "one_f_one_b"),
    ("cost", "default"),
];

/// How deep `use` may nest; `docs/reference`
pub const MAX_USE_DEPTH: usize = 64;

/// A file the user names.
#[derive(Clone, Debug)]
pub struct RootFile {
    /// As the user gave it.
    pub shown: String,
    /// Where the world finds it.
    pub path: PathBuf,
}

/// Reads and resolves `files` and everything they use.
pub fn resolve(sources: &mut Sources, world: &dyn World, files: &[RootFile], sink: &mut Sink) -> Program {
    let mut loader = Loader {
        sources,
        world,
        sink,
        library: Library::new(),
        program: Program::default(),
        by_path: IndexMap::new(),
        depth: 0,
        following: Vec::new(),
        data_files: IndexMap::new(),
    };
    for file in files {
        if let Some(id) = loader.root(file) {
            loader.program.roots.push(id);
        }
    }
    loader.load_defaults();
    loader.load_prelude();
    loader.program.prelude_names = loader.library.prelude_names();
    loader.program.units = user_units(&loader.program);
    loader.program
}

struct Loader<'a> {
    sources: &'a mut Sources,
    world: &'a dyn World,
    sink: &'a mut Sink,
    library: Library,
    program: Program,
    /// Modules by normalised path; `None` while being loaded.
    by_path: IndexMap<String, Option<ModuleId>>,
    depth: usize,
    /// The `use`s being followed: which file each stands in, and where.
    following: Vec<(String, Span)>,
    /// Files of tables, read once each.
    data_files: IndexMap<String, Result<Arc<str>, ReadError>>,
}

/// Most uses one fix looks at.
const RENAMES: usize = 1_000;
/// How far before a use its line is looked at, in bytes.
const LINE: usize = 4_096;

/// Where `name` stands in `text` as a word of its own, outside of comments and strings, and not after a dot.
fn uses<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).take(RENAMES).filter(move |at| {
        let near = text.floor_char_boundary(at.saturating_sub(LINE));
        let (before, after) = (text.get(near..*at).unwrap_or(""), text.get(at + name.len()..).unwrap_or(""));
        let line = before.rsplit('\n').next().unwrap_or("");
        let quoted = line.matches('"').count() % 2 == 1;
        !before.ends_with(|c| word(c) || c == '.') && !after.starts_with(word) && !quoted && !line.contains("//")
    })
}

impl Loader<'_> {
    fn root(&mut self, file: &RootFile) -> Option<ModuleId> {
        let RootFile { shown, path } = file;
        match self.world.read(path) {
            Ok(text) => {
                let file = self.sources.add(shown.clone(), text, false);
                let start = Span::new(file, 0, 0);
                let id = self.module(file, normalise(path), false);
                let module = self.program.module(id);
                let empty = module.ast.entries.is_empty() && module.ast.edition.is_none();
                if empty && !self.sink.has_errors() {
                    self.sink.error(errors::file_empty(start, &self.sources.file(file).name));
                } else if module.ast.edition.is_none() && !self.sink.has_errors() {
                    self.sink.warn(errors::edition_missing(start));
                }
                Some(id)
            }
            Err(why) => {
                let file = self.sources.add(shown.clone(), String::new(), false);
                self.sink.error(errors::unreadable(Span::new(file, 0, 0), shown, &why));
                None
            }
        }
    }

    /// Parses `file` and builds its scope.
    fn module(&mut self, file: FileId, path: String, std: bool) -> ModuleId {
        self.by_path.insert(path.clone(), None);
        let tree = syntax::parse(self.sources, file, self.sink);
        let mut scope: IndexMap<SmolStr, (Binding, Span)> = IndexMap::new();
        let id = ModuleId(self.program.modules.len() as u32);
        let group =
            path.strip_prefix("std/").filter(|_| std).and_then(|p| p.split(['/', '.']).next()).map(SmolStr::new);
        self.program.modules.push(Module { file, ast: ast::File::default(), scope: IndexMap::new(), std, group });
        for (i, entry) in tree.entries.iter().enumerate() {
            let name = match entry {
                ast::Entry::Use(_) => continue,
                ast::Entry::Decl(d) => &d.name,
                ast::Entry::Let(l) => &l.name,
            };
            let binding = Binding::Decl(DeclId { module: id, entry: i as u32 });
            if let Some((_, first)) = scope.get(&name.text) {
                self.sink.error(errors::name_taken(name, *first));
            } else {
                scope.insert(name.text.clone(), (binding, name.span));
            }
        }
        self.data(&tree, &path, std);
        self.depth += 1;
        for entry in &tree.entries {
            if let ast::Entry::Use(u) = entry {
                self.import(u, &path, std, &mut scope);
            }
        }
        self.depth -= 1;
        self.by_path.insert(path, Some(id));
        let module = &mut self.program.modules[id.0 as usize];
        module.ast = tree;
        module.scope = scope.into_iter().map(|(n, (b, _))| (n, b)).collect();
        id
    }

    /// Reads the files that tables of `tree` name: by the same door as other files.
    fn data(&mut self, tree: &ast::File, from: &str, std: bool) {
        let mut named: Vec<(Span, String)> = Vec::new();
        walk_file(tree, &mut |e| named.extend(csv_call(e).map(|(name, file, _)| (name.span, file.to_string()))));
        let folder = Path::new(from).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        for (span, text) in named {
            let path = folder.join(&text);
            let key = normalise(&path);
            let read = match self.data_files.get(&key) {
                Some(known) => known.clone(),
                None if std => {
                    let own = key.strip_prefix("std/").unwrap_or(&key);
                    crate::source::stdlib_file(own).map(Arc::from).ok_or(ReadError::Missing)
                }
                None => self.world.read(&path).map(Arc::from),
            };
            match &read {
                Ok(content) => {
                    self.program.data.insert(span, Arc::clone(content));
                }
                Err(why) => {
                    self.sink.error(errors::unreadable(span, &text, why));
                }
            }
            self.data_files.insert(key, read);
        }
    }

    fn import(&mut self, u: &ast::Use, from: &str, std: bool, scope: &mut IndexMap<SmolStr, (Binding, Span)>) {
        if self.depth > MAX_USE_DEPTH {
            self.sink.error(errors::use_too_deep(u.span));
            return;
        }
        match &u.root {
            ast::UseRoot::Name(root) if root.text == "std" => self.import_std(u, scope),
            ast::UseRoot::Name(root) => {
                self.sink.error(errors::use_root(root));
            }
            ast::UseRoot::File(text, span) => self.import_file(u, text, *span, from, std, scope),
        }
    }

    fn import_std(&mut self, u: &ast::Use, scope: &mut IndexMap<SmolStr, (Binding, Span)>) {
        let (group, names) = match (&u.path[..], &u.names) {
            ([group, name], None) => (group, vec![(name.clone(), u.alias.clone())]),
            ([group], Some(names)) => (group, names.clone()),
            _ => {
                self.sink.error(errors::use_shape(u.span));
                return;
            }
        };
        if !self.library.has_group(&group.text) {
            self.sink.error(errors::std_module_missing(group, &self.library.groups()));
            return;
        }
        for (name, alias) in names {
            match self.library.find(&group.text, &name.text) {
                Some(file) => {
                    let module = self.std_module(&file);
                    let found = self.program.module(module).scope.get(&name.text).copied();
                    let bound = alias.as_ref().unwrap_or(&name);
                    if let Some(binding) = found {
                        self.bind(bound, binding, scope);
                    }
                }
                None => {
                    let known = self.library.names_of(&group.text);
                    let d = errors::std_name_missing(&name, group, &known);
                    let d = if alias.is_none() { self.rename_uses(d, &name) } else { d };
                    self.sink.error(d);
                }
            }
        }
    }

    fn import_file(
        &mut self,
        u: &ast::Use,
        text: &str,
        span: Span,
        from: &str,
        std: bool,
        scope: &mut IndexMap<SmolStr, (Binding, Span)>,
    ) {
        let folder = Path::new(from).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let path = folder.join(text);
        let key = normalise(&path);
        let module = match self.by_path.get(&key) {
            Some(Some(id)) => *id,
            Some(None) => {
                // The circle, from the file that is used again: its own `use` is where a reader begins.
                let from_here = self.following.iter().position(|(file, _)| *file == key).unwrap_or(0);
                let circle = self.following.get(from_here..).unwrap_or_default();
                let mut files: Vec<&str> = circle.iter().map(|(file, _)| file.as_str()).collect();
                files.extend([from, key.as_str()]);
                let at = circle.first().map_or(span, |(_, at)| *at);
                self.sink.error(errors::use_cycle(at, span, &files));
                return;
            }
            None => match self.world.read(&path) {
                _ if std => return,
                Ok(content) => {
                    let file = self.sources.add(key.clone(), content, false);
                    self.following.push((from.to_string(), span));
                    let id = self.module(file, key, false);
                    self.following.pop();
                    id
                }
                Err(why) => {
                    self.sink.error(errors::unreadable(span, text, &why));
                    return;
                }
            },
        };
        if let Some(alias) = &u.alias {
            self.bind(alias, Binding::Module(module), scope);
        }
        let single = u.path.first().map(|n| (n.clone(), None));
        for (name, alias) in u.names.iter().flatten().cloned().chain(single) {
            match self.program.module(module).scope.get(&name.text).copied() {
                Some(_) if name.text.starts_with('_') => {
                    self.sink.error(errors::private_name(&name, text));
                }
                Some(binding) => self.bind(alias.as_ref().unwrap_or(&name), binding, scope),
                None => {
                    let known: Vec<_> = self.program.module(module).scope.keys().cloned().collect();
                    let d = errors::name_missing_in_file(&name, text, &known);
                    let d = if alias.is_none() { self.rename_uses(d, &name) } else { d };
                    self.sink.error(d);
                }
            }
        }
        if u.alias.is_none() && u.names.is_none() && u.path.is_empty() {
            self.sink.error(errors::use_shape(u.span));
        }
    }

    /// A fix that renames an import renames its uses in the file too.
    fn rename_uses(&self, mut d: Diagnostic, name: &ast::Name) -> Diagnostic {
        let text = &self.sources.file(name.span.file).text;
        for fix in &mut d.fixes {
            let Some(new) = fix.edits.first().map(|e| e.text.clone()) else { continue };
            let used = uses(text, &name.text).filter(|at| *at != name.span.start as usize);
            fix.edits.extend(
                used.map(|at| Edit { span: Span::new(name.span.file, at, at + name.text.len()), text: new.clone() }),
            );
        }
        d
    }

    fn bind(&mut self, name: &ast::Name, binding: Binding, scope: &mut IndexMap<SmolStr, (Binding, Span)>) {
        match scope.get(&name.text) {
            Some((old, _)) if *old == binding => {}
            Some((_, first)) => {
                self.sink.error(errors::name_taken(name, *first));
            }
            None => {
                scope.insert(name.text.clone(), (binding, name.span));
            }
        }
    }

    fn std_module(&mut self, file: &str) -> ModuleId {
        let key = format!("std/{file}");
        if let Some(Some(id)) = self.by_path.get(&key) {
            return *id;
        }
        if self.by_path.get(&key) == Some(&None) {
            // The library's own files use each other freely: the module being built has its names already.
            let at = self.program.modules.iter().position(|m| self.sources.file(m.file).name == key);
            return ModuleId(at.expect("a module is pushed before its imports are read") as u32);
        }
        let text = Library::text(file);
        let id = self.sources.add(key.clone(), text.to_string(), true);
        self.module(id, key, true)
    }

    /// Loads what a job uses without naming it: the defaults of its fields.
    fn load_defaults(&mut self) {
        if self.program.jobs().is_empty() {
            return;
        }
        for (group, name) in DEFAULTS {
            if let Some(file) = self.library.find(group, name) {
                let module = self.std_module(&file);
                if let Some(Binding::Decl(id)) = self.program.module(module).scope.get(*name).copied()
                    && *group != "cost"
                {
                    self.program.prelude.insert((*name).into(), id);
                }
            }
        }
    }

    /// Loads library files whose names occur in what was read, until nothing new turns up.
    fn load_prelude(&mut self) {
        let mut seen = 0;
        while seen < self.program.modules.len() {
            let module = &self.program.modules[seen];
            let mut wanted: Vec<(SmolStr, String)> = Vec::new();
            let mut whole_paths: Vec<String> = Vec::new();
            let mut want = |name: &SmolStr, library: &Library| {
                if !module.scope.contains_key(name)
                    && let Some(file) = library.prelude(name)
                {
                    wanted.push((name.clone(), file));
                }
            };
            walk_file(&module.ast, &mut |e| {
                if let ast::ExprKind::Path(path) = &e.kind {
                    match &path[..] {
                        [name] => want(&name.text, &self.library),
                        [root, group, name] if root.text == "std" => {
                            whole_paths.extend(self.library.find(&group.text, &name.text));
                        }
                        _ => {}
                    }
                }
            });
            seen += 1;
            for file in whole_paths {
                self.std_module(&file);
            }
            for (name, file) in wanted {
                if self.program.prelude.contains_key(&name) {
                    continue;
                }
                let module = self.std_module(&file);
                if let Some(Binding::Decl(id)) = self.program.module(module).scope.get(&name).copied() {
                    self.program.prelude.insert(name, id);
                }
            }
        }
    }
}

/// A path with `.` and `..` folded away, for comparing; it may begin with `..` where it leaves the start.
fn normalise(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.last().is_some_and(|p| p != "..") => {
                parts.pop();
            }
            other => parts.push(other.as_os_str().to_string_lossy().into_owned()),
        }
    }
    parts.join("/").replace("//", "/")
}

fn user_units(program: &Program) -> Vec<SmolStr> {
    let decls = program.modules.iter().flat_map(|m| &m.ast.entries);
    let units = decls.filter_map(|e| match e {
        ast::Entry::Decl(d) if d.kind == ast::Kind::Unit => Some(d.name.text.clone()),
        ast::Entry::Decl(_) | ast::Entry::Let(_) | ast::Entry::Use(_) => None,
    });
    units.collect()
}

/// What `why` says, for a message about `path`.
pub(crate) fn read_error_text(why: &ReadError) -> String {
    match why {
        ReadError::Missing => "no such file".into(),
        ReadError::Directory => "it is a directory".into(),
        ReadError::NotUtf8(at) => format!("it is not UTF-8 text (byte {at})"),
        ReadError::TooLarge(size, limit) => format!("it has {size} bytes, the limit is {limit}"),
        ReadError::Outside => "it lies outside the project's folder".into(),
        ReadError::Other(text) => text.clone(),
    }
}

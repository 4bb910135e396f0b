//! Files, `use` and the standard library, through the front end.

use parc::diagnostics::{Code, Diagnostic, Sink};
use parc::driver;
use parc::hir::{Binding, Program};
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, STDLIB, Sources};
use parc::syntax::{self, ast};

fn front(files: &[(&str, &str)]) -> (Program, Vec<Diagnostic>) {
    let world = MemoryWorld::new(files.iter().copied());
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let roots = [RootFile { shown: files[0].0.into(), path: files[0].0.into() }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    (program, sink.finish())
}

fn codes(files: &[(&str, &str)]) -> Vec<Code> {
    front(files).1.iter().map(|d| d.code).collect()
}

/// Names a library file declares, by parsing it.
fn declared(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    let file = sources.add("std", text.to_string(), true);
    let mut sink = Sink::new();
    let tree = syntax::parse(&sources, file, &mut sink);
    assert!(!sink.has_errors());
    let names = tree.entries.iter().filter_map(|e| match e {
        ast::Entry::Decl(d) => Some(d.name.text.to_string()),
        ast::Entry::Let(l) => Some(l.name.text.to_string()),
        ast::Entry::Use(_) => None,
    });
    names.collect()
}

fn library_files(dir: &'static include_dir::Dir<'static>, out: &mut Vec<(String, &'static str)>) {
    for f in dir.files() {
        out.push((f.path().display().to_string(), f.contents_utf8().unwrap()));
    }
    for d in dir.dirs() {
        library_files(d, out);
    }
}

#[test]
fn every_name_of_the_library_can_be_used() {
    let mut files = Vec::new();
    library_files(&STDLIB, &mut files);
    assert!(files.len() >= 10);
    for (path, text) in files {
        let group = path.split(['/', '.']).next().unwrap().to_string();
        for name in declared(text).iter().filter(|n| !n.starts_with('_')) {
            let source = format!("edition 1\nuse std::{group}::{name}\nlet x = 1\n");
            let (program, diagnostics) = front(&[("main.par", &source)]);
            assert_eq!(diagnostics, [], "std::{group}::{name} of {path}");
            let bound = program.lookup(program.roots[0], name).unwrap();
            let Binding::Decl(id) = bound else { panic!("{name} is a file") };
            assert_eq!(program.entry(id).name().text, name.as_str());
        }
    }
}

#[test]
fn the_library_is_read_only_as_far_as_it_is_named() {
    let (program, _) = front(&[("main.par", "edition 1\nlet d = H100_SXM\n")]);
    let names = program.modules.iter().filter(|m| m.std).count();
    assert!(names <= 3, "{names} files for one device");
}

#[test]
fn a_file_uses_another_by_name_alias_and_list() {
    let site = "edition 1\nlet racks = 4\nlet _secret = 5\ncluster Pod(nodes: Int) { level node = 8 of H100_SXM over NVLink4 }\n";
    assert_eq!(
        codes(&[("main.par", "edition 1\nuse \"site.par\"::{Pod, racks as r}\nlet x = r + 1\n"), ("site.par", site)]),
        []
    );
    assert_eq!(
        codes(&[("main.par", "edition 1\nuse \"site.par\" as site\nlet x = site.racks\n"), ("site.par", site)]),
        []
    );
    let missing = codes(&[("main.par", "edition 1\nuse \"site.par\"::{Pood}\n"), ("site.par", site)]);
    assert_eq!(missing, [Code::NameUnknown]);
    let private = codes(&[("main.par", "edition 1\nuse \"site.par\"::{_secret}\n"), ("site.par", site)]);
    assert_eq!(private, [Code::NameUnknown]);
    assert_eq!(codes(&[("main.par", "edition 1\nuse \"gone.par\"::{Pod}\n")]), [Code::FileMissing]);
}

#[test]
fn files_that_use_each_other_are_one_error() {
    let a = "edition 1\nuse \"b.par\"::{y}\nlet x = 1\n";
    let b = "edition 1\nuse \"a.par\"::{x}\nlet y = 1\n";
    assert_eq!(codes(&[("a.par", a), ("b.par", b)]), [Code::Recursion]);
    assert_eq!(codes(&[("a.par", "edition 1\nuse \"a.par\"::{x}\nlet x = 1\n")]), [Code::Recursion]);
}

#[test]
fn a_name_is_declared_once() {
    assert_eq!(codes(&[("a.par", "edition 1\nlet x = 1\nlet x = 2\n")]), [Code::NameTaken]);
    // What the file declares wins over the library's.
    assert_eq!(codes(&[("a.par", "edition 1\nlet H100_SXM = 1\nlet y = H100_SXM + 1\n")]), []);
}

#[test]
fn an_edition_is_asked_for() {
    let (_, diagnostics) = front(&[("a.par", "let x = 1\n")]);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code, Code::EditionMissing);
    assert_eq!(diagnostics[0].fixes[0].edits[0].text, "edition 1\n");
}

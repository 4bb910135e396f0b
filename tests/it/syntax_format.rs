//! The formatter: every file of the repository keeps its tree and its comments, and is the same the second time; those
//! that are published are laid out already.

use crate::files::{below, name, text};
use parc::format::{Unformatted, WIDTH, format};

/// The layout of `text`, which has no mistakes.
fn laid_out(text: &str) -> String {
    format(text).unwrap_or_else(|e| panic!("{e:?}:\n{text}"))
}

#[test]
fn published_files_are_laid_out() {
    let files = ["stdlib", "examples"].iter().flat_map(|f| below(f, &["par"]));
    let mut wrong = Vec::new();
    for file in files {
        let before = text(&file);
        let after = laid_out(&before);
        if std::env::var_os("PARC_BLESS").is_some() {
            std::fs::write(&file, after).unwrap();
        } else if before != after {
            let line = before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
            wrong.push(format!("{}:{}: {:?}", name(&file), line + 1, after.lines().nth(line)));
        }
    }
    assert!(wrong.is_empty(), "`parc fmt` these:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_keeps_its_tree_and_settles_at_once() {
    let mut tried = 0;
    for file in ["stdlib", "examples", "tests"].iter().flat_map(|f| below(f, &["par"])) {
        let before = text(&file);
        let after = match format(&before) {
            Ok(after) => after,
            Err(Unformatted::Mistakes) => continue,
            Err(Unformatted::Changed) => panic!("{} changes", name(&file)),
        };
        let comments = |t: &str| {
            t.lines().filter_map(|l| l.find("//").map(|at| l[at..].trim_end().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(comments(&before), comments(&after), "{}", name(&file));
        assert_eq!(laid_out(&after), after, "{}", name(&file));
        let code = |l: &str| l.split("//").next().unwrap().trim_end().chars().count();
        let long = after.lines().find(|l| code(l) > WIDTH && l.matches(',').count() > 1);
        assert_eq!(long, None, "{}", name(&file));
        tried += 1;
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn layouts() {
    let cases = [
        // Blanks.
        ("let a=1+ 2*b  -c\n", "let a = 1 + 2 * b - c\n"),
        ("let a = - b ^ - 2\n", "let a = -b ^ -2\n"),
        ("let a = [ 1,2 , 3 ]\n", "let a = [1, 2, 3]\n"),
        ("let a = { 1 , 2 }\n", "let a = {1, 2}\n"),
        ("let a = {x=1}\n", "let a = { x = 1 }\n"),
        ("let a = 8192tok\nlet b = 41 %\nlet c = 2.5   $/h\n", "let a = 8192 tok\nlet b = 41%\nlet c = 2.5 $/h\n"),
        (
            "fn f(a:List< Int > =[0 .. 3])->Dist<Tok> =g (a) [ 0 ] . b\n",
            "fn f(a: List<Int> = [0..3]) -> Dist<Tok> = g(a)[0].b\n",
        ),
        ("use std :: models :: { A,B as C }\n", "use std::models::{A, B as C}\n"),
        (
            "layout L {\n\tin [ * , a . ** . b[0 ..] ] {recompute all}\n}\n",
            "layout L {\n  in [*, a.**.b[0..]] { recompute all }\n}\n",
        ),
        ("layout L { }\n", "layout L {}\n"),
        // Lines.
        ("\n\nlet a = 1\n\n\n\nlet b = 2", "let a = 1\n\nlet b = 2\n"),
        ("layout L\n{\n\n  mesh [a],\n  pad V = 8,\n\n}\n", "layout L {\n  mesh [a]\n  pad V = 8\n}\n"),
        ("layout L { mesh [a]\n pad V = 8 }\n", "layout L {\n  mesh [a]\n  pad V = 8\n}\n"),
        (
            "layout L {\n  if a { mesh [a] }\n  else {\n    mesh [b] }\n}\n",
            "layout L {\n  if a { mesh [a] } else {\n    mesh [b]\n  }\n}\n",
        ),
        (
            "layout L {\n  if a {\n mesh [a] }\n  else { mesh [b] }\n}\n",
            "layout L {\n  if a {\n    mesh [a]\n  } else {\n    mesh [b]\n  }\n}\n",
        ),
        ("let a = f(b\n, c,\n)\n", "let a = f(b,\n          c,\n)\n"),
        ("let a = [\nb,\nc]\n", "let a = [\n  b,\n  c]\n"),
        ("let a = b\n+ c\n", "let a = b\n  + c\n"),
        // Comments.
        ("let a = 1//x\nlet bcd = 2   // y\n", "let a = 1    //x\nlet bcd = 2  // y\n"),
        ("layout L { // x\n// y\n  mesh [a]\n  // z\n}\n", "layout L {  // x\n  // y\n  mesh [a]\n  // z\n}\n"),
        ("let a = [1, // x\n// y\n2]\n", "let a = [1,  // x\n         // y\n         2]\n"),
        ("\u{feff}let a = 1 // x\r\n/// d\r\nlet b = 2\r\n", "let a = 1  // x\n/// d\nlet b = 2\n"),
        // Columns.
        ("train t {\n  a  = 1\n  bcd = 2\n\n  e = 3\n}\n", "train t {\n  a   = 1\n  bcd = 2\n\n  e = 3\n}\n"),
        ("train t {\n  a = 1\n  bcd = 2\n}\n", "train t {\n  a = 1\n  bcd = 2\n}\n"),
        (
            "link A   { x = 1 }\nlink Bcd { x = 1 }\nlink E { x = 1 }\n",
            "link A   { x = 1 }\nlink Bcd { x = 1 }\nlink E   { x = 1 }\n",
        ),
        (
            "cluster C {\n  level a  = 2 of b over c\n  level def = 2 of a over c\n}\n",
            "cluster C {\n  level a   = 2 of b over c\n  level def = 2 of a over c\n}\n",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(laid_out(before), after, "{before}");
        assert_eq!(laid_out(after), after);
    }
}

#[test]
fn long_lines_are_broken() {
    let many = |n: usize, one: &str| vec![one; n].join(", ");
    let block = format!("layout L {{ {} }}\n", many(9, "store [param, grad] over dp"));
    let after = laid_out(&block);
    assert_eq!(after.lines().count(), 11);
    assert_eq!(after.lines().nth(1), Some("  store [param, grad] over dp"));
    let call = laid_out(&format!("let a = call({})\n", many(40, "name = 1")));
    assert!(call.lines().all(|l| l.chars().count() <= WIDTH), "{call}");
    assert!(call.lines().skip(1).all(|l| l.starts_with("             name")), "{call}");
    let items = laid_out(&format!("train t {{\n  {}\n}}\n", many(12, "model = Something")));
    assert_eq!(items.lines().count(), 14);
    let sum = laid_out(&format!("let a = {}\n", vec!["one_two_three"; 20].join(" + ")));
    assert!(sum.lines().skip(1).all(|l| l.starts_with("  + ")), "{sum}");
    for text in [after, call, items, sum] {
        assert_eq!(laid_out(&text), text);
    }
}

#[test]
fn a_file_with_mistakes_is_refused() {
    assert_eq!(format("let a = = 1\n"), Err(Unformatted::Mistakes));
    assert_eq!(format("# x\n"), Err(Unformatted::Mistakes));
    assert_eq!(format(""), Ok(String::new()));
    assert_eq!(format("// only\n\n\n// comments"), Ok("// only\n\n// comments\n".into()));
}

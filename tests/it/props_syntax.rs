//! Laws of the text: an expression printed with the fewest brackets is read as the one printed with all of them, and no
//! change of blanks or indentation changes what the formatter makes of a file.

use crate::files::{below, text};
use parc::diagnostics::Sink;
use parc::format::{Unformatted, format};
use parc::source::Sources;
use parc::syntax::{self, dump};
use proptest::prelude::*;

/// An expression, and how tightly its parts hold together.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(&'static str),
    /// Loosest: takes no brackets around its parts, and needs them wherever it is one.
    Choice(Box<[Tree; 3]>),
    /// A sign before its operand: the sign, and the level of both.
    Prefix(&'static str, u8, Box<Tree>),
    /// An operator of [`OPERATORS`] between two.
    Infix(usize, Box<[Tree; 2]>),
    Call(Box<Tree>, Vec<Tree>),
    Index(Box<Tree>, Box<Tree>),
    Field(Box<Tree>),
    List(Vec<Tree>),
    Set(Vec<Tree>),
}

/// Sign, level, and the levels its left and right operand need. From the grammar of the reference.
const OPERATORS: [(&str, u8, u8, u8); 17] = [
    ("or", 1, 1, 2),
    ("and", 2, 2, 3),
    ("==", 4, 5, 5),
    ("!=", 4, 5, 5),
    ("<", 4, 5, 5),
    (">=", 4, 5, 5),
    ("divides", 4, 5, 5),
    ("..", 5, 6, 6),
    ("+", 6, 6, 7),
    ("-", 6, 6, 7),
    ("*", 7, 7, 8),
    ("/", 7, 7, 8),
    ("div", 7, 7, 8),
    ("mod", 7, 7, 8),
    ("@", 7, 7, 8),
    ("^", 9, 10, 8),
    ("<=", 4, 5, 5),
];

impl Tree {
    fn level(&self) -> u8 {
        match self {
            Self::Choice(_) => 0,
            Self::Prefix(_, level, _) => *level,
            Self::Infix(op, _) => OPERATORS[*op].1,
            // A number takes no field and no arguments.
            Self::Leaf(text) if text.starts_with(|c: char| c.is_ascii_digit()) => 9,
            _ => 10,
        }
    }

    /// Its text; with `all` every part that is not one word stands in brackets.
    fn print(&self, all: bool) -> String {
        let list = |parts: &[Self]| parts.iter().map(|p| p.print(all)).collect::<Vec<_>>().join(", ");
        match self {
            Self::Leaf(text) => (*text).to_owned(),
            Self::Choice(parts) => {
                let [c, t, e] = parts.as_ref();
                format!("if {} then {} else {}", c.part(0, all), t.part(0, all), e.part(0, all))
            }
            Self::Prefix(sign, level, e) => format!("{sign}{}", e.part(*level, all)),
            Self::Infix(op, parts) => {
                let (sign, _, left, right) = OPERATORS[*op];
                format!("{} {sign} {}", parts[0].part(left, all), parts[1].part(right, all))
            }
            Self::Call(f, parts) => format!("{}({})", f.part(10, all), list(parts)),
            Self::Index(e, i) => format!("{}[{}]", e.part(10, all), i.print(all)),
            Self::Field(e) => format!("{}.f", e.part(10, all)),
            Self::List(parts) => format!("[{}]", list(parts)),
            Self::Set(parts) => format!("{{{}}}", list(parts)),
        }
    }

    fn part(&self, needed: u8, all: bool) -> String {
        let text = self.print(all);
        if all && !matches!(self, Self::Leaf(_)) || self.level() < needed { format!("({text})") } else { text }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    const WORDS: [&str; 12] =
        ["a", "b", "c", "?", "true", "1", "2.5 ms", "3 tok", "\"s\"", "std::x::Y", "layout", "41%"];
    let leaf = prop::sample::select(&WORDS[..]).prop_map(Tree::Leaf);
    leaf.prop_recursive(6, 40, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            3 => (0..OPERATORS.len(), [inner.clone(), inner.clone()]).prop_map(|(op, p)| Tree::Infix(op, Box::new(p))),
            1 => boxed().prop_map(|e| Tree::Prefix("-", 8, e)),
            1 => boxed().prop_map(|e| Tree::Prefix("not ", 3, e)),
            1 => [inner.clone(), inner.clone(), inner.clone()].prop_map(|p| Tree::Choice(Box::new(p))),
            1 => (boxed(), prop::collection::vec(inner.clone(), 0..3)).prop_map(|(f, p)| Tree::Call(f, p)),
            1 => (boxed(), boxed()).prop_map(|(e, i)| Tree::Index(e, i)),
            1 => boxed().prop_map(Tree::Field),
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::List),
            1 => prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::Set),
        ]
    })
}

/// What a text says; `None` where it has mistakes.
fn said(text: &str) -> Option<String> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let file = sources.add("main.par", text.to_owned(), false);
    let tree = syntax::parse(&sources, file, &mut sink);
    (!sink.has_errors()).then(|| dump::dump(&tree))
}

/// `text` with more or fewer blanks between its words: `blanks` gives how many, over and over.
fn spaced(text: &str, blanks: &[usize]) -> String {
    let mut next = blanks.iter().copied().cycle();
    let mut out = String::new();
    for line in text.lines() {
        // What stands in a comment or a string stays.
        let code = [line.find('"'), line.find("//")].into_iter().flatten().min().unwrap_or(line.len());
        out.extend(std::iter::repeat_n(' ', next.next().unwrap_or(0)));
        for (i, word) in line[..code].split_whitespace().enumerate() {
            out.extend(std::iter::repeat_n(' ', usize::from(i > 0) + next.next().unwrap_or(0)));
            out.push_str(word);
        }
        out.push(' ');
        out.push_str(&line[code..]);
        out.extend(std::iter::repeat_n('\n', 1 + next.next().unwrap_or(0) / 3));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fewest_brackets_say_the_same_as_all(tree in tree()) {
        let (few, all) = (format!("let v = {}\n", tree.print(false)), format!("let v = {}\n", tree.print(true)));
        let wanted = said(&all);
        prop_assert!(wanted.is_some(), "{}", all);
        prop_assert_eq!(&said(&few), &wanted, "{}", few);
        let laid_out = format(&few).expect("it has no mistakes");
        prop_assert_eq!(&said(&laid_out), &wanted, "{}", laid_out);
        prop_assert_eq!(&format(&laid_out), &Ok(laid_out.clone()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blanks_change_nothing_but_blanks(file in any::<prop::sample::Index>(), blanks in prop::collection::vec(0usize..5, 1..40)) {
        let files: Vec<_> = ["stdlib", "examples", "tests"].iter().flat_map(|f| below(f, &["par"])).collect();
        let before = text(&files[file.index(files.len())]);
        let wanted = said(&before);
        let after = spaced(&before, &blanks);
        match format(&after) {
            Ok(laid_out) => {
                // Where indentation is evidence (a missing brace), blanks may tell; in a right file they never do.
                prop_assert!(wanted.is_none() || said(&laid_out) == wanted);
                prop_assert_eq!(format(&laid_out), Ok(laid_out));
            }
            Err(why) => {
                prop_assert_eq!(why, Unformatted::Mistakes);
                prop_assert_eq!(wanted, None);
            }
        }
    }
}

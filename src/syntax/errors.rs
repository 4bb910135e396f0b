//! The wording of every syntax error: structured arguments in, a diagnostic out.

use super::brackets::Missed;
use super::expected;
use super::literal::{BadEscape, BadNumber};
use super::report::Places;
use super::token::Tok;
use crate::diagnostics::{Applicability, Code, Diagnostic, Edit, Fix};
use crate::source::Span;

/// A habit of another language, or a sign outside ASCII, that has one spelling here.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Slip {
    Hash,
    BlockComment,
    Semicolon,
    SingleQuotes,
    CurlyQuotes,
    AndAnd,
    OrOr,
    Bang,
    ColonEq,
    Percent,
    Lookalike(char, &'static str),
    Blank(char),
    Character(char),
}

/// One report for all places where the same slip was made.
pub(super) fn slip(slip: Slip, places: &Places) -> Option<Diagnostic> {
    let (first, _) = places.list.first()?;
    let (code, message, label, help) = match slip {
        Slip::Hash => foreign("`#` does not start a comment", "`//` starts a comment", "write comments as `// …`"),
        Slip::BlockComment => {
            foreign("there are no block comments", "`//` starts a comment", "begin each line of the comment with `//`")
        }
        Slip::Semicolon => {
            foreign("items do not end with `;`", "nothing belongs here", "end an item with a line break or a comma")
        }
        Slip::SingleQuotes => foreign("strings stand in double quotes", "single quotes", "write `\"…\"`"),
        Slip::CurlyQuotes => foreign("strings stand in straight quotes", "typographic quotes", "write `\"…\"`"),
        Slip::AndAnd => foreign("`&&` is not an operator", "the operator is `and`", "write `and`"),
        Slip::OrOr => foreign("`||` is not an operator", "the operator is `or`", "write `or`"),
        Slip::Bang => foreign("`!` is not an operator", "the operator is `not`", "write `not`"),
        Slip::ColonEq => foreign("`:=` does not assign", "a field takes `=`", "write `=`"),
        Slip::Percent => foreign("`%` is not an operator", "the remainder is `mod`", "write `a mod b`"),
        Slip::Lookalike(c, ascii) => (
            Code::SyntaxCharacter,
            format!("`{c}` is written `{ascii}`"),
            format!("not `{ascii}`"),
            format!("write `{ascii}`"),
        ),
        Slip::Blank(c) => (
            Code::SyntaxCharacter,
            format!("an invisible character, U+{:04X}, stands between words", c as u32),
            "not a plain blank".to_owned(),
            "use plain blanks".to_owned(),
        ),
        Slip::Character(c) => (
            Code::SyntaxCharacter,
            format!("{} means nothing here", shown(c)),
            "not part of the language".to_owned(),
            "leave it out, or put it in a string or a comment".to_owned(),
        ),
    };
    let mut d = Diagnostic::new(code, message, *first, label).help(help);
    match places.count - 1 {
        0 => {}
        1 => d = d.note("also in another place of this file"),
        n => d = d.note(format!("also in {n} more places of this file")),
    }
    let all = places.list.len() == places.count;
    let edits: Vec<Edit> = places.list.iter().filter(|_| all).flat_map(|p| p.1.iter().cloned()).collect();
    if !edits.is_empty() {
        let title = match slip {
            Slip::Hash | Slip::BlockComment => "use `//`".to_owned(),
            Slip::Semicolon => "remove `;`".to_owned(),
            Slip::SingleQuotes | Slip::CurlyQuotes => "use double quotes".to_owned(),
            Slip::AndAnd => "use `and`".to_owned(),
            Slip::OrOr => "use `or`".to_owned(),
            Slip::Bang => "use `not`".to_owned(),
            Slip::ColonEq => "use `=`".to_owned(),
            Slip::Percent => "use `mod`".to_owned(),
            Slip::Lookalike(_, ascii) => format!("use `{ascii}`"),
            Slip::Blank(_) | Slip::Character(_) => "use a plain blank".to_owned(),
        };
        d.fixes.push(Fix { title, edits, applicability: Applicability::Safe, effect: None });
    }
    Some(d)
}

fn foreign(message: &str, label: &str, help: &str) -> (Code, String, String, String) {
    (Code::SyntaxForeign, message.to_owned(), label.to_owned(), help.to_owned())
}

fn shown(c: char) -> String {
    if c.is_control() { format!("the control character U+{:04X}", c as u32) } else { format!("`{c}`") }
}

// ---- files and limits

/// A file above the limit on its size.
pub(super) fn file_too_large(at: Span, size: usize, limit: usize) -> Diagnostic {
    let message = format!("the file has {size} bytes, the limit is {limit}");
    Diagnostic::new(Code::LimitExceeded, message, at, "").help("split it into several files and `use` them")
}

/// More tokens than the limit.
pub(super) fn too_many_tokens(at: Span, limit: usize) -> Diagnostic {
    let message = format!("the file has more than {limit} words and signs");
    Diagnostic::new(Code::LimitExceeded, message, at, "the limit is reached here")
        .help("split it into several files and `use` them")
}

/// Brackets, blocks or operators nested deeper than the limit.
pub(super) fn too_deep(at: Span, limit: usize) -> Diagnostic {
    let message = format!("brackets and operators nest more than {limit} deep");
    Diagnostic::new(Code::LimitExceeded, message, at, format!("level {} begins here", limit + 1))
        .help("name an inner part with `let`")
}

/// NUL bytes: not text.
pub(super) fn not_text(at: Span) -> Diagnostic {
    let message = format!("the file is not text: byte {} is zero", at.start);
    Diagnostic::new(Code::FileNotText, message, at, "").help("save the file as UTF-8 text")
}

// ---- brackets

/// A bracket without a partner; `of` is what it belongs to; `insert` is where partners are missing, innermost first, if adding them is enough.
pub(super) fn unclosed(open: Span, tok: Tok, of: &str, missed: Missed, insert: Vec<(Span, String)>) -> Diagnostic {
    let mark = tok.spelling().unwrap_or("");
    let closer = tok.closer().and_then(Tok::spelling).unwrap_or("");
    let message = match of {
        "" => format!("this `{mark}` is not closed"),
        of => format!("the `{mark}` of `{}` is not closed", clip(of)),
    };
    let d = Diagnostic::new(Code::SyntaxUnclosed, message, open, "opened here");
    let d = match missed {
        Missed::Declaration(at) => d.label(at, format!("`{closer}` is missing before this declaration")),
        Missed::Closer(at) => d.label(at, format!("`{closer}` is missing before this bracket")),
        Missed::EndOfFile(at) => d.label(at, format!("the file ends without `{closer}`")),
    };
    let mut d = d.help(format!("add `{closer}`"));
    if !insert.is_empty() {
        let (title, edits) = (format!("add `{closer}`"), merge(insert));
        d.fixes.push(Fix { title, edits, applicability: Applicability::Unsure, effect: None });
    }
    d
}

/// The head of a block or a list without its opening bracket; `close` is the bracket that it lacks.
pub(super) fn missing_open(head: Span, close: Span, open: Tok) -> Diagnostic {
    let [mark, closer] = [Some(open), open.closer()].map(|t| t.and_then(Tok::spelling).unwrap_or(""));
    Diagnostic::new(
        Code::SyntaxUnclosed,
        format!("the `{mark}` of this `{closer}` is missing"),
        head,
        format!("`{mark}` is missing after this"),
    )
    .label(close, format!("this `{closer}` closes it"))
    .fix(format!("add `{mark}`"), head.after(), format!(" {mark}"), Applicability::Unsure)
}

/// A `}` without a `{`, which may belong after a line that is whole without it.
pub(super) fn maybe_missing_open(close: Span, head: Span) -> Diagnostic {
    Diagnostic::new(Code::SyntaxUnclosed, "this `}` has no `{`", close, "no partner")
        .label(head, "`{` may be missing after this")
        .fix("add `{`", head.after(), " {", Applicability::Unsure)
}

/// A block's head with a bracket that is not closed; `end` is the last of it, `close` the brace of the block.
pub(super) fn unclosed_head(open: Span, tok: Tok, end: Span, close: Span) -> Diagnostic {
    let [mark, closer] = [Some(tok), tok.closer()].map(|t| t.and_then(Tok::spelling).unwrap_or(""));
    Diagnostic::new(Code::SyntaxUnclosed, format!("this `{mark}` is not closed"), open, "opened here")
        .label(end, format!("`{closer}` and the `{{` of the block are missing after this"))
        .label(close, "this `}` closes the block")
        .help(format!("add `{closer}` and `{{`"))
}

/// A closing bracket, and indented lines before it that belong to nothing; `first` is where they begin.
pub(super) fn headless(close: Span, tok: Tok, first: Span) -> Diagnostic {
    let mark = tok.spelling().unwrap_or("");
    Diagnostic::new(Code::SyntaxUnexpected, format!("this `{mark}` closes nothing"), close, "no partner")
        .label(first, "what begins here belongs to nothing")
        .help(format!("write the line that begins it, with its opening bracket, or remove this `{mark}`"))
}

/// Insertions at one place become one edit, so that edits do not meet.
fn merge(insert: Vec<(Span, String)>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for (span, text) in insert {
        match edits.iter_mut().find(|e| e.span == span) {
            Some(e) => e.text.push_str(&text),
            None => edits.push(Edit { span, text }),
        }
    }
    edits
}

/// `(a, b]`
pub(super) fn wrong_closer(open: Span, at: Span, tok: Tok, due: Tok, found: Tok) -> Diagnostic {
    let [open_mark, due, found] = [tok, due, found].map(|t| t.spelling().unwrap_or(""));
    Diagnostic::new(
        Code::SyntaxUnclosed,
        format!("`{open_mark}` is closed by `{found}`"),
        at,
        format!("`{due}` is due"),
    )
    .label(open, "opened here")
    .fix(format!("use `{due}`"), at, due, Applicability::Unsure)
}

/// What is said of a closing bracket without a partner.
const STRAY: &str = "closes nothing";

/// Whether this is a report of a closing bracket without a partner.
pub(super) fn is_stray(d: &Diagnostic) -> bool {
    d.code == Code::SyntaxUnexpected && d.message.ends_with(STRAY)
}

/// A closing bracket that closes nothing; `early` is the brace that closed the declaration before it, if items follow.
pub(super) fn stray_closer(at: Span, tok: Tok, early: Option<Span>) -> Diagnostic {
    let mark = tok.spelling().unwrap_or("");
    let d = Diagnostic::new(Code::SyntaxUnexpected, format!("this `{mark}` {STRAY}"), at, "no partner");
    let d = match early {
        Some(early) => d.label(early, "the declaration was closed here already"),
        None => d.fix(format!("remove `{mark}`"), at, "", Applicability::Unsure),
    };
    d.help(format!("remove one `{mark}`, or add the bracket that it should close"))
}

// ---- literals and characters

/// A word with letters outside ASCII.
pub(super) fn foreign_letters(at: Span, word: &str) -> Diagnostic {
    let letters: String = word.chars().filter(|c| !c.is_ascii()).take(3).collect();
    let message = format!("the name `{}` has letters outside a-z, A-Z, 0-9 and `_`", clip(word));
    Diagnostic::new(Code::SyntaxCharacter, message, at, format!("`{letters}`"))
        .help("other letters may stand in strings and comments")
}

/// A string whose line ends before its closing quote.
pub(super) fn open_string(at: Span) -> Diagnostic {
    Diagnostic::new(Code::SyntaxString, "this string is not closed", at, "its line ends before a closing `\"`")
        .help("close it with `\"`; a string has no line breaks, `\\n` stands for one")
        .fix("add `\"`", at.after(), "\"", Applicability::Safe)
}

/// `\q` in a string.
pub(super) fn bad_escape(at: Span, text: &str, problem: BadEscape) -> Diagnostic {
    match problem {
        BadEscape::Unknown => {
            let d = Diagnostic::new(Code::SyntaxString, format!("`{text}` is not an escape"), at, "no such escape")
                .help(r#"the escapes are `\"`, `\\`, `\n`, `\t` and `\u{…}`; a backslash itself is `\\`"#);
            if text == "\\" { d } else { d.fix("double the backslash", at, format!("\\{text}"), Applicability::Unsure) }
        }
        BadEscape::NoCharacter => {
            Diagnostic::new(Code::SyntaxString, format!("`{text}` names no character"), at, "no such character")
                .help(r"write one to six hexadecimal digits in braces: `\u{e9}`")
        }
    }
}

/// A number without a value.
pub(super) fn bad_number(at: Span, text: &str, problem: BadNumber) -> Diagnostic {
    let text = clip(text);
    let (message, label, help) = match problem {
        BadNumber::TooLarge => (
            format!("`{text}` is too large for a whole number"),
            "above 2^127",
            "write it with a point and an exponent, or in a larger unit",
        ),
        BadNumber::Infinite => {
            (format!("`{text}` is too large for a number"), "above 1.8e308", "use a larger unit or a smaller exponent")
        }
        BadNumber::Hexadecimal => {
            (format!("`{text}` is not decimal"), "hexadecimal", "numbers are decimal, with `_` between digits at will")
        }
    };
    Diagnostic::new(Code::SyntaxNumber, message, at, label).help(help)
}

/// `.5`, `1.`: a digit is missing beside the point.
pub(super) fn bare_point(at: Span, text: &str, right: &str) -> Diagnostic {
    Diagnostic::new(
        Code::SyntaxNumber,
        format!("`{text}` needs a digit on both sides of the point"),
        at,
        "a digit is missing",
    )
    .help(format!("write `{right}`"))
    .fix(format!("use `{right}`"), at, right, Applicability::Safe)
}

/// `2,048 seq`
pub(super) fn thousands(at: Span, text: &str, right: &str) -> Diagnostic {
    Diagnostic::new(Code::SyntaxNumber, format!("`{text}` has a comma between its digits"), at, "one number")
        .note("a comma separates items, so this would be two numbers")
        .help(format!("write `{right}`; `_` may stand between digits"))
        .fix(format!("use `{right}`"), at, right, Applicability::Safe)
}

/// `edition two`
pub(super) fn bad_edition(at: Span, text: &str) -> Diagnostic {
    Diagnostic::new(Code::SyntaxNumber, format!("`{}` is not an edition", clip(text)), at, "a whole number is needed")
        .help("the edition is `edition 1`")
}

/// A second `edition`.
pub(super) fn edition_twice(at: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::SyntaxUnexpected, "the edition is given twice", at, "again here")
        .label(first, "first given here")
}

/// `1..2..3`: `shared` is what stands before the second sign.
pub(super) fn range_chained(at: Span, shared: Span) -> Diagnostic {
    Diagnostic::new(Code::SyntaxUnexpected, "a range has two ends", at, "a third would follow")
        .label(shared, "already the second end")
}

// ---- other languages, seen by the parser

/// `$2/Mtok`
pub(super) fn dollar_first(at: Span, text: &str, right: &str) -> Diagnostic {
    foreign_at(at, format!("in `{text}` the unit stands before the number"), "the unit follows the number", right)
}

/// `8k tok`: a prefix apart from its unit.
pub(super) fn loose_prefix(at: Span, text: &str, joined: &str, plain: Option<&str>) -> Diagnostic {
    let d = foreign_at(at, format!("in `{text}` the prefix stands apart from its unit"), "two units in a row", joined);
    match plain {
        Some(plain) => d.fix(format!("use `{plain}`"), at, plain, Applicability::Safe),
        None => d,
    }
}

/// `2 h rest`: two words after a number.
pub(super) fn two_units(at: Span, number: &str, word: &str) -> Diagnostic {
    let message = format!("`{}` cannot follow the unit of `{}`", clip(word), clip(number));
    Diagnostic::new(Code::SyntaxUnexpected, message, at, "a unit is one word")
        .note("a word after a number is its unit; multiplying takes `*`")
}

/// `8 x H100_SXM`: children are counted with `of`, links multiplied with `*`.
pub(super) fn times_sign(at: Span, text: &str, right: &str, glued: bool) -> Diagnostic {
    let what = if right == "of" { "children are counted" } else { "links are multiplied" };
    let message = format!("`{text}` is read as a unit; {what} with `{right}`");
    let blank = if glued { " " } else { "" };
    Diagnostic::new(Code::SyntaxForeign, message, at, "not a unit").help(format!("write `{right}`")).fix(
        format!("use `{right}`"),
        at,
        format!("{blank}{right}"),
        Applicability::Safe,
    )
}

/// `batch: 256 seq`; `glued` says whether no blank is before the sign.
pub(super) fn colon(at: Span, field: &str, glued: bool) -> Diagnostic {
    let message = format!("`{}` is followed by `:` where `=` is needed", clip(field));
    Diagnostic::new(Code::SyntaxForeign, message, at, "`=` is needed").help("write `=`").fix(
        "use `=`",
        at,
        if glued { " =" } else { "=" },
        Applicability::Safe,
    )
}

/// `batch == 256 seq` where a field is given.
pub(super) fn equals_for_field(at: Span, field: &str) -> Diagnostic {
    foreign_at(at, format!("`{}` is given a value with `==`, which compares", clip(field)), "`=` gives a value", "=")
}

/// `a < b < c`: `shared` is what stands before the second sign.
pub(super) fn chained(at: Span, sign: &str, shared: Span, text: &str) -> Diagnostic {
    let said = clip(text);
    let title = format!("write `{said} and {said} {sign} …`");
    Diagnostic::new(Code::SyntaxForeign, "comparisons do not chain", at, "compares again")
        .label(shared, "compared already")
        .fix(title, Span { end: at.start, ..at }, format!("and {text} "), Applicability::Unsure)
}

/// `require a = b`
pub(super) fn equals_for_comparison(at: Span) -> Diagnostic {
    foreign_at(at, "`=` does not compare", "the comparison is `==`", "==")
}

/// `a ** b`
pub(super) fn stars_for_power(at: Span) -> Diagnostic {
    foreign_at(at, "`**` is not an operator", "the power is `^`", "^")
}

/// A word that begins something in other languages; `help` is what does here.
pub(super) fn foreign_word(at: Span, message: String, label: &str, help: &str) -> Diagnostic {
    Diagnostic::new(Code::SyntaxForeign, message, at, label).help(help)
}

/// `d` with the fix that writes `right` at `at`.
pub(super) fn with_fix(d: Diagnostic, at: Span, right: &str) -> Diagnostic {
    d.fix(format!("use `{}`", right.trim()), at, right, Applicability::Safe)
}

/// `mesh (dp, tp)`
pub(super) fn round_list(at: Span, edits: Vec<Edit>) -> Diagnostic {
    let message = "a list stands in square brackets".to_owned();
    let mut d = foreign_word(at, message, "`[` is needed", "write `[…]`");
    d.fixes.push(Fix { title: "use `[…]`".into(), edits, applicability: Applicability::Safe, effect: None });
    d
}

/// Something of another language at `at`, which is `right` here.
pub(super) fn foreign_at(at: Span, message: impl Into<String>, label: &str, right: &str) -> Diagnostic {
    Diagnostic::new(Code::SyntaxForeign, message, at, label).help(format!("write `{right}`")).fix(
        format!("use `{right}`"),
        at,
        right,
        Applicability::Safe,
    )
}

/// `use std.hardware.X`; `path` is the path with its dots, `right` the one with `::`.
pub(super) fn dotted_path(at: Span, path: Span, right: &str) -> Diagnostic {
    Diagnostic::new(Code::SyntaxForeign, "the parts of a path are joined by `::`", at, "`::` is needed")
        .help(format!("write `{right}`"))
        .fix("use `::`", path, right, Applicability::Safe)
}

/// A loop in a model; `head` is everything from `for` to before `{`.
pub(super) fn for_loop(at: Span, head: Span, right: Option<&str>) -> Diagnostic {
    let d = Diagnostic::new(Code::SyntaxForeign, "there is no `for` loop", at, "`repeat` runs a body several times")
        .note("`for` stands in lists: `[f(i) for i in 0..n]`")
        .help("write `repeat NAME = COUNT { … }`, with `as i` before the brace where the body needs the count");
    match right {
        Some(right) => d.fix("use `repeat`", head, right, Applicability::Unsure),
        None => d,
    }
}

/// A line that starts with `(` or `[`, after the item it should belong to.
pub(super) fn bracket_on_next_line(at: Span, gap: Span, mark: &str, before: &str) -> Diagnostic {
    Diagnostic::new(
        Code::SyntaxUnexpected,
        format!("a line cannot start with `{mark}`"),
        at,
        format!("not part of `{}`: the line break before ended it", clip(before)),
    )
    .label(Span { end: gap.start, start: gap.start.saturating_sub(before.len() as u32), ..gap }, "this item ended here")
    .help(format!("put `{mark}` on the same line as `{}`", clip(before)))
    .fix("join the lines", gap, "", Applicability::Safe)
}

/// Two items, or two arguments, without a separator.
pub(super) fn missing_separator(at: Span, found: &str, before: Span, separator: Tok) -> Diagnostic {
    let (wanted, thing) =
        if separator == Tok::Comma { ("a comma", "argument") } else { ("a comma or a line break", "item") };
    let message = format!("{wanted} is missing before `{}`", clip(found));
    Diagnostic::new(Code::SyntaxUnexpected, message, at, format!("the next {thing} begins here"))
        .label(before, format!("the {thing} before ends here"))
        .fix("add a comma", before.after(), ",", Applicability::Safe)
}

/// Two declarations on one line.
pub(super) fn missing_line_break(at: Span, found: &str, before: Span) -> Diagnostic {
    let message = format!("a line break is missing before `{}`", clip(found));
    Diagnostic::new(Code::SyntaxUnexpected, message, at, "the next declaration begins here").fix(
        "add a line break",
        before.after(),
        "\n",
        Applicability::Safe,
    )
}

/// `batch 256 seq`
pub(super) fn missing_equals(at: Span, field: &str, field_at: Span) -> Diagnostic {
    Diagnostic::new(
        Code::SyntaxUnexpected,
        format!("`=` is missing after `{}`", clip(field)),
        at,
        "`=` is needed before this",
    )
    .fix("add `=`", field_at.after(), " =", Applicability::Safe)
}

/// A reserved word where a name is needed: one report for all its uses.
pub(super) fn reserved_word(word: &str, instead: &str, places: &[Span]) -> Option<Diagnostic> {
    let first = places.first()?;
    let message = format!("`{word}` is a reserved word and cannot be a name");
    let mut d = Diagnostic::new(Code::SyntaxReserved, message, *first, "a name is needed here");
    for at in places.iter().skip(1).take(3) {
        d = d.label(*at, "and here");
    }
    d = d.help(format!("use another name, such as `{instead}`"));
    d.fixes.push(Fix {
        title: format!("rename it `{instead}`"),
        edits: places.iter().map(|at| Edit { span: *at, text: instead.to_owned() }).collect(),
        applicability: Applicability::Unsure,
        effect: None,
    });
    Some(d)
}

/// Braces with `a = b` and `c` side by side.
pub(super) fn mixed_braces(at: Span, text: &str, field: Span) -> Diagnostic {
    let message = format!("`{}` is a value among fields", clip(text));
    Diagnostic::new(Code::SyntaxMixedBraces, message, at, "a value, as in a set")
        .label(field, "a field, as in a record")
        .note("braces hold fields, `{a = 1, b = 2}`, or values, `{1, 2, 4}`")
        .help("give the value a name with `=`, or take the fields out")
}

// ---- anything else

/// What stands where something else was expected.
pub(super) enum Found<'a> {
    /// A token and its text.
    Text(&'a str),
    /// The end of a line or block, after a token with this text.
    EndAfter(&'a str),
}

/// The general case.
pub(super) fn unexpected(at: Span, found: &Found<'_>, expected: &[String]) -> Diagnostic {
    let wanted = expected::words(expected);
    let (message, label) = match (found, wanted.is_empty()) {
        (Found::Text(t), true) => (format!("`{}` cannot stand here", clip(t)), "not understood".to_owned()),
        (Found::Text(t), false) => (format!("expected {wanted}, found `{}`", clip(t)), format!("{wanted} expected")),
        (Found::EndAfter(t), true) => (format!("nothing can end after `{}`", clip(t)), "unfinished".to_owned()),
        (Found::EndAfter(t), false) => {
            (format!("expected {wanted} after `{}`", clip(t)), format!("{wanted} must follow"))
        }
    };
    Diagnostic::new(Code::SyntaxUnexpected, message, at, label)
}

/// An item that begins with `tok`, whole.
pub(super) fn example(tok: Tok) -> Option<&'static str> {
    Some(match tok {
        Tok::Shard => "shard [N, K, F, V] over tp",
        Tok::Replicate => "replicate over tp",
        Tok::Store => "store state over dp",
        Tok::Reduce => "reduce grad over dp { every = 1 step }",
        Tok::Pad => "pad V = 128 * tp",
        Tok::Place => "place tp on cluster.node",
        Tok::Fold => "fold [dp, tp] as [edp = dp * tp / ep, ep]",
        Tok::Mesh => "mesh [pp, dp, tp]",
        Tok::Axis => "axis data = [dp, cp]",
        Tok::Overlap => "overlap all with step",
        Tok::Recompute => "recompute all",
        Tok::Pipeline => "pipeline over pp { schedule = one_f_one_b }",
        Tok::Level => "level node = 8 of H100_SXM over NVLink4",
        _ => return None,
    })
}

/// `text` on one line, short enough for a message.
fn clip(text: &str) -> String {
    const MAX: usize = 40;
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().filter(|c| !c.is_control()).take(MAX).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

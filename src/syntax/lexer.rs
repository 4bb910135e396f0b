//! Text to tokens. Never fails: what means nothing becomes a [`Tok::Bad`] and a report.
//!
//! Also here: a number takes its unit (rule 5 of the reference), comments are set aside, and what other languages
//! write for the same thing (`#`, `;`, `&&`, `'…'`) becomes the token that was meant, with a report.

use super::errors::{self, Slip};
use super::report::Reports;
use super::token::{Tok, Token};
use crate::diagnostics::Edit;
use crate::source::{FileId, Span};
use logos::Logos;
use smol_str::SmolStr;

/// Tokens of one file at most.
pub(super) const MAX_TOKENS: usize = 4_000_000;

/// What the lexer hands on.
#[derive(Default)]
pub(super) struct Lexed {
    /// Every token but line breaks and comments.
    pub(super) tokens: Vec<Token>,
    /// `///` lines with the start of the token after them.
    pub(super) docs: Vec<(u32, SmolStr)>,
    /// `//!` lines.
    pub(super) file_docs: Vec<SmolStr>,
    /// First byte and the one past the last of every `//` comment, docs included.
    pub(super) comments: Vec<(u32, u32)>,
}

/// The tokens of `text`; `None` where there are more than [`MAX_TOKENS`], which is reported.
pub(super) fn lex(text: &str, file: FileId, reports: &mut Reports) -> Option<Lexed> {
    let mut lexer = Tok::lexer(text);
    if text.starts_with('\u{feff}') {
        lexer.bump('\u{feff}'.len_utf8());
    }
    let mut state = State { text, file, reports, first: true, pending: 0, no_block_end: false, out: Lexed::default() };
    state.out.tokens.reserve(text.len() / 5);
    while let Some(result) = lexer.next() {
        if state.out.tokens.len() >= MAX_TOKENS {
            let at = Span::new(file, lexer.span().start, lexer.span().end);
            state.reports.push(errors::too_many_tokens(at, MAX_TOKENS));
            return None;
        }
        state.take(result.unwrap_or(Tok::Bad), &mut lexer);
    }
    Some(state.out)
}

struct State<'a, 'r> {
    text: &'a str,
    file: FileId,
    reports: &'r mut Reports,
    /// Whether no token stands on the line yet.
    first: bool,
    /// Doc lines whose token has not come yet.
    pending: usize,
    /// Whether no `*/` follows.
    no_block_end: bool,
    out: Lexed,
}

impl<'a> State<'a, '_> {
    fn take(&mut self, tok: Tok, lexer: &mut logos::Lexer<'a, Tok>) {
        match tok {
            Tok::Newline => self.first = true,
            Tok::Comment => {
                self.out.comments.push((lexer.span().start as u32, lexer.span().end as u32));
                self.comment(lexer.slice());
            }
            Tok::Ident if lexer.remainder().starts_with(|c: char| !c.is_ascii() && c.is_alphanumeric()) => {
                self.word(lexer);
            }
            Tok::Number => {
                let unit = unit_len(lexer.remainder());
                lexer.bump(unit);
                self.push(Tok::Number, lexer);
            }
            Tok::Bad => self.unknown(lexer),
            Tok::OpenStr => self.open_string(lexer),
            Tok::Hash => {
                let at = self.here(lexer);
                let mark = Span { end: at.start + 1, ..at };
                self.reports.slip(Slip::Hash, mark, vec![Edit { span: mark, text: "//".into() }]);
            }
            Tok::BlockComment => self.block_comment(lexer),
            Tok::Quoted => {
                let inner = lexer.slice().trim_matches('\'');
                let text = format!("\"{}\"", inner.replace('"', "\\\""));
                self.replace(Slip::SingleQuotes, Tok::Str, &text, lexer);
            }
            Tok::DollarNumber => self.dollar(lexer),
            Tok::Semicolon => self.semicolon(lexer),
            Tok::AndAnd => self.replace(Slip::AndAnd, Tok::And, "and", lexer),
            Tok::OrOr => self.replace(Slip::OrOr, Tok::Or, "or", lexer),
            Tok::Bang => self.replace(Slip::Bang, Tok::Not, "not ", lexer),
            Tok::ColonEq => self.replace(Slip::ColonEq, Tok::Eq, "=", lexer),
            Tok::Percent => self.replace(Slip::Percent, Tok::Mod, "mod", lexer),
            plain => self.push(plain, lexer),
        }
    }

    fn here(&self, lexer: &logos::Lexer<'a, Tok>) -> Span {
        Span::new(self.file, lexer.span().start, lexer.span().end)
    }

    fn push(&mut self, tok: Tok, lexer: &logos::Lexer<'a, Tok>) {
        let (start, end) = (lexer.span().start as u32, lexer.span().end as u32);
        // A doc belongs to the item after it; a comma is none.
        if self.pending > 0 && tok != Tok::Comma {
            let docs = self.out.docs.len();
            for doc in self.out.docs.iter_mut().skip(docs - self.pending) {
                doc.0 = start;
            }
            self.pending = 0;
        }
        self.out.tokens.push(Token { tok, first: self.first, repaired: false, start, end });
        self.first = false;
    }

    /// A token written in the manner of another language; `text` is what it should be.
    fn replace(&mut self, slip: Slip, tok: Tok, text: &str, lexer: &logos::Lexer<'a, Tok>) {
        let at = self.here(lexer);
        // Words need blanks around them where signs do not.
        let before = self.text.get(..at.start as usize).is_some_and(|t| !t.ends_with([' ', '\t', '\n', '(', '[', '{']));
        let after = lexer.remainder().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let word = text.chars().all(|c| c.is_ascii_alphabetic());
        let lead = if word && before { " " } else { "" };
        let trail = if word && after { " " } else { "" };
        self.reports.slip(slip, at, vec![Edit { span: at, text: format!("{lead}{text}{trail}") }]);
        self.push(tok, lexer);
    }

    fn comment(&mut self, text: &str) {
        if let Some(doc) = text.strip_prefix("//!") {
            self.out.file_docs.push(doc_line(doc));
        } else if let Some(doc) = text.strip_prefix("///").filter(|d| !d.starts_with('/')) {
            self.out.docs.push((u32::MAX, doc_line(doc)));
            self.pending += 1;
        }
    }

    /// A word with letters outside ASCII: reported, and taken as a name.
    fn word(&mut self, lexer: &mut logos::Lexer<'a, Tok>) {
        let rest = lexer.remainder();
        let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        lexer.bump(len);
        let at = self.here(lexer);
        self.reports.push(errors::foreign_letters(at, lexer.slice()));
        self.push(Tok::Ident, lexer);
    }

    fn open_string(&mut self, lexer: &mut logos::Lexer<'a, Tok>) {
        let line = lexer.remainder().split('\n').next().unwrap_or("").trim_end();
        // Brackets at the end that the string did not open are not its own: `f("abc)`.
        let count = |of: [char; 3]| line.chars().filter(|c| of.contains(c)).count();
        let mut body = line;
        for _ in 0..count([')', ']', '}']).saturating_sub(count(['(', '[', '{'])) {
            body = body.strip_suffix([')', ']', '}']).map_or(body, str::trim_end);
        }
        lexer.bump(body.len());
        self.reports.tear(errors::open_string(self.here(lexer)));
        self.push(Tok::Str, lexer);
    }

    fn block_comment(&mut self, lexer: &mut logos::Lexer<'a, Tok>) {
        let mark = self.here(lexer);
        let rest = lexer.remainder();
        let end = if self.no_block_end { None } else { rest.find("*/") };
        let Some(len) = end else {
            self.no_block_end = true;
            // Without an end it is taken to be this line, so that the rest of the file is still read.
            lexer.bump(rest.find('\n').unwrap_or(rest.len()));
            self.reports.slip(Slip::BlockComment, mark, vec![Edit { span: mark, text: "//".into() }]);
            return;
        };
        let body = rest.get(..len).unwrap_or("");
        lexer.bump(len + 2);
        let mut lines: Vec<String> = body.lines().map(|l| format!("// {}", l.trim()).trim_end().to_owned()).collect();
        let after = lexer.remainder().trim_start_matches([' ', '\t', '\r']);
        let follows = !after.is_empty() && !after.starts_with('\n');
        if follows {
            lines.push(String::new());
        }
        self.first |= body.contains('\n');
        self.reports.slip(Slip::BlockComment, mark, vec![Edit { span: self.here(lexer), text: lines.join("\n") }]);
    }

    /// `$2/Mtok`: the amount written before its unit.
    fn dollar(&mut self, lexer: &mut logos::Lexer<'a, Tok>) {
        let number = lexer.slice().trim_start_matches(['$', ' ']);
        let chain = chain_len(lexer.remainder());
        let rest = lexer.remainder().get(..chain).unwrap_or("");
        let right = format!("{number} ${rest}");
        lexer.bump(chain);
        self.reports.push(errors::dollar_first(self.here(lexer), lexer.slice(), &right));
        let blank = lexer.slice().len() - lexer.slice().trim_start_matches(['$', ' ']).len();
        self.push(Tok::Number, lexer);
        if let Some(last) = self.out.tokens.last_mut() {
            last.start += blank as u32;
            last.repaired = true;
        }
    }

    fn semicolon(&mut self, lexer: &logos::Lexer<'a, Tok>) {
        let at = self.here(lexer);
        let ends_line = lexer.remainder().trim_start_matches([' ', '\t', '\r']);
        let ends_line = ends_line.is_empty() || ends_line.starts_with(['\n', '}']) || ends_line.starts_with("//");
        let text = if ends_line { "" } else { "," };
        self.reports.slip(Slip::Semicolon, at, vec![Edit { span: at, text: text.into() }]);
        self.push(Tok::Semicolon, lexer);
    }

    /// A character outside the language, or one that stands for a sign.
    fn unknown(&mut self, lexer: &mut logos::Lexer<'a, Tok>) {
        // Logos may stop inside a character; the whole of it is what is wrong.
        let start = lexer.span().start;
        let mut end = lexer.span().end;
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        lexer.bump(end - lexer.span().end);
        let Some(c) = self.text.get(start..).and_then(|t| t.chars().next()) else { return };
        if c.is_alphabetic() {
            return self.word(lexer);
        }
        if let Some((tok, ascii)) = lookalike(c) {
            return self.replace(Slip::Lookalike(c, ascii), tok, ascii, lexer);
        }
        if c == '\u{201c}' || c == '\u{201d}' {
            let rest = lexer.remainder();
            let close =
                rest.char_indices().take_while(|c| c.1 != '\n').find(|c| matches!(c.1, '\u{201c}' | '\u{201d}'));
            if let Some((len, _)) = close {
                let inner = rest.get(..len).unwrap_or("").replace('"', "\\\"");
                lexer.bump(len + c.len_utf8());
                return self.replace(Slip::CurlyQuotes, Tok::Str, &format!("\"{inner}\""), lexer);
            }
        }
        let at = self.here(lexer);
        if c.is_whitespace() || c == '\u{feff}' || c == '\u{200b}' {
            // Blank to the eye; skipped, so that nothing else is wrong.
            self.reports.slip(Slip::Blank(c), at, vec![Edit { span: at, text: " ".into() }]);
            return;
        }
        self.reports.slip(Slip::Character(c), at, Vec::new());
        // A run of such characters is one token.
        if let Some(last) = self.out.tokens.last_mut().filter(|t| t.tok == Tok::Bad && t.end == at.start) {
            last.end = at.end;
        } else {
            self.push(Tok::Bad, lexer);
        }
    }
}

fn doc_line(text: &str) -> SmolStr {
    SmolStr::new(text.strip_prefix(' ').unwrap_or(text).trim_end())
}

/// Signs outside ASCII that mean one inside.
fn lookalike(c: char) -> Option<(Tok, &'static str)> {
    Some(match c {
        '≤' => (Tok::Le, "<="),
        '≥' => (Tok::Ge, ">="),
        '≠' => (Tok::NotEq, "!="),
        '×' | '·' => (Tok::Star, "*"),
        '÷' => (Tok::Slash, "/"),
        '−' | '–' | '—' => (Tok::Minus, "-"),
        '±' => (Tok::PlusMinus, "+-"),
        '≈' => (Tok::Tilde, "~"),
        '→' => (Tok::Arrow, "->"),
        '…' => (Tok::DotDot, ".."),
        _ => return None,
    })
}

/// Length of the unit at the start of `rest`, blanks before it included; 0 where there is none.
fn unit_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let blanks = bytes.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let name = match bytes.get(blanks) {
        Some(b'%' | b'$') => 1,
        Some(b) if b.is_ascii_alphabetic() || *b == b'_' => word_len(bytes, blanks),
        Some(_) | None => return 0,
    };
    let end = blanks + name;
    if rest.get(blanks..end).is_none_or(Tok::reserved) {
        return 0;
    }
    // `5 % 3`: a sign between two operands is the remainder of other languages, not a percentage.
    if bytes.get(blanks) == Some(&b'%') && blanks > 0 && follows_operand(rest.get(end..).unwrap_or("")) {
        return 0;
    }
    end + chain_len(rest.get(end..).unwrap_or(""))
}

/// Whether the rest of the line begins with a number or a name, as after an operator.
fn follows_operand(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t']);
    let word = word_len(rest.as_bytes(), 0);
    word > 0 && !rest.get(..word).is_some_and(Tok::reserved)
}

/// Length of `/name/name…` at the start of `rest`.
fn chain_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut end = 0;
    while bytes.get(end) == Some(&b'/') {
        let len = match bytes.get(end + 1) {
            Some(b'$') => 1,
            Some(b) if b.is_ascii_alphabetic() || *b == b'_' => word_len(bytes, end + 1),
            Some(_) | None => break,
        };
        end += 1 + len;
    }
    end
}

fn word_len(bytes: &[u8], from: usize) -> usize {
    bytes.iter().skip(from).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}

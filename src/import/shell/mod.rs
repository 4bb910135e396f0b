//! Launch scripts read as text: the commands they would run, with variables, defaults, arrays and simple sums put in. No
//! script is ever run, and no variable of the environment is looked at; what only running it would tell is unknown.

mod lexer;
mod sum;

use super::errors;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::source::{FileId, Span};
use lexer::{Lexer, Piece, Token};
use std::collections::{BTreeMap, BTreeSet};

/// A word of a command.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Word {
    /// Its text, as the program would receive it.
    pub(super) text: String,
    /// Where it stands; inside a variable's value where it came from there.
    pub(super) span: Span,
    /// Whether part of it is not known without running the script.
    pub(super) unknown: bool,
}

/// A command.
#[derive(Clone, Default, Debug)]
pub(super) struct Command {
    /// Its words.
    pub(super) words: Vec<Word>,
}

/// What a script says.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Its commands in order, those under conditions too.
    pub(super) commands: Vec<Command>,
    /// What `#SBATCH` lines ask for.
    pub(super) batch: Vec<Word>,
    /// Variables at the end, by name.
    pub(super) variables: BTreeMap<String, Vec<Word>>,
    /// What was met that is read in part.
    pub(super) said: Vec<Diagnostic>,
}

impl Script {
    /// A variable's text, if it is one known word.
    pub(super) fn variable(&self, name: &str) -> Option<&Word> {
        self.variables.get(name).and_then(|v| v.first()).filter(|w| !w.unknown)
    }
}

/// A stretch of text with its place.
#[derive(Clone, Debug)]
struct Fragment {
    text: String,
    place: (usize, usize),
    unknown: bool,
}

/// Words of a variable: one for a plain one.
type Value = Vec<Vec<Fragment>>;

/// Reads `text`, which is that of `file`.
pub(super) fn read(file: FileId, text: &str) -> Result<Script, Diagnostic> {
    let mut r = Reader {
        file,
        text,
        values: BTreeMap::new(),
        conditional: BTreeSet::new(),
        command: Command::default(),
        assigns: false,
        script: Script::default(),
        depth: 0,
        redirected: false,
        expanded: 0,
        words: 0,
    };
    let mut lexer = Lexer::new(file, text);
    loop {
        match lexer.token()? {
            Token::Word(pieces, _) if r.redirected => {
                drop(pieces);
                r.redirected = false;
            }
            Token::Word(pieces, span) => r.word(&pieces, span, &mut lexer)?,
            Token::Redirect => r.redirected = true,
            // `f()` begins a function, whose commands are read as they come.
            Token::Open(true) => r.command.words.clear(),
            Token::Open(false) | Token::Close => {}
            Token::End => r.end(),
            Token::Batch(from, to) => {
                let line = text.get(from..to).unwrap_or_default();
                let mut at = from;
                for part in line.split([' ', '\t', '\r']) {
                    if !part.is_empty() {
                        let span = Span::new(file, at, at + part.len());
                        r.script.batch.push(Word { text: part.to_owned(), span, unknown: false });
                    }
                    at += part.len() + 1;
                }
            }
            Token::Done => break,
        }
    }
    r.end();
    let values = std::mem::take(&mut r.values);
    let words = |v: &Value| v.iter().map(|w| r.joined(w)).collect();
    r.script.variables = values.iter().map(|(n, v)| (n.clone(), words(v))).collect();
    Ok(r.script)
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    values: BTreeMap<String, Value>,
    /// Variables that were first given under a condition.
    conditional: BTreeSet<String>,
    command: Command,
    /// Whether the command has begun with something that takes assignments: nothing yet, or `export`.
    assigns: bool,
    script: Script,
    /// `if`, `for` and the like that are open.
    depth: usize,
    redirected: bool,
    /// Bytes and words put in for variables.
    expanded: usize,
    words: usize,
}

/// Words that open a condition or a loop.
const OPENING: &[&str] = &["if", "for", "while", "until", "case", "select"];
/// Words that close one.
const CLOSING: &[&str] = &["fi", "done", "esac"];
/// Words after which a command begins.
const BETWEEN: &[&str] = &["then", "else", "elif", "do", "{", "}", "!", "time", "exec", "eval"];
/// Commands whose arguments are assignments.
const DECLARING: &[&str] = &["export", "declare", "local", "readonly", "typeset"];

impl Reader<'_> {
    fn end(&mut self) {
        let command = std::mem::take(&mut self.command);
        self.assigns = false;
        if !command.words.is_empty() {
            self.script.commands.push(command);
        }
    }

    fn word(&mut self, pieces: &[Piece], span: Span, lexer: &mut Lexer<'_>) -> Result<(), Diagnostic> {
        let first = self.command.words.is_empty();
        if let [Piece::Text { text, quoted: false, .. }] = pieces
            && first
        {
            let word = text.as_str();
            if OPENING.contains(&word) {
                self.depth += 1;
            } else if CLOSING.contains(&word) {
                self.depth = self.depth.saturating_sub(1);
                return Ok(());
            }
            if BETWEEN.contains(&word) {
                return Ok(());
            }
            if DECLARING.contains(&word) {
                self.assigns = true;
                return Ok(());
            }
        }
        if first && let Some((name, adds, rest)) = assignment(pieces) {
            return self.assign(&name, adds, &rest, span, lexer);
        }
        if self.assigns {
            // `export NAME` and options of `declare`.
            return Ok(());
        }
        let words = self.expand(pieces)?;
        self.words += words.len();
        within(self.words, limits::IMPORT_VALUES, "words of the commands of a script", span)?;
        let words: Vec<Word> = words.iter().map(|w| self.joined(w)).collect();
        self.command.words.extend(words);
        Ok(())
    }

    fn assign(
        &mut self,
        name: &str,
        adds: bool,
        rest: &[Piece],
        span: Span,
        lexer: &mut Lexer<'_>,
    ) -> Result<(), Diagnostic> {
        let mut value: Value = Vec::new();
        let plain_end = span.end as usize;
        if rest.is_empty() && self.text.get(plain_end..).is_some_and(|t| t.starts_with('(')) {
            loop {
                match lexer.token()? {
                    Token::Word(pieces, span) => {
                        value.extend(self.expand(&pieces)?);
                        self.words += 1;
                        within(self.words, limits::IMPORT_VALUES, "words of the commands of a script", span)?;
                    }
                    Token::Close => break,
                    Token::Done => return Err(errors::unclosed("`(`", Span::new(self.file, plain_end, plain_end + 1))),
                    Token::Open(_) | Token::End | Token::Redirect | Token::Batch(..) => {}
                }
            }
        } else {
            // The value of a plain assignment is not split.
            value.push(self.expand(&rest.iter().map(quoted).collect::<Vec<_>>())?.concat());
        }
        let known = self.values.get(name);
        if self.depth > 0 && adds {
            if value.iter().flatten().any(|f| f.text.contains("--")) {
                self.script.said.push(errors::conditional(name, span));
            }
            return Ok(());
        }
        if self.depth > 0 && known.is_some() {
            let same = |a: &Value, b: &Value| {
                let text =
                    |v: &Value| v.iter().map(|w| w.iter().map(|f| f.text.as_str()).collect()).collect::<Vec<String>>();
                text(a) == text(b)
            };
            if known.is_some_and(|k| same(k, &value)) || !self.conditional.contains(name) {
                // What holds without the condition is taken; the condition may replace it.
                return Ok(());
            }
            value.iter_mut().flatten().for_each(|f| f.unknown = true);
        } else if self.depth > 0 {
            self.conditional.insert(name.to_owned());
        }
        match self.values.get_mut(name) {
            Some(old) if adds && value.len() == 1 && old.len() == 1 && !rest.is_empty() => {
                old[0].extend(value.remove(0));
            }
            Some(old) if adds => old.extend(value),
            _ => drop(self.values.insert(name.to_owned(), value)),
        }
        Ok(())
    }

    fn joined(&self, fragments: &[Fragment]) -> Word {
        let text = fragments.iter().map(|f| f.text.as_str()).collect();
        // An empty piece is a pair of quotes, and no place worth showing beside others.
        let full = fragments.iter().filter(|f| !f.text.is_empty());
        let mut places = full.map(|f| f.place).collect::<Vec<_>>();
        if places.is_empty() {
            places.extend(fragments.first().map(|f| f.place));
        }
        // Pieces of different places have none in common: the first one is shown.
        let near = places.windows(2).all(|w| w[1].0 >= w[0].0 && w[1].0 - w[0].0 < 80);
        let from = places.first().map_or(0, |p| p.0);
        let to = if near { places.last() } else { places.first() }.map_or(from, |p| p.1);
        Word { text, span: Span::new(self.file, from, to), unknown: fragments.iter().any(|f| f.unknown) }
    }

    /// The words that a word becomes.
    fn expand(&mut self, pieces: &[Piece]) -> Result<Value, Diagnostic> {
        let mut words: Value = Vec::new();
        let mut word: Vec<Fragment> = Vec::new();
        let mut some = false;
        for piece in pieces {
            match piece {
                Piece::Text { text, at, .. } => {
                    some = true;
                    word.push(Fragment { text: text.clone(), place: (*at, *at + text.len()), unknown: false });
                }
                Piece::Other { place } => {
                    some = true;
                    word.push(self.unknown(*place));
                }
                Piece::Sum { inner, place } => {
                    some = true;
                    let number = |name: &str| -> Option<i64> {
                        let w = self.values.get(name).filter(|v| v.len() == 1)?;
                        let w = self.joined(w.first()?);
                        if w.unknown { None } else { w.text.parse().ok() }
                    };
                    let found = sum::value(self.text.get(inner.0..inner.1).unwrap_or_default(), &number);
                    word.push(match found {
                        Some(n) => Fragment { text: n.to_string(), place: *place, unknown: false },
                        None => self.unknown(*place),
                    });
                }
                Piece::Variable { name, default, place, quoted } => {
                    let value = self.value(name, default.as_deref(), *place)?;
                    for f in value.iter().flatten() {
                        self.expanded += f.text.len() + 1;
                    }
                    let span = Span::new(self.file, place.0, place.1);
                    within(self.expanded, limits::IMPORT_EXPANDED, "bytes put in for variables of a script", span)?;
                    let parts = if *quoted { value } else { value.iter().flat_map(|w| split(w)).collect() };
                    // The first joins what stands before, the last what follows.
                    for (i, part) in parts.into_iter().enumerate() {
                        if i > 0 {
                            words.push(std::mem::take(&mut word));
                        }
                        word.extend(part);
                        some = true;
                    }
                }
            }
        }
        if some {
            words.push(word);
        }
        // Blanks at the edges of what a variable holds make no words.
        words.retain(|w| !w.is_empty());
        Ok(words)
    }

    fn unknown(&self, place: (usize, usize)) -> Fragment {
        Fragment { text: self.text.get(place.0..place.1).unwrap_or_default().to_owned(), place, unknown: true }
    }

    fn value(&mut self, name: &str, default: Option<&[Piece]>, place: (usize, usize)) -> Result<Value, Diagnostic> {
        let filled = |v: &&Value| v.iter().flatten().any(|f| !f.text.is_empty());
        if let Some(value) = self.values.get(name).filter(|v| default.is_none() || filled(v)) {
            return Ok(value.clone());
        }
        match (name, default) {
            (_, Some(default)) => Ok(vec![self.expand(&default.iter().map(quoted).collect::<Vec<_>>())?.concat()]),
            // A script's own arguments: none.
            ("@" | "*", None) => Ok(Vec::new()),
            (_, None) => Ok(vec![vec![self.unknown(place)]]),
        }
    }
}

/// Words of a value that is not quoted.
fn split(fragments: &[Fragment]) -> Value {
    let mut out: Value = vec![Vec::new()];
    for f in fragments {
        if f.unknown {
            out.last_mut().expect("never empty").push(f.clone());
            continue;
        }
        let mut at = f.place.0;
        for (i, part) in f.text.split([' ', '\t', '\n', '\r']).enumerate() {
            if i > 0 {
                out.push(Vec::new());
            }
            if !part.is_empty() {
                let place = if f.place.1 - f.place.0 == f.text.len() { (at, at + part.len()) } else { f.place };
                let fragment = Fragment { text: part.to_owned(), place, unknown: false };
                out.last_mut().expect("never empty").push(fragment);
            }
            at += part.len() + 1;
        }
    }
    let ends = (out.first().is_some_and(Vec::is_empty), out.last().is_some_and(Vec::is_empty));
    let n = out.len();
    let kept =
        out.into_iter().enumerate().filter(|(i, w)| !w.is_empty() || (*i == 0 && ends.0) || (*i + 1 == n && ends.1));
    kept.map(|(_, w)| w).collect()
}

/// The same piece, not to be split.
fn quoted(piece: &Piece) -> Piece {
    let mut piece = piece.clone();
    match &mut piece {
        Piece::Text { quoted, .. } | Piece::Variable { quoted, .. } => *quoted = true,
        Piece::Sum { .. } | Piece::Other { .. } => {}
    }
    piece
}

/// `NAME=` or `NAME+=` and the rest of the word.
fn assignment(pieces: &[Piece]) -> Option<(String, bool, Vec<Piece>)> {
    let Some(Piece::Text { text, at, quoted: false }) = pieces.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |n| (n, true));
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !good {
        return None;
    }
    let mut rest: Vec<Piece> = Vec::new();
    if !value.is_empty() {
        rest.push(Piece::Text { text: value.to_owned(), at: at + text.len() - value.len(), quoted: false });
    }
    rest.extend(pieces.iter().skip(1).cloned());
    Some((name.to_owned(), adds, rest))
}

/// An error where `n` is above `limit`.
fn within(n: usize, limit: usize, what: &str, span: Span) -> Result<(), Diagnostic> {
    if n <= limit { Ok(()) } else { Err(errors::too_much(what, limit, span)) }
}

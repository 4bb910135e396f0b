//! Words of a shell script: its text in, one token after another out. Quotes, comments, line continuations, here-documents
//! and the forms of `$` are told apart; nothing is looked up and nothing is run.

use crate::diagnostics::Diagnostic;
use crate::import::errors;
use crate::limits::IMPORT_NESTING;
use crate::source::{FileId, Span};

/// A token.
#[derive(Debug)]
pub(super) enum Token {
    /// A word.
    Word(Vec<Piece>, Span),
    /// `(`, and whether it touches the word before.
    Open(bool),
    /// `)`
    Close,
    /// The end of a command: a line end, `;`, `&`, `|`.
    End,
    /// `<`, `>` and their like; the word after it is a file.
    Redirect,
    /// A line `#SBATCH …`: the text behind it, and where it begins.
    Batch(usize, usize),
    /// The end of the text.
    Done,
}

/// A part of a word.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Text as it stands, beginning at this byte.
    Text { text: String, at: usize, quoted: bool },
    /// `$NAME`, `${NAME}`, `${NAME[@]}`, `${NAME:-…}`
    Variable { name: String, default: Option<Vec<Piece>>, place: (usize, usize), quoted: bool },
    /// `$(( … ))`: where the sum stands.
    Sum { inner: (usize, usize), place: (usize, usize) },
    /// What is not read: the output of a command, a pattern.
    Other { place: (usize, usize) },
}

pub(super) struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    /// Ends of here-documents that begin behind the present line, and whether tabs before them are dropped.
    documents: Vec<(String, bool)>,
    /// Whether a word may begin here, so that `#` begins a comment.
    fresh: bool,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: FileId, text: &'a str) -> Self {
        Self { file, text, at: 0, documents: Vec::new(), fresh: true }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn unclosed(&self, what: &str, from: usize) -> Diagnostic {
        let end = from + self.text.get(from..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8);
        errors::unclosed(what, Span::new(self.file, from, end))
    }

    /// The next token.
    pub(super) fn token(&mut self) -> Result<Token, Diagnostic> {
        loop {
            let from = self.at;
            let Some(c) = self.peek() else { return Ok(Token::Done) };
            match c {
                ' ' | '\t' | '\r' => {
                    self.at += 1;
                    self.fresh = true;
                }
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '\\' if self.rest().starts_with("\\\r\n") => self.at += 3,
                '#' if self.fresh => {
                    let line = self.rest().split('\n').next().unwrap_or_default();
                    self.at += line.len();
                    if let Some(rest) = line.strip_prefix("#SBATCH") {
                        return Ok(Token::Batch(self.at - rest.len(), self.at));
                    }
                }
                '\n' => {
                    self.at += 1;
                    self.fresh = true;
                    self.skip_documents();
                    return Ok(Token::End);
                }
                ';' | '|' => {
                    self.at += 1;
                    self.fresh = true;
                    return Ok(Token::End);
                }
                '&' => {
                    self.at += 1;
                    self.fresh = true;
                    return Ok(if self.eat(">") { Token::Redirect } else { Token::End });
                }
                '<' | '>' => {
                    self.fresh = true;
                    if self.eat("<<<") || self.eat(">>") {
                        return Ok(Token::Redirect);
                    }
                    if self.eat("<<") {
                        let tabs = self.eat("-");
                        self.document(tabs);
                        continue;
                    }
                    self.at += 1;
                    if self.peek() == Some('(') {
                        self.balanced()?;
                        let span = Span::new(self.file, from, self.at);
                        return Ok(Token::Word(vec![Piece::Other { place: (from, self.at) }], span));
                    }
                    self.eat("&");
                    return Ok(Token::Redirect);
                }
                '(' => {
                    self.at += 1;
                    let touching = !self.fresh;
                    self.fresh = true;
                    return Ok(Token::Open(touching));
                }
                ')' => {
                    self.at += 1;
                    self.fresh = true;
                    return Ok(Token::Close);
                }
                _ => {
                    let pieces = self.word()?;
                    self.fresh = false;
                    // `2>` names a channel and is no word.
                    if self.rest().starts_with(['<', '>'])
                        && self.text.get(from..self.at).is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit()))
                    {
                        continue;
                    }
                    return Ok(Token::Word(pieces, Span::new(self.file, from, self.at)));
                }
            }
        }
    }

    /// Notes the end of a here-document.
    fn document(&mut self, tabs: bool) {
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
        let end: String = self.rest().chars().take_while(|c| !c.is_whitespace() && !";|&<>()".contains(*c)).collect();
        self.at += end.len();
        self.documents.push((end.replace(['\'', '"', '\\'], ""), tabs));
    }

    /// Passes the lines of here-documents.
    fn skip_documents(&mut self) {
        for (end, tabs) in std::mem::take(&mut self.documents) {
            while !self.rest().is_empty() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                let line = line.trim_end_matches(['\n', '\r']);
                if (if tabs { line.trim_start_matches('\t') } else { line }) == end {
                    break;
                }
            }
        }
    }

    /// The pieces of a word, up to a blank or an operator.
    fn word(&mut self) -> Result<Vec<Piece>, Diagnostic> {
        let mut pieces = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() || ";|&<>()".contains(c) => break,
                '\'' => {
                    let from = self.at;
                    self.at += 1;
                    let Some(n) = self.rest().find('\'') else { return Err(self.unclosed("`'`", from)) };
                    let text = self.rest().get(..n).unwrap_or_default().to_owned();
                    pieces.push(Piece::Text { text, at: self.at, quoted: true });
                    self.at += n + 1;
                }
                '"' => self.double_quoted(&mut pieces)?,
                '\\' => {
                    self.at += 1;
                    self.eat("\r");
                    let at = self.at;
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c) => pieces.push(Piece::Text { text: c.into(), at, quoted: true }),
                    }
                }
                '$' if self.rest().starts_with("$'") => self.ansi(&mut pieces)?,
                '$' => {
                    let piece = self.dollar(false, 0)?;
                    pieces.push(piece);
                }
                '`' => {
                    let piece = self.backquoted()?;
                    pieces.push(piece);
                }
                _ => {
                    let at = self.at;
                    let stop = |c: char| c.is_whitespace() || ";|&<>()'\"\\$`".contains(c);
                    let n = self.rest().find(stop).unwrap_or(self.rest().len());
                    self.at += n;
                    let text = self.text.get(at..self.at).unwrap_or_default().to_owned();
                    pieces.push(Piece::Text { text, at, quoted: false });
                }
            }
        }
        Ok(pieces)
    }

    fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Diagnostic> {
        let from = self.at;
        self.at += 1;
        pieces.push(Piece::Text { text: String::new(), at: self.at, quoted: true });
        loop {
            let at = self.at;
            let n = self.rest().find(['"', '\\', '$', '`']).unwrap_or(self.rest().len());
            if n > 0 {
                self.at += n;
                let text = self.text.get(at..self.at).unwrap_or_default().to_owned();
                pieces.push(Piece::Text { text, at, quoted: true });
            }
            match self.peek() {
                None => return Err(self.unclosed("`\"`", from)),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('$') => {
                    let piece = self.dollar(true, 0)?;
                    pieces.push(piece);
                }
                Some('`') => {
                    let piece = self.backquoted()?;
                    pieces.push(piece);
                }
                Some(_) => {
                    self.at += 1;
                    let at = self.at;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(c @ ('"' | '\\' | '$' | '`')) => {
                            self.at += 1;
                            pieces.push(Piece::Text { text: c.into(), at, quoted: true });
                        }
                        _ => pieces.push(Piece::Text { text: "\\".into(), at: at - 1, quoted: true }),
                    }
                }
            }
        }
    }

    /// `$'…'`, with the escapes of C.
    fn ansi(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Diagnostic> {
        let from = self.at;
        self.at += 2;
        let mut bytes = Vec::new();
        loop {
            match self.bump() {
                None => return Err(self.unclosed("`$'`", from)),
                Some('\'') => break,
                Some('\\') => match self.bump() {
                    Some('n') => bytes.push(b'\n'),
                    Some('t') => bytes.push(b'\t'),
                    Some('r') => bytes.push(b'\r'),
                    Some(c @ '0'..='7') => {
                        let mut code = c.to_digit(8).unwrap_or(0);
                        for _ in 0..2 {
                            let Some(d) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                            code = code * 8 + d;
                            self.at += 1;
                        }
                        bytes.push((code & 0xff) as u8);
                    }
                    Some(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
                    None => {}
                },
                Some(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        pieces.push(Piece::Text { text, at: from, quoted: true });
        Ok(())
    }

    fn backquoted(&mut self) -> Result<Piece, Diagnostic> {
        let from = self.at;
        self.at += 1;
        let Some(n) = self.rest().find('`') else { return Err(self.unclosed("a backquote", from)) };
        self.at += n + 1;
        Ok(Piece::Other { place: (from, self.at) })
    }

    /// What begins with `$`.
    fn dollar(&mut self, quoted: bool, depth: usize) -> Result<Piece, Diagnostic> {
        let from = self.at;
        if self.rest().starts_with("$((") {
            self.at += 1;
            self.balanced()?;
            let place = (from, self.at);
            let doubled = self.text.get(from..self.at).is_some_and(|t| t.ends_with("))"));
            return Ok(if doubled {
                Piece::Sum { inner: (from + 3, self.at - 2), place }
            } else {
                Piece::Other { place }
            });
        }
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.balanced()?;
                Ok(Piece::Other { place: (from, self.at) })
            }
            Some('{') => self.braced(from, quoted, depth),
            Some(c) if is_name(c) && !c.is_ascii_digit() => {
                let n = self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
                let name = self.rest().get(..n).unwrap_or_default().to_owned();
                self.at += n;
                Ok(Piece::Variable { name, default: None, place: (from, self.at), quoted })
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                Ok(Piece::Variable { name: c.into(), default: None, place: (from, self.at), quoted })
            }
            _ => Ok(Piece::Text { text: "$".into(), at: from, quoted }),
        }
    }

    /// `${…}`
    fn braced(&mut self, from: usize, quoted: bool, depth: usize) -> Result<Piece, Diagnostic> {
        self.at += 1;
        let n = self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
        let name = self.rest().get(..n).unwrap_or_default().to_owned();
        self.at += n;
        let all = self.eat("[@]") || self.eat("[*]");
        if !name.is_empty() && self.eat("}") {
            return Ok(Piece::Variable { name, default: None, place: (from, self.at), quoted });
        }
        let kept = self.at;
        if !name.is_empty() && !all && (self.eat(":-") || self.eat(":=") || self.eat("-") || self.eat("=")) {
            if depth >= IMPORT_NESTING {
                return Err(errors::nested(Span::new(self.file, from, self.at)));
            }
            if let Some(default) = self.default(quoted, depth)? {
                return Ok(Piece::Variable { name, default: Some(default), place: (from, self.at), quoted });
            }
            self.at = kept;
        }
        self.closing(from)?;
        Ok(Piece::Other { place: (from, self.at) })
    }

    /// The pieces up to `}`; none where they are not plain.
    fn default(&mut self, quoted: bool, depth: usize) -> Result<Option<Vec<Piece>>, Diagnostic> {
        let mut pieces = Vec::new();
        let mut inside = false;
        loop {
            match self.peek() {
                None | Some('\n' | '\'' | '\\' | '`') => return Ok(None),
                Some('}') if !inside => {
                    self.at += 1;
                    return Ok(Some(pieces));
                }
                Some('"') => {
                    self.at += 1;
                    inside = !inside;
                }
                Some('$') => {
                    let piece = self.dollar(quoted || inside, depth + 1)?;
                    pieces.push(piece);
                }
                Some(_) => {
                    let at = self.at;
                    let n = self.rest().find(['}', '"', '$', '\'', '\\', '`', '\n']).unwrap_or(self.rest().len());
                    // Inside quotes a brace is text.
                    self.at += n.max(usize::from(inside));
                    let text = self.text.get(at..self.at).unwrap_or_default().to_owned();
                    pieces.push(Piece::Text { text, at, quoted: quoted || inside });
                }
            }
        }
    }

    /// Passes everything up to the `}` that closes a `${` at `from`.
    fn closing(&mut self, from: usize) -> Result<(), Diagnostic> {
        let mut depth = 1;
        while let Some(c) = self.bump() {
            match c {
                '\\' => drop(self.bump()),
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(self.unclosed("`${`", from))
    }

    /// Passes a parenthesis and what it encloses, quotes respected.
    fn balanced(&mut self) -> Result<(), Diagnostic> {
        let from = self.at;
        let mut depth = 0_usize;
        let mut quote = None;
        while let Some(c) = self.bump() {
            match (quote, c) {
                (_, '\\') if quote != Some('\'') => drop(self.bump()),
                (Some(q), c) if q == c => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(self.unclosed("`(`", from))
    }
}

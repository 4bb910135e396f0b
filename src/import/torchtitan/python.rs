//! A torchtitan configuration in Python (from 0.3) as options. The module is read and never run: assignments to fields of a
//! configuration, calls of configuration classes with named arguments, and literals are understood, nothing else.

use crate::diagnostics::Diagnostic;
use crate::import::errors;
use crate::import::options::Given;
use crate::import::shell::Word;
use crate::limits;
use crate::source::{FileId, Span};

/// The options of `text`, which is that of `file`. Names imported or called without arguments become `import` and `base`.
pub(super) fn read(file: FileId, text: &str) -> Result<Vec<Given>, Diagnostic> {
    let tokens = tokens(file, text)?;
    let mut r = Reader { file, text, tokens: &tokens, at: 0, out: Vec::new() };
    while r.at < tokens.len() {
        r.statement()?;
    }
    Ok(r.out)
}

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Name(String),
    Number(String),
    Text(String),
    Mark(char),
    Line,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    from: usize,
    to: usize,
}

/// Tokens of a module; line ends inside brackets are none.
fn tokens(file: FileId, text: &str) -> Result<Vec<Token>, Diagnostic> {
    let mut out: Vec<Token> = Vec::new();
    let mut at = 0;
    let mut depth = 0_usize;
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        let from = at;
        let kind = match c {
            '#' => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '\\' if rest.starts_with("\\\n") => {
                at += 2;
                continue;
            }
            '\n' => {
                at += 1;
                if depth > 0 {
                    continue;
                }
                Kind::Line
            }
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '\'' | '"' => {
                let triple: String = [c; 3].iter().collect();
                let fence = if rest.starts_with(&triple) { triple.as_str() } else { rest.get(..1).unwrap_or_default() };
                let inner = rest.get(fence.len()..).unwrap_or_default();
                let end = closing(inner, fence)
                    .ok_or_else(|| errors::unclosed("a string", Span::new(file, from, from + 1)))?;
                at += fence.len() * 2 + end;
                Kind::Text(inner.get(..end).unwrap_or_default().to_owned())
            }
            c if c.is_alphabetic() || c == '_' => {
                let n = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                at += n;
                Kind::Name(rest.get(..n).unwrap_or_default().to_owned())
            }
            c if c.is_ascii_digit() => {
                let n = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
                at += n;
                Kind::Number(rest.get(..n).unwrap_or_default().to_owned())
            }
            c => {
                at += c.len_utf8();
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                Kind::Mark(c)
            }
        };
        out.push(Token { kind, from, to: at });
        if out.len() > limits::TOKENS {
            return Err(errors::too_much("tokens in a module", limits::TOKENS, Span::new(file, from, at)));
        }
    }
    Ok(out)
}

/// Where `fence` closes a string, escapes passed.
fn closing(inner: &str, fence: &str) -> Option<usize> {
    let mut skip = false;
    for (i, c) in inner.char_indices() {
        if skip {
            skip = false;
        } else if c == '\\' {
            skip = true;
        } else if c == '\n' && fence.len() == 1 {
            return None;
        } else if inner.get(i..).is_some_and(|t| t.starts_with(fence)) {
            return Some(i);
        }
    }
    None
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    out: Vec<Given>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|t| &t.kind)
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Option<String> {
        let Some(Kind::Name(n)) = self.peek() else { return None };
        let n = n.clone();
        self.at += 1;
        Some(n)
    }

    /// `a.b.c`
    fn path(&mut self) -> Option<Vec<String>> {
        let mut path = vec![self.name()?];
        while self.peek() == Some(&Kind::Mark('.')) {
            self.at += 1;
            path.extend(self.name());
        }
        Some(path)
    }

    fn span(&self, from: usize) -> Span {
        let start = self.tokens.get(from).map_or(0, |t| t.from);
        let end = self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(start, |t| t.to);
        Span::new(self.file, start, end.max(start))
    }

    fn put(&mut self, key: String, at: Span, values: Vec<Word>) -> Result<(), Diagnostic> {
        self.out.push(Given { shown: key.clone(), key, at, values });
        if self.out.len() > limits::IMPORT_VALUES {
            return Err(errors::too_much("values of a configuration", limits::IMPORT_VALUES, at));
        }
        Ok(())
    }

    fn line(&mut self) {
        while self.peek().is_some_and(|k| *k != Kind::Line) {
            self.at += 1;
        }
        self.at += 1;
    }

    fn statement(&mut self) -> Result<(), Diagnostic> {
        let from = self.at;
        match self.path() {
            None => {}
            Some(path) if path == ["from"] => {
                let module = self.path().unwrap_or_default().join(".");
                let span = self.span(from);
                self.put("import".into(), span, vec![Word { text: module, span, unknown: false }])?;
            }
            Some(path) if path == ["return"] => self.assigned("", from)?,
            Some(path) => {
                let span = self.span(from);
                if self.eat('=') && self.peek() != Some(&Kind::Mark('=')) {
                    let key = path.get(1..).unwrap_or_default().join(".");
                    let before = self.out.len();
                    self.assigned(&key, from)?;
                    if let Some(g) = self.out.get_mut(before).filter(|g| g.key == key) {
                        g.at = span;
                    }
                }
            }
        }
        self.line();
        Ok(())
    }

    /// The value of `key`: a literal, or a call whose named arguments are options of their own.
    fn assigned(&mut self, key: &str, from: usize) -> Result<(), Diagnostic> {
        let start = self.at;
        let span = self.span(from);
        if let Some(path) = self.path() {
            let name = path.join(".");
            if self.eat('(') {
                return self.call(key, &name, start, 0);
            }
            if !key.is_empty() {
                let word = self.constant(&name, start);
                return self.put(key.to_owned(), span, word);
            }
            return Ok(());
        }
        let values = self.literal(0)?;
        if key.is_empty() { Ok(()) } else { self.put(key.to_owned(), span, values) }
    }

    /// A name as a value: `None` is none.
    fn constant(&self, name: &str, start: usize) -> Vec<Word> {
        let span = self.span(start);
        match name {
            "None" => Vec::new(),
            "True" | "False" => vec![Word { text: name.to_lowercase(), span, unknown: false }],
            other => vec![Word { text: other.to_owned(), span, unknown: true }],
        }
    }

    /// A call after its `(`: what it is called is the value of `key`, its arguments are options below it.
    fn call(&mut self, key: &str, name: &str, start: usize, depth: usize) -> Result<(), Diagnostic> {
        let span = self.span(start);
        if depth > limits::IMPORT_NESTING {
            return Err(errors::nested(span));
        }
        // `x.Config(…)` and `XConfig(…)` hold options; others are remembered by their name and first argument.
        let mut first = Vec::new();
        while !self.eat(')') {
            if self.at >= self.tokens.len() {
                return Err(errors::unclosed("`(`", span));
            }
            if self.eat(',') {
                continue;
            }
            let begin = self.at;
            let named = match (self.tokens.get(begin).map(|t| &t.kind), self.tokens.get(begin + 1).map(|t| &t.kind)) {
                (Some(Kind::Name(n)), Some(Kind::Mark('='))) => Some(n.clone()),
                _ => None,
            };
            if let Some(argument) = named {
                self.at += 2;
                let below = if key.is_empty() { argument } else { format!("{key}.{argument}") };
                let value = self.at;
                let at = self.span(begin);
                match self.path() {
                    Some(path) if self.eat('(') => self.call(&below, &path.join("."), value, depth + 1)?,
                    Some(path) => {
                        let words = self.constant(&path.join("."), value);
                        self.put(below, at, words)?;
                    }
                    None => {
                        let words = self.literal(depth + 1)?;
                        self.put(below, at, words)?;
                    }
                }
            } else {
                let words = if let Some(path) = self.path() {
                    if self.eat('(') {
                        self.skip_brackets();
                    }
                    self.constant(&path.join("."), begin)
                } else {
                    self.literal(depth + 1)?
                };
                if first.is_empty() {
                    first = words;
                }
            }
            // What follows a value is an operator we do not read.
            while self.at < self.tokens.len() && !matches!(self.peek(), Some(Kind::Mark(',' | ')'))) {
                if matches!(self.peek(), Some(Kind::Mark('(' | '[' | '{'))) {
                    self.at += 1;
                    self.skip_brackets();
                } else {
                    self.at += 1;
                }
            }
        }
        let mut values = vec![Word { text: name.to_owned(), span, unknown: false }];
        values.append(&mut first);
        let called = if key.is_empty() { "base".to_owned() } else { key.to_owned() };
        self.put(called, span, values)
    }

    /// Passes everything up to the bracket that closes one already eaten.
    fn skip_brackets(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                None => return,
                Some(Kind::Mark('(' | '[' | '{')) => depth += 1,
                Some(Kind::Mark(')' | ']' | '}')) => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
        }
    }

    /// A literal as words; lists inside a list as their items joined by commas.
    fn literal(&mut self, depth: usize) -> Result<Vec<Word>, Diagnostic> {
        let start = self.at;
        let sign = if self.eat('-') { "-" } else { "" };
        let kind = self.peek().cloned();
        match kind {
            Some(Kind::Number(n)) => {
                self.at += 1;
                Ok(vec![Word { text: format!("{sign}{n}"), span: self.span(start), unknown: false }])
            }
            Some(Kind::Text(t)) => {
                self.at += 1;
                Ok(vec![Word { text: t, span: self.span(start), unknown: false }])
            }
            Some(Kind::Mark('[' | '(')) => {
                if depth > limits::IMPORT_NESTING {
                    return Err(errors::nested(self.span(start)));
                }
                self.at += 1;
                let mut words = Vec::new();
                while !(self.eat(']') || self.eat(')')) {
                    if self.at >= self.tokens.len() {
                        return Err(errors::unclosed("a list", self.span(start)));
                    }
                    if self.eat(',') {
                        continue;
                    }
                    let begin = self.at;
                    let items = if let Some(path) = self.path() {
                        self.constant(&path.join("."), begin)
                    } else {
                        self.literal(depth + 1)?
                    };
                    let text = items.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(",");
                    words.push(Word { text, span: self.span(begin), unknown: items.iter().any(|w| w.unknown) });
                    if words.len() > limits::IMPORT_VALUES {
                        return Err(errors::too_much("values of a list", limits::IMPORT_VALUES, self.span(start)));
                    }
                }
                Ok(words)
            }
            _ => {
                self.at += 1;
                let span = self.span(start);
                let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default().to_owned();
                Ok(vec![Word { text, span, unknown: true }])
            }
        }
    }
}

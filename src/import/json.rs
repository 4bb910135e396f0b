//! JSON with the place of every value: text in, a tree or the first thing that is wrong with it out. It reads no file.
//!
//! A reader of our own, since what an import has to say points at keys and values, a key given twice is a mistake, and
//! the limits of nesting and size are ours.

use super::errors;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::source::{FileId, Span};

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Json {
    /// What it is.
    pub(super) node: Node,
    /// Where it stands.
    pub(super) span: Span,
}

/// What a value is.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written.
    Number(String),
    /// Text, escapes resolved.
    Text(String),
    /// `[…]`
    List(Vec<Json>),
    /// `{…}`, in order
    Object(Vec<Entry>),
}

/// `"key": value`
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Where the key stands, quotes included.
    pub(super) at: Span,
    /// The value.
    pub(super) value: Json,
}

impl Node {
    /// Its kind, for messages.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads `text`, which is that of `file`.
pub(super) fn read(file: FileId, text: &str) -> Result<Json, Diagnostic> {
    let mut r = Reader { file, text, at: 0, values: 0 };
    r.blank();
    let value = r.value(0)?;
    r.blank();
    if r.at < text.len() {
        return Err(errors::json("nothing more", r.here()));
    }
    Ok(value)
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    values: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn span(&self, from: usize) -> Span {
        Span::new(self.file, from, self.at)
    }

    /// The next character, or the end of the file.
    fn here(&self) -> Span {
        Span::new(self.file, self.at, self.at + self.peek().map_or(0, char::len_utf8))
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']).len();
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, Diagnostic> {
        self.values += 1;
        if depth > limits::IMPORT_NESTING {
            return Err(Diagnostic::over_limit("nesting of imported JSON", depth, limits::IMPORT_NESTING, self.here()));
        }
        if self.values > limits::IMPORT_VALUES {
            return Err(Diagnostic::over_limit(
                "values of imported JSON",
                self.values,
                limits::IMPORT_VALUES,
                self.here(),
            ));
        }
        let from = self.at;
        let node = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Node::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Json { node, span: self.span(from) })
    }

    fn object(&mut self, depth: usize) -> Result<Node, Diagnostic> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::BTreeMap::new();
        self.at += 1;
        self.blank();
        if self.eat('}') {
            return Ok(Node::Object(entries));
        }
        loop {
            self.blank();
            let from = self.at;
            if self.peek() != Some('"') {
                return Err(errors::json("a key in double quotes", self.here()));
            }
            let key = self.string()?;
            let at = self.span(from);
            if let Some(first) = seen.insert(key.clone(), at) {
                return Err(errors::key_twice(&key, at, first));
            }
            self.blank();
            if !self.eat(':') {
                return Err(errors::json("`:` after the key", self.here()));
            }
            self.blank();
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, at, value });
            self.blank();
            if self.eat('}') {
                return Ok(Node::Object(entries));
            }
            if !self.eat(',') {
                return Err(errors::json("`,` or `}`", self.here()));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Node, Diagnostic> {
        let mut items = Vec::new();
        self.at += 1;
        self.blank();
        if self.eat(']') {
            return Ok(Node::List(items));
        }
        loop {
            self.blank();
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.eat(']') {
                return Ok(Node::List(items));
            }
            if !self.eat(',') {
                return Err(errors::json("`,` or `]`", self.here()));
            }
        }
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let from = self.at;
        let mut out = String::new();
        self.at += 1;
        loop {
            let Some(c) = self.peek() else { return Err(errors::json("`\"` at the end of the text", self.span(from))) };
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => match self.escape() {
                    Some(c) => out.push(c),
                    None => {
                        return Err(errors::json(
                            "an escape of JSON, such as `\\n`",
                            Span::new(self.file, start, self.at),
                        ));
                    }
                },
                c if c.is_control() => {
                    return Err(errors::json("no line break or control character in text", self.span(start)));
                }
                c => out.push(c),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = self.unit()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                // A character beyond 16 bits is two of them.
                if !(self.eat('\\') && self.eat('u')) {
                    return None;
                }
                let low = self.unit().filter(|l| (0xdc00..0xe000).contains(l))?;
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let value = u32::from_str_radix(digits, 16).ok();
        self.at += 4;
        value
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    fn number(&mut self) -> Result<Node, Diagnostic> {
        let from = self.at;
        self.eat('-');
        let whole = self.digits();
        let first = self.text.as_bytes().get(self.at - whole).copied();
        let mut right = whole == 1 || (whole > 1 && first != Some(b'0'));
        if self.eat('.') {
            right &= self.digits() > 0;
        }
        if self.eat('e') || self.eat('E') {
            let _ = self.eat('+') || self.eat('-');
            right &= self.digits() > 0;
        }
        let span = self.span(from);
        let text = self.text.get(from..self.at).unwrap_or_default();
        if right { Ok(Node::Number(text.to_string())) } else { Err(errors::json("a number of JSON", span)) }
    }

    fn digits(&mut self) -> usize {
        let rest = self.rest();
        let n = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += n;
        n
    }

    fn word(&mut self) -> Result<Node, Diagnostic> {
        let from = self.at;
        let rest = self.rest();
        let n = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let word = rest.get(..n).unwrap_or_default().to_string();
        self.at += n;
        match word.as_str() {
            "null" => Ok(Node::Null),
            "true" => Ok(Node::Bool(true)),
            "false" => Ok(Node::Bool(false)),
            "NaN" | "Infinity" => Err(errors::json("a number that is one, as JSON has no other", self.span(from))),
            "" => Err(errors::json("a value", self.here())),
            _ => Err(errors::json("a value", self.span(from))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Result<Json, String> {
        read(FileId(0), source).map_err(|d| d.message)
    }

    #[test]
    fn reads_values_and_their_places() {
        let json = text(" {\"a\": [1, -2.5e3, \"x\\u00e9\\ud83d\\ude00\"], \"b\": null}").unwrap();
        let Node::Object(entries) = json.node else { panic!("an object") };
        assert_eq!((entries[0].at.start, entries[0].at.end), (2, 5));
        let Node::List(items) = &entries[0].value.node else { panic!("a list") };
        assert_eq!(items[1].node, Node::Number("-2.5e3".into()));
        assert_eq!(items[2].node, Node::Text("xé😀".into()));
        assert_eq!(entries[1].value.node, Node::Null);
    }

    #[test]
    fn says_what_is_wrong_and_never_more() {
        for (source, said) in [
            ("", "a value"),
            ("{", "a key in double quotes"),
            ("{\"a\" 1}", "`:` after the key"),
            ("{\"a\": 1,}", "a key in double quotes"),
            ("[1 2]", "`,` or `]`"),
            ("{\"a\": NaN}", "a number that is one"),
            ("{\"a\": -Infinity}", "a number of JSON"),
            ("01", "a number of JSON"),
            ("1.", "a number of JSON"),
            ("\"x", "at the end of the text"),
            ("\"\\ud800\"", "an escape of JSON"),
            ("1 2", "nothing more"),
            ("{\"a\": 1, \"a\": 2}", "twice"),
        ] {
            let found = text(source).unwrap_err();
            assert!(found.contains(said), "{source}: {found}");
        }
    }

    #[test]
    fn depth_and_size_have_limits() {
        assert!(text(&"[".repeat(1_000_000)).unwrap_err().contains("nesting"));
        assert!(text(&format!("[{}0]", "0,".repeat(limits::IMPORT_VALUES))).unwrap_err().contains("values"));
    }
}

//! A torchtitan configuration in TOML (up to 0.2) as options: `section.key`, each with its place.

use crate::diagnostics::Diagnostic;
use crate::import::errors;
use crate::import::options::Given;
use crate::import::shell::Word;
use crate::limits;
use crate::source::{FileId, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The options of `text`, which is that of `file`.
pub(super) fn read(file: FileId, text: &str) -> Result<Vec<Given>, Diagnostic> {
    let table = DeTable::parse(text).map_err(|e| {
        let span = e.span().map_or(Span::new(file, 0, 0), |s| Span::new(file, s.start, s.end.max(s.start)));
        errors::toml(e.message(), span)
    })?;
    let mut r = Reader { file, out: Vec::new(), values: 0 };
    r.table("", table.get_ref(), 0)?;
    Ok(r.out)
}

struct Reader {
    file: FileId,
    out: Vec<Given>,
    values: usize,
}

impl Reader {
    fn span<T>(&self, of: &Spanned<T>) -> Span {
        Span::new(self.file, of.span().start, of.span().end)
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>, depth: usize) -> Result<(), Diagnostic> {
        for (key, value) in table {
            let at = self.span(key);
            self.values += 1;
            if self.values > limits::IMPORT_VALUES {
                return Err(errors::too_much("values of a configuration", limits::IMPORT_VALUES, at));
            }
            let name =
                if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
            match value.get_ref() {
                DeValue::Table(inner) if depth < limits::IMPORT_NESTING => self.table(&name, inner, depth + 1)?,
                DeValue::Table(_) => return Err(errors::nested(at)),
                DeValue::Array(items) => {
                    let values = items.iter().map(|i| self.word(i)).collect();
                    self.out.push(Given { shown: name.clone(), key: name, at, values });
                }
                _ => {
                    let values = vec![self.word(value)];
                    self.out.push(Given { shown: name.clone(), key: name, at, values });
                }
            }
        }
        Ok(())
    }

    /// A value as a word; a list inside a list as its items.
    fn word(&self, value: &Spanned<DeValue<'_>>) -> Word {
        let text = match value.get_ref() {
            DeValue::String(s) => s.to_string(),
            DeValue::Integer(i) => i.to_string(),
            DeValue::Float(f) => f.to_string(),
            DeValue::Boolean(b) => b.to_string(),
            DeValue::Datetime(d) => d.to_string(),
            DeValue::Array(items) => {
                let items: Vec<_> = items.iter().filter_map(|i| i.get_ref().as_str().map(str::to_owned)).collect();
                items.join(",")
            }
            DeValue::Table(_) => String::new(),
        };
        Word { text, span: self.span(value), unknown: false }
    }
}

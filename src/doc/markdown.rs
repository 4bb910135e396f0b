//! A book as Markdown. Text of the user's is escaped, so that it reads the same in every dialect.

use super::{Book, Inline, Item, Page, Paragraph};
use crate::emit::{Artifact, Artifacts};
use std::fmt::Write as _;

/// A page for each file of `book` and an index.
pub fn markdown(book: &Book) -> Artifacts {
    let mut out = Artifacts::new();
    let mut index = format!("# {}\n\n| page | declares |\n|---|---|\n", escaped(&book.title));
    for page in &book.pages {
        let names: Vec<_> = page.items.iter().map(|i| link(book, &i.name, &code(&i.name))).collect();
        let _ = writeln!(index, "| [{}]({}.md) | {} |", escaped(&page.file), page.name, names.join(", "));
        out.insert(format!("{}.md", page.name).into(), Artifact::text(markdown_page(book, page)));
    }
    out.insert("index.md".into(), Artifact::text(index));
    out
}

/// One page.
pub fn markdown_page(book: &Book, page: &Page) -> String {
    let mut out = format!("# {}\n", escaped(&page.file));
    if let Some(module) = &page.module {
        let _ = write!(out, "\n{}\n", code(module));
    }
    prose(book, &page.about, &mut out);
    for item in &page.items {
        one(book, item, &mut out);
    }
    out
}

fn one(book: &Book, item: &Item, out: &mut String) {
    let _ = write!(out, "\n## {}\n", escaped(&item.name));
    fence(&item.signature, out);
    prose(book, &item.about, out);
    if !item.params.is_empty() {
        out.push_str("\n| parameter | type | default |\n|---|---|---|\n");
        for p in &item.params {
            let ty = if p.domain.is_empty() { p.ty.clone() } else { format!("{} in {}", p.ty, p.domain) };
            let _ = writeln!(out, "| {} | {} | {} |", code(&p.name), code(ty.trim()), code(&p.default));
        }
    }
    if !item.fields.is_empty() {
        out.push_str("\n| field | value | |\n|---|---|---|\n");
        for f in &item.fields {
            let _ = writeln!(out, "| {} | {} | {} |", code(&f.name), code(&f.value), escaped(f.meaning));
        }
    }
    for part in &item.parts {
        fence(&part.signature, out);
        prose(book, &part.about, out);
    }
    if item.source != item.signature {
        let _ = write!(out, "\nSource, line {}:\n", item.line);
        fence(&item.source, out);
    }
}

fn prose(book: &Book, paragraphs: &[Paragraph], out: &mut String) {
    for p in paragraphs {
        match p {
            Paragraph::Text(pieces) => {
                let text: String = pieces.iter().map(|i| inline(book, i)).collect();
                let _ = write!(out, "\n{text}\n");
            }
            Paragraph::Code(lines) => fence(&lines.join("\n"), out),
        }
    }
}

fn inline(book: &Book, piece: &Inline) -> String {
    match piece {
        Inline::Text(t) => escaped(t),
        Inline::Code(c) => link(book, c, &code(c)),
        Inline::Paper(p) => format!("[{p}](https://arxiv.org/abs/{p})"),
    }
}

/// `shown`, leading to the declaration `name` where the book has it.
fn link(book: &Book, name: &str, shown: &str) -> String {
    match book.place(name) {
        Some(at) => format!("[{shown}]({}.md#{})", at.page, at.anchor.to_lowercase()),
        None => shown.to_string(),
    }
}

/// A code span of one line, which ends where it should whatever is in it; nothing for nothing.
fn code(text: &str) -> String {
    let text = clean(text).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    if text.is_empty() {
        return text;
    }
    let ticks = "`".repeat(longest(&text) + 1);
    let gap = if ticks.len() > 1 { " " } else { "" };
    format!("{ticks}{gap}{text}{gap}{ticks}")
}

fn fence(text: &str, out: &mut String) {
    let ticks = "`".repeat((longest(text) + 1).max(3));
    let _ = write!(out, "\n{ticks}par\n{}\n{ticks}\n", clean(text));
}

/// The most backticks in a row.
fn longest(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Without characters that command a terminal.
fn clean(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "\u{fffd}")
}

/// Text in which nothing is markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).replace('\n', " ").chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '&' | '~' | '!') {
            out.push('\\');
        }
        out.push(c);
    }
    // A list, a heading's line, a number with a stop: at the start of a paragraph they would be markup.
    match out.chars().next() {
        Some('-' | '+' | '=') => format!("\\{out}"),
        Some(c) if c.is_ascii_digit() => {
            let digits = out.chars().take_while(char::is_ascii_digit).count();
            let stop = out[digits..].starts_with(['.', ')']);
            if stop { format!("{}\\{}", &out[..digits], &out[digits..]) } else { out }
        }
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_users_is_markup() {
        assert_eq!(escaped("a*b_c <i> [x](y) # | &"), "a\\*b\\_c \\<i\\> \\[x\\](y) \\# \\| \\&");
        assert_eq!(escaped("- item"), "\\- item");
        assert_eq!(escaped("1. first"), "1\\. first");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("x | y\nz"), "`x \\| y z`");
        let mut out = String::new();
        fence("a\n```\nb\u{1b}[0m", &mut out);
        assert_eq!(out, "\n````par\na\n```\nb\u{fffd}[0m\n````\n");
    }
}

//! A book as HTML: each page a file that needs no other to look right, no script and no network. Every text is escaped.

use super::{Book, Inline, Item, Page, Paragraph};
use crate::emit::{Artifact, Artifacts};
use crate::syntax::is_reserved;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// Lines of source that are shown without a click.
const SHOWN: usize = 40;

/// A page for each file of `book` and `index.html`.
pub fn html(book: &Book) -> Artifacts {
    let mut out = Artifacts::new();
    for page in &book.pages {
        out.insert(format!("{}.html", page.name).into(), Artifact::text(whole(book, Some(page), &content(book, page))));
    }
    out.insert("index.html".into(), Artifact::text(whole(book, None, &index(book))));
    out
}

/// A document around `content`.
fn whole(book: &Book, here: Option<&Page>, content: &str) -> String {
    let title = here.map_or_else(|| book.title.clone(), |p| format!("{} · {}", p.file, book.title));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{}<main>\n{content}</main>\n</body>\n</html>\n",
        escaped(&title),
        navigation(book, here)
    )
}

/// The pages, those of one module together; of the page one is on, its declarations too.
fn navigation(book: &Book, here: Option<&Page>) -> String {
    let mut out = format!("<nav>\n<a class=\"title\" href=\"index.html\">{}</a>\n", escaped(&book.title));
    let mut module: Option<&str> = None;
    let mut open = false;
    for page in &book.pages {
        let of = page.module.as_deref().unwrap_or("");
        if module != Some(of) {
            out.push_str(if open { "</ul>\n" } else { "" });
            if !of.is_empty() {
                let _ = writeln!(out, "<h2>{}</h2>", escaped(of));
            }
            out.push_str("<ul>\n");
            (module, open) = (Some(of), true);
        }
        let on = here.is_some_and(|h| h.name == page.name);
        let class = if on { " class=\"here\"" } else { "" };
        let short = page.file.rsplit('/').next().unwrap_or(&page.file).trim_end_matches(".par");
        let _ = write!(out, "<li><a{class} href=\"{}.html\">{}</a>", page.name, escaped(short));
        if on {
            out.push_str("\n<ul>\n");
            for item in &page.items {
                let _ = writeln!(out, "<li><a href=\"#{0}\">{0}</a></li>", escaped(&item.name));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str(if open { "</ul>\n" } else { "" });
    out + "</nav>\n"
}

fn index(book: &Book) -> String {
    let mut out = format!("<h1>{}</h1>\n", escaped(&book.title));
    out.push_str("<table>\n<tr><th>file</th><th></th></tr>\n");
    for page in &book.pages {
        let summary: String = page.summary().iter().map(|i| inline(book, i)).collect();
        let _ = writeln!(
            out,
            "<tr><td><a href=\"{}.html\">{}</a></td><td>{summary}</td></tr>",
            page.name,
            escaped(&page.file)
        );
    }
    out.push_str("</table>\n<h3>Every name</h3>\n<ul class=\"index\">\n");
    let mut all: Vec<(&Page, &Item)> = book.pages.iter().flat_map(|p| p.items.iter().map(move |i| (p, i))).collect();
    all.sort_by(|(_, a), (_, b)| (a.name.to_lowercase(), &a.name).cmp(&(b.name.to_lowercase(), &b.name)));
    for (page, item) in all {
        let name = escaped(&item.name);
        let about: String = item.summary().iter().map(plain).collect();
        let _ =
            writeln!(out, "<li><a href=\"{}.html#{name}\" title=\"{}\">{name}</a></li>", page.name, escaped(&about));
    }
    out + "</ul>\n"
}

fn content(book: &Book, page: &Page) -> String {
    let mut out = format!("<h1>{}</h1>\n", escaped(&page.file));
    if let Some(module) = &page.module {
        let _ = writeln!(out, "<p class=\"module\"><code>{}</code></p>", escaped(module));
    }
    prose(book, &page.about, &mut out);
    for item in &page.items {
        one(book, item, &mut out);
    }
    out
}

fn one(book: &Book, item: &Item, out: &mut String) {
    let name = escaped(&item.name);
    let _ = writeln!(
        out,
        "<section id=\"{name}\">\n<h2><a href=\"#{name}\">{name}</a><span class=\"kind\">{}</span></h2>",
        item.kind
    );
    let _ = writeln!(out, "<pre class=\"head\">{}</pre>", coloured(book, &item.signature, &item.name));
    prose(book, &item.about, out);
    if !item.params.is_empty() {
        out.push_str("<h3>Parameters</h3>\n<table>\n<tr><th>name</th><th>type</th><th>default</th></tr>\n");
        for p in &item.params {
            let ty = if p.domain.is_empty() { p.ty.clone() } else { format!("{} in {}", p.ty, p.domain) };
            let _ = writeln!(
                out,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                escaped(&p.name),
                code(book, ty.trim(), &item.name),
                code(book, &p.default, &item.name)
            );
        }
        out.push_str("</table>\n");
    }
    if !item.fields.is_empty() {
        out.push_str("<h3>Fields</h3>\n<table>\n<tr><th>name</th><th>value</th><th></th></tr>\n");
        for f in &item.fields {
            let _ = writeln!(
                out,
                "<tr><td><code title=\"{}\">{}</code></td><td>{}</td><td>{}</td></tr>",
                escaped(f.ty),
                escaped(&f.name),
                code(book, &f.value, &item.name),
                escaped(f.meaning)
            );
        }
        out.push_str("</table>\n");
    }
    if !item.parts.is_empty() {
        out.push_str("<h3>Parts</h3>\n");
    }
    for part in &item.parts {
        let _ = writeln!(out, "<pre>{}</pre>", coloured(book, &part.signature, &item.name));
        prose(book, &part.about, out);
    }
    if item.source != item.signature {
        // What has no fields to list says everything in its text.
        let open = if item.fields.is_empty() && item.source.lines().count() <= SHOWN { " open" } else { "" };
        let _ = writeln!(
            out,
            "<details{open}><summary>Source, line {}</summary>\n<pre>{}</pre></details>",
            item.line,
            coloured(book, &item.source, &item.name)
        );
    }
    out.push_str("</section>\n");
}

fn prose(book: &Book, paragraphs: &[Paragraph], out: &mut String) {
    for p in paragraphs {
        match p {
            Paragraph::Text(pieces) => {
                let text: String = pieces.iter().map(|i| inline(book, i)).collect();
                let _ = writeln!(out, "<p>{text}</p>");
            }
            Paragraph::Code(lines) => {
                let _ = writeln!(out, "<pre>{}</pre>", escaped(&lines.join("\n")));
            }
        }
    }
}

fn inline(book: &Book, piece: &Inline) -> String {
    match piece {
        Inline::Text(t) => escaped(t),
        Inline::Code(c) => format!("<code>{}</code>", named(book, c, "")),
        Inline::Paper(p) => format!("<a href=\"https://arxiv.org/abs/{0}\">{0}</a>", escaped(p)),
    }
}

/// A piece of running text without its markup.
fn plain(piece: &Inline) -> String {
    match piece {
        Inline::Text(t) | Inline::Code(t) | Inline::Paper(t) => t.clone(),
    }
}

/// Code in a table; nothing for nothing.
fn code(book: &Book, text: &str, own: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<code>{}</code>", coloured(book, text, own)) }
}

/// A word, leading to the declaration of that name where the book has it. `own` is described here.
fn named(book: &Book, word: &str, own: &str) -> String {
    match book.place(word).filter(|_| word != own) {
        Some(at) => format!("<a href=\"{}.html#{}\">{}</a>", at.page, escaped(&at.anchor), escaped(word)),
        None => escaped(word),
    }
}

/// Program text with its comments, strings, numbers and keywords marked, and names leading where they are described.
fn coloured(book: &Book, text: &str, own: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (class, length) = if rest.starts_with("//") {
            ("c", rest.find('\n').unwrap_or(rest.len()))
        } else if first == '"' {
            ("s", string(rest))
        } else if first.is_ascii_digit() {
            ("n", rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len()))
        } else if word(first) {
            let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            (if is_reserved(&rest[..end]) { "k" } else { "" }, end)
        } else {
            ("-", first.len_utf8())
        };
        let (piece, after) = rest.split_at(length);
        match class {
            "-" => out.push_str(&escaped(piece)),
            "" => out.push_str(&named(book, piece, own)),
            class => {
                let _ = write!(out, "<span class=\"{class}\">{}</span>", escaped(piece));
            }
        }
        rest = after;
    }
    out
}

/// How long the string at the start of `text` is.
fn string(text: &str) -> usize {
    let mut escape = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !escape => return at + 1,
            _ => escape = c == '\\' && !escape,
        }
    }
    text.len()
}

/// Text in which nothing is markup, fit for an attribute too.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn nothing_of_the_users_is_markup() {
        assert_eq!(escaped("<b a='x' c=\"y\">&\u{7}"), "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\u{fffd}");
    }

    #[test]
    fn programs_are_coloured() {
        let book = Book { title: String::new(), pages: Vec::new(), places: BTreeMap::new() };
        let found = coloured(&book, "let a = \"<\\\"\" + 3.5 // <x>\nb", "");
        assert_eq!(
            found,
            "<span class=\"k\">let</span> a = <span class=\"s\">&quot;&lt;\\&quot;&quot;</span> + \
             <span class=\"n\">3.5</span> <span class=\"c\">// &lt;x&gt;</span>\nb"
        );
        assert_eq!(string("\"a\nb"), 2);
    }
}

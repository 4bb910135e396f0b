//! The text of comments: paragraphs, lists and blocks of code, and in them words, code and papers. Comments are plain
//! text to whoever renders them; nothing in them is markup of another language.

/// A paragraph of a comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Paragraph {
    /// Running text.
    Text(Vec<Inline>),
    /// Lines that are indented stay as they are.
    Code(Vec<String>),
}

/// A piece of running text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inline {
    /// Words.
    Text(String),
    /// What stands in backticks.
    Code(String),
    /// The number of a paper on arXiv.
    Paper(String),
}

/// The paragraphs of the lines of a comment.
pub(super) fn paragraphs<T: AsRef<str>>(lines: &[T]) -> Vec<Paragraph> {
    let mut out: Vec<Paragraph> = Vec::new();
    let mut running = String::new();
    let close = |running: &mut String, out: &mut Vec<Paragraph>| {
        if !running.is_empty() {
            out.push(Paragraph::Text(inline(running)));
            running.clear();
        }
    };
    for line in lines {
        let line = line.as_ref().trim_end();
        if line.is_empty() {
            close(&mut running, &mut out);
        } else if line.starts_with("  ") {
            close(&mut running, &mut out);
            match out.last_mut() {
                Some(Paragraph::Code(block)) => block.push(line.to_string()),
                Some(Paragraph::Text(_)) | None => out.push(Paragraph::Code(vec![line.to_string()])),
            }
        } else {
            if !running.is_empty() {
                running.push(' ');
            }
            running.push_str(line);
        }
    }
    close(&mut running, &mut out);
    out
}

/// `text` with its code and papers found.
fn inline(text: &str) -> Vec<Inline> {
    let mut out = Vec::new();
    let mut parts = text.split('`').peekable();
    let mut code = false;
    while let Some(part) = parts.next() {
        if code && parts.peek().is_some() {
            out.push(Inline::Code(part.to_string()));
        } else if code {
            // A single backtick opens nothing.
            words(&format!("`{part}"), &mut out);
        } else {
            words(part, &mut out);
        }
        code = !code;
    }
    out
}

/// Words without backticks; `arXiv 2407.21783` and `arXiv:2407.21783` are papers.
fn words(text: &str, out: &mut Vec<Inline>) {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find("arXiv") {
        let (before, from) = rest.split_at(at);
        let after = &from["arXiv".len()..];
        let number: String = after.chars().skip(1).take_while(|c| c.is_ascii_digit() || *c == '.').take(10).collect();
        let number = number.trim_end_matches('.');
        plain.push_str(before);
        plain.push_str("arXiv");
        rest = after;
        let real = number.len() >= 9 && number.as_bytes().get(4) == Some(&b'.') && after.starts_with([' ', ':']);
        if real {
            plain.push_str(&after[..1]);
            out.push(Inline::Text(std::mem::take(&mut plain)));
            out.push(Inline::Paper(number.to_string()));
            rest = &after[1 + number.len()..];
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        out.push(Inline::Text(plain));
    }
}

/// The first sentence of a comment: up to a full stop before a blank.
pub(super) fn first_sentence(paragraphs: &[Paragraph]) -> Vec<Inline> {
    let Some(Paragraph::Text(pieces)) = paragraphs.first() else { return Vec::new() };
    let mut out = Vec::new();
    for piece in pieces {
        if let Inline::Text(text) = piece
            && let Some(at) = text.match_indices(". ").map(|(at, _)| at).find(|at| ends(&text[..*at]))
        {
            out.push(Inline::Text(text[..=at].to_string()));
            return out;
        }
        out.push(piece.clone());
    }
    out
}

/// Whether a full stop after `text` ends a sentence: not after `et al` and single letters.
fn ends(text: &str) -> bool {
    let word = text.rsplit([' ', '(']).next().unwrap_or_default();
    word.chars().count() > 1 && word != "al"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_paragraphs() {
        let found = paragraphs(&["One `a b`", "two.", "", "  code", "  more", "Last."]);
        let text = |s: &str| Inline::Text(s.into());
        assert_eq!(
            found,
            [
                Paragraph::Text(vec![text("One "), Inline::Code("a b".into()), text(" two.")]),
                Paragraph::Code(vec!["  code".into(), "  more".into()]),
                Paragraph::Text(vec![text("Last.")]),
            ]
        );
    }

    #[test]
    fn papers_are_found() {
        let papers = |t: &str| {
            let is = |i: Inline| if let Inline::Paper(p) = i { Some(p) } else { None };
            inline(t).into_iter().filter_map(is).collect::<Vec<_>>()
        };
        assert_eq!(papers("Herd, arXiv 2407.21783, table 3; arXiv:2104.04473."), ["2407.21783", "2104.04473"]);
        assert_eq!(papers("arXiv is a place, arXiv 12 too, arXiv"), Vec::<String>::new());
    }

    #[test]
    fn a_lone_backtick_is_a_character() {
        assert_eq!(inline("a ` b"), [Inline::Text("a ".into()), Inline::Text("` b".into())]);
    }

    #[test]
    fn a_summary_is_one_sentence() {
        let of = |t: &str| first_sentence(&paragraphs(&[t]));
        assert_eq!(of("A GPU of 80 GB. More."), [Inline::Text("A GPU of 80 GB.".into())]);
        assert_eq!(of("Huang et al. 2019. More."), [Inline::Text("Huang et al. 2019.".into())]);
        assert_eq!(of("Only 1.5 words"), [Inline::Text("Only 1.5 words".into())]);
    }
}

//! Text that becomes part of a shell script: one function for words, one for comments.
//!
//! Names and paths come from the user and may hold anything. Nothing else in the crate puts such a string
//! into a script.

use std::fmt::Write;

/// `text` as one bash word, always read back as the same bytes.
///
/// Plain words stay bare. A word with control or direction-changing characters uses `$'…'`, so that it stays on
/// one line and shows what it holds. A NUL, which no argument can hold, becomes the visible symbol for it.
pub fn quote(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_invisible) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\0' => out.push('\u{2400}'),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_invisible(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Words joined by blanks, each quoted.
pub fn words<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

/// `text` for one comment line: what would end the line or change how it reads is shown as `\u{…}`.
///
/// Long text is cut at 200 characters.
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == 200 {
            out.push('…');
            break;
        }
        if is_invisible(c) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters bash gives no meaning anywhere in a word. `-` and `=` are fine because every use is an argument, `~` is
/// not because a leading one is a home directory.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '+' | '@' | '%')
}

/// Control characters, line and paragraph separators, and the marks that reorder or hide text.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_bare_and_others_are_quoted() {
        let cases = [
            ("--num-layers", "--num-layers"),
            ("", "''"),
            ("Et*7|(t*8|)*14t*7L", "'Et*7|(t*8|)*14t*7L'"),
            ("it's", r"'it'\''s'"),
            ("~root", "'~root'"),
            ("a\nb'c\\", r"$'a\nb\'c\\'"),
            ("\u{1b}[31m", r"$'\033[31m'"),
            ("\u{202e}", r"$'\342\200\256'"),
        ];
        for (text, word) in cases {
            assert_eq!(quote(text), word);
        }
    }

    #[test]
    fn comments_keep_one_line() {
        assert_eq!(comment("a\nrm -rf /"), "a\\u{a}rm -rf /");
        assert_eq!(comment(&"x".repeat(500)).chars().count(), 201);
    }
}

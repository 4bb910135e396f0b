//! Applies fixes to texts: for tests and for a command that mends files.

use super::{Edit, Fix};
use crate::source::FileId;
use std::collections::BTreeMap;

/// Texts after fixes.
#[derive(Debug)]
pub struct Applied {
    /// The files that changed.
    pub texts: BTreeMap<FileId, String>,
    /// Which fixes were taken, by their place in the list.
    pub taken: Vec<usize>,
}

/// The files after `fixes`, earlier ones first. A fix is left out whole if one of its edits overlaps one that was taken,
/// leaves its text, cuts a character, or lies in a file for which `text` gives none.
pub fn apply_all<'t>(fixes: &[&Fix], text: impl Fn(FileId) -> Option<&'t str>) -> Applied {
    let mut edits: BTreeMap<(FileId, u32, u32, usize), &Edit> = BTreeMap::new();
    let mut taken = Vec::new();
    for (number, fix) in fixes.iter().enumerate() {
        let keys: Vec<_> = fix.edits.iter().map(|e| (e.span.file, e.span.start, e.span.end, number)).collect();
        let mut fits = true;
        for (key, edit) in keys.iter().zip(&fix.edits) {
            let (file, start, end, _) = *key;
            let before = edits.range(..*key).next_back().is_none_or(|(k, _)| k.0 != file || k.2 <= start);
            let after = edits.range(*key..).next().is_none_or(|(k, _)| k.0 != file || end <= k.1);
            let whole = text(file).is_some_and(|t| t.get(start as usize..end as usize).is_some());
            fits &= before && after && whole && edits.insert(*key, edit).is_none();
            if !fits {
                break;
            }
        }
        if fits {
            taken.push(number);
        } else {
            edits.retain(|k, _| k.3 != number);
        }
    }
    let mut texts: BTreeMap<FileId, String> = BTreeMap::new();
    for file in edits.keys().map(|k| k.0) {
        texts.entry(file).or_default();
    }
    for (file, out) in &mut texts {
        let from = text(*file).unwrap_or("");
        let mut at = 0;
        for (_, edit) in edits.range((*file, 0, 0, 0)..=(*file, u32::MAX, u32::MAX, usize::MAX)) {
            out.push_str(from.get(at..edit.span.start as usize).unwrap_or(""));
            out.push_str(&edit.text);
            at = edit.span.end as usize;
        }
        out.push_str(from.get(at..).unwrap_or(""));
    }
    Applied { texts, taken }
}

/// `text`, the file `file`, after `fixes`, as [`apply_all`] does it; edits of other files are ignored.
pub fn apply(text: &str, file: FileId, fixes: &[Fix]) -> String {
    let here = |f: &Fix| {
        let edits = f.edits.iter().filter(|e| e.span.file == file).cloned().collect();
        Fix { edits, ..f.clone() }
    };
    let fixes: Vec<Fix> = fixes.iter().map(here).collect();
    let fixes: Vec<&Fix> = fixes.iter().collect();
    let mut applied = apply_all(&fixes, |f| (f == file).then_some(text));
    applied.texts.remove(&file).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Applicability;
    use crate::source::Span;

    fn fix(edits: &[(usize, usize, &str)]) -> Fix {
        let edits =
            edits.iter().map(|(a, b, t)| Edit { span: Span::new(FileId(0), *a, *b), text: (*t).into() }).collect();
        Fix { title: String::new(), edits, applicability: Applicability::Safe, effect: None }
    }

    #[test]
    fn edits_apply_together_in_any_order() {
        let fixes = [fix(&[(8, 9, "z"), (0, 3, "axe")]), fix(&[(4, 4, "_")])];
        assert_eq!(apply("one two x", FileId(0), &fixes), "axe _two z");
    }

    #[test]
    fn what_overlaps_or_does_not_fit_is_left_out_whole() {
        let fixes = [fix(&[(0, 3, "a")]), fix(&[(2, 4, "b"), (5, 6, "c")]), fix(&[(7, 99, "d")]), fix(&[(5, 6, "é")])];
        assert_eq!(apply("one two", FileId(0), &fixes), "a téo");
        assert_eq!(apply("é", FileId(0), &[fix(&[(1, 2, "x")])]), "é");
        assert_eq!(apply("one", FileId(1), &fixes), "one");
    }

    #[test]
    fn a_fix_that_touches_a_file_without_text_is_left_out_whole() {
        let mut both = fix(&[(0, 3, "axe")]);
        both.edits.push(Edit { span: Span::new(FileId(1), 0, 0), text: "x".into() });
        let here = fix(&[(4, 7, "2")]);
        let applied = apply_all(&[&both, &here], |file| (file == FileId(0)).then_some("one two"));
        assert_eq!(applied.taken, [1]);
        assert_eq!(applied.texts, BTreeMap::from([(FileId(0), "one 2".to_owned())]));
    }
}

//! Applies fixes to the text of one file: for tests and for a command that mends files.

use super::{Edit, Fix};
use crate::source::FileId;

/// `text`, the file `file`, after `fixes`. A fix whose edits overlap each other or an earlier fix, leave the text or
/// cut a character is left out whole; edits of other files are ignored.
pub fn apply(text: &str, file: FileId, fixes: &[Fix]) -> String {
    let mut taken: Vec<&Edit> = Vec::new();
    for fix in fixes {
        let mut with: Vec<&Edit> = taken.clone();
        with.extend(fix.edits.iter().filter(|e| e.span.file == file));
        with.sort_by_key(|e| (e.span.start, e.span.end));
        let whole = with.iter().all(|e| text.get(e.span.start as usize..e.span.end as usize).is_some());
        if whole && with.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start) {
            taken = with;
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in taken {
        out.push_str(text.get(at..edit.span.start as usize).unwrap_or(""));
        out.push_str(&edit.text);
        at = edit.span.end as usize;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    out
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
}

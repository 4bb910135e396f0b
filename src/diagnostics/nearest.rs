//! The known name a wrong one was meant to be.

use super::{Applicability, Diagnostic};
use crate::source::Span;

/// The name of `known` nearest to `name`, if one is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes time in proportion to both lengths; nobody misspells so long a word.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let fold = |s: &str| s.to_ascii_lowercase().replace('_', "");
    let limit = if name.len() == 1 { 0 } else { (name.len() / 3).max(1) };
    let scored = known.into_iter().filter(|k| *k != name && k.len() <= LONGEST).map(|k| {
        let d = if fold(k) == fold(name) { 0 } else { strsim::damerau_levenshtein(k, name) };
        let prefix = k.len() > name.len() && name.len() >= 4 && k.starts_with(name);
        (if prefix { d.min(limit) } else { d }, k)
    });
    scored.filter(|(d, _)| *d <= limit).min_by(std::cmp::Ord::cmp).map(|(_, k)| k)
}

impl Diagnostic {
    /// Offers `near`, a name that exists, in place of what stands at `span`.
    #[must_use]
    pub fn offer(self, near: &str, span: Span) -> Self {
        let fixed = self.help(format!("`{near}` exists"));
        fixed.fix(format!("use `{near}`"), span, near.to_string(), Applicability::Unsure)
    }
}

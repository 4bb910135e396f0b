//! Which regions an `in SELECTOR` reaches.

/// One part of a region's path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PathPart {
    /// A region or repeat.
    Name(String),
    /// Iterations of the repeat before it: those one after another with equal bodies are elaborated once.
    Iterations {
        /// The first of them.
        first: u32,
        /// How many.
        count: u32,
        /// How many the repeat has in all.
        of: u32,
    },
}

impl PathPart {
    /// Every iteration of a repeat of `of`.
    pub fn every(of: u32) -> Self {
        Self::Iterations { first: 0, count: of, of }
    }

    /// Whether this leaves no iteration of its repeat out.
    pub fn is_every(&self) -> bool {
        matches!(self, Self::Iterations { count, of, .. } if count == of)
    }
}

/// A pattern over paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    /// Its parts.
    pub parts: Vec<SelectorPart>,
}

/// One part of a [`Selector`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectorPart {
    /// This name.
    Name(String),
    /// Any one part.
    One,
    /// Any number of parts.
    Any,
    /// These iterations of the repeat before it.
    Iterations {
        /// The first.
        from: u32,
        /// One past the last; to the end where there is none.
        to: Option<u32>,
    },
}

impl Selector {
    /// Length of the shortest prefix of `path` that the selector matches; it covers everything below.
    pub fn depth(&self, path: &[PathPart]) -> Option<usize> {
        (0..=path.len()).find(|n| matches(&self.parts, &path[..*n]))
    }
}

impl Selector {
    /// The selector this one was meant to be, of those that differ in one part and match one of `paths`: a `*` left
    /// out after a repeat, `**` left out in front, a name misspelt.
    pub fn nearest(&self, paths: &[&[PathPart]]) -> Option<Self> {
        let reaches = |s: &Self| paths.iter().any(|p| s.depth(p).is_some());
        let inserted = |at: usize, part: SelectorPart| {
            let mut parts = self.parts.clone();
            parts.insert(at, part);
            Self { parts }
        };
        let missing = (1..=self.parts.len()).map(|at| inserted(at, SelectorPart::One));
        let missing = missing.chain([inserted(0, SelectorPart::Any)]).find(reaches);
        if missing.is_some() {
            return missing;
        }
        let mut names: Vec<&str> = Vec::new();
        for part in paths.iter().copied().flatten() {
            if let PathPart::Name(name) = part
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        self.parts.iter().enumerate().find_map(|(at, part)| {
            let SelectorPart::Name(written) = part else { return None };
            let with = |name: &str| {
                let mut parts = self.parts.clone();
                parts[at] = SelectorPart::Name(name.to_owned());
                Self { parts }
            };
            let fitting: Vec<&str> = names.iter().copied().filter(|n| reaches(&with(n))).collect();
            let meant = match &fitting[..] {
                [only] => Some(*only),
                several => several.iter().copied().find(|n| shortens(written, n)).or_else(|| {
                    let limit = (written.len() / 3).max(1);
                    let far = |n: &&str| strsim::damerau_levenshtein(written, n);
                    several.iter().copied().min_by_key(far).filter(|n| far(n) <= limit)
                }),
            };
            meant.map(with)
        })
    }

    /// As a user writes it.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().enumerate().map(|(i, part)| {
            let index = matches!(part, SelectorPart::Iterations { .. });
            let text = match part {
                SelectorPart::Name(n) => n.clone(),
                SelectorPart::One => "*".into(),
                SelectorPart::Any => "**".into(),
                SelectorPart::Iterations { from, to: Some(to) } if *to == from + 1 => format!("[{from}]"),
                SelectorPart::Iterations { from, to: Some(to) } => format!("[{from}..{to}]"),
                SelectorPart::Iterations { from, to: None } => format!("[{from}..]"),
            };
            if i == 0 || index { text } else { format!(".{text}") }
        });
        texts.collect()
    }

    /// The iterations at which it begins or ends, by the repeat's name.
    pub fn borders(&self) -> Vec<(String, u32)> {
        let mut out = Vec::new();
        for pair in self.parts.windows(2) {
            if let [SelectorPart::Name(name), SelectorPart::Iterations { from, to }] = pair {
                out.extend([Some(*from), *to].into_iter().flatten().map(|at| (name.clone(), at)));
            }
        }
        out
    }
}

/// Whether `short` leaves letters of `long` out: `attn` of `attention`.
fn shortens(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    short.len() >= 2 && short.starts_with(|c| long.starts_with(c)) && short.chars().all(|c| letters.any(|l| l == c))
}

fn matches(parts: &[SelectorPart], path: &[PathPart]) -> bool {
    match parts.split_first() {
        None => path.is_empty(),
        Some((SelectorPart::Any, rest)) => (0..=path.len()).any(|n| matches(rest, &path[n..])),
        Some((part, rest)) => path.split_first().is_some_and(|(head, tail)| {
            let fits = match (part, head) {
                (SelectorPart::Name(a), PathPart::Name(b)) => a == b,
                (SelectorPart::One, _) => true,
                (SelectorPart::Iterations { from, to }, PathPart::Iterations { first, count, of }) => {
                    from <= first && first + count <= to.unwrap_or(*of)
                }
                (SelectorPart::Name(_) | SelectorPart::Any | SelectorPart::Iterations { .. }, _) => false,
            };
            fits && matches(rest, tail)
        }),
    }
}

/// Where an item holds: everywhere, or what one of the selectors covers; an `in` inside an `in` selects within it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scope {
    /// The selectors of each enclosing `in`, outermost first.
    pub nested: Vec<Vec<Selector>>,
}

impl Scope {
    /// How deep the scope reaches into `path`; deeper scopes win. `None` where it does not hold.
    pub fn depth(&self, path: &[PathPart]) -> Option<usize> {
        let mut at = 0;
        for selectors in &self.nested {
            at += selectors.iter().filter_map(|s| s.depth(&path[at..])).min()?;
        }
        Some(at)
    }

    /// As a user writes it: `decoder.*`, or the selectors of the innermost `in`.
    pub fn text(&self) -> String {
        let innermost = self.nested.last().map(Vec::as_slice).unwrap_or_default();
        innermost.iter().map(Selector::text).collect::<Vec<_>>().join(", ")
    }

    /// Whether this is the whole layout.
    pub fn is_everywhere(&self) -> bool {
        self.nested.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<PathPart> {
        let part = |p: &str| if p == "#" { PathPart::every(4) } else { PathPart::Name(p.into()) };
        text.split('.').filter(|p| !p.is_empty()).map(part).collect()
    }

    fn selector(text: &str) -> Selector {
        let part = |p: &str| match p {
            "*" => SelectorPart::One,
            "**" => SelectorPart::Any,
            name => SelectorPart::Name(name.into()),
        };
        Selector { parts: text.split('.').map(part).collect() }
    }

    #[test]
    fn depth_is_the_shortest_prefix_matched() {
        let layer = path("decoder.#.mlp.up");
        assert_eq!(selector("decoder.**").depth(&layer), Some(1));
        assert_eq!(selector("decoder.*").depth(&layer), Some(2));
        assert_eq!(selector("**.mlp").depth(&layer), Some(3));
        assert_eq!(selector("decoder.mlp").depth(&layer), None);
    }

    #[test]
    fn the_nearest_selector_differs_in_one_part() {
        let paths: Vec<_> = ["embed", "decoder.#.attention.core", "decoder.#.moe.experts", "head"].map(path).into();
        let paths: Vec<&[PathPart]> = paths.iter().map(Vec::as_slice).collect();
        let near = |text: &str| selector(text).nearest(&paths).map(|s| s.text());
        assert_eq!(near("decoder.attention.core").as_deref(), Some("decoder.*.attention.core"));
        assert_eq!(near("attention.core").as_deref(), Some("**.attention.core"));
        assert_eq!(near("**.mlp.experts").as_deref(), Some("**.moe.experts"));
        assert_eq!(near("decoder.*.attn").as_deref(), Some("decoder.*.attention"));
        assert_eq!(near("**.expert").as_deref(), Some("**.experts"));
        assert_eq!(near("encoder.*").as_deref(), Some("decoder.*"));
        assert_eq!(near("a.b.c"), None);
    }

    #[test]
    fn a_nested_scope_selects_within() {
        let scope = Scope { nested: vec![vec![selector("decoder.*")], vec![selector("attention")]] };
        assert_eq!(scope.depth(&path("decoder.#.attention.core")), Some(3));
        assert_eq!(scope.depth(&path("decoder.#.mlp")), None);
    }
}

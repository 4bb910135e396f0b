//! Seeded edits of a text: characters, words, numbers, lines, and the elements of its brackets. What they make is
//! mostly wrong, and wrong in ways that people and other programs are.

/// Random numbers: splitmix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "64",
    "65536",
    "1048577",
    "1099511627776",
    "1_000_000_000_000",
    "9223372036854775807",
    "9223372036854775808",
    "170141183460469231731687303715884105728",
    "1e30",
    "1e308",
    "1e999",
    "1e-320",
    "0.1",
    "0.0",
    "-1",
    "-0.0",
    "1e400000000",
    "(0 - 3)",
    "(1 / 0)",
    "?",
    "5%",
];

const WORDS: &[&str] = &[
    "tp",
    "dp",
    "pp",
    "devices",
    "B",
    "S",
    "H",
    "N",
    "K",
    "V",
    "layers",
    "in",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "=",
    ",",
    "\n",
    "over",
    "shard",
    "store",
    "with",
    "with {}",
    "none",
    "all",
    "**",
    "*",
    ".",
    "+",
    "-",
    "/",
    "@",
    "^",
    "div 0",
    "mod 0",
    "..",
    "0..1000000000",
    "if",
    "then",
    "else",
    "let",
    "fn",
    "let x = x",
    "bf16",
    "decoder",
    "embed",
    "é",
    "\u{202e}",
    "\u{1f600}",
    "\"",
    "\"\u{0}\"",
    "//",
    "\r\n",
    "\u{feff}",
    "\t",
    "true",
    "s",
    "GiB",
    "$",
    "tok",
    "seq",
    "loss",
    "param",
    "repeat",
    "recompute",
    "gpipe",
    "[0] * 1000000",
    "for i in 0..9",
];

/// Bounds of the words, numbers and other characters of `text`.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match out.last_mut() {
            Some(t) if t.1 == at && word(c) && word(last) => t.1 = end,
            _ if c == ' ' => {}
            _ => out.push((at, end)),
        }
        last = c;
    }
    out
}

/// `text` with one edit of its characters, words, lines or brackets; `other` gives pieces.
pub(crate) fn edit(text: &str, other: &str, rng: &mut Rng) -> String {
    let found = tokens(text);
    let Some(&(a, b)) = found.get(rng.below(found.len())) else { return other.to_string() };
    let put = |new: &str| format!("{}{new}{}", &text[..a], &text[b..]);
    let numbers: Vec<_> = found.iter().filter(|t| text[t.0..].starts_with(|c: char| c.is_ascii_digit())).collect();
    match rng.below(18) {
        0 => put(""),
        1 => put(rng.pick(WORDS)),
        2 => put(&format!("{} {}", &text[a..b], rng.pick(WORDS))),
        3..=6 => match numbers.get(rng.below(numbers.len())) {
            Some(&&(a, b)) => format!("{}{}{}", &text[..a], rng.pick(NUMBERS), &text[b..]),
            None => put(rng.pick(NUMBERS)),
        },
        7 => {
            let (c, d) = found[rng.below(found.len())];
            put(&text[c..d])
        }
        8 => {
            let (c, d) = found[rng.below(found.len())];
            if b <= c {
                format!("{}{}{}{}{}", &text[..a], &text[c..d], &text[b..c], &text[a..b], &text[d..])
            } else {
                put(&text[c..d])
            }
        }
        9 => text[..a].to_string(),
        10 | 11 => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (i, j) = (rng.below(lines.len()), rng.below(lines.len()));
            match rng.below(4) {
                0 => lines.insert(j, lines[i]),
                1 => drop(lines.remove(i)),
                2 => lines.swap(i, j),
                _ => {
                    let theirs: Vec<&str> = other.split('\n').collect();
                    lines.insert(i, theirs[rng.below(theirs.len())]);
                }
            }
            lines.join("\n")
        }
        12 => {
            let theirs = tokens(other);
            let Some(&(c, d)) = theirs.get(rng.below(theirs.len())) else { return put("") };
            let end = theirs.get(rng.below(theirs.len())).map_or(d, |t| t.1);
            put(&other[c..end.max(d).min(other.ceil_char_boundary(c + 300))])
        }
        13 => match rng.below(3) {
            0 => text.replace('\n', "\r\n"),
            1 => put(&text[a..b].repeat(300)),
            _ => put(&format!("{}{}", "(".repeat(200), &text[a..b])),
        },
        _ => graft(text, other, rng),
    }
}

/// What lies between two brackets that match, and the elements in it: byte ranges, innermost not first.
fn groups(text: &str) -> Vec<(usize, usize)> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut out = Vec::new();
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'(' | b'[' | b'{' => open.push((b, i + 1)),
            b')' | b']' | b'}' => {
                let wanted = match b {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if let Some((_, from)) = open.pop().filter(|o| o.0 == wanted) {
                    out.push((from, i));
                }
            }
            _ => {}
        }
    }
    out
}

/// The elements of a group: what separators outside inner brackets divide.
fn elements(text: &str, (from, to): (usize, usize)) -> Vec<(usize, usize)> {
    let mut depth = 0;
    let mut start = from;
    let mut out = Vec::new();
    for (i, b) in text.bytes().enumerate().take(to).skip(from) {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' | b'\n' if depth == 0 => {
                out.push((start, i));
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push((start, to));
    out.retain(|e| !text[e.0..e.1].trim().is_empty());
    out
}

/// `text` with an edit of its tree: an element or what a bracket holds is left out, doubled, moved, or exchanged for one
/// of `other`.
fn graft(text: &str, other: &str, rng: &mut Rng) -> String {
    let mine = groups(text);
    if mine.is_empty() {
        return other.to_owned();
    }
    let group = mine[rng.below(mine.len())];
    let inside = elements(text, group);
    let (a, b) = if inside.is_empty() { group } else { inside[rng.below(inside.len())] };
    let put = |new: &str| format!("{}{new}{}", &text[..a], &text[b..]);
    let (c, d) = mine[rng.below(mine.len())];
    let theirs = groups(other);
    match rng.below(6) {
        0 => put(""),
        1 => put(&format!("{}, {}", &text[a..b], &text[a..b])),
        2 => put(&text[c..d]),
        3 if !theirs.is_empty() => {
            let (e, f) = theirs[rng.below(theirs.len())];
            put(&other[e..f])
        }
        4 if !theirs.is_empty() => {
            let all = elements(other, theirs[rng.below(theirs.len())]);
            put(all.get(rng.below(all.len())).map_or("", |e| &other[e.0..e.1]))
        }
        _ => put(&format!("{}{}{}", ["(", "[", "{"][rng.below(3)], &text[a..b], [")", "]", "}"][rng.below(3)])),
    }
}

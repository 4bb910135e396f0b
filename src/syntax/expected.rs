//! The grammar's terminals in human words: at most five, the most telling first.

/// Most alternatives named in one message.
const MAX: usize = 5;

/// "`=`, `over` or an expression"; empty where so much could follow that naming it would not help.
pub(super) fn words(terminals: &[String]) -> String {
    let list = list(terminals);
    match list.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn list(terminals: &[String]) -> Vec<String> {
    let has = |t: &str| terminals.iter().any(|x| x.trim_matches('"') == t);
    let expression = has("NUM") && has("ID") && has("(") && has("?");
    let item = has("require") && has("let");
    let declaration = !item && !expression && has("fn") && has("train");
    let operator = has("*") && has("+") && !expression;
    let mut out: Vec<String> = Vec::new();
    if item {
        out.push("an item".into());
    } else if expression {
        out.push("an expression".into());
    } else if declaration {
        out.push("a declaration".into());
        if has("use") {
            out.push("`use`".into());
        }
    }
    if !expression && !item {
        for (terminal, word) in [("ID", "a name"), ("NUM", "a number"), ("STR", "a string")] {
            if has(terminal) {
                out.push(word.into());
            }
        }
    }
    // Signs and words that shape an item, in the order they are likeliest to be meant.
    let shaping = [
        "=", ",", ")", "]", "over", "on", "of", "as", "via", "then", "else", "with", "for", "within", "~", "+-", "{",
        "(", "[", ":", "->", "::", ".", "}", "in", "dim", "param", "*", "**",
    ];
    for sign in shaping {
        let hidden = (expression || item) && matches!(sign, "{" | "(" | "[" | "param" | "in")
            || operator && matches!(sign, "*" | "**" | "." | "(" | "[" | "with" | "{" | "::")
            || out.iter().any(|w| w == "an expression") && matches!(sign, "*" | "**");
        if has(sign) && !hidden {
            out.push(format!("`{sign}`"));
        }
    }
    if operator {
        out.push("an operator".into());
    }
    if has("SEP") && !item {
        out.push("a line break".into());
    }
    if out.len() > MAX {
        out.truncate(MAX);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(terminals: &[&str]) -> String {
        words(&terminals.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn terminals_become_words() {
        assert_eq!(said(&["\"over\"", "\"of\""]), "`over` or `of`");
        assert_eq!(said(&["ID", "NUM", "\"(\"", "\"?\"", "\"[\"", "\"-\""]), "an expression");
        assert_eq!(said(&[]), "");
    }

    #[test]
    fn never_more_than_five() {
        let many = ["\"=\"", "\"over\"", "\"on\"", "\"of\"", "\"as\"", "\"via\"", "\"then\""];
        assert_eq!(said(&many).matches('`').count(), 2 * MAX);
    }
}

//! The text of a call of a family of the library: only what differs from what the family gives by itself.

/// Columns of a line.
const WIDTH: usize = 120;

/// `Llama(layers = 32, …)` being written.
#[derive(Debug)]
pub(super) struct Call {
    family: &'static str,
    args: Vec<(&'static str, String)>,
    /// Remarks for the reader of the program.
    pub(super) remarks: Vec<String>,
}

impl Call {
    /// A call without arguments.
    pub(super) fn new(family: &'static str) -> Self {
        Self { family, args: Vec::new(), remarks: Vec::new() }
    }

    /// The family it calls.
    pub(super) fn family(&self) -> &'static str {
        self.family
    }

    /// Calls another family with the same arguments.
    pub(super) fn of(&mut self, family: &'static str) {
        self.family = family;
    }

    /// `name = value`
    #[expect(clippy::needless_pass_by_value, reason = "keeps calls plain")]
    pub(super) fn put(&mut self, name: &'static str, value: impl ToString) {
        self.args.push((name, value.to_string()));
    }

    /// `name = value` unless it is what the family gives.
    pub(super) fn unless<T: ToString + PartialEq>(&mut self, name: &'static str, value: T, given: &T) {
        if value != *given {
            self.put(name, value);
        }
    }

    /// The decoder of the common family, by the plainest family of the library that is it: `Llama` and `GPT` where nothing
    /// but sizes differs.
    pub(super) fn simplest(&mut self) {
        let is = |name: &str, value: &str| self.args.iter().any(|(n, v)| *n == name && v == value);
        let names: Vec<&str> = self.args.iter().map(|(n, _)| *n).collect();
        let only = |allowed: &[&str]| names.iter().all(|n| allowed.contains(n));
        let number = |name: &str| self.args.iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.parse::<u64>().ok());
        let sizes = ["layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "head_dim", "tied", "rope_base"];
        let classic = [
            "layers",
            "hidden",
            "heads",
            "ffn",
            "vocab",
            "norm",
            "tied",
            "qkv_bias",
            "out_bias",
            "mlp_bias",
            "activation",
            "gated",
            "positions",
            "max_positions",
        ];
        if only(&sizes) {
            self.family = "Llama";
            if !names.contains(&"kv_heads") {
                self.args.extend(number("heads").map(|h| ("kv_heads", h.to_string())));
            }
        } else if only(&classic)
            && ["tied", "qkv_bias", "out_bias", "mlp_bias"].iter().all(|n| is(n, "true"))
            && [("norm", "layer"), ("activation", "gelu"), ("gated", "false"), ("positions", "learned")]
                .iter()
                .all(|(n, v)| is(n, v))
            && number("ffn") == number("hidden").and_then(|h| h.checked_mul(4))
        {
            self.family = "GPT";
            self.args.retain(|(n, _)| matches!(*n, "layers" | "hidden" | "heads" | "vocab" | "max_positions"));
        }
    }

    /// `name = value` with a decimal point, unless it is what the family gives.
    pub(super) fn real(&mut self, name: &'static str, value: f64, given: f64) {
        if value.total_cmp(&given).is_ne() {
            self.put(name, format!("{value:?}"));
        }
    }

    /// Takes an argument back.
    pub(super) fn leave(&mut self, name: &str) {
        self.args.retain(|(n, _)| *n != name);
    }

    /// `name = value tok`
    pub(super) fn tokens(&mut self, name: &'static str, value: u64) {
        self.put(name, format!("{value} tok"));
    }

    /// `name = true` where it is.
    pub(super) fn flag(&mut self, name: &'static str, value: bool) {
        if value {
            self.put(name, "true");
        }
    }

    /// `let NAME = FAMILY(…)`, broken into lines.
    pub(super) fn text(&self, name: &str) -> String {
        let head = format!("let {name} = {}(", self.family);
        let (mut out, mut line) = (String::new(), head.clone());
        for (i, (key, value)) in self.args.iter().enumerate() {
            let end = if i + 1 == self.args.len() { ")" } else { "," };
            let arg = format!("{key} = {value}{end}");
            let first = line.ends_with('(');
            if !first && line.chars().count() + 1 + arg.chars().count() > WIDTH {
                out = out + &line + "\n";
                line = " ".repeat(head.chars().count());
                line += &arg;
            } else {
                line = line + if first { "" } else { " " } + &arg;
            }
        }
        if self.args.is_empty() {
            line.push(')');
        }
        format!("{out}{line}\n")
    }
}

//! How the children of a level meet: the word of `topology`, its arguments, and what they demand.

use super::errors;
use crate::eval::{Evaluator, Value, Word};
use crate::source::Span;
use smol_str::SmolStr;

/// How the children of a level meet.
#[derive(Clone, PartialEq, Debug)]
pub enum Topology {
    /// Every child reaches every other through switches that never block.
    Switch,
    /// Each child is joined to the next.
    Ring,
    /// A grid whose lines close, or do not: sizes by direction, the first fastest.
    Torus {
        /// Name and size of each direction.
        sizes: Vec<(SmolStr, i64)>,
        /// Whether the lines close.
        wrap: bool,
    },
    /// A plane grid without closing links.
    Mesh2d,
    /// Rails of switches in tiers.
    FatTree {
        /// Rails; 1 where nothing is said.
        rails: i64,
        /// Bandwidth below over bandwidth above, at least 1.
        oversubscription: f64,
    },
    /// The k-th link of every child ends on the k-th switch.
    Rail,
    /// Groups joined all to all.
    Dragonfly {
        /// Links between two groups; 0 where nothing is said.
        global_links: i64,
    },
    /// A link between every two children.
    AllToAll,
    /// A stated number of links between any two children.
    Graph {
        /// Row i, column j: links between children i and j.
        links: Vec<Vec<i64>>,
    },
    /// Through the host's memory.
    HostBridge,
    /// Between sites.
    Wan,
}

impl Topology {
    /// The word the language has for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Ring => "ring",
            Self::Torus { .. } => "torus",
            Self::Mesh2d => "mesh2d",
            Self::FatTree { .. } => "fat_tree",
            Self::Rail => "rail",
            Self::Dragonfly { .. } => "dragonfly",
            Self::AllToAll => "all_to_all",
            Self::Graph { .. } => "graph",
            Self::HostBridge => "host_bridge",
            Self::Wan => "wan",
        }
    }

    /// The position of a direction of a torus.
    pub fn direction(&self, name: &str) -> Option<usize> {
        match self {
            Self::Torus { sizes, .. } => sizes.iter().position(|(n, _)| n == name),
            _ => None,
        }
    }

    /// Links of one child, where the topology says so instead of `over`.
    pub(super) fn links(&self) -> Option<i64> {
        match self {
            Self::Graph { links } => links.iter().map(|row| row.iter().sum()).min(),
            _ => None,
        }
    }

    /// By how much the tiers above a child are narrower than its links.
    pub(super) fn narrowing(&self) -> f64 {
        if let Self::FatTree { oversubscription, .. } = self { *oversubscription } else { 1.0 }
    }

    /// Whether one link for many devices is what this topology is about.
    pub(super) fn shares_links(&self) -> bool {
        matches!(self, Self::Graph { .. } | Self::Wan | Self::HostBridge)
    }
}

/// Parameters of each topology's word.
fn parameters(word: &str) -> Option<&'static [&'static str]> {
    Some(match word {
        "switch" | "ring" | "mesh2d" | "rail" | "all_to_all" | "host_bridge" | "wan" => &[],
        "fat_tree" => &["rails", "oversubscription"],
        "dragonfly" => &["global_links"],
        "graph" => &["links"],
        "torus" => &["x", "y", "z", "wrap"],
        _ => return None,
    })
}

/// `topology = WORD(…)` of a level with `children` children; what is wrong is reported.
pub(super) fn read(eval: &mut Evaluator<'_, '_>, word: &Word<'_>, children: i64, span: Span) -> Option<Topology> {
    let Some(known) = parameters(&word.name) else {
        eval.sink.error(errors::topology_unknown(&word.name, span));
        return None;
    };
    let mut named: Vec<(SmolStr, &Value<'_>)> = Vec::new();
    for (i, (name, value)) in word.args.iter().enumerate() {
        let name = name.clone().or_else(|| known.get(i).map(|n| SmolStr::new_static(n)));
        // A torus names its directions as it likes.
        match name.filter(|n| word.name == "torus" || known.contains(&n.as_str())) {
            Some(name) if named.iter().all(|(n, _)| *n != name) => named.push((name, value)),
            _ => {
                eval.sink.error(errors::topology_argument(&word.name, known, span));
                return None;
            }
        }
    }
    let get = |name: &str| named.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let mut count = |name: &str, default: i64| match get(name) {
        None => Some(default),
        Some(v) => match v.as_int().filter(|n| (1..=1 << 40).contains(n)) {
            Some(n) => Some(n as i64),
            None => {
                eval.sink.error(errors::topology_count(&word.name, name, &v.noun(), span));
                None
            }
        },
    };
    Some(match word.name.as_str() {
        "ring" => Topology::Ring,
        "mesh2d" => Topology::Mesh2d,
        "rail" => Topology::Rail,
        "all_to_all" => Topology::AllToAll,
        "host_bridge" => Topology::HostBridge,
        "wan" => Topology::Wan,
        "dragonfly" => Topology::Dragonfly { global_links: count("global_links", 0)? },
        "fat_tree" => {
            let rails = count("rails", 1)?;
            let over = get("oversubscription").map_or(Some(1.0), Value::as_f64);
            let Some(oversubscription) = over.filter(|v| *v >= 1.0 && v.is_finite()) else {
                eval.sink.error(errors::oversubscribed(span));
                return None;
            };
            Topology::FatTree { rails, oversubscription }
        }
        "torus" => {
            let directions: Vec<SmolStr> = named.iter().map(|(n, _)| n.clone()).filter(|n| n != "wrap").collect();
            let sizes = directions.into_iter().map(|n| count(&n, 1).map(|v| (n, v))).collect::<Option<Vec<_>>>()?;
            let product = sizes.iter().try_fold(1_i128, |p, (_, n)| p.checked_mul(i128::from(*n))).unwrap_or(i128::MAX);
            if product != i128::from(children) {
                let shown: Vec<i128> = sizes.iter().map(|(_, n)| i128::from(*n)).collect();
                eval.sink.error(errors::torus_sizes(span, &shown, product, i128::from(children), None, None));
                return None;
            }
            let wrap = !matches!(get("wrap"), Some(Value::Bool(crate::eval::Truth::Known(false))));
            Topology::Torus { sizes, wrap }
        }
        "graph" => match get("links").and_then(|v| matrix(v, children)) {
            Some(links) => Topology::Graph { links },
            None => {
                eval.sink.error(errors::graph_links(children, span));
                return None;
            }
        },
        _ => Topology::Switch,
    })
}

/// A square list of lists of counts, the same both ways, nothing from a child to itself, nobody alone.
fn matrix(value: &Value<'_>, children: i64) -> Option<Vec<Vec<i64>>> {
    let Value::List(rows) = value else { return None };
    let mut out: Vec<Vec<i64>> = Vec::new();
    for row in rows.iter() {
        let Value::List(row) = row else { return None };
        let row: Option<Vec<i64>> =
            row.iter().map(|v| v.as_int().filter(|n| (0..=1 << 20).contains(n)).map(|n| n as i64)).collect();
        out.push(row?);
    }
    let n = out.len();
    let square = i64::try_from(n).ok() == Some(children) && out.iter().all(|r| r.len() == n);
    let sound = square
        && (0..n).all(|i| out[i][i] == 0 && (0..n).all(|j| out[i][j] == out[j][i]))
        && (n == 1 || out.iter().all(|r| r.iter().sum::<i64>() > 0));
    sound.then_some(out)
}

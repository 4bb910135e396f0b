//! `OP over AXES via ALGORITHM` in a layout: which cost function is asked.

use crate::compile;

/// Seconds of the gradients' all-reduce on two nodes, with `item` in the layout and `cost` as the job's cost model.
fn reduction(item: &str, cost: &str) -> Result<f64, String> {
    let text = format!(
        "edition 1
{cost}
layout L {{
  mesh [dp = devices]
  shard B over dp
  {item}
}}
train run {{
  model = Llama3_8B, cluster = DGX_H100(nodes = 2), layout = L, cost = ours
  batch = 64 seq, sequence = 1024 tok
}}
"
    );
    let checked = compile::clean(&text);
    let compiled = checked.attempt(&[])?;
    let mut all = 0.0;
    for unit in &compiled.costs {
        for step in &unit.update {
            let of_gradients = matches!(&step.category, parc::analyse::Category::Comm(_, p) if *p == parc::partition::Purpose::ReduceGrad);
            all += if of_gradients { compiled.value(step.seconds) } else { 0.0 };
        }
    }
    Ok(all)
}

const KNOWN: &str = "cost ours = std::cost::default with {
  fn all_reduce(n: Bytes, g: Group) -> Time = 1 s
  fn all_reduce_ring(n: Bytes, g: Group) -> Time = 2 s
  fn all_reduce_fancy(n: Bytes, g: Group) -> Time = 4 s
}";

#[test]
fn a_layout_chooses_the_algorithm_of_a_collective() {
    let auto = reduction("", KNOWN).expect("auto");
    assert!(auto > 0.9 && auto.fract() < 1e-9, "{auto}: one second each");
    assert_eq!(reduction("all_reduce over dp via auto", KNOWN), Ok(auto));
    assert_eq!(reduction("all_reduce over dp via ring", KNOWN), Ok(2.0 * auto));
    assert_eq!(reduction("all_gather over dp via ring", KNOWN), Ok(auto), "another collective");
    // The innermost item holds: of three units, the head's parameters.
    let head = reduction("in head { all_reduce over dp via ring }", KNOWN).expect("one region");
    assert!(auto < head && head < 2.0 * auto, "{head}");
    assert_eq!(
        reduction("all_reduce over dp via ring\n  in head { all_reduce over dp via auto }", KNOWN),
        Ok(3.0 * auto - head)
    );
}

#[test]
fn what_the_cost_model_lacks_is_said_at_the_layouts_line() {
    let said = reduction("all_reduce over dp via pairwise", KNOWN).expect_err("no such function");
    assert!(said.contains("no cost function says what `all_reduce` takes by `pairwise`"), "{said}");
}

/// The library's own: `auto` takes the fastest, and each can be asked for.
#[test]
fn auto_is_the_fastest_of_the_library() {
    let with = |method: &str| {
        reduction(&format!("all_reduce over dp via {method}"), "cost ours = std::cost::default").expect(method)
    };
    let each = ["ring", "tree", "hierarchical"].map(with);
    let least = each.iter().copied().fold(f64::MAX, f64::min);
    assert!((with("auto") - least).abs() < 1e-9 * least, "{} against {each:?}", with("auto"));
    // The switches of a node add, those between nodes do not: asked for, they are taken to.
    assert!(with("in_network") > 0.0);
}

//! What a layout does to the count of parameters: nothing.

use crate::compile;
use crate::models_all::rows;
use parc::emit::assemble;

fn job(model: &str, layout: &str) -> String {
    format!(
        "edition 1
layout L(tp: Int = 1, dp: Int = devices / tp) {{ {layout} }}
train j {{ model = {model}, cluster = DGX_H100(nodes = 1), layout = L(), batch = 8 seq, sequence = 1024 tok }}
"
    )
}

#[test]
fn the_totals_the_compiler_is_known_for() {
    // Written out a second time, so that a slip in the table shows.
    for (name, params) in [
        ("Llama3_8B", 8_030_261_248),
        ("Llama3_70B", 70_553_706_496),
        ("Llama3_405B", 405_853_388_800),
        ("GPT3_175B", 174_604_259_328),
    ] {
        assert_eq!(rows().iter().find(|r| r.model == name).map(|r| r.params), Some(params), "{name}");
    }
}

#[test]
fn neither_the_layout_nor_the_padding_changes_the_count() {
    let layouts = [
        "mesh [dp, tp]\n shard B over dp\n shard [N, K, F, V] over tp else S\n pad V = 128 * tp",
        "mesh [dp, tp]\n shard B over dp\n shard [N, K, F, V] over tp\n store [param, grad, state] over dp\n pad V = 128 * tp",
    ];
    for (model, params) in [("Llama3_8B", 8_030_261_248), ("GPT3_2_7B", 2_651_553_280)] {
        for layout in layouts {
            let checked = compile::clean(&job(model, layout));
            for tp in [1, 2, 4, 8] {
                assert_eq!(assemble::params(&checked.compiled(&[("tp", tp)])), params, "{model} tp {tp} {layout}");
            }
        }
    }
}

//! `parc build` of every example, from the file to what a process of Megatron-LM would be started with.

use crate::compile;
use crate::files::root;
use crate::megatron_rules::{self as rules, LLAMA3_8B};
use crate::plan_json;
use crate::targets_megatron::options;
use crate::targets_scripts::{TELL, fake, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File, job, devices, layers, chunks.
const EXAMPLES: &[(&str, &str, u64, u64)] =
    &[("llama3_8b", "llama3_8b", 16, 32), ("gpt3_175b", "gpt3", 1536, 96), ("llama3_405b", "pretrain_8k", 16384, 126)];

fn built(example: &str, launcher: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let file = root().join("examples").join(format!("{example}.par"));
    let output = Command::new(env!("CARGO_BIN_EXE_parc"))
        .args(["build", file.to_str().unwrap(), "--target", "megatron", "--launcher", launcher, "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    (dir, out)
}

/// What `launch.sh` starts on node 0: the arguments of torchrun and those of the program.
fn started(dir: &Path, out: &Path) -> (Vec<String>, Vec<String>) {
    fake(dir, "torchrun", TELL);
    let environment = [("MASTER_ADDR", "n0"), ("NODE_RANK", "0"), ("MEGATRON_HOME", "/m")];
    let (told, ok) = run(dir, &out.join("launch.sh"), &[], &environment);
    assert!(ok);
    let program = told.iter().position(|a| a == "/m/pretrain_gpt.py").expect("the program is started");
    (told[..program].to_vec(), told[program + 1..].to_vec())
}

fn json(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("plan.json")).unwrap()).unwrap()
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("{v} is a whole number"))
}

fn numbers(v: &Value) -> Vec<u64> {
    v.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn every_example_starts_with_arguments_megatron_accepts() {
    let shellcheck = ["/usr/bin/shellcheck", "/usr/local/bin/shellcheck"].into_iter().find(|p| Path::new(p).exists());
    assert!(shellcheck.is_some() || std::env::var_os("CI").is_none(), "shellcheck is required in CI");
    for (example, job, devices, _) in EXAMPLES {
        let mut seen = Vec::new();
        for launcher in ["torchrun", "slurm"] {
            let (dir, out) = built(example, launcher);
            let (torchrun, args) = started(dir.path(), &out);
            let nodes = (devices / 8).to_string();
            let head = [job, "1", "--nnodes", &nodes, "--nproc-per-node", "8", "--node-rank", "0"];
            assert_eq!(torchrun[..8], head, "{example}");
            assert_eq!(torchrun[8..], ["--master-addr", "n0", "--master-port", "29500"], "{example}");
            assert_eq!(rules::violations(&args, *devices, &rules::environment()), [], "{example}");
            for script in ["launch.sh", "job.sbatch"].iter().filter(|f| out.join(f).exists()) {
                let Some(shellcheck) = shellcheck else { continue };
                let said = Command::new(shellcheck).arg("--norc").arg(out.join(script)).output().unwrap();
                assert!(said.status.success(), "{example}: {}", String::from_utf8_lossy(&said.stdout));
            }
            assert_eq!(out.join("job.sbatch").exists(), launcher == "slurm");
            seen.push((args, fs::read(out.join("plan.json")).unwrap()));
        }
        assert!(seen[0] == seen[1], "{example}: launchers differ in more than how they start");
    }
}

#[test]
fn the_8b_example_is_the_minimal_plan() {
    let (dir, out) = built("llama3_8b", "torchrun");
    let (_, args) = started(dir.path(), &out);
    assert_eq!(options(&args), options(&rules::split(LLAMA3_8B)));
}

/// Megatron's order `tp-cp-ep-dp-pp`, leftmost fastest: rank = tp + t·(dp + d·pp) without context parallelism. For 16
/// ranks, t = 2, p = 2: tp groups {0,1}…, dp groups {0,2,4,6}…, pp groups {0,8}….
#[test]
fn every_rank_has_megatrons_coordinates_groups_and_layers() {
    for (example, _, devices, layers) in EXAMPLES {
        let (dir, out) = built(example, "torchrun");
        let (_, args) = started(dir.path(), &out);
        let parsed = rules::parse(&args).ok().unwrap();
        let plan = json(&out);
        assert_eq!(plan_json::check(&plan), Vec::<String>::new(), "{example}");
        let axes = plan["layout"]["axes"].as_array().unwrap();
        let names: Vec<_> = axes.iter().map(|a| a["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["pp", "dp", "tp"]);
        let size: Vec<u64> = axes.iter().map(|a| number(&a["size"])).collect();
        let (p, d, t) = (size[0], size[1], size[2]);
        assert_eq!(p * d * t, *devices);
        let chunks = rules::chunk_layers(&parsed);
        assert_eq!(chunks.iter().sum::<u64>(), *layers);

        let ranks = plan["ranks"].as_array().unwrap();
        assert_eq!(ranks.len() as u64, *devices, "{example}");
        let mut covered = vec![vec![0u8; *layers as usize]; (d * t) as usize];
        for (r, rank) in ranks.iter().enumerate() {
            let r = r as u64;
            assert_eq!((number(&rank["rank"]), number(&rank["node"]), number(&rank["local_rank"])), (r, r / 8, r % 8));
            let (tp, dp, pp) = (r % t, r / t % d, r / (t * d));
            assert_eq!(rules::coordinates(&parsed, *devices, r), [tp, 0, dp, pp]);
            assert_eq!(numbers(&rank["coordinates"]), [pp, dp, tp], "{example} rank {r}");
            assert_eq!(number(&rank["stage"]), pp);
            let stage = &plan["memory"]["stages"][pp as usize];
            assert_eq!(rank["memory"], stage["total"]);

            let groups = numbers(&rank["groups"]);
            let group = |at: usize| numbers(&plan["groups"][names[at]][groups[at] as usize]);
            let along = |n: u64, of: &dyn Fn(u64) -> u64| (0..n).map(of).collect::<Vec<_>>();
            assert_eq!(group(0), along(p, &|i| tp + t * (dp + d * i)), "{example} pp group of {r}");
            assert_eq!(group(1), along(d, &|i| tp + t * (i + d * pp)), "{example} dp group of {r}");
            assert_eq!(group(2), along(t, &|i| i + t * (dp + d * pp)), "{example} tp group of {r}");

            // Chunk c of the model runs on stage c mod p.
            let mut expected = Vec::new();
            let mut from = 0;
            for (c, n) in chunks.iter().enumerate() {
                if c as u64 % p == pp {
                    expected.extend(from..from + n);
                }
                from += n;
            }
            let mut found = Vec::new();
            for range in rank["layers"].as_array().unwrap() {
                let range = numbers(range);
                found.extend(range[0]..range[1]);
            }
            assert_eq!(found, expected, "{example} layers of {r}");
            assert_eq!(found.len() as u64, number(&stage["layers"]));
            for layer in found {
                covered[(dp * t + tp) as usize][layer as usize] += 1;
            }
        }
        assert!(covered.iter().flatten().all(|n| *n == 1), "{example}: every layer once for each (dp, tp)");
        for (axis, n) in names.iter().zip(&size) {
            let groups = plan["groups"][axis].as_array().unwrap();
            assert_eq!(groups.len() as u64, devices / n, "{example} groups of {axis}");
            let mut all: Vec<u64> = groups.iter().flat_map(numbers).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..*devices), "{example}: {axis} groups part the ranks");
        }
        for stage in plan["memory"]["stages"].as_array().unwrap() {
            let parts = ["params", "gathered", "grads", "state", "activations", "transient", "overhead"];
            assert_eq!(parts.iter().map(|f| number(&stage[*f])).sum::<u64>(), number(&stage["total"]), "{example}");
        }
    }
}

/// A layout that does not fit is not launched, and nothing is written.
#[test]
fn what_does_not_fit_is_not_built() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_parc"))
        .current_dir(root())
        .args(["build", "examples/too_big.par", "--target", "megatron", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0801"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The model's own words are those of the plan: what is emitted for a model that is not the 8B of the samples.
#[test]
fn the_decoder_of_an_example_is_read_off_its_graph() {
    let text = crate::files::text(&root().join("examples/gpt3_175b.par"));
    let d = compile::clean(&text).report(&[]).model.decoder.expect("a decoder");
    assert_eq!((d.layers, d.hidden, d.heads, d.kv_heads, d.head_dim, d.ffn), (96, 12288, 96, 96, 128, 49152));
    assert_eq!((d.vocab, d.learned_positions, d.rope_base), (50257, Some(2048), None));
    assert_eq!((d.norm, d.activation, d.bias, d.tied), ("layer", "gelu", true, true));
}

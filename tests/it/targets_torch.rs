//! The program of `--target torch`: what it is told, what it refuses. `make test-targets` runs it.

use crate::files::root;
use crate::sample_plans::*;
use parc::emit::plan::{Plan, RecomputeInfo};
use parc::emit::targets::{self, Where};
use std::process::Command;

/// What is written for a job of `tests/targets/small.par`, in a folder that has a folder of the job's name already.
fn written(job: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = Command::new(env!("CARGO_BIN_EXE_parc"))
            .current_dir(dir.path())
            .arg("build")
            .arg(root().join("tests/targets/small.par"))
            .args([job, "--target", "torch", "--out", job])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let program = dir.path().join(job).join("train.py");
    let compiled = Command::new("python3")
        .args(["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"])
        .arg(&program)
        .status();
    match compiled {
        Ok(status) => assert!(status.success(), "{job} is no Python"),
        Err(_) => eprintln!("skipped: python3 is not installed"),
    }
    std::fs::read_to_string(program).unwrap()
}

#[test]
fn the_program_is_told_what_the_plan_says() {
    let cases: &[(&str, &[&str])] = &[
        (
            "sp_pp",
            &[
                "MESH = {\"pp\": 2, \"dp\": 1, \"tp\": 2}",
                "TENSOR = \"tp\"",
                "DATA = []",
                "SEQUENCE_PARALLEL = True",
                "SCHEDULE = \"1F1B\"",
                "    {\"stage\": 1, \"embed\": False, \"layers\": [2, 4], \"head\": True},",
                "MICROBATCHES = 8",
                "COMPUTE = \"float32\"",
            ],
        ),
        (
            "looped",
            &[
                "SCHEDULE = \"Interleaved1F1B\"",
                "    {\"stage\": 0, \"embed\": False, \"layers\": [2, 3], \"head\": False},",
            ],
        ),
        ("copies", &["DATA = [\"rep\", \"fsdp\"]", "SHARDED = [\"rep\", \"fsdp\"]", "RESHARD = True", "REPLICAS = 4"]),
        ("recomputed", &["RECOMPUTE = True", "PIPELINE = None"]),
    ];
    for (job, lines) in cases {
        let text = written(job);
        for line in *lines {
            assert!(text.lines().any(|l| l == *line), "{job}: {line} in\n{}", &text[..1500]);
        }
    }
}

#[test]
fn what_the_program_cannot_do_is_said_at_its_place() {
    type Change = fn(&mut Plan);
    let fine = |p: &mut Plan| {
        p.layout.stored.clear();
        for class in ["param", "act", "compute", "gather"] {
            p.training.precision.insert(class.into(), "fp32".into());
        }
    };
    let cases: &[(Change, Where, &str)] = &[
        (|p| drop(p.layout.stored.insert("state", vec!["dp".into()])), Where::Store("state".into()), "FSDP2"),
        (|p| drop(p.training.precision.insert("gather".into(), "bf16".into())), Where::Precision, "bf16"),
        (|p| p.pipeline.schedule = "zb_v".into(), Where::Schedule, "zb_v"),
        (|p| p.layout.recompute = RecomputeInfo::Other("every(2)".into()), Where::Recompute, "whole layers"),
        (|p| p.layout.pads.push(("V".into(), 5, 8)), Where::Pad("V".into()), "from 5 to 8"),
        (|p| p.layout.axes[1].role = Context, Where::Attention, "whole sequences"),
        (|p| p.layout.axes[1].role = Idle, Where::Axis("dp".into()), "shards nothing"),
        (|p| p.layout.axes[1].role = Tensor, Where::Axis("dp".into()), "one tensor axis"),
        (|p| p.layout.axes[1].name = "d'p\n".into(), Where::Mesh, "identifier"),
        (|p| p.training.optimizer = "SGD".into(), Where::Optimizer, "AdamW"),
        (|p| p.training.batch = 127, Where::Batch, "127"),
        (|p| p.model.decoder.as_mut().unwrap().tied = true, Where::Model, "another family"),
        (|p| p.model.decoder.as_mut().unwrap().kv_heads = 1, Where::Model, "1 key and value heads"),
        (|p| p.model.decoder = None, Where::Model, "experts"),
        (|p| p.layout.overlap_experts = true, Where::Overlap("dispatch"), "experts"),
    ];
    let run = |plan: &Plan| (targets::find("torch").unwrap().program)(plan);
    let mut plan = llama3_8b();
    fine(&mut plan);
    assert!(run(&plan).is_ok(), "{:#?}", run(&plan));
    for (change, at, word) in cases {
        let mut plan = llama3_8b();
        fine(&mut plan);
        change(&mut plan);
        let errors = run(&plan).unwrap_err();
        let hit = errors.iter().find(|e| e.at == *at).unwrap_or_else(|| panic!("nothing at {at:?}: {errors:#?}"));
        assert!(format!("{hit:?}").contains(word), "{word} in {hit:#?}");
    }
}

/// A job's name may hold anything; in the program it is a comment.
#[test]
fn hostile_names_stay_comments() {
    let mut plan = llama3_8b();
    plan.layout.stored.clear();
    for class in ["param", "act", "compute", "gather"] {
        plan.training.precision.insert(class.into(), "fp32".into());
    }
    plan.job.name = "x\nimport os; os.system('id')\u{2028}$(id)".into();
    let program = (targets::find("torch").unwrap().program)(&plan).unwrap();
    let text = String::from_utf8(program.files.values().next().unwrap().bytes.clone()).unwrap();
    assert_eq!(text.matches("os.system").count(), 1);
    assert!(text.lines().filter(|l| l.contains("os.system")).all(|l| l.starts_with("# Job x\\u{a}import os")));
}

//! `parc import megatron|torchtitan|deepspeed`: what a build wrote comes back as the same plan, scripts are read as the
//! shell reads them and never run, and no text does harm.

use crate::compile;
use crate::files::{root, text};
use parc::diagnostics::{Code, Diagnostic};
use parc::diagnostics::{Sink, render};
use parc::driver;
use parc::emit::diff::{Diff, Measure, diff};
use parc::emit::plan::Plan;
use parc::emit::{launchers, targets};
use parc::import::{self, Extra, Imported};
use parc::source::{FileId, Sources};
use std::time::{Duration, Instant};

type Import = fn(&Sources, FileId, &Extra) -> Imported;

/// What came of a text, and what was said of it in short.
pub(crate) fn imported(
    import: Import,
    name: &str,
    text: &str,
    extra: &Extra,
) -> (Option<String>, Vec<Diagnostic>, String) {
    let mut sources = Sources::new();
    let file = sources.add(name.to_owned(), text.to_owned(), false);
    let found = import(&sources, file, extra);
    let short = render::short(&found.said, &sources);
    // Every renderer has to bear what is said.
    render::text(&found.said, &sources, render::Colour::Never);
    render::json(&found.said, &sources);
    (found.text, found.said, short)
}

/// What `parc check` says of a program, in short.
pub(crate) fn checked(program: &str) -> String {
    let c = compile::check(program);
    let mut said = render::short(&c.said, &c.sources);
    if said.is_empty() {
        let mut sink = Sink::new();
        for job in c.program.jobs() {
            driver::check_job(&c.program, &c.sources, job, &compile::settings(&[]), &mut sink);
        }
        said = render::short(&sink.finish(), &c.sources);
    }
    said
}

/// The plan of a program, what a target makes of it, what the import makes of that, and the plan of this.
fn round(program: &str, target: &str, extra: &Extra) -> (Plan, String, Diff) {
    let before = compile::clean(program).launched(&[]);
    let made = (targets::find(target).unwrap().program)(&before).unwrap_or_else(|e| panic!("{e:#?}"));
    let files = launchers::find("torchrun").unwrap().artifacts(&before, &made).unwrap();
    let (name, import): (&str, Import) = match target {
        "megatron" => ("launch.sh", import::megatron),
        "torchtitan" => ("parc_plan.py", import::torchtitan),
        _ => ("ds_config.json", import::deepspeed),
    };
    let written = String::from_utf8(files[std::path::Path::new(name)].bytes.clone()).unwrap();
    let (program, said, short) = imported(import, name, &written, extra);
    assert!(said.is_empty(), "{target}: {short}");
    let program = program.unwrap();
    let after = compile::clean(&program).launched(&[]);
    let again = (targets::find(target).unwrap().program)(&after).unwrap_or_else(|e| panic!("{e:#?}\n{program}"));
    let coordinates = |p: &Plan| -> Vec<_> {
        let sized: Vec<bool> = p.layout.axes.iter().map(|a| a.size > 1).collect();
        let real = |c: &[u64]| c.iter().zip(&sized).filter(|(_, s)| **s).map(|(c, _)| *c).collect::<Vec<_>>();
        p.ranks.iter().map(|r| (r.rank, r.node, r.stage, real(&r.coordinates), r.layers.clone())).collect()
    };
    assert_eq!(coordinates(&before), coordinates(&after), "{target}: every rank does what it did");
    let d = diff(&before, &after, Some((&made, &again)));
    (before, program, d)
}

fn on(cluster: &str) -> Extra {
    Extra { cluster: Some(cluster.into()), ..Extra::default() }
}

/// Nothing that is predicted and nothing the framework is told differs.
#[track_caller]
fn same(program: &str, d: &Diff) {
    assert!(
        d.memory.is_empty() && d.time.is_empty() && d.traffic.is_empty(),
        "{:#?} {:#?}\n{program}",
        d.memory,
        d.time
    );
    let target = d.target.as_ref().unwrap();
    // The number of steps is the user's to edit; the comment of the files names the job.
    let told: Vec<_> = target.options.iter().filter(|o| o.what != "--train-iters").collect();
    let lines = target.lines.iter().flat_map(|l| [&l.before, &l.after]).flatten();
    let lines: Vec<_> = lines.filter(|l| !l.starts_with('#') && !l.contains("training.steps")).collect();
    assert!(told.is_empty() && lines.is_empty(), "{told:#?} {lines:#?}\n{program}");
}

#[test]
fn what_megatron_is_told_comes_back_as_the_same_plan() {
    for (file, cluster) in [
        ("llama3_8b", "DGX_H100(nodes = 2)"),
        ("llama3_405b", "DGX_H100(nodes = 2048)"),
        ("gpt3_175b", "DGX_A100(nodes = 192)"),
    ] {
        let example = text(&root().join(format!("examples/{file}.par")));
        let (_, program, d) = round(&example, "megatron", &on(cluster));
        if file == "gpt3_175b" {
            // How a stage message is split has no option: the program sends it whole. All else is the same.
            let buffers = ["working set", "allocator", "total"];
            assert!(d.memory.iter().all(|a| buffers.contains(&a.what.as_str())), "{:#?}", d.memory);
            let moved = d.traffic.iter().filter(|a| a.what != "everything");
            assert!(
                moved.clone().count() > 0 && moved.clone().all(|a| a.what == "send stages over pp"),
                "{:#?}",
                d.traffic
            );
            let parts = d.time.iter().filter(|a| a.group == "part").map(|a| a.what.as_str());
            assert!(parts.clone().all(|p| ["bubble", "stage messages"].contains(&p)), "{:#?}", d.time);
        } else {
            same(&program, &d);
        }
    }
}

/// A job of Llama 3 8B with these items as its layout.
fn job(nodes: u64, layout: &str, precision: &str) -> String {
    format!(
        "edition 1\nlayout Mine {{\n{layout}\n}}\ntrain mine {{\n  model = Llama3_8B\n  cluster = DGX_H100(nodes = {nodes})\n  \
         layout = Mine\n  batch = 128 seq\n  sequence = 8192 tok\n  micro_batch = 1 seq\n  precision = {precision}\n  \
         optimizer = AdamW\n}}\n"
    )
}

#[test]
fn what_megatron_is_told_of_context_splits_and_experts_comes_back() {
    for layout in [
        "mesh [dp = 4, cp = 2, tp = 2]\nshard B over dp\nshard S over cp\nattention over cp via ring(zigzag)\n\
         shard [N, K, F, V] over tp else S\npad V = 128 * 2\nstore state over [dp, cp]",
        "mesh [pp = 4, dp = 4]\nshard B over dp\npad V = 128\nrecompute all\n\
         pipeline over pp { schedule = one_f_one_b, split = [7, 9, 9, 7] }",
        "mesh [pp = 4, dp = 4]\nshard B over dp\npad V = 128\nstore state over dp\noverlap reduce over dp with backward\n\
         overlap p2p over pp with [forward, backward]\n\
         pipeline over pp { schedule = interleaved(2), split = [3, 5, 4, 4, 3, 5, 4, 4] }",
        "mesh [dp = 2, pp = 4, tp = 2]\nshard B over dp\nshard [N, K, F, V] over tp\npad V = 128 * 2\n\
         pipeline over pp { schedule = one_f_one_b, split = even }",
        "mesh [pp = 2, rep = 2, dp = 2, tp = 2]\nshard B over [rep, dp]\nshard [N, K, F, V] over tp else S\npad V = 128 * 2\n\
         store state over dp\npipeline over pp { schedule = one_f_one_b, split = even }",
    ] {
        let (_, program, d) = round(&job(2, layout, "bf16_mixed"), "megatron", &on("DGX_H100(nodes = 2)"));
        same(&program, &d);
    }
    let moe = job(
        2,
        "mesh [dp = 4, tp = 4]\nshard B over dp\nshard [N, K, V] over tp else S\npad V = 128 * 4\nstore state over dp\n\
         fold [dp, tp] as [edp = 2, ep = 8]\nin **.moe.experts { shard E over ep, store state over edp }\n\
         in **.moe.router { replicate param over tp }",
        "bf16_mixed",
    )
    .replace("Llama3_8B", "Mixtral_8x7B");
    let (_, program, d) = round(&moe, "megatron", &on("DGX_H100(nodes = 2)"));
    same(&program, &d);
}

#[test]
fn what_torchtitan_is_told_comes_back_as_the_same_plan() {
    let fsdp = "{ bucket = layer, hold = layer, prefetch = 1 }\noverlap gather over OVER with forward\noverlap reduce over ALL with backward";
    for layout in [
        format!("mesh [dp = 16]\nshard B over dp\nstore [param, grad, state] over dp {fsdp}")
            .replace("OVER", "dp")
            .replace("ALL", "dp"),
        format!(
            "mesh [rep = 2, dp = 4, tp = 2]\nshard B over [rep, dp]\nshard [N, K, F, V] over tp else S\nrecompute all\n\
             store [param, grad, state] over dp {fsdp}"
        )
        .replace("OVER", "dp")
        .replace("ALL", "[rep, dp]"),
        format!(
            "mesh [pp = 2, dp = 8]\nshard B over dp\nstore [param, grad, state] over dp {fsdp}\n\
             pipeline over pp {{ schedule = interleaved(2), split = [7, 9, 9, 7] }}"
        )
        .replace("OVER", "dp")
        .replace("ALL", "dp"),
    ] {
        let (_, program, d) = round(&job(2, &layout, "fsdp2_bf16"), "torchtitan", &on("DGX_H100(nodes = 2)"));
        same(&program, &d);
    }
    // Parameters in bf16 with a master copy are fp32 parameters there: the bytes of the copy do not come back.
    let layout = format!("mesh [dp = 16]\nshard B over dp\nstore [param, grad, state] over dp {fsdp}");
    let layout = layout.replace("OVER", "dp").replace("ALL", "dp");
    let (_, _, d) = round(&job(2, &layout, "bf16_mixed"), "torchtitan", &on("DGX_H100(nodes = 2)"));
    let classes: Vec<_> = d.memory.iter().filter(|a| a.unit == Measure::Held).map(|a| a.what.as_str()).collect();
    assert!(
        classes.contains(&"params") && classes.contains(&"state") && !classes.contains(&"activations"),
        "{classes:?}"
    );
}

#[test]
fn what_deepspeed_is_told_comes_back_as_the_same_plan() {
    let extra = |cluster: &str| Extra {
        model: Some("Llama3_8B".into()),
        sequence: Some(8192),
        devices: Some(16),
        ..on(cluster)
    };
    for layout in [
        "mesh [dp = 16]\nshard B over dp\nstore state over dp\noverlap reduce over dp with backward",
        "mesh [dp = 16]\nshard B over dp\nstore [state, grad] over dp",
        "mesh [dp = 16]\nshard B over dp\nstore [param, grad, state] over dp { bucket = layer, hold = layer, prefetch = 1 }\n\
         overlap gather over dp with forward\noverlap reduce over dp with backward",
        "mesh [dp = 8, tp = 2]\nshard B over dp\nshard [N, K, F, V] over tp\nstore state over dp",
        "mesh [dp = 16]\nshard B over dp",
    ] {
        for precision in ["bf16_mixed", "bf16_pure"] {
            let (_, program, d) = round(&job(2, layout, precision), "deepspeed", &extra("DGX_H100(nodes = 2)"));
            same(&program, &d);
        }
    }
}

fn megatron(script: &str) -> (Option<String>, Vec<Diagnostic>, String) {
    imported(import::megatron, "launch.sh", script, &Extra::default())
}

/// A model in one line, for scripts.
const SHAPE: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu \
    --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope \
    --vocab-size 32000 --seq-length 4096 --max-position-embeddings 4096 --bf16 --micro-batch-size 1 --global-batch-size 64";

#[test]
fn scripts_are_read_as_the_shell_reads_them() {
    // Every way of saying `--tensor-model-parallel-size 4` on 2 nodes of 8.
    for script in [
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py SHAPE --tensor-model-parallel-size 4".to_owned(),
        "torchrun --nnodes=2 --nproc_per_node=8 pretrain_gpt.py SHAPE --tensor-model-parallel-size=4".into(),
        "#!/bin/bash\nTP=4 # ranks\nexport NNODES=${NNODES:-2}\nGPUS_PER_NODE=8\nARGS=\"\n  SHAPE\n  \
         --tensor-model-parallel-size $TP\n\"\ntorchrun --nnodes $NNODES --nproc-per-node $GPUS_PER_NODE pretrain_gpt.py $ARGS".into(),
        "ARGS=(\n  SHAPE # the model\n  --tensor-model-parallel-size \"$((2 * 2))\"\n)\nD=(--nnodes 2 --nproc-per-node 8)\n\
         torchrun \"${D[@]}\" \\\n  pretrain_gpt.py \\\n  \"${ARGS[@]}\" \"$@\"".into(),
        "#SBATCH --nodes=2 --gpus-per-node=8\nT='4'\nsrun --label python -u pretrain_gpt.py SHAPE --tensor-model-parallel-size ${T}".into(),
        "cat <<EOF > x\n--tensor-model-parallel-size 9\nEOF\nA=\"--tensor-model-parallel-size 2\"\nA+=\" --tensor-model-parallel-size 4\"\n\
         NUM_NODES=2\nGPUS_PER_NODE=8\nWORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))\ntorchrun pretrain_gpt.py SHAPE $A 2>&1 | tee log".into(),
        "function run { echo; }\nif [ -z \"$TP\" ]; then TP=4; fi\nfor i in 1 2; do echo $i; done\n\
         torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py SHAPE --tensor-model-parallel-size \"${TP}\" > log 2>&1 &".into(),
    ] {
        let script = script.replace("SHAPE", SHAPE);
        let (program, said, short) = megatron(&script);
        assert!(said.is_empty(), "{short}\n{script}");
        let program = program.unwrap();
        assert!(program.contains("tp: Int = 4") && program.contains("nodes = 2)"), "{program}\n{script}");
        assert_eq!(checked(&program), "", "{program}");
    }
}

#[test]
fn a_file_of_options_is_read_without_a_program() {
    let (program, said, short) =
        megatron(&format!("{}\n--tensor-model-parallel-size 8\n", SHAPE.replace(" --", "\n--")));
    assert!(program.unwrap().contains("tp: Int = 8"));
    // How many devices there are nobody says.
    assert_eq!(said.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::ImportAssumed], "{short}");
}

/// The one diagnostic of a script: its code, the text under it, what it says.
#[track_caller]
fn one(script: &str) -> (Code, String, String) {
    let (_, said, short) = megatron(script);
    assert_eq!(said.len(), 1, "{short}");
    let d = &said[0];
    let under = script.get(d.primary.span.start as usize..d.primary.span.end as usize).unwrap().to_owned();
    (d.code, under, format!("{}\n{:?}\n{:?}", d.message, d.notes, d.help))
}

#[test]
fn what_is_not_known_is_said_and_not_guessed() {
    let run = |args: &str| format!("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py {SHAPE} {args}");
    let (code, under, words) = one(&run("--tensor-model-parallel-size $(cat tp)"));
    assert_eq!((code, under.as_str()), (Code::ImportIgnored, "$(cat tp)"));
    assert!(words.contains("not known") && words.contains("not run"));
    let (code, under, _) = one(&run("--tensor-model-parallel-size 2 --brand-new 7"));
    assert_eq!((code, under.as_str()), (Code::ImportIgnored, "--brand-new"));
    let (program, ..) = megatron(&run("--brand-new 7"));
    assert!(program.unwrap().contains("// not read: --brand-new 7"));
    // A backslash too few: the shell drops what follows.
    let (code, under, words) =
        one(&format!("{}\n  --fp16 --sequence-parallel\n", run("--tensor-model-parallel-size 2")));
    assert_eq!((code, under.as_str()), (Code::ImportIgnored, "--fp16"));
    assert!(words.contains("2 options") && words.contains("backslash"), "{words}");
    let (code, _, words) = one(&run("--virtual-pipeline-model-parallel-size 2"));
    assert!(code == Code::ImportIgnored && words.contains("--num-virtual-stages-per-pipeline-rank"), "{words}");
}

#[test]
fn rules_are_said_at_the_option_that_breaks_them() {
    let run = |args: &str| format!("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py {SHAPE} {args}");
    for (args, under, words) in [
        ("--pipeline-model-parallel-size 3", "--pipeline-model-parallel-size 3", "16 devices"),
        ("--pipeline-model-parallel-size 4 --num-layers 30", "--pipeline-model-parallel-size 4", "30 layers over 4"),
        (
            "--tensor-model-parallel-size 4 --num-query-groups 3 --group-query-attention",
            "--num-query-groups 3",
            "3 key",
        ),
        (
            "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
            "--num-layers-per-virtual-pipeline-stage 3",
            "24 of 32",
        ),
        ("--num-layers-per-virtual-pipeline-stage 4", "--num-layers-per-virtual-pipeline-stage 4", "the only stage"),
        ("--micro-batch-size 3", "--global-batch-size 64", "multiple of 48"),
        (
            "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout Et*7|t*8|t*8|t*8L",
            "--pipeline-model-parallel-layout Et*7",
            "",
        ),
        (
            "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*7|t*8|t*8|t*8L'",
            "--pipeline-model-parallel-layout 'Et*7|t*8|t*8|t*8L",
            "31 layers",
        ),
        ("--fp16", "--fp16", "two half precisions"),
        ("--overlap-param-gather", "--overlap-param-gather", "use-distributed-optimizer"),
        ("--recompute-granularity full", "--recompute-granularity full", "recompute-method"),
        ("--expert-model-parallel-size 2", "--expert-model-parallel-size 2", "without experts"),
        ("--num-experts 6 --expert-model-parallel-size 4", "--num-experts 6", "6 experts over 4"),
        ("--context-parallel-size 4 --seq-length 4092", "--seq-length 4092", "multiple of 8"),
        ("--max-position-embeddings 1024", "--max-position-embeddings 1024", "cover"),
        ("--optimizer-cpu-offload", "--optimizer-cpu-offload", "precision-aware"),
        ("--tp-comm-overlap", "--tp-comm-overlap", "sequence-parallel"),
        ("--hidden-size 4097", "--hidden-size 4097", "a hidden width"),
    ] {
        let script = run(args);
        let (program, said, short) = megatron(&script);
        if words.is_empty() {
            // An unquoted `|` ends the command: what is behind it is another one.
            assert!(!said.is_empty(), "{short}");
            continue;
        }
        assert!(program.is_none(), "{args}: {program:?}");
        let found = said.iter().find(|d| d.code == Code::ImportRefused).unwrap_or_else(|| panic!("{args}: {short}"));
        let at = script.get(found.primary.span.start as usize..found.primary.span.end as usize).unwrap();
        assert_eq!(at, under, "{short}");
        let all = format!("{}{:?}", found.message, found.notes);
        assert!(all.contains(words), "{args}: {all}");
    }
}

#[test]
fn torchtitan_in_toml_and_in_python_say_the_same() {
    let toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nglobal_batch_size = 64\nseq_len = 8192\n\
        [parallelism]\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = \"full\"\n";
    let python = "# A run.\nfrom torchtitan.models.llama3 import model_registry\nfrom torchtitan.models.llama3.config_registry import llama3_8b\n\n\n\
        def run():\n    config = llama3_8b()\n    config.model_spec = model_registry(\"8B\", converters=[F.Config(x=[1])])\n    \
        config.training = TrainingConfig(local_batch_size=2, global_batch_size=64,\n        seq_len=8192)\n    \
        config.parallelism.data_parallel_shard_degree = 8\n    config.parallelism.tensor_parallel_degree = 2\n    \
        config.activation_checkpoint = FullAC.Config()\n    return config\n";
    let of = |name: &str, text: &str| {
        let (program, said, short) = imported(import::torchtitan, name, text, &Extra::default());
        let said: Vec<_> = said.iter().filter(|d| !d.message.contains("converters")).collect();
        assert!(said.is_empty(), "{short}");
        let program = program.unwrap();
        assert_eq!(checked(&program), "", "{program}");
        let job = program.split_once("let Model").unwrap().1.to_owned();
        assert!(job.contains("tp: Int = 2") && job.contains("recompute all") && job.contains("hold = layer"), "{job}");
        job
    };
    assert_eq!(of("run.toml", toml), of("run.py", python));
}

#[test]
fn no_text_does_harm() {
    let deep = |s: &str, n: usize| s.repeat(n);
    let texts = [
        deep("(", 10 << 20),
        deep("((((", 1 << 16),
        deep("$(", 1 << 17),
        deep("$((", 1 << 17),
        deep("${a:-", 1 << 17),
        deep("\"", (1 << 17) + 1),
        deep("`", (1 << 17) + 1),
        deep("a=$a$a$a$a\n", 1 << 16),
        format!("a=--num-layers\n{}torchrun $a", deep("a=\"$a $a\"\n", 64)),
        deep("<<E\n", 1 << 15),
        deep("A+=( --num-layers ", 1 << 15),
        deep("[", 1 << 17),
        deep("{\"a\":", 1 << 15),
        deep("x(a=", 1 << 15),
        deep("x = [", 1 << 15),
        format!("config.training = {}", deep("f(x,", 1 << 15)),
        format!("[parallelism]\n{}", deep("a.b.c.", 1 << 16)),
        format!("pretrain_gpt.py --num-layers {}", deep("9", 1 << 20)),
        "pretrain_gpt.py --num-layers '; rm -rf /' --hidden-size $(touch pwned) --num-attention-heads `id`".into(),
        "pretrain_gpt.py --num-layers -5 --hidden-size --num-attention-heads -- -x\u{202e}\u{0}\u{7f}".into(),
        "pretrain_gpt.py --num-layers 1 --hidden-size 18446744073709551615 --num-attention-heads 3 --ffn-hidden-size 1e99".into(),
        format!("pretrain_gpt.py {SHAPE} --note '\n}} train evil {{ }} // $(x)\u{1f600}'"),
        format!("pretrain_gpt.py {SHAPE} --tensor-model-parallel-size 1099511627776 --pipeline-model-parallel-size 1099511627776"),
        format!("pretrain_gpt.py {SHAPE} --pipeline-model-parallel-layout '{}'", deep("(t*9999|)*9999", 1000)),
        "\u{feff}#!/bin/bash\r\nA=1\r\n".into(),
        String::new(),
    ];
    for text in &texts {
        for (name, import) in [
            ("x.sh", import::megatron as Import),
            ("x.toml", import::torchtitan),
            ("x.py", import::torchtitan),
            ("x.json", import::deepspeed),
        ] {
            let begun = Instant::now();
            let (program, _, short) =
                imported(import, name, text, &Extra { model: Some("Llama3_8B".into()), ..Extra::default() });
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{name} {:?}",
                text.chars().take(30).collect::<String>()
            );
            assert!(
                program.is_some() || !short.is_empty(),
                "{name} says nothing of {:?}",
                text.chars().take(30).collect::<String>()
            );
            if let Some(program) = program {
                assert!(!program.contains("\ntrain evil"), "{program}");
                compile::check(&program);
            }
        }
    }
    assert!(!root().join("pwned").exists());
}

#[test]
fn no_edit_of_a_script_does_harm() {
    let example = text(&root().join("examples/llama3_8b.par"));
    let plan = compile::clean(&example).launched(&[]);
    let made = (targets::find("megatron").unwrap().program)(&plan).unwrap();
    let files = launchers::find("torchrun").unwrap().artifacts(&plan, &made).unwrap();
    let script = String::from_utf8(files[std::path::Path::new("launch.sh")].bytes.clone()).unwrap();
    for i in (0..script.len()).step_by(23) {
        let (Some(head), Some(rest)) = (script.get(..i), script.get(i + 1..)) else { continue };
        megatron(head);
        for with in ["'", "\"", "$", "(", ")", "\\", "`", "\n", "0", "é"] {
            megatron(&format!("{head}{with}{rest}"));
        }
    }
}

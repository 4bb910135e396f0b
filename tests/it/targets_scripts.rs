//! Launch scripts, run under bash with programs that only say how they were called.

use crate::sample_plans;
use parc::cli::output::{self, Edited};
use parc::emit::plan::Plan;
use parc::emit::{Artifacts, launchers, shell, targets};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Strings that break scripts which do not quote.
const HOSTILE: &[&str] = &[
    "it's \"quoted\"",
    "two\nlines\r\n# and\ttabs",
    "$(touch pwned) `touch pwned` ${HOME} $HOME",
    "; touch pwned; && || & | > pwned <",
    "--help",
    "-n",
    "~root *? [a-z] {a,b} !!",
    "\\ \\n 'a'\\''b' \\",
    "",
    "naïve 模型 🚀",
    "\u{1b}[31mred\u{1b}[0m \u{7}\u{202e}evil\u{feff}",
    "#SBATCH --uid=0",
    "EOF\n$'x'",
];

fn artifacts(plan: &Plan, launcher: &str) -> Artifacts {
    let program = (targets::find("megatron").unwrap().program)(plan).unwrap();
    launchers::find(launcher).unwrap().artifacts(plan, &program).unwrap()
}

fn written(plan: &Plan, launcher: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    output::write(&artifacts(plan, launcher), &out, Edited::Keep).unwrap();
    (dir, out)
}

/// Adds a program to the folder `bin` of `dir`.
pub(crate) fn fake(dir: &Path, name: &str, body: &str) {
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let file = bin.join(name);
    fs::write(&file, format!("#!/usr/bin/env bash\n{body}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Says its environment of interest and its arguments, each ended by a NUL.
pub(crate) const TELL: &str = r#"printf '%s\0' "$PARC_JOB" "$CUDA_DEVICE_MAX_CONNECTIONS" "$@""#;

/// Runs a script of `dir` with the fake programs; gives what they told.
pub(crate) fn run(dir: &Path, script: &Path, args: &[&str], environment: &[(&str, &str)]) -> (Vec<String>, bool) {
    let path = format!("{}:/usr/bin:/bin", dir.join("bin").display());
    let output = Command::new("bash")
        .arg(script)
        .args(args)
        .env_clear()
        .env("PATH", path)
        .envs(environment.iter().copied())
        .current_dir(dir)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(!dir.join("pwned").exists(), "a name was executed");
    (told.split_terminator('\0').map(str::to_owned).collect(), output.status.success())
}

/// The arguments torchrun should get for node `rank` of the 8B plan.
fn expected(plan: &Plan, rank: &str, master: &str, port: &str) -> Vec<String> {
    let program = (targets::find("megatron").unwrap().program)(plan).unwrap();
    let mut out: Vec<String> = [
        plan.job.name.as_str(),
        "1",
        "--nnodes",
        "2",
        "--nproc-per-node",
        "8",
        "--node-rank",
        rank,
        "--master-addr",
        master,
        "--master-port",
        port,
        "/opt/my megatron/pretrain_gpt.py",
    ]
    .map(str::to_owned)
    .to_vec();
    out.extend(program.arguments());
    out
}

const HOME: (&str, &str) = ("MEGATRON_HOME", "/opt/my megatron");

#[test]
fn launch_sh_gives_torchrun_exactly_the_arguments() {
    let plan = sample_plans::llama3_8b();
    let (dir, out) = written(&plan, "torchrun");
    fake(dir.path(), "torchrun", TELL);
    fake(dir.path(), "hostname", "echo n1.cluster");
    let script = out.join("launch.sh");
    let (told, ok) = run(dir.path(), &script, &[], &[("PARC_NODES", "n0\nn1"), HOME]);
    assert!(ok);
    assert_eq!(told, expected(&plan, "1", "n0", "29500"));
    let by_hand = [("MASTER_ADDR", "n7"), ("NODE_RANK", "0"), ("MASTER_PORT", "1234"), HOME];
    let (told, _) = run(dir.path(), &script, &["--lr", "1e-4 x"], &by_hand);
    let mut wanted = expected(&plan, "0", "n7", "1234");
    wanted.extend(["--lr".into(), "1e-4 x".into()]);
    assert_eq!(told, wanted);
    let (told, ok) = run(dir.path(), &script, &[], &[HOME]);
    assert!(!ok && told.is_empty(), "two nodes and no word on which this is");
    assert!(fs::metadata(&script).unwrap().permissions().mode() & 0o111 != 0);
}

#[test]
fn one_node_needs_no_environment() {
    use sample_plans::{Data, Mesh};
    let mesh: Mesh = &[("dp", 8, Data)];
    let d = sample_plans::llama3_8b().model.decoder.unwrap();
    let plan = sample_plans::plan("small", &d, mesh, 1, &[32], (128, 8192, 1));
    let (dir, out) = written(&plan, "torchrun");
    fake(dir.path(), "torchrun", TELL);
    let (told, ok) = run(dir.path(), &out.join("launch.sh"), &[], &[]);
    assert!(ok);
    assert_eq!(told[2..8], ["--nnodes", "1", "--nproc-per-node", "8", "--node-rank", "0"]);
    assert_eq!(told[12], "./pretrain_gpt.py");
}

#[test]
fn job_sbatch_starts_every_node_with_its_number() {
    let plan = sample_plans::llama3_8b();
    let (dir, out) = written(&plan, "slurm");
    fake(dir.path(), "torchrun", TELL);
    fake(dir.path(), "scontrol", "printf 'n3\\nn4\\n'");
    // Runs the command of srun once a node, and checks the options before it.
    fake(
        dir.path(),
        "srun",
        r#"[[ "$1 $2 $3" == "--ntasks-per-node=1 --distribution=block --kill-on-bad-exit=1" ]] || exit 3
        shift 3
        for i in 0 1; do SLURM_NODEID=$i "$@"; done"#,
    );
    let submit = out.to_str().unwrap();
    let environment = [
        ("SLURM_SUBMIT_DIR", submit),
        ("SLURM_JOB_NODELIST", "n[3-4]"),
        ("SLURM_JOB_ID", "41234"),
        ("SLURM_NODEID", "0"),
        HOME,
    ];
    let (told, ok) = run(dir.path(), &out.join("job.sbatch"), &[], &environment);
    assert!(ok);
    let wanted = [expected(&plan, "0", "n3", "21234"), expected(&plan, "1", "n3", "21234")].concat();
    assert_eq!(told, wanted);
    let text = fs::read_to_string(out.join("job.sbatch")).unwrap();
    let options: Vec<_> =
        text.lines().take_while(|l| l.starts_with('#')).filter(|l| l.starts_with("#SBATCH")).collect();
    assert_eq!(
        options,
        [
            "#SBATCH --job-name=train_8b",
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --gpus-per-node=8",
            "#SBATCH --exclusive",
            "#SBATCH --output=train_8b-%j.log",
        ]
    );
}

/// Sets every string of a plan that a user can choose.
fn named(name: &str) -> Plan {
    let mut plan = sample_plans::llama3_8b();
    let old: Vec<_> = plan.layout.axes.iter().map(|a| a.name.clone()).collect();
    for s in [
        &mut plan.job.name,
        &mut plan.job.file,
        &mut plan.model.name,
        &mut plan.cluster.name,
        &mut plan.cluster.device,
        &mut plan.layout.name,
        &mut plan.compiler,
        &mut plan.std_hash,
    ] {
        name.clone_into(s);
    }
    for (i, axis) in plan.layout.axes.iter_mut().enumerate() {
        axis.name = format!("{name}{i}");
    }
    plan.layout.stored = BTreeMap::from([("state", vec![format!("{name}1")])]);
    plan.groups = old.iter().enumerate().map(|(i, o)| (format!("{name}{i}"), plan.groups[o].clone())).collect();
    plan.job.set = vec![(name.into(), name.into())];
    for level in &mut plan.cluster.levels {
        name.clone_into(&mut level.name);
        name.clone_into(&mut level.link);
    }
    for axis in &mut plan.layout.axes {
        name.clone_into(&mut axis.level);
    }
    plan
}

#[test]
fn hostile_names_stay_data() {
    let long = "x'\n".repeat(20_000);
    for name in HOSTILE.iter().copied().chain([long.as_str()]) {
        let plan = named(name);
        let (dir, out) = written(&plan, "slurm");
        fake(dir.path(), "torchrun", TELL);
        let environment = [("MASTER_ADDR", "n0"), ("NODE_RANK", "0"), HOME];
        let (told, ok) = run(dir.path(), &out.join("launch.sh"), &[], &environment);
        assert!(ok, "{name:?}");
        assert_eq!(told, expected(&plan, "0", "n0", "29500"));
        let batch = fs::read_to_string(out.join("job.sbatch")).unwrap();
        assert_eq!(batch.lines().filter(|l| l.starts_with("#SBATCH")).count(), 6, "{name:?} adds an option");
        for line in batch.lines().filter(|l| l.starts_with("#SBATCH")) {
            assert!(line.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !line.contains("=-"), "{line:?}");
        }
        for file in ["launch.sh", "job.sbatch"] {
            let text = fs::read_to_string(out.join(file)).unwrap();
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{name:?}: {file} would act on a terminal");
        }
        let json: serde_json::Value = serde_json::from_slice(&fs::read(out.join("plan.json")).unwrap()).unwrap();
        assert_eq!(json["job"]["name"], name);
    }
}

#[test]
fn quoted_words_come_back_as_they_were() {
    let mut words: Vec<String> = HOSTILE.iter().map(|s| (*s).to_owned()).collect();
    words.push("y\\'\"$`".repeat(10_000));
    words.extend((1..=255u8).map(|b| char::from(b).to_string()));
    words.extend((1..128u8).map(|b| format!("\u{1}{}7", char::from(b))));
    let script = format!("printf '%s\\0' {}", shell::words(&words));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s"), script).unwrap();
    let (told, ok) = run(dir.path(), &dir.path().join("s"), &[], &[]);
    assert!(ok);
    assert_eq!(told, words);
}

#[test]
fn scripts_please_shellcheck() {
    let shellcheck = ["/usr/bin/shellcheck", "/usr/local/bin/shellcheck"].into_iter().find(|p| Path::new(p).exists());
    let Some(shellcheck) = shellcheck else {
        assert!(std::env::var_os("CI").is_none(), "shellcheck is required in CI");
        eprintln!("skipped: shellcheck is not installed");
        return;
    };
    let mut plans = vec![sample_plans::llama3_8b(), sample_plans::gpt3(), named("it's $(x)\n`y` 🚀")];
    let d = plans[0].model.decoder.clone().unwrap();
    let mesh: sample_plans::Mesh = &[("pp", 4, sample_plans::Pipeline), ("dp", 2, sample_plans::Data)];
    plans.push(sample_plans::plan("uneven", &d, mesh, 1, &[8, 8, 10, 6], (128, 8192, 1)));
    for plan in &plans {
        let (_dir, out) = written(plan, "slurm");
        for file in ["launch.sh", "job.sbatch"] {
            let output =
                Command::new(shellcheck).args(["--norc", "--severity=style"]).arg(out.join(file)).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

#[test]
fn nodes_are_filled_in_order_or_not_at_all() {
    let program = (targets::find("megatron").unwrap().program)(&sample_plans::llama3_8b()).unwrap();
    let refused = |change: fn(&mut Plan)| {
        let mut plan = sample_plans::llama3_8b();
        change(&mut plan);
        launchers::find("slurm").unwrap().artifacts(&plan, &program).unwrap_err()
    };
    assert!(refused(|p| p.ranks.clear()).contains("no ranks"));
    assert!(refused(|p| drop(p.ranks.pop())).contains("15 ranks"));
    assert!(refused(|p| p.ranks.swap(2, 9)).contains("rank 2"));
    assert!(refused(|p| p.ranks[5].local_rank = u64::MAX).contains("rank"));
}

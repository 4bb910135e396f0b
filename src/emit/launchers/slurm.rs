//! `job.sbatch`: one task on every node runs `launch.sh`, which starts torchrun.

use super::{Job, torchrun};
use crate::emit::{Artifact, Artifacts};
use std::fmt::Write;

pub(super) fn artifacts(job: &Job) -> Artifacts {
    let mut artifacts = torchrun::artifacts(job);
    artifacts.insert("job.sbatch".into(), Artifact::script(script(job)));
    artifacts
}

fn script(job: &Job) -> String {
    let mut s = String::from("#!/usr/bin/env bash\n");
    let name = job_name(&job.plan.job.name);
    let _ = writeln!(s, "#SBATCH --job-name={name}");
    let _ = writeln!(s, "#SBATCH --nodes={}", job.nodes);
    s += "#SBATCH --ntasks-per-node=1\n";
    let _ = writeln!(s, "#SBATCH --gpus-per-node={}", job.per_node);
    s += "#SBATCH --exclusive\n";
    let _ = writeln!(s, "#SBATCH --output={name}-%j.log");
    s += "# ---- Edit here: add #SBATCH lines your Slurm needs (partition, account, time, cpus-per-task), ----\n";
    s += "# ---- or give those options to sbatch. ------------------------------------------------------------\n\n";
    s += &torchrun::header(job, "Submit from this folder: sbatch job.sbatch");
    s += BODY;
    s
}

/// One task a node, in the order of the node list: then `SLURM_NODEID` is the plan's node. `srun` is told the CPUs of a
/// task because it does not take them from `sbatch`.
const BODY: &str = r#"set -euo pipefail

folder=${PARC_OUT:-${SLURM_SUBMIT_DIR:?submit this with sbatch}}
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR=${hosts[0]}
export MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 20000))}
if [[ -n ${SLURM_CPUS_PER_TASK:-} ]]; then
  export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
fi
unset NODE_RANK PARC_NODES

exec srun --ntasks-per-node=1 --distribution=block --kill-on-bad-exit=1 bash "$folder/launch.sh" "$@"
"#;

/// A Slurm job name made of the job's: letters, digits, `_`, `-` and `.`, at most 64, not starting with `-` or `.`.
///
/// `#SBATCH` lines are read by Slurm, not by a shell, so quoting would not protect them.
fn job_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() { "parc".into() } else { name.into() }
}

//! `launch.sh`: the processes of one node, with static rendezvous so that ranks are numbered as the plan numbers them.

use super::Job;
use crate::emit::shell::{comment, quote};
use crate::emit::targets::{Entry, Section, Starter, Word};
use crate::emit::{Artifact, Artifacts};
use std::fmt::Write;

/// Name of the script.
pub(super) const SCRIPT: &str = "launch.sh";

pub(super) fn artifacts(job: &Job) -> Artifacts {
    Artifacts::from([(SCRIPT.into(), Artifact::script(script(job)))])
}

/// The script that starts one node's processes.
fn script(job: &Job) -> String {
    let mut s = String::from("#!/usr/bin/env bash\n");
    s += &header(job, "Starts the processes of one node; run it on every node.");
    let (nodes, per_node) = (job.nodes, job.per_node);
    let _ = writeln!(s, "#\n# Where this runs, from the environment:");
    if nodes > 1 {
        s += "#   PARC_NODES    host names of all nodes, separated by blanks, the first one leads; or\n";
        s += "#   MASTER_ADDR   host name of the first node, and\n";
        s += "#   NODE_RANK     number of this node, from 0 (under Slurm: SLURM_NODEID)\n";
    }
    s += "#   MASTER_PORT   a free port of the first node; 29500 if unset\n";
    match job.program.entry {
        Entry::Script { home, file } => {
            let _ = writeln!(s, "#   {home:<13} folder of {file}; the present folder if unset");
        }
        Entry::Yours => s += "#   TRAIN_SCRIPT  your training script; train.py of the present folder if unset\n",
        Entry::Module(_) | Entry::Beside(_) => {}
    }
    s += "# Further arguments are passed on, after all others.\nset -euo pipefail\n";
    if !job.program.files.is_empty() {
        s += "\n# The files beside this script.\nfolder=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n";
    }
    if !job.program.editable.is_empty() {
        s += "\n# ---- Edit here: what the plan leaves open ----------------------------------------\n";
        for section in &job.program.editable {
            array(&mut s, section);
        }
        s += "# ---- End of what to edit ----------------------------------------------------------\n";
    }
    if !job.program.derived.is_empty() {
        s += "\n# What follows comes from the plan. To change it, change the layout and build again.\n";
    }
    for section in &job.program.derived {
        array(&mut s, section);
    }
    s.push('\n');
    let _ = writeln!(s, "export PARC_JOB={}", quote(&job.plan.job.name));
    for (name, value) in &job.program.environment {
        let _ = writeln!(s, "export {name}={}", quote(value));
    }
    if matches!(job.program.entry, Entry::Module(_)) && !job.program.files.is_empty() {
        s += "export PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH}\n";
    }
    s.push('\n');
    if nodes > 1 {
        s += FIND_NODE;
    } else {
        s += "node_rank=0\nmaster=${MASTER_ADDR:-127.0.0.1}\n";
    }
    s.push('\n');
    let port = "${MASTER_PORT:-29500}";
    match job.program.starter {
        Starter::Torchrun => {
            let _ = write!(
                s,
                "exec torchrun \\\n  --nnodes {nodes} --nproc-per-node {per_node} \\\n  --node-rank \"$node_rank\" \
                 --master-addr \"$master\" --master-port \"{port}\" \\\n  "
            );
        }
        Starter::Accelerate(config) => {
            let _ = write!(
                s,
                "exec accelerate launch \\\n  --config_file \"$folder\"/{} \\\n  --machine_rank \"$node_rank\" \
                 --main_process_ip \"$master\" --main_process_port \"{port}\" \\\n  ",
                quote(config)
            );
        }
    }
    let _ = match job.program.entry {
        Entry::Script { home, file } => writeln!(s, "\"${{{home}:-.}}\"/{} \\", quote(file)),
        Entry::Module(module) => writeln!(s, "-m {} \\", quote(module)),
        Entry::Beside(file) => writeln!(s, "\"$folder\"/{} \\", quote(file)),
        Entry::Yours => writeln!(s, "\"${{TRAIN_SCRIPT:-train.py}}\" \\"),
    };
    for section in job.program.derived.iter().chain(&job.program.editable) {
        let _ = writeln!(s, "  \"${{{}[@]}}\" \\", name(section));
    }
    s += "  \"$@\"\n";
    s
}

/// Comment lines that say what this is and where it came from.
pub(super) fn header(job: &Job, purpose: &str) -> String {
    let (plan, program) = (job.plan, job.program);
    let mut s = String::new();
    let _ = writeln!(s, "# {purpose}");
    let _ =
        writeln!(s, "# Job:     {}, line {} of {}", comment(&plan.job.name), plan.job.line, comment(&plan.job.file));
    let _ = writeln!(
        s,
        "# Model:   {} on {} x {}",
        comment(&plan.model.name),
        plan.cluster.devices,
        comment(&plan.cluster.device)
    );
    let _ = writeln!(s, "# Target:  {} {}, {}", program.target, program.version, program.entry.name());
    let _ = writeln!(s, "# Written by parc {}; the whole plan is in plan.json.", comment(&plan.compiler));
    s
}

/// Finds this node's number and the first node.
const FIND_NODE: &str = r#"node_rank=${NODE_RANK:-${SLURM_NODEID:-}}
master=${MASTER_ADDR:-}
if [[ -n ${PARC_NODES:-} ]]; then
  read -r -a hosts <<<"${PARC_NODES//[$'\n',]/ }"
  master=${master:-${hosts[0]}}
  if [[ -z $node_rank ]]; then
    self=$(hostname)
    for i in "${!hosts[@]}"; do
      if [[ ${hosts[i]} == "$self" || ${hosts[i]} == "${self%%.*}" || ${hosts[i]%%.*} == "$self" ]]; then
        node_rank=$i
      fi
    done
  fi
fi
if [[ -z $node_rank || -z $master ]]; then
  echo "launch.sh: set PARC_NODES, or MASTER_ADDR and NODE_RANK" >&2
  exit 2
fi
"#;

/// A section as an array, one option a line.
fn array(s: &mut String, section: &Section) {
    let _ = writeln!(s, "# {}", section.title);
    let _ = writeln!(s, "{}=(", name(section));
    for option in &section.options {
        let _ = write!(s, "  {}", quote(option.flag));
        for value in &option.values {
            let _ = match value {
                Word::Text(text) => write!(s, " {}", quote(text)),
                Word::Beside(file) => write!(s, " \"$folder\"/{}", quote(file)),
            };
        }
        s.push('\n');
    }
    s.push_str(")\n");
}

/// The array's name: the title, as an identifier.
fn name(section: &Section) -> String {
    section.title.replace(' ', "_")
}

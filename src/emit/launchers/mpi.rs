//! `mpi.sh`: mpirun starts one shell on every host, each of which runs `launch.sh`.

use super::{Job, torchrun};
use crate::emit::{Artifact, Artifacts};
use std::fmt::Write as _;

pub(super) fn artifacts(job: &Job) -> Artifacts {
    let mut artifacts = torchrun::artifacts(job);
    artifacts.insert("mpi.sh".into(), Artifact::script(script(job)));
    artifacts
}

fn script(job: &Job) -> String {
    let mut s = String::from("#!/usr/bin/env bash\n");
    s += &torchrun::header(
        job,
        "Start with: bash mpi.sh HOSTFILE. Each line of the file names a host; the first one leads.",
    );
    let _ = write!(
        s,
        "set -euo pipefail\nhosts=${{1:?usage: bash mpi.sh HOSTFILE [arguments]}}\nshift\n\
         folder=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" && pwd)\n\
         read -r MASTER_ADDR _ < <(grep -v '^[[:space:]]*\\(#\\|$\\)' \"$hosts\")\n\
         export MASTER_ADDR MASTER_PORT=${{MASTER_PORT:-29500}}\n\n\
         # One process a node, in the order of the file: mpirun's rank is the plan's node.\n\
         exec mpirun -np {} --hostfile \"$hosts\" --map-by ppr:1:node --bind-to none \\\n  \
         -x MASTER_ADDR -x MASTER_PORT -x PATH \\\n  \
         bash -c 'NODE_RANK=$OMPI_COMM_WORLD_RANK exec bash \"$0\" \"$@\"' \"$folder\"/launch.sh \"$@\"\n",
        job.nodes
    );
    s
}

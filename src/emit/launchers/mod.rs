//! Launchers: from a target's command line to scripts that start it on every node.
//!
//! To add one: write `launchers/NAME.rs` with `pub(super) fn artifacts(&Job) -> Artifacts`, add it to
//! [`LAUNCHERS`], put every name and path through [`super::shell`], and run what it writes in a test.

mod kubernetes;
mod mpi;
mod ray;
mod skypilot;
mod slurm;
mod torchrun;

use super::plan::Plan;
use super::targets::Program;
use super::{Artifact, Artifacts, PLAN_FILE, plan_json};

/// A way to start processes on nodes.
#[derive(Debug)]
pub struct Launcher {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The file to run, for the message after writing.
    pub start: &'static str,
    artifacts: fn(&Job) -> Artifacts,
}

/// Every launcher, in the order of help texts.
pub static LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "torchrun",
        title: "torchrun on every node, started by hand or by another tool",
        start: "bash launch.sh",
        artifacts: torchrun::artifacts,
    },
    Launcher {
        name: "slurm",
        title: "a Slurm batch job that starts torchrun on every node",
        start: "sbatch job.sbatch",
        artifacts: slurm::artifacts,
    },
    Launcher {
        name: "jobset",
        title: "a Kubernetes JobSet, one pod a node",
        start: "kubectl apply -f jobset.yaml",
        artifacts: kubernetes::jobset,
    },
    Launcher {
        name: "trainjob",
        title: "a Kubeflow TrainJob (v2)",
        start: "kubectl apply -f trainjob.yaml",
        artifacts: kubernetes::trainjob,
    },
    Launcher {
        name: "pytorchjob",
        title: "a Kubeflow PyTorchJob (v1)",
        start: "kubectl apply -f pytorchjob.yaml",
        artifacts: kubernetes::pytorchjob,
    },
    Launcher {
        name: "leaderworkerset",
        title: "a Kubernetes LeaderWorkerSet",
        start: "kubectl apply -f leaderworkerset.yaml",
        artifacts: kubernetes::leaderworkerset,
    },
    Launcher {
        name: "ray",
        title: "a Ray job that reserves whole nodes",
        start: "ray job submit --working-dir . -- python ray_launch.py",
        artifacts: ray::artifacts,
    },
    Launcher {
        name: "skypilot",
        title: "a SkyPilot task",
        start: "sky launch sky.yaml",
        artifacts: skypilot::artifacts,
    },
    Launcher {
        name: "mpirun",
        title: "mpirun with a host file",
        start: "bash mpi.sh HOSTFILE",
        artifacts: mpi::artifacts,
    },
];

/// The launcher of this name.
pub fn find(name: &str) -> Option<&'static Launcher> {
    LAUNCHERS.iter().find(|l| l.name == name)
}

impl Launcher {
    /// Every file of an output folder: the plan and what starts it. The error says why no launcher can.
    pub fn artifacts(&self, plan: &Plan, program: &Program) -> Result<Artifacts, String> {
        let (nodes, per_node) = nodes(plan)?;
        let mut artifacts = (self.artifacts)(&Job { plan, program, nodes, per_node });
        artifacts.extend(program.files.clone());
        artifacts.insert(PLAN_FILE.into(), Artifact::text(plan_json(plan)));
        Ok(artifacts)
    }
}

/// What a launcher starts.
struct Job<'a> {
    plan: &'a Plan,
    program: &'a Program,
    nodes: u64,
    per_node: u64,
}

/// Nodes and processes on each. A launcher numbers ranks node after node, so the plan must too.
fn nodes(plan: &Plan) -> Result<(u64, u64), String> {
    let per_node = plan.ranks.iter().map(|r| r.local_rank).max().map_or(0, |r| r.saturating_add(1));
    if per_node == 0 {
        return Err("the plan has no ranks".into());
    }
    let stray = plan.ranks.iter().enumerate().find(|(i, r)| {
        let i = *i as u64;
        r.rank != i || r.node != i / per_node || r.local_rank != i % per_node
    });
    if let Some((i, r)) = stray {
        return Err(format!(
            "rank {i} is process {} of node {}; launchers give every node {per_node} ranks in order",
            r.local_rank, r.node
        ));
    }
    let ranks = plan.ranks.len() as u64;
    if !ranks.is_multiple_of(per_node) {
        return Err(format!("{ranks} ranks do not fill nodes of {per_node}"));
    }
    Ok((ranks / per_node, per_node))
}

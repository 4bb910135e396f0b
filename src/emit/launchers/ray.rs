//! `ray_launch.py`: a Ray job that reserves whole nodes and runs `launch.sh` on each.

use super::{Job, torchrun};
use crate::emit::{Artifact, Artifacts};
use std::fmt::Write as _;

pub(super) fn artifacts(job: &Job) -> Artifacts {
    let mut artifacts = torchrun::artifacts(job);
    artifacts.insert("ray_launch.py".into(), Artifact::text(script(job)));
    artifacts
}

fn script(job: &Job) -> String {
    let mut s =
        torchrun::header(job, "Submit from this folder: ray job submit --working-dir . -- python ray_launch.py");
    let _ = writeln!(s, "\nNODES = {}\nDEVICES = {}", job.nodes, job.per_node);
    s += BODY;
    s
}

/// Bundles of one placement group lie on different nodes. Ray numbers nodes as it likes, and within a plan any node may be
/// any other, so the order in which bundles were placed is as good as another.
const BODY: &str = r#"
import os
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
def address():
    return ray.util.get_node_ip_address()


@ray.remote(max_retries=0)
def node(rank, master, arguments):
    env = dict(os.environ, NODE_RANK=str(rank), MASTER_ADDR=master)
    # Ray shows a task only the devices it asked for; this one asked for all of its node.
    return subprocess.run(["bash", "launch.sh", *arguments], env=env).returncode


ray.init()
group = placement_group([{"GPU": DEVICES, "CPU": 1}] * NODES, strategy="STRICT_SPREAD")
ray.get(group.ready())


def on(i):
    return PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=i)


master = ray.get(address.options(scheduling_strategy=on(0), num_cpus=1).remote())
tasks = [
    node.options(scheduling_strategy=on(i), num_cpus=1, num_gpus=DEVICES).remote(i, master, sys.argv[1:])
    for i in range(NODES)
]
sys.exit(max(ray.get(tasks), key=abs))
"#;

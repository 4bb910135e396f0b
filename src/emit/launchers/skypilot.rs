//! `sky.yaml`: a `SkyPilot` task whose every node runs `launch.sh`.

use super::{Job, torchrun};
use crate::emit::{Artifact, Artifacts};
use serde_json::json;

pub(super) fn artifacts(job: &Job) -> Artifacts {
    let mut artifacts = torchrun::artifacts(job);
    artifacts.insert("sky.yaml".into(), Artifact::text(task(job)));
    artifacts
}

fn task(job: &Job) -> String {
    let header = torchrun::header(job, "Launch from this folder: sky launch sky.yaml");
    let value = json!({
        "num_nodes": job.nodes,
        "resources": {"accelerators": format!("{}:{}", accelerator(&job.plan.cluster.device), job.per_node)},
        "workdir": ".",
        "run": "PARC_NODES=\"$SKYPILOT_NODE_IPS\" NODE_RANK=\"$SKYPILOT_NODE_RANK\" bash launch.sh\n",
    });
    let yaml = yaml_serde::to_string(&value).expect("keys are strings");
    format!("{header}# Edit here: setup, cloud, region and disks as you need them.\n{yaml}")
}

/// `SkyPilot`'s name of a device: the library's without the form factor, and memory where two sizes exist.
fn accelerator(device: &str) -> String {
    let (short, rest) = device.split_once('_').unwrap_or((device, ""));
    match (short, rest) {
        ("A100", r) if r.ends_with("80") => "A100-80GB".into(),
        ("V100", r) if r.ends_with("32") => "V100-32GB".into(),
        ("TPU", version) => format!("tpu-{version}"),
        (short, _) => short.into(),
    }
}

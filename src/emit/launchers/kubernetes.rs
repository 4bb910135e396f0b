//! Kubernetes: one pod a node under a `JobSet`, a `TrainJob`, a `PyTorchJob` or a `LeaderWorkerSet`.
//!
//! Every pod gets `launch.sh` and the files beside it as environment variables, writes them to a folder of its own and
//! runs the script, so that one manifest is all there is to apply. They differ in how a pod learns its number and the
//! first pod's name. Fields were read from the custom resource definitions: `JobSet` `v1alpha2`, Trainer `v1alpha1`,
//! Training Operator `v1`, `LeaderWorkerSet` `v1`.

use super::{Job, torchrun};
use crate::emit::shell::{comment, quote};
use crate::emit::{Artifact, Artifacts};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The image of the manifests: a name that cannot exist, so that a manifest nobody edited fails at once.
const IMAGE: &str = "edit-me.invalid/image-with-the-framework";

pub(super) fn jobset(job: &Job) -> Artifacts {
    let name = name(job);
    let pod = pod(
        job,
        "NODE_RANK=$JOB_COMPLETION_INDEX",
        &[json!({"name": "MASTER_ADDR", "value": format!("{name}-nodes-0-0.{name}")})],
    );
    manifest(
        job,
        "jobset.yaml",
        &json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": name},
            "spec": {
                "network": {"enableDNSHostnames": true},
                "failurePolicy": {"maxRestarts": 0},
                "replicatedJobs": [{
                    "name": "nodes",
                    "replicas": 1,
                    "template": {"spec": {
                        "completionMode": "Indexed",
                        "parallelism": job.nodes,
                        "completions": job.nodes,
                        "backoffLimit": 0,
                        "template": {"spec": pod},
                    }},
                }],
            },
        }),
    )
}

pub(super) fn pytorchjob(job: &Job) -> Artifacts {
    let replica = |n: u64| {
        let mut pod = pod(job, "NODE_RANK=$RANK", &[]);
        // The operator looks for the container of this name.
        pod["containers"][0]["name"] = json!("pytorch");
        json!({"replicas": n, "restartPolicy": "Never", "template": {"spec": pod}})
    };
    let mut replicas = json!({"Master": replica(1)});
    if job.nodes > 1 {
        replicas["Worker"] = replica(job.nodes - 1);
    }
    manifest(
        job,
        "pytorchjob.yaml",
        &json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name(job)},
            // A string: the definition refuses a number.
            "spec": {"nprocPerNode": job.per_node.to_string(), "pytorchReplicaSpecs": replicas},
        }),
    )
}

pub(super) fn trainjob(job: &Job) -> Artifacts {
    let rank = "NODE_RANK=$PET_NODE_RANK MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=$PET_MASTER_PORT";
    manifest(
        job,
        "trainjob.yaml",
        &json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": name(job)},
            "spec": {
                "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch-distributed"},
                "trainer": {
                    "numNodes": job.nodes,
                    "numProcPerNode": job.per_node,
                    "image": IMAGE,
                    "command": ["bash", "-c", unpack(job, rank)],
                    "env": files(job),
                    "resourcesPerNode": {"limits": {resource(job): job.per_node}},
                },
            },
        }),
    )
}

pub(super) fn leaderworkerset(job: &Job) -> Artifacts {
    let pod = pod(job, "NODE_RANK=$LWS_WORKER_INDEX MASTER_ADDR=$LWS_LEADER_ADDRESS", &[]);
    manifest(
        job,
        "leaderworkerset.yaml",
        &json!({
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name(job)},
            "spec": {
                "replicas": 1,
                // The size counts the leader.
                "leaderWorkerTemplate": {
                    "size": job.nodes,
                    "restartPolicy": "RecreateGroupOnPodRestart",
                    "workerTemplate": {"spec": {"containers": pod["containers"], "volumes": pod["volumes"]}},
                },
            },
        }),
    )
}

fn manifest(job: &Job, file: &str, value: &Value) -> Artifacts {
    let header = torchrun::header(job, &format!("kubectl apply -f {file}"));
    let yaml = yaml_serde::to_string(value).expect("keys are strings");
    let text = format!(
        "{header}# Edit here: the image; namespace, node selector, volumes and network as your cluster needs them.\n{yaml}"
    );
    let mut artifacts = torchrun::artifacts(job);
    artifacts.insert(file.into(), Artifact::text(text));
    artifacts
}

/// A pod that runs one node's processes.
fn pod(job: &Job, rank: &str, environment: &[Value]) -> Value {
    let mut env = files(job);
    env.extend_from_slice(environment);
    json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "node",
            "image": IMAGE,
            "command": ["bash", "-c", unpack(job, rank)],
            "env": env,
            "resources": {"limits": {resource(job): job.per_node}},
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        }],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    })
}

/// The files a node needs, by the variable that carries each.
fn carried(job: &Job) -> Vec<(String, String, String)> {
    let script = torchrun::artifacts(job);
    let all = script.iter().chain(&job.program.files);
    all.enumerate()
        .map(|(i, (path, artifact))| {
            let text = String::from_utf8_lossy(&artifact.bytes).into_owned();
            (format!("PARC_FILE_{i}"), path.display().to_string(), text)
        })
        .collect()
}

fn files(job: &Job) -> Vec<Value> {
    // `$(NAME)` in a value would be replaced by Kubernetes; `$$` stands for a dollar.
    let escaped = |text: String| text.replace("$(", "$$(");
    carried(job).into_iter().map(|(name, _, text)| json!({"name": name, "value": escaped(text)})).collect()
}

/// Writes the carried files to a folder and runs the script there.
fn unpack(job: &Job, rank: &str) -> String {
    let mut s = String::from("set -euo pipefail\nfolder=$(mktemp -d)\n");
    for (variable, path, _) in carried(job) {
        let _ = writeln!(s, "printf '%s' \"${variable}\" >\"$folder\"/{}", quote(&path));
    }
    let _ = writeln!(s, "{rank} exec bash \"$folder\"/{}", torchrun::SCRIPT);
    // As in `files`: a command is subject to the same replacement.
    s.replace("$(", "$$(")
}

/// What a node's devices are called in a pod's limits.
fn resource(job: &Job) -> &'static str {
    let device = job.plan.cluster.device.as_str();
    let vendors = [
        ("MI", "amd.com/gpu"),
        ("TPU", "google.com/tpu"),
        ("Gaudi", "habana.ai/gaudi"),
        ("Trainium", "aws.amazon.com/neuron"),
    ];
    vendors.iter().find(|(prefix, _)| device.starts_with(prefix)).map_or("nvidia.com/gpu", |(_, name)| name)
}

/// A name Kubernetes takes: lower-case letters, digits and `-`, a letter first, at most 40.
fn name(job: &Job) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = comment(&job.plan.job.name).chars().take(40).map(plain).collect();
    let name = name.trim_matches('-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.into()
    } else {
        format!("job-{name}").trim_end_matches('-').into()
    }
}

//! Launchers beside torchrun and Slurm: manifests against the rules of their definitions, scripts run with fake programs.

use crate::sample_plans;
use crate::targets_scripts::{TELL, fake, run};
use parc::emit::plan::Plan;
use parc::emit::{Artifacts, launchers, targets};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn artifacts(plan: &Plan, launcher: &str) -> Artifacts {
    let program = (targets::find("megatron").unwrap().program)(plan).unwrap();
    launchers::find(launcher).unwrap().artifacts(plan, &program).unwrap()
}

fn text(artifacts: &Artifacts, file: &str) -> String {
    String::from_utf8(artifacts[Path::new(file)].bytes.clone()).unwrap()
}

fn manifest(plan: &Plan, launcher: &str, file: &str) -> Value {
    yaml_serde::from_str(&text(&artifacts(plan, launcher), file)).unwrap()
}

/// `$$(` back to `$(`, as Kubernetes does before it starts a container; it must have nothing else to replace.
fn replaced(text: &str) -> String {
    let text = text.replace("$$(", "\u{0}");
    assert!(!text.contains("$("), "Kubernetes would replace a reference in {text}");
    text.replace('\u{0}', "$(")
}

/// Runs a container's command with its environment and that of the operator; gives what torchrun was told.
fn started(container: &Value, operator: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    fake(dir.path(), "torchrun", TELL);
    let command: Vec<_> = container["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(command[..2], ["bash", "-c"]);
    let script = dir.path().join("command");
    fs::write(&script, replaced(command[2])).unwrap();
    let carried: Vec<(String, String)> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["name"].as_str().unwrap().to_owned(), replaced(e["value"].as_str().unwrap())))
        .collect();
    let mut environment: Vec<(&str, &str)> = carried.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    environment.extend_from_slice(operator);
    let (told, ok) = run(dir.path(), &script, &[], &environment);
    assert!(ok, "{told:?}");
    told
}

/// What follows `flag`.
fn after<'a>(told: &'a [String], flag: &str) -> &'a str {
    &told[told.iter().position(|t| t == flag).unwrap_or_else(|| panic!("{flag} in {told:?}")) + 1]
}

fn check_started(container: &Value, operator: &[(&str, &str)], master: &str) {
    let told = started(container, operator);
    assert_eq!(after(&told, "--nnodes"), "2");
    assert_eq!(after(&told, "--nproc-per-node"), "8");
    assert_eq!(after(&told, "--node-rank"), "1");
    assert_eq!(after(&told, "--master-addr"), master);
    assert_eq!(after(&told, "--tensor-model-parallel-size"), "2");
    assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], 8);
}

#[test]
fn a_jobset_is_one_indexed_job_of_a_pod_a_node() {
    let m = manifest(&sample_plans::llama3_8b(), "jobset", "jobset.yaml");
    assert_eq!((m["apiVersion"].as_str(), m["kind"].as_str()), (Some("jobset.x-k8s.io/v1alpha2"), Some("JobSet")));
    let name = m["metadata"]["name"].as_str().unwrap();
    assert_eq!(name, "train-8b");
    let job = &m["spec"]["replicatedJobs"][0]["template"]["spec"];
    assert_eq!(
        (&job["completionMode"], &job["parallelism"], &job["completions"]),
        (&"Indexed".into(), &2.into(), &2.into())
    );
    let pod = &job["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    // Pod 0 of job 0 of the replicated job `nodes`, in the set's own subdomain.
    check_started(&pod["containers"][0], &[("JOB_COMPLETION_INDEX", "1")], "train-8b-nodes-0-0.train-8b");
}

#[test]
fn a_pytorchjob_has_a_master_and_workers() {
    let m = manifest(&sample_plans::llama3_8b(), "pytorchjob", "pytorchjob.yaml");
    assert_eq!(m["spec"]["nprocPerNode"], "8", "a string, or the definition refuses it");
    let replicas = &m["spec"]["pytorchReplicaSpecs"];
    assert_eq!((&replicas["Master"]["replicas"], &replicas["Worker"]["replicas"]), (&1.into(), &1.into()));
    let container = &replicas["Worker"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "pytorch");
    check_started(container, &[("RANK", "1"), ("MASTER_ADDR", "m"), ("MASTER_PORT", "23456")], "m");
}

#[test]
fn a_trainjob_names_the_runtime_of_torch() {
    let m = manifest(&sample_plans::llama3_8b(), "trainjob", "trainjob.yaml");
    assert_eq!(m["apiVersion"], "trainer.kubeflow.org/v1alpha1");
    let trainer = &m["spec"]["trainer"];
    assert_eq!((&trainer["numNodes"], &trainer["numProcPerNode"]), (&2.into(), &8.into()));
    assert_eq!(m["spec"]["runtimeRef"]["name"], "torch-distributed");
    assert_eq!(trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"], 8);
    let told = started(trainer, &[("PET_NODE_RANK", "1"), ("PET_MASTER_ADDR", "m"), ("PET_MASTER_PORT", "1")]);
    assert_eq!((after(&told, "--node-rank"), after(&told, "--master-port")), ("1", "1"));
}

#[test]
fn a_leaderworkerset_counts_its_leader() {
    let m = manifest(&sample_plans::llama3_8b(), "leaderworkerset", "leaderworkerset.yaml");
    let template = &m["spec"]["leaderWorkerTemplate"];
    assert_eq!(template["size"], 2);
    let pod = &template["workerTemplate"]["spec"];
    assert!(pod.get("restartPolicy").is_none(), "its pods always restart; anything else is refused");
    check_started(&pod["containers"][0], &[("LWS_WORKER_INDEX", "1"), ("LWS_LEADER_ADDRESS", "l")], "l");
}

#[test]
fn hostile_names_stay_data_in_manifests() {
    for name in ["$(touch pwned)", "a: b\n- c", "'\"", "🚀", "9", ""] {
        let mut plan = sample_plans::llama3_8b();
        name.clone_into(&mut plan.job.name);
        let m = manifest(&plan, "jobset", "jobset.yaml");
        let shown = m["metadata"]["name"].as_str().unwrap();
        assert!(shown.starts_with(|c: char| c.is_ascii_lowercase()) && shown.len() <= 50, "{shown:?}");
        assert!(
            shown.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') && !shown.ends_with('-')
        );
        let container = &m["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(started(container, &[("JOB_COMPLETION_INDEX", "0")])[0], name);
    }
}

#[test]
fn skypilot_gets_nodes_and_accelerators() {
    let all = artifacts(&sample_plans::llama3_8b(), "skypilot");
    let task: Value = yaml_serde::from_str(&text(&all, "sky.yaml")).unwrap();
    assert_eq!((&task["num_nodes"], task["resources"]["accelerators"].as_str()), (&2.into(), Some("H100:8")));
    let dir = tempfile::tempdir().unwrap();
    fake(dir.path(), "torchrun", TELL);
    fs::write(dir.path().join("launch.sh"), text(&all, "launch.sh")).unwrap();
    fs::write(dir.path().join("run"), task["run"].as_str().unwrap()).unwrap();
    let environment = [("SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2"), ("SKYPILOT_NODE_RANK", "1")];
    let (told, ok) = run(dir.path(), &dir.path().join("run"), &[], &environment);
    assert!(ok);
    assert_eq!((after(&told, "--node-rank"), after(&told, "--master-addr")), ("1", "10.0.0.1"));
    let gpt3 = artifacts(&sample_plans::gpt3(), "skypilot");
    let task: Value = yaml_serde::from_str(&text(&gpt3, "sky.yaml")).unwrap();
    assert_eq!(task["resources"]["accelerators"], "A100-80GB:8");
}

#[test]
fn mpirun_starts_one_shell_a_host() {
    let all = artifacts(&sample_plans::llama3_8b(), "mpirun");
    let dir = tempfile::tempdir().unwrap();
    for file in ["launch.sh", "mpi.sh"] {
        fs::write(dir.path().join(file), text(&all, file)).unwrap();
    }
    fs::write(dir.path().join("hosts"), "# all of them\n\nn7 slots=8\nn8 slots=8\n").unwrap();
    fake(dir.path(), "torchrun", TELL);
    fake(
        dir.path(),
        "mpirun",
        r#"[[ "$1 $2 $3 $4 $5 $6 $7 $8" == "-np 2 --hostfile hosts --map-by ppr:1:node --bind-to none" ]] || exit 3
        shift 8
        while [[ $1 == -x ]]; do shift 2; done
        for i in 0 1; do OMPI_COMM_WORLD_RANK=$i "$@"; done"#,
    );
    let (told, ok) = run(dir.path(), &dir.path().join("mpi.sh"), &["hosts", "--lr", "1e-4 x"], &[]);
    assert!(ok, "{told:?}");
    let second = told.iter().rposition(|t| t == "--node-rank").unwrap();
    assert_eq!((told[second + 1].as_str(), after(&told, "--node-rank")), ("1", "0"));
    assert_eq!(after(&told, "--master-addr"), "n7");
    assert_eq!(told.last().map(String::as_str), Some("1e-4 x"));
}

#[test]
fn ray_launches_are_python() {
    let all = artifacts(&sample_plans::llama3_8b(), "ray");
    let script = text(&all, "ray_launch.py");
    assert!(script.contains("NODES = 2\nDEVICES = 8\n"));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ray_launch.py"), &script).unwrap();
    let python = Command::new("python3").args(["-m", "py_compile", "ray_launch.py"]).current_dir(dir.path()).output();
    match python {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => eprintln!("skipped: python3 is not installed"),
    }
}

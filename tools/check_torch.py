"""Runs a program of `parc build --target torch` for one step and compares it with its plan and with one process.

    torchrun --nproc-per-node 4 tools/check_torch.py FOLDER

Loss and every gradient must be those of the same model in one process; the collectives of a rank must be those the
plan lists for the busiest one: kind, ranks, bytes, how many. Writes FOLDER/checked.json and fails where they differ.
"""

import collections
import importlib.util
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {
    "all_reduce": "all-reduce",
    "allreduce_": "all-reduce",
    "all_gather_into_tensor": "all-gather",
    "all_gather_into_tensor_out": "all-gather",
    "_allgather_base_": "all-gather",
    "reduce_scatter_tensor": "reduce-scatter",
    "_reduce_scatter_base_": "reduce-scatter",
    "all_to_all_single": "all-to-all",
    "alltoall_base_": "all-to-all",
    "send": "send",
}
# What only waits, or is the other end of a message.
SILENT = {"wait_tensor", "_wrap_tensor_autograd", "recv_", "barrier", "monitored_barrier_"}


class Recorder(TorchDispatchMode):
    """Counts collectives by kind, ranks of a group and the larger of input and output in bytes."""

    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        space, name = func.namespace, func._schema.name.split("::")[1]
        if space in ("c10d", "_c10d_functional", "_c10d_functional_autograd") and name not in SILENT:
            tensors = []
            torch.utils._pytree.tree_map_only(torch.Tensor, tensors.append, (args, out))
            size = max(t.numel() * t.element_size() for t in tensors)
            self.seen[(KINDS.get(name, name), ranks(args), size)] += 1
        return out


def ranks(args):
    """Ranks of the group a collective is called with: by name, or boxed."""
    for arg in args:
        if isinstance(arg, str) and arg not in ("sum", "avg", "max", "min"):
            return dist.distributed_c10d._resolve_process_group(arg).size()
        if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()):
            return dist.ProcessGroup.unbox(arg).size()
    return 0


def load(folder):
    spec = importlib.util.spec_from_file_location("train", folder / "train.py")
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    return train


def reference(train):
    """Loss and gradients of one process, by name."""
    whole = train.Chunk(train.WHOLE, train.Tensor())
    tokens = train.batch(0).to(train.DEVICE)
    loss = 0.0
    for piece in tokens.split(train.MICRO_BATCH):
        part = train.cross_entropy(whole(piece[:, :-1]), piece[:, 1:], train.Tensor()) * len(piece) / train.BATCH
        part.backward()
        loss += part.item()
    return loss, {f"{p.name}.{n}": (w.grad, p.cuts[n]) for p in whole.parts for n, w in p.named_parameters()}


def expected(plan):
    """The plan's collectives, counted as the recorder does."""
    out = collections.Counter()
    for c in plan["collectives"]:
        # The plan cuts ids like other values along the sequence; here every rank reads all of them.
        if c["what"].startswith("tokens["):
            continue
        out[(c["kind"], c["group"], c["bytes"])] += c["count"]
    return out


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    train, plan = load(folder), json.loads((folder / "plan.json").read_text())
    dist.init_process_group("gloo")
    loss, gradients = reference(train)
    job = train.Job()
    kept = {}

    def keep():
        for part in job.parts:
            for name, parameter in part.named_parameters():
                gradient = parameter.grad
                gradient = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
                kept[f"{part.name}.{name}"] = gradient.detach().clone()

    # The first step of a pipeline also agrees on shapes.
    job.forward_backward(train.batch(0).tensor_split(train.REPLICAS)[job.replica].to(train.DEVICE))
    job.optimizer.zero_grad()

    # Gradients are read before the update clears them, outside of what is counted.
    recorder, update = Recorder(), job.optimizer.step

    def step():
        recorder.__exit__(None, None, None)
        keep()
        update()
        recorder.__enter__()

    job.optimizer.step = step
    with recorder:
        found = job.step(train.batch(0)).item()
    worst = 0.0
    for name, gradient in kept.items():
        want, cut = gradients[name]
        want = want if cut is None else job.tp.cut(want, cut)
        worst = max(worst, ((gradient - want).abs().max() / want.abs().max()).item())
    mine = {
        "stage": job.stage,
        "loss": found if job.mine[-1][1]["head"] else None,
        "gradients": worst,
        "names": sorted(kept),
        "collectives": sorted([*k, n] for k, n in recorder.seen.items()),
    }
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    if dist.get_rank() == 0:
        sys.exit(report(folder, plan, loss, gradients, every))


def report(folder, plan, loss, gradients, every):
    wanted = sorted([*k, n] for k, n in expected(plan).items())
    losses = [m["loss"] for m in every if m["loss"] is not None]
    checks = {
        "loss": all(abs(x - loss) <= 1e-5 * abs(loss) for x in losses) and bool(losses),
        "gradients": max(m["gradients"] for m in every) <= 1e-4,
        "every parameter": sorted({n for m in every for n in m["names"]}) == sorted(gradients),
        "collectives": any(m["collectives"] == wanted for m in every),
    }
    result = {
        "torch": torch.__version__,
        "ranks": len(every),
        "loss": losses[0],
        "loss_of_one_process": loss,
        "largest_relative_error_of_a_gradient": max(m["gradients"] for m in every),
        "plan": wanted,
        "ranks_did": [[m["stage"], m["collectives"]] for m in every],
        "checks": checks,
    }
    (folder / "checked.json").write_text(json.dumps(result, indent=1))
    print(json.dumps({k: v for k, v in result.items() if k not in ("plan", "ranks_did")}))
    if not checks["collectives"]:
        print("plan ", wanted)
        for m in every:
            print("stage", m["stage"], m["collectives"])
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    main()
    os._exit(0)

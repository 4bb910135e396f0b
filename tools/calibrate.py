#!/usr/bin/env python3
"""Compares `parc plan` with measured training runs.

    python3 tools/calibrate.py [--parc target/release/parc] [--out table.md] [--half fit|held|all] [--dump rows.csv] CSV...

Each CSV row that dense GPT or Llama jobs can express becomes a `.par` file in a temporary folder; `parc plan --json` gives
its step time and memory. Three formats of CSV are known, told apart by their columns (docs/calibration.md says what each
must hold). Rows are split in halves by a rule that knows nothing of the result: the CRC-32 of source and model, so that
no model of a source is in both. Constants of the cost model are fitted on one half; the other is reported beside it.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

LAYERS, HIDDEN, HEADS, KV, FFN, VOCAB = "layers", "hidden", "heads", "kv_heads", "ffn", "vocab"
# Published Llama 1 shapes by name (Touvron et al. 2023, arXiv 2302.13971, table 2).
LLAMA1 = {
    "13B": {LAYERS: 40, HIDDEN: 5120, HEADS: 40, KV: 40, FFN: 13824},
    "30B": {LAYERS: 60, HIDDEN: 6656, HEADS: 52, KV: 52, FFN: 17920},
    "65B": {LAYERS: 80, HIDDEN: 8192, HEADS: 64, KV: 64, FFN: 22016},
}
# Attention as its two products and what lies between, for runs made before fused kernels or without them. T is the
# sequence of the keys. The factor after the softmax stands for dropout: the language has none, its traffic is this.
UNFUSED = """
block Unfused(q[B, S, N, D], k[B, S, N, D], v[B, S, N, D], dim T) -> [B, S, N, D] {
  scores[B, N, S, T] = q @ rename(k, S = T)
  weights = softmax(scores, over = T)%s
  o[B, S, N, D] = weights @ rename(v, S = T)
  return o
}
"""
UNFUSED_GPT = UNFUSED % " * 0.9" + """
model Unfused_model(layers: Int, hidden: Int, heads: Int, vocab: Int, max_positions: Int) {
  dims { H = hidden, N = heads, D = hidden / heads, F = 4 * hidden, V = vocab, P = max_positions, T = max_positions }
  input tokens[B: seq, S: tok]
  region embed { x[B, S, H] = embed(tokens, param wte[V, H]) + take(param wpe[P, H], P = S) }
  repeat decoder = layers {
    region attention {
      h = layer_norm(x, param ln1_g[H], param ln1_b[H])
      q[B, S, N, D] = h @ param wq[H, N, D] + param bq[N, D]
      k[B, S, N, D] = h @ param wk[H, N, D] + param bk[N, D]
      v[B, S, N, D] = h @ param wv[H, N, D] + param bv[N, D]
      region core { o = Unfused(q, k, v) }
      x = x + (o @ param wo[N, D, H] + param bo[H])
    }
    region mlp {
      h = layer_norm(x, param ln2_g[H], param ln2_b[H])
      a[B, S, F] = gelu(h @ param w1[H, F] + param b1[F])
      x = x + (a @ param w2[F, H] + param b2[H])
    }
  }
  region head {
    h = layer_norm(x, param g[H], param b[H])
    logits[B, S, V] = h @ embed.wte
    loss = cross_entropy(logits, over = V)
  }
}
"""
UNFUSED_LLAMA = UNFUSED % "" + """
model Unfused_model(layers: Int, hidden: Int, heads: Int, ffn: Int, vocab: Int, length: Int) {
  dims { H = hidden, N = heads, D = hidden / heads, F = ffn, V = vocab, T = length }
  input tokens[B: seq, S: tok]
  region embed { x[B, S, H] = embed(tokens, param wte[V, H]) }
  repeat decoder = layers {
    region attention {
      h = rms_norm(x, param norm[H])
      q[B, S, N, D] = h @ param wq[H, N, D]
      k[B, S, N, D] = h @ param wk[H, N, D]
      v[B, S, N, D] = h @ param wv[H, N, D]
      region core {
        q[B, S, N, D] = rope(q)
        k[B, S, N, D] = rope(k)
        o = Unfused(q, k, v)
      }
      x = x + (o @ param wo[N, D, H])
    }
    region mlp { x = SwiGLU(x) }
  }
  region head {
    h = rms_norm(x, param norm[H])
    logits[B, S, V] = h @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }
}
"""
DEVICES = {
    "A100-SXM-80GB": ("A100_SXM_80", "NVLink3", "IB_HDR", ""),
    "A100-SXM-40GB": ("A100_SXM_40", "NVLink3", "IB_HDR", ""),
    "H100-SXM-80GB": ("H100_SXM", "NVLink4", "IB_NDR", ", in_network_reduction = true"),
}


@dataclass
class Run:
    """One measured run, in the words of the language."""

    family: str  # the group it is reported in
    name: str  # source row
    model: str  # what ranks are correlated within
    shape: dict
    gated: bool  # Llama's MLP and norms, otherwise GPT's
    device: str
    devices: int
    tp: int
    pp: int
    batch: int
    micro: int
    seq: int
    ports: int = 8  # network ports of a node
    chunks: int = 1  # of an interleaved schedule
    sp: bool = False
    recompute: str = "none"
    zero: str = "0"  # 0, 1, fsdp
    zero_group: int = 0  # ranks that share the state; 0 is all of dp
    precision: str = "bf16_mixed"
    overlap: bool = False
    overlap_p2p: bool = False
    scatter: bool = False
    unfused: bool = False
    seconds: float = 0.0  # 0: not measured
    fits: bool = True
    peak_gib: float = 0.0
    found: dict = field(default_factory=dict)

    @property
    def half(self):
        return "fit" if zlib.crc32(f"{self.family}/{self.model}".encode()) % 2 == 0 else "held"

    def par(self, cost=""):
        """The run as a program, priced by the declaration `tuned` if `cost` has its text."""
        s, d = self.shape, DEVICES[self.device]
        dp = self.devices // (self.tp * self.pp)
        lines = ["edition 1", "use std::schedules::{one_f_one_b, interleaved}", f"use std::hardware::{{{', '.join(d[:3])}}}"]
        per_node = min(self.devices, 8)
        lines.append(f"cluster Measured {{\n  level node = {per_node} of {d[0]} over {d[1]} {{ topology = switch{d[3]} }}")
        if self.devices > 8:
            fabric = f"{self.ports} * {d[2]} {{ topology = fat_tree(rails = {self.ports}, oversubscription = 1) }}"
            lines.append(f"  level pod = {self.devices // 8} of node over {fabric}")
        lines.append("}")
        z = self.zero_group if 0 < self.zero_group < dp else dp
        lines += ["layout Measured_layout {", f"  mesh [pp = {self.pp}, rep = {dp // z}, dp = {z}, tp = {self.tp}]"]
        lines.append("  shard B over [rep, dp]")
        lines.append(f"  shard [N, K, F, V] over tp{' else S' if self.sp else ''}")
        lines.append(f"  pad V = {128 * self.tp}")
        if self.zero == "1":
            lines.append("  store state over dp")
        if self.zero == "fsdp":
            lines.append("  store [param, grad, state] over dp")
        if self.zero == "fsdp" or self.overlap:
            lines += ["  overlap gather over dp with [forward, backward]", "  overlap reduce over [dp, rep] with backward"]
        if self.recompute == "full":
            lines.append("  recompute all")
        if self.recompute == "selective":
            lines.append("  in **.attention.core { recompute all }")
        if self.pp > 1:
            plan = f"interleaved({self.chunks})" if self.chunks > 1 else "one_f_one_b"
            split = "even" if s[LAYERS] % (self.pp * self.chunks) == 0 else "balanced"
            p2p = ", p2p = scatter_gather(tp)" if self.scatter and self.tp > 1 else ""
            lines.append(f"  pipeline over pp {{ schedule = {plan}, split = {split}{p2p} }}")
            if self.overlap_p2p:
                lines.append("  overlap p2p over pp with [forward, backward]")
        lines.append("}")
        if self.unfused:
            lines.append(UNFUSED_LLAMA if self.gated else UNFUSED_GPT)
        if self.unfused:
            last = f"ffn = {s[FFN]}, length = {self.seq}" if self.gated else f"max_positions = {self.seq}"
            model = f"Unfused_model(layers = {s[LAYERS]}, hidden = {s[HIDDEN]}, heads = {s[HEADS]}, vocab = {s[VOCAB]}, {last})"
        elif self.gated:
            args = f"kv_heads = {s[KV]}, ffn = {s[FFN]}, vocab = {s[VOCAB]}"
            model = f"Llama(layers = {s[LAYERS]}, hidden = {s[HIDDEN]}, heads = {s[HEADS]}, {args})"
        else:
            args = f"vocab = {s[VOCAB]}, max_positions = {self.seq}"
            model = f"GPT(layers = {s[LAYERS]}, hidden = {s[HIDDEN]}, heads = {s[HEADS]}, {args})"
        lines += ["train measured {", f"  model = {model}", "  cluster = Measured", "  layout = Measured_layout"]
        lines += [f"  batch = {self.batch} seq", f"  sequence = {self.seq} tok", f"  micro_batch = {self.micro} seq"]
        lines += [f"  precision = {self.precision}", "  optimizer = AdamW"]
        lines += ["  cost = tuned", "}", cost] if cost else ["}"]
        return "\n".join(lines) + "\n"


def megatron_deepspeed(row):
    """GPT on A100, unfused attention, full recomputation, 1F1B, whole gradients reduced after the backward."""
    shape = {LAYERS: int(row["layers"]), HIDDEN: int(row["hidden"]), HEADS: int(row["heads"]), VOCAB: 51200}
    return Run(
        family="Megatron-DeepSpeed, " + row["cluster"].replace("_", " "),
        name="",
        model=f"{row['hidden']}x{row['layers']}",
        shape=shape,
        gated=False,
        device="A100-SXM-80GB",
        devices=int(row["gpus"]),
        tp=int(row["tp"]),
        pp=int(row["pp"]),
        batch=int(row["global_batch"]),
        micro=int(row["micro_batch"]),
        seq=int(row["seq"]),
        ports=4,
        recompute="full",
        precision="fp16_mixed",
        unfused=True,
        seconds=float(row["step_time_ms"]) / 1000,
    )


def layout_sweep(row):
    """Llama 1 on A100 with ZeRO-1 and bf16 gradients; out of memory is a result."""
    kernel = {"flash_attention2": "FlashAttention-2", "flash_attentionv1.0.8": "FlashAttention-1"}.get(row["attention"])
    if kernel is None:
        kernel = "unfused attention"
    norm = ", fused norm" if row["rms_kernel"] == "1" else ""
    return Run(
        family=f"layout sweep, {kernel}{norm}",
        name=row["id"],
        model=f"{row['model']} {row['seq']}",
        shape=LLAMA1[row["model"]] | {VOCAB: 128000},
        gated=True,
        device="A100-SXM-80GB",
        devices=int(row["gpus"]),
        tp=int(row["tp"]),
        pp=int(row["pp"]),
        batch=int(row["global_batch_seqs"]),
        micro=int(row["micro_batch"]),
        seq=int(row["seq"]),
        sp=row["sequence_parallel"] == "1",
        recompute=row["recompute"],
        zero="1",
        precision="bf16_pure",
        unfused=kernel == "unfused attention",
        seconds=float(row["step_time_s"] or 0),
        fits=row["outcome"] == "ok",
    )


# Ports of a node as the cluster says it: HDR is 200 Gb/s, NDR 400 Gb/s.
FABRICS = {"4x100Gb/s Omni-Path": 2, "4x100Gb/s RoCE": 2, "8x200Gb/s InfiniBand": 8, "8x400Gb/s InfiniBand": 8}
SOURCES = {
    "mosaicml/llm-foundry": "llm-foundry FSDP",
    "InternEvo": "InternEvo",
    "Korthikanti et al. 2022 Table 5": "Korthikanti 2022",
    "Narayanan et al. 2021 Table 2": "Narayanan 2021",
    "BigScience": "BLOOM layout search",
    "NVIDIA DGX Cloud": "DGX Cloud",
    "Hugging Face nanotron": "nanotron",
    "IBM fms-fsdp": "fms-fsdp",
    "torchtitan docs": "torchtitan 2024",
}


def published(row):
    """A row of published runs; none where the language's dense training cannot say it or a needed fact is missing."""
    family = next((v for k, v in SOURCES.items() if row["source"].startswith(k)), None)
    dense = row["family"] in ("gpt", "llama") and not row["experts"] and row["cp"] in ("", "1")
    known = all(row[k] for k in ("layers", "hidden", "heads", "vocab", "seq", "devices", "tp", "pp", "global_batch_seqs", "micro_batch"))
    if family is None or not dense or not known or row["device"] not in DEVICES or row["precision"] not in ("bf16", "fp16"):
        return None
    if "MaxText" in row["model"] + row["other"] or "Paxml" in row["model"] + row["other"]:
        return None  # recomputation not stated
    number = lambda key: int(row[key] or 1)
    gated = row["family"] == "llama"
    heads, hidden = number("heads"), number("hidden")
    kv, ffn = int(row["kv_heads"] or heads), int(row["ffn"] or 4 * hidden)
    if not gated and (kv != heads or ffn != 4 * hidden):
        return None
    recompute = row["recompute"] or "none"
    zero = {"fsdp": "fsdp", "hsdp": "fsdp", "3": "fsdp", "2": "fsdp", "1": "1", "0": "0", "": "0"}[row["zero"]]
    if recompute not in ("none", "full", "selective"):
        return None
    if family.startswith("torchtitan") and recompute == "selective":
        return None  # every second product: not the attention core
    devices, batch, seq = number("devices"), number("global_batch_seqs"), number("seq")
    if devices > 8 and devices % 8:
        return None
    tokens = row["tokens_per_s_per_device"]
    seconds = float(row["step_time_s"]) if row["step_time_s"] else 0.0
    if not seconds and tokens:
        seconds = batch * seq / (float(tokens) * devices)
    if not seconds and family.startswith("Narayanan") and row["measured_tflops_per_device"]:
        # Equation 3 of the paper: 96 B s l h^2 (1 + s / 6h + V / 16 l h), recomputation counted.
        l, v = number("layers"), number("vocab")
        flops = 96 * batch * seq * l * hidden**2 * (1 + seq / (6 * hidden) + v / (16 * l * hidden))
        seconds = flops / (float(row["measured_tflops_per_device"]) * 1e12 * devices)
    if not (seconds or row["peak_memory_gib"]) or (family.startswith("Narayanan") and row["zero"] == "3"):
        return None
    group = 0
    if "zero1 group" in row["other"]:
        size = row["other"].split("zero1 group")[1].split()[0].rstrip(";")
        group = max(0, int(size))
    if family == "llm-foundry FSDP" and seq > 4096:
        family += ", over 4k tokens"
    if row["attention"] == "naive":
        family += " (unfused attention)"
    return Run(
        family=family,
        name=row["id"],
        model=f"{row['model']} {row['seq']} {row['device']}",
        shape={LAYERS: number("layers"), HIDDEN: hidden, HEADS: heads, KV: kv, FFN: ffn, VOCAB: number("vocab")},
        gated=gated,
        device=row["device"],
        devices=devices,
        tp=number("tp"),
        pp=number("pp"),
        batch=batch,
        micro=number("micro_batch"),
        seq=seq,
        ports=FABRICS.get(row["inter_node"], 8),
        chunks=number("vpp"),
        sp=row["sp"] == "1",
        recompute=recompute,
        zero=zero,
        zero_group=group,
        precision="fp16_mixed" if row["precision"] == "fp16" else "bf16_mixed",
        overlap=family in ("DGX Cloud", "InternEvo"),
        overlap_p2p=family == "DGX Cloud",  # the recipes' default where chunks interleave
        unfused=row["attention"] == "naive",
        scatter=family.startswith(("Korthikanti", "Narayanan")),
        seconds=seconds,
        peak_gib=float(row["peak_memory_gib"] or 0),
    )


def read(path):
    """The runs of one file."""
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    if not rows:
        return []
    if "step_time_ms" in rows[0]:
        runs = [megatron_deepspeed(r) for r in rows]
        for i, run in enumerate(runs):
            run.name = f"row {i + 2}"
        return runs
    made = layout_sweep if "rms_kernel" in rows[0] else published
    return [run for run in map(made, rows) if run is not None]


def plan(parc, folder, cost, index, run):
    """Fills `run.found`: step time, memory of the fullest stage, where time goes, or why there is no plan."""
    path = Path(folder) / f"run{index}.par"
    path.write_text(run.par(cost), encoding="utf-8")
    done = subprocess.run([parc, "plan", "--json", path.name], cwd=folder, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        run.found = {"error": (done.stderr or done.stdout).strip().splitlines()[:1]}
        return
    heaviest = result["memory"]["stages"][result["memory"]["heaviest"]]
    run.found = {
        "seconds": result["time"]["step"],
        "fits": result["memory"]["fits"],
        "gib": heaviest["total"] / 2**30,
        "parts": dict(result["time"]["parts"]) if isinstance(result["time"]["parts"], list) else result["time"]["parts"],
        "memory": {k: v / 2**30 for k, v in heaviest.items() if isinstance(v, (int, float)) and v > 1e5},
    }


def rank_correlation(pairs):
    """Spearman's rho; none for fewer than three pairs or no variation."""

    def ranks(values):
        order = sorted(values)
        return [(order.index(v) + len(order) - 1 - order[::-1].index(v)) / 2 for v in values]

    if len(pairs) < 3:
        return None
    a, b = ranks([p[0] for p in pairs]), ranks([p[1] for p in pairs])
    try:
        return statistics.correlation(a, b)
    except statistics.StatisticsError:
        return None


def summary(runs):
    """One line of the table for a group of runs."""
    timed = [r for r in runs if r.seconds and "seconds" in r.found]
    errors = [r.found["seconds"] / r.seconds - 1 for r in timed]
    by_model = {}
    for r in timed:
        by_model.setdefault((r.model, r.batch, r.devices, r.seq), []).append((r.found["seconds"], r.seconds))
    weighed = [(rank_correlation(p), len(p)) for p in by_model.values()]
    weighed = [(c, n) for c, n in weighed if c is not None]
    rho = sum(c * n for c, n in weighed) / sum(n for _, n in weighed) if weighed else None
    percent = lambda x: f"{100 * x:.1f}%"
    cells = [str(len(runs)), str(len(timed))]
    if errors:
        size = sorted(map(abs, errors))
        cells += [percent(statistics.median(size)), percent(statistics.mean(size)), f"{100 * statistics.median(errors):+.1f}%"]
        cells += [percent(max(size))]
    else:
        cells += [""] * 4
    cells.append("" if rho is None else f"{rho:.2f}")
    return cells


def confusion(runs):
    """Fit and out of memory, measured against predicted: counts."""
    done = [r for r in runs if "fits" in r.found]
    return [sum(1 for r in done if (r.fits, r.found["fits"]) == key) for key in [(True, True), (True, False), (False, False), (False, True)]]


def report(runs):
    """The tables, in Markdown."""
    families = sorted({r.family for r in runs})
    out = ["| family | half | rows | timed | median error | mean error | bias | worst | rank |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for family in families:
        for half in ("fit", "held"):
            some = [r for r in runs if r.family == family and r.half == half]
            if some:
                out.append(f"| {family} | {half} | " + " | ".join(summary(some)) + " |")
    megatron = ("DGX Cloud", "Korthikanti", "Narayanan", "Megatron-DeepSpeed, multi")
    for name, belongs in [("Megatron, several nodes or one full", lambda r: r.family.startswith(megatron)), ("every row", lambda r: True)]:
        for half in ("fit", "held"):
            out.append(f"| {name} | {half} | " + " | ".join(summary([r for r in runs if r.half == half and belongs(r)])) + " |")
    out += ["", "| family | half | ran, fits | ran, predicted not to | did not, predicted not to | did not, predicted to fit |", "| --- | --- | --- | --- | --- | --- |"]
    for family in families:
        for half in ("fit", "held"):
            some = [r for r in runs if r.family == family and r.half == half]
            if some:
                out.append(f"| {family} | {half} | " + " | ".join(map(str, confusion(some))) + " |")
    for half in ("fit", "held"):
        out.append(f"| every row | {half} | " + " | ".join(map(str, confusion([r for r in runs if r.half == half]))) + " |")
    peaks = [r for r in runs if r.peak_gib and "gib" in r.found]
    if peaks:
        errors = [r.found["gib"] / r.peak_gib - 1 for r in peaks]
        out += ["", f"Peak memory, {len(peaks)} rows: median error {100 * statistics.median(map(abs, errors)):.1f}%, bias {100 * statistics.median(errors):+.1f}%."]
    failed = [r for r in runs if "error" in r.found]
    out += ["", f"No plan for {len(failed)} of {len(runs)} rows."]
    for reason in sorted({str(r.found["error"]) for r in failed}):
        out.append(f"- {sum(1 for r in failed if str(r.found['error']) == reason)}: {reason}")
    return "\n".join(out) + "\n"


def main():
    """Reads, plans, reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", nargs="+")
    parser.add_argument("--parc", default="target/release/parc")
    parser.add_argument("--out", help="where the tables go; standard output otherwise")
    parser.add_argument("--dump", help="where every row goes, as JSON lines")
    parser.add_argument("--half", choices=["fit", "held", "all"], default="all")
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="each n-th row only")
    parser.add_argument("--cost", help="a copy of stdlib/cost/default.par with constants to try, instead of the built-in one")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    runs = [run for path in given.csv for run in read(path)]
    runs = [r for r in runs if given.half in ("all", r.half) and given.only in r.family][:: given.every]
    parc = str(Path(given.parc).resolve())
    cost = ""
    if given.cost:
        lines = Path(given.cost).read_text(encoding="utf-8").splitlines()
        cost = "\n".join(x for x in lines if not x.startswith(("edition", "//!"))).replace("cost default {", "cost tuned {")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda pair: plan(parc, folder, cost, *pair), enumerate(runs)))
    if given.dump:
        with open(given.dump, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r.__dict__ | {"half": r.half}) + "\n" for r in runs)
    text = report(runs)
    if given.out:
        Path(given.out).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()

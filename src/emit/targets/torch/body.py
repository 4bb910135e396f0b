import os
import time
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.utils.checkpoint import checkpoint

DTYPE = getattr(torch, COMPUTE)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Gathered(torch.autograd.Function):
    """Products of a gathered sequence that keep its piece and gather it again for the backward."""

    @staticmethod
    def forward(ctx, piece, mesh, *weights):
        ctx.mesh = mesh
        ctx.save_for_backward(piece, *weights)
        whole = moved(piece, mesh, Shard(1), Replicate())
        return tuple(F.linear(whole, w) for w in weights)

    @staticmethod
    def backward(ctx, *gradients):
        piece, *weights = ctx.saved_tensors
        whole = moved(piece, ctx.mesh, Shard(1), Replicate()).flatten(0, 1)
        terms = sum(g @ w for g, w in zip(gradients, weights))
        of_weights = (g.flatten(0, 1).t() @ whole for g in gradients)
        return moved(terms, ctx.mesh, Partial(), Shard(1)), None, *of_weights


def moved(x, mesh, now, then):
    """The local tensor of another placement: the collective that is between the two."""
    return DTensor.from_local(x, mesh, [now], run_check=False).redistribute(placements=[then]).to_local()


class Tensor:
    """The ranks that split each weight; none by default, as in a run of one process."""

    def __init__(self, mesh=None):
        self.mesh = mesh
        self.ranks = mesh.size() if mesh else 1
        self.rank = mesh.get_local_rank() if mesh else 0
        # Outside the products these ranks hold pieces of the sequence, or the same.
        self.rest = Shard(1) if SEQUENCE_PARALLEL else Replicate()

    def cut(self, full, dim):
        """This rank's piece of a weight."""
        return full.tensor_split(self.ranks, dim)[self.rank].contiguous()

    def products(self, x, *weights):
        """With weights whose rows are split; the gradient of x is a partial sum."""
        if self.ranks > 1 and SEQUENCE_PARALLEL:
            return Gathered.apply(x, self.mesh, *weights)
        if self.ranks > 1:
            x = DTensor.from_local(x, self.mesh, [Replicate()], run_check=False).to_local(grad_placements=[Partial()])
        return tuple(F.linear(x, w) for w in weights)

    def summed(self, x, then=None):
        """Partial results of all ranks."""
        return moved(x, self.mesh, Partial(), then or self.rest) if self.ranks > 1 else x


def weight(name, *shape):
    """A weight from its name and the seed, the same on every rank and in every layout."""
    generator = torch.Generator().manual_seed(SEED ^ zlib.crc32(name.encode()))
    return torch.randn(*shape, generator=generator) * 0.02


class Part(nn.Module):
    """A piece of the model that is gathered and reduced at once."""

    def __init__(self, name, tp):
        super().__init__()
        self.name, self.tp, self.cuts, self.terms = name, tp, {}, set()

    def add(self, name, *shape, cut=None, term=SEQUENCE_PARALLEL):
        """A weight cut along a dimension, or a whole gain, of whose gradient each tensor rank may have a term."""
        full = weight(f"{self.name}.{name}", *shape) if cut is not None else torch.ones(*shape)
        mine = full if cut is None else self.tp.cut(full, cut)
        setattr(self, name, nn.Parameter(mine.to(DEVICE)))
        self.cuts[name] = cut
        if cut is None and term:
            self.terms.add(name)

    def normed(self, x, gain):
        return F.rms_norm(x, (x.shape[-1],), gain, eps=1e-5)


class Embed(Part):
    def __init__(self, tp):
        super().__init__("embed", tp)
        self.add("table", VOCAB, HIDDEN, cut=0)

    def forward(self, tokens):
        rows = VOCAB // self.tp.ranks
        local = tokens - rows * self.tp.rank
        mine = (local >= 0) & (local < rows)
        x = F.embedding(local.clamp(0, rows - 1), self.table)
        return self.tp.summed(x * mine.unsqueeze(-1))


class Layer(Part):
    def __init__(self, index, tp):
        super().__init__(f"layers.{index}", tp)
        self.add("attention_norm", HIDDEN)
        self.add("wq", HEADS * HEAD_DIM, HIDDEN, cut=0)
        self.add("wk", KV_HEADS * HEAD_DIM, HIDDEN, cut=0)
        self.add("wv", KV_HEADS * HEAD_DIM, HIDDEN, cut=0)
        self.add("wo", HIDDEN, HEADS * HEAD_DIM, cut=1)
        self.add("mlp_norm", HIDDEN)
        self.add("w_gate", FFN, HIDDEN, cut=0)
        self.add("w_up", FFN, HIDDEN, cut=0)
        self.add("w_down", HIDDEN, FFN, cut=1)
        if QK_NORM:
            self.add("q_norm", HEAD_DIM, term=True)
            self.add("k_norm", HEAD_DIM, term=True)

    def forward(self, x):
        x = x + self.attention(self.normed(x, self.attention_norm))
        return x + self.mlp(self.normed(x, self.mlp_norm))

    def attention(self, h):
        qkv = self.tp.products(h, self.wq, self.wk, self.wv)
        q, k, v = (x.unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2) for x in qkv)
        if QK_NORM:
            q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        o = F.scaled_dot_product_attention(rope(q), rope(k), v, is_causal=True, enable_gqa=True)
        return self.tp.summed(F.linear(o.transpose(1, 2).flatten(2), self.wo))

    def mlp(self, h):
        gate, up = self.tp.products(h, self.w_gate, self.w_up)
        return self.tp.summed(F.linear(F.silu(gate) * up, self.w_down))


class Head(Part):
    def __init__(self, tp):
        super().__init__("head", tp)
        self.add("norm", HIDDEN)
        self.add("out", VOCAB, HIDDEN, cut=0)

    def forward(self, x):
        (logits,) = self.tp.products(self.normed(x, self.norm), self.out)
        return logits.float()


def rope(x):
    """Rotary positions of [batch, heads, sequence, head_dim]."""
    half = HEAD_DIM // 2
    angle = torch.arange(x.shape[2], device=x.device)[:, None] * ROPE_BASE ** (
        -torch.arange(half, device=x.device) / half
    )
    a, b = x.float().chunk(2, -1)
    turned = torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)
    return turned.to(x.dtype)


def cross_entropy(logits, targets, tp):
    """Mean loss of logits whose columns are split: a maximum, a sum and the one that counts from all ranks."""
    columns = logits.shape[-1]
    largest = logits.detach().amax(-1)
    if tp.ranks > 1:
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=tp.mesh.get_group())
    shifted = logits - largest.unsqueeze(-1)
    total = tp.summed(shifted.exp().sum(-1), Replicate())
    local = targets - columns * tp.rank
    mine = (local >= 0) & (local < columns)
    picked = shifted.gather(-1, local.clamp(0, columns - 1).unsqueeze(-1)).squeeze(-1)
    return (total.log() - tp.summed(picked * mine, Replicate())).mean()


class Chunk(nn.Module):
    """What one stage of the pipeline runs: perhaps the embedding, some layers, perhaps the head."""

    def __init__(self, chunk, tp):
        super().__init__()
        first, last = chunk["layers"]
        parts = [Embed(tp)] if chunk["embed"] else []
        parts += [Layer(i, tp) for i in range(first, last)]
        parts += [Head(tp)] if chunk["head"] else []
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            again = RECOMPUTE and isinstance(part, Layer)
            x = checkpoint(part, x, use_reentrant=False, early_stop=False) if again else part(x)
        return x


WHOLE = {"embed": True, "layers": [0, LAYERS], "head": True}


class Job:
    """The model on this rank, and one step of it."""

    def __init__(self):
        names, sizes = zip(*MESH.items())
        mesh = init_device_mesh(DEVICE.type, sizes, mesh_dim_names=names)
        self.tp = Tensor(mesh[TENSOR] if TENSOR else None)
        # Ranks that hold the same pieces of weights; those that have terms of the same gradient.
        self.copies = group(mesh, DATA)
        self.owners = group(mesh, DATA + [TENSOR]) if TENSOR else self.copies
        self.replica = 0
        for axis in DATA:
            self.replica = self.replica * MESH[axis] + mesh.get_local_rank(axis)
        self.stage = mesh.get_local_rank(PIPELINE) if PIPELINE else 0
        self.mine = [(i, c) for i, c in enumerate(CHUNKS) if c["stage"] == self.stage]
        self.chunks = [Chunk(c, self.tp) for _, c in self.mine]
        self.parts = [p for c in self.chunks for p in c.parts]
        if SHARDED:
            policy = MixedPrecisionPolicy(param_dtype=DTYPE, reduce_dtype=torch.float32)
            for part in self.parts:
                fully_shard(part, mesh=mesh[tuple(SHARDED)], reshard_after_forward=RESHARD, mp_policy=policy)
        self.schedule = self.pipeline(mesh) if PIPELINE else None
        parameters = [p for part in self.parts for p in part.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)

    def pipeline(self, mesh):
        def example(chunk, integers):
            sequence = SEQUENCE // self.tp.ranks if SEQUENCE_PARALLEL else SEQUENCE
            if integers:
                return torch.zeros(MICRO_BATCH, SEQUENCE, dtype=torch.long, device=DEVICE)
            if chunk["head"]:
                return torch.zeros(MICRO_BATCH, SEQUENCE, VOCAB // self.tp.ranks, device=DEVICE)
            return torch.zeros(MICRO_BATCH, sequence, HIDDEN, dtype=DTYPE, device=DEVICE, requires_grad=True)

        stages = [
            PipelineStage(
                module,
                index,
                len(CHUNKS),
                DEVICE,
                input_args=(example({"head": False}, chunk["embed"]),),
                output_args=(example(chunk, False),),
                group=mesh[PIPELINE].get_group(),
            )
            for module, (index, chunk) in zip(self.chunks, self.mine)
        ]
        loss = lambda logits, targets: cross_entropy(logits, targets, self.tp) / MICROBATCHES
        schedule = get_schedule_class(SCHEDULE)
        several = len(CHUNKS) > MESH[PIPELINE]
        return schedule(stages if several else stages[0], MICROBATCHES, loss_fn=loss, scale_grads=False)

    def forward_backward(self, tokens):
        """Gradients of this replica's sequences, and its mean loss where the head is."""
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        if self.schedule:
            losses = []
            first, last = self.mine[0][1]["embed"], self.mine[-1][1]["head"]
            self.schedule.step(*([inputs] if first else []), **({"target": targets, "losses": losses} if last else {}))
            return sum(loss.detach() for loss in losses) if last else torch.zeros((), device=DEVICE)
        total = torch.zeros((), device=DEVICE)
        for x, y in zip(inputs.split(MICRO_BATCH), targets.split(MICRO_BATCH)):
            loss = cross_entropy(self.chunks[0](x), y, self.tp) / MICROBATCHES
            loss.backward()
            total += loss.detach()
        return total

    def reduce(self):
        """Gradients summed over the ranks that hold the same parameters, part by part."""
        if SHARDED:
            return  # FSDP has done so in the backward.
        for part in self.parts:
            gradients = [(n in part.terms, p.grad) for n, p in part.named_parameters()]
            whole, terms = ([g for t, g in gradients if t == wanted] for wanted in (False, True))
            alike = self.owners is self.copies
            buckets = [(whole + terms, self.copies)] if alike else [(whole, self.copies), (terms, self.owners)]
            for gradients, group in buckets:
                if group and gradients:
                    flat = torch.cat([g.flatten() for g in gradients])
                    dist.all_reduce(flat, group=group)
                    for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
                        gradient.copy_(piece.view_as(gradient) / REPLICAS)

    def step(self, tokens):
        """One update of the whole batch, of which each replica takes its share; the loss of the whole batch."""
        loss = self.forward_backward(tokens.tensor_split(REPLICAS)[self.replica].to(DEVICE))
        self.reduce()
        if self.copies:
            dist.all_reduce(loss, group=self.copies)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss / REPLICAS


def group(mesh, axes):
    """The ranks along these axes; none where there is one."""
    if not axes:
        return None
    return (mesh[axes[0]] if len(axes) == 1 else mesh[tuple(axes)]._flatten()).get_group()


def batch(step):
    """Random tokens, the same on every rank: BATCH sequences and the token after each."""
    generator = torch.Generator().manual_seed(SEED + step)
    return torch.randint(VOCAB, (BATCH, SEQUENCE + 1), generator=generator)


def main():
    if DEVICE.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    job = Job()
    for step in range(STEPS):
        begin = time.perf_counter()
        loss = job.step(batch(step))
        if job.mine[-1][1]["head"] and job.replica == 0 and job.tp.rank == 0:
            print(f"step {step} loss {loss.item():.6f} {time.perf_counter() - begin:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

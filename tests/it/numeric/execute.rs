//! The partitioned program run on simulated devices: each holds its pieces of tensors, a collective moves pieces within
//! its groups and counts what goes over the wire.

use super::array::{Array, Space};
use super::kernels::{Again, World};
use super::reference::Reference;
use super::stored;
use crate::eval;
use parc::expr;
use parc::graph::{DimId, Op, OpId, OpKind, ValueId, ValueRole};
use parc::layout::{AxisId, Layout};
use parc::partition::AxisUse::{Partial, Split, Whole};
use parc::partition::{
    Bytes, Collective, CollectiveKind, Content, Placement, Purpose, ShardedGraph, Step, StepId, StepKind, Task, Tensor,
    TensorId,
};
use smallvec::SmallVec;

/// How far a parameter goes down its gradient.
pub(super) const RATE: f64 = 0.5;

/// One run.
pub(super) struct Run<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) layout: &'a Layout,
    pub(super) sharded: &'a ShardedGraph,
    pub(super) reference: &'a Reference,
    pub(super) bytes: &'a Bytes,
    /// Every node of the expression graph.
    numbers: Vec<f64>,
    /// Ranks of each axis.
    sizes: Vec<usize>,
    /// What each device holds of each tensor.
    held: Vec<Option<Vec<Array>>>,
    done: Vec<bool>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        world: &'a World<'a>,
        layout: &'a Layout,
        sharded: &'a ShardedGraph,
        reference: &'a Reference,
        (bytes, exprs, inputs): (&'a Bytes, &expr::Graph, &[f64]),
    ) -> Self {
        let numbers = eval::all(exprs, inputs);
        let sizes = layout.axes.iter().map(|a| numbers[a.size.0 as usize] as usize).collect();
        let held = vec![None; sharded.tensors.len()];
        let done = vec![false; sharded.flow.node_count()];
        Self { world, layout, sharded, reference, bytes, numbers, sizes, held, done }
    }

    pub(super) fn devices(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The coordinate of a device along an axis.
    pub(super) fn coordinate(&self, device: usize, axis: AxisId) -> usize {
        let inner: usize = self.sizes[axis.0 as usize + 1..].iter().product();
        device / inner % self.sizes[axis.0 as usize]
    }

    pub(super) fn size(&self, axis: AxisId) -> usize {
        self.sizes[axis.0 as usize]
    }

    /// The devices that differ from `device` along `axes` alone, in their order.
    fn group(&self, device: usize, axes: &[AxisId]) -> Vec<usize> {
        let same = |other: &usize| {
            self.layout
                .axis_ids()
                .all(|a| axes.contains(&a) || self.coordinate(*other, a) == self.coordinate(device, a))
        };
        (0..self.devices()).filter(same).collect()
    }

    pub(super) fn tensor(&self, id: TensorId) -> &Tensor {
        &self.sharded.tensors[id.0 as usize]
    }

    /// The indices of `dim` that `place` gives a device.
    pub(super) fn index(&self, place: &Placement, device: usize, dim: DimId) -> Vec<usize> {
        let mut all = self.world.all(dim);
        for axis in place.axes_of(dim) {
            let len = all.len() / self.size(*axis);
            assert_eq!(len * self.size(*axis), all.len(), "{dim:?} does not divide");
            all = all[self.coordinate(device, *axis) * len..][..len].to_vec();
        }
        all
    }

    /// The indices of `dim` on a device where `axes` cut it and the device holds every block of those that `place` does
    /// not name.
    fn blocks(&self, place: &Placement, device: usize, dim: DimId, axes: &[AxisId]) -> Vec<usize> {
        let mut blocks = vec![self.world.all(dim)];
        for axis in axes {
            let own = place.axes_of(dim).contains(axis);
            let mut inner = Vec::new();
            for block in blocks {
                let len = block.len() / self.size(*axis);
                let at = self.coordinate(device, *axis);
                let wanted = |i: &usize| !own || *i == at;
                inner.extend((0..self.size(*axis)).filter(wanted).map(|i| block[i * len..][..len].to_vec()));
            }
            blocks = inner;
        }
        blocks.into_iter().flatten().collect()
    }

    /// The indices of `dim` that a device holds of a tensor.
    fn indices(&self, tensor: &Tensor, device: usize, dim: DimId) -> Vec<usize> {
        match &tensor.spread {
            Some((d, axes)) if *d == dim => self.blocks(&tensor.place, device, dim, axes),
            _ => self.index(&tensor.place, device, dim),
        }
    }

    /// What a device holds of a tensor that is not cut.
    pub(super) fn space(&self, tensor: &Tensor, device: usize) -> Space {
        let dims = self.world.graph.value(tensor.value).dims.clone();
        Space::new(dims, |d| self.indices(tensor, device, d))
    }

    /// Slots have no order of their own: on either side of an exchange they lie as they came. Here they are named by where
    /// they were beside their tokens.
    fn named_slots(&self, mut space: Space, tensor: &Tensor, device: usize, other: &Tensor) -> Space {
        for (at, dim) in space.dims.clone().into_iter().enumerate() {
            if (dim.0 as usize) < self.world.graph.dims.len() && self.world.graph.dim(dim).slots.is_some() {
                let mut axes = [tensor.place.axes_of(dim), other.place.axes_of(dim)].concat();
                axes.sort();
                axes.dedup();
                space.index[at] = self.blocks(&tensor.place, device, dim, &axes);
            }
        }
        space
    }

    pub(super) fn read(&self, id: TensorId) -> &[Array] {
        self.held[id.0 as usize].as_deref().unwrap_or_else(|| {
            panic!("tensor {} is not there: {:?} of {}", id.0, self.tensor(id), self.named(self.tensor(id).value))
        })
    }

    pub(super) fn named(&self, value: ValueId) -> String {
        self.world.graph.describe(value)
    }

    /// Puts what no step writes where it is before anything runs.
    fn given(&mut self) {
        let mut written = vec![false; self.sharded.tensors.len()];
        for step in self.sharded.flow.node_weights() {
            step.writes.iter().for_each(|t| written[t.0 as usize] = true);
        }
        for (at, tensor) in self.sharded.tensors.iter().enumerate() {
            if written[at] || tensor.content == Content::Updated {
                continue;
            }
            let whole = match tensor.content {
                Content::Value => self.reference.values[tensor.value.0 as usize].clone().expect("a leaf has a value"),
                // The gradient of a loss in itself.
                _ => Array::filled(Space::default(), 1.0),
            };
            let pieces = (0..self.devices()).map(|d| {
                let piece = whole.within(&self.space(tensor, d));
                stored::cut(self, tensor, d, &piece)
            });
            self.held[at] = Some(pieces.collect());
        }
    }

    /// A whole step of training, one microbatch.
    pub(super) fn run(&mut self) {
        self.given();
        let units = &self.sharded.units;
        self.ready(&units.iter().flat_map(|u| u.update.clone()).collect::<Vec<_>>());
        for unit in units {
            self.steps(&unit.forward);
        }
        self.forget();
        for unit in units.iter().rev() {
            self.steps(&unit.backward);
        }
        let updates: Vec<_> = units.iter().flat_map(|u| u.update.clone()).collect();
        self.ready(&updates);
        self.optimize();
        self.ready(&updates);
        for id in self.sharded.flow.node_indices() {
            assert!(self.done[id.index()], "step {} never runs: {:?}", id.index(), self.sharded.flow[id]);
        }
    }

    /// Between forward and backward only what the plan keeps is there.
    fn forget(&mut self) {
        let sharded = self.sharded;
        let mut keep = vec![true; sharded.tensors.len()];
        for unit in &sharded.units {
            for step in unit.forward.iter().map(|id| &sharded.flow[*id]) {
                let param = matches!(&step.kind, StepKind::Collective(c) if c.purpose == Purpose::GatherParam);
                for id in step.writes.iter().filter(|_| !param) {
                    let tensor = self.tensor(*id);
                    let role = self.world.graph.value(tensor.value).role;
                    let small = matches!(tensor.content, Content::Statistic(_));
                    keep[id.0 as usize] = small || matches!(role, ValueRole::Input | ValueRole::Loss);
                }
            }
        }
        for saved in sharded.units.iter().flat_map(|u| &u.saved).filter_map(|s| s.tensor) {
            keep[saved.0 as usize] = true;
        }
        for (held, keep) in self.held.iter_mut().zip(keep) {
            if !keep {
                *held = None;
            }
        }
    }

    fn steps(&mut self, steps: &[StepId]) {
        for id in steps {
            self.step(*id);
        }
    }

    /// Runs those of `steps` that have all they read.
    fn ready(&mut self, steps: &[StepId]) {
        for id in steps {
            let reads = &self.sharded.flow[*id].reads;
            if !self.done[id.index()] && reads.iter().all(|t| self.held[t.0 as usize].is_some()) {
                self.step(*id);
            }
        }
    }

    fn step(&mut self, id: StepId) {
        let sharded = self.sharded;
        let step = &sharded.flow[id];
        let made: Vec<Vec<Array>> = match &step.kind {
            StepKind::Free { op, task } | StepKind::Compute { op, task, .. } => {
                let each: Vec<_> = (0..self.devices()).map(|d| self.compute(step, *op, *task, d)).collect();
                (0..step.writes.len()).map(|w| each.iter().map(|made| made[w].clone()).collect()).collect()
            }
            StepKind::Collective(c) => self.collective(step, c),
        };
        for (id, made) in step.writes.iter().zip(made) {
            let tensor = self.tensor(*id).clone();
            for (device, piece) in made.iter().enumerate() {
                if !matches!(tensor.content, Content::Statistic(_)) {
                    let wanted = stored::space(self, &tensor, device);
                    assert_eq!(
                        piece.space, wanted,
                        "device {device} holds other indices than {tensor:?} says, {step:?}"
                    );
                }
            }
            assert!(self.held[id.0 as usize].is_none(), "a tensor is written once");
            self.held[id.0 as usize] = Some(made);
            if tensor.content == Content::Value && tensor.cut.is_empty() {
                self.agrees(*id, &self.reference.values, step);
            }
        }
        self.done[id.index()] = true;
    }

    /// Every device's piece, partial sums added up, is the reference's.
    pub(super) fn agrees(&self, id: TensorId, truth: &[Option<Array>], step: &Step) {
        let tensor = self.tensor(id);
        let dims = &self.world.graph.value(tensor.value).dims;
        // Slots are filled in another order where they are split.
        if dims.iter().any(|d| self.world.graph.dim(*d).slots.is_some()) {
            return;
        }
        let truth = truth[tensor.value.0 as usize].as_ref().expect("the reference has it");
        let held = self.read(id);
        for device in 0..self.devices() {
            let group = self.group(device, &tensor.place.partial);
            let mut sum = held[group[0]].clone();
            for other in &group[1..] {
                assert_eq!(sum.space, held[*other].space, "terms of a sum are alike");
                sum.data.iter_mut().zip(&held[*other].data).for_each(|(a, b)| *a += b);
            }
            let truth = truth.within(&held[device].space);
            let largest = truth.data.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
            for (found, truth) in sum.data.iter().zip(&truth.data) {
                assert!(
                    (found - truth).abs() <= 1e-9 * largest,
                    "device {device}: {:?} of {} is {found}, and {truth} without partitioning\n{tensor:?}\n{step:?}",
                    tensor.content,
                    self.named(tensor.value),
                );
            }
        }
    }

    /// What enters the chain that `op` ends, or the operands of `op`.
    fn operands(&self, op: OpId) -> Vec<(OpId, usize)> {
        let graph = self.world.graph;
        let members = &self.sharded.chains[&op];
        let inside = |v: ValueId| graph.producer(v).is_some_and(|p| members.contains(&p) && p != op);
        let chain = matches!(graph.flow[op].kind, OpKind::Map(_));
        let each = members.iter().flat_map(|m| (0..graph.flow[*m].inputs.len()).map(move |at| (*m, at)));
        each.filter(|(m, at)| !chain || !inside(graph.flow[*m].inputs[*at])).collect()
    }

    fn compute(&self, step: &Step, op: OpId, task: Task, device: usize) -> Vec<Array> {
        let graph = self.world.graph;
        let o = &graph.flow[op];
        let reads: Vec<&Array> = step.reads.iter().map(|t| &self.read(*t)[device]).collect();
        let place = |dim: DimId| self.indices(self.tensor(step.writes[0]), device, dim);
        match task {
            Task::Sum => {
                let mut sum = reads[0].clone();
                for more in &reads[1..] {
                    assert_eq!(sum.space, more.space, "terms of a sum are alike");
                    sum.data.iter_mut().zip(&more.data).for_each(|(a, b)| *a += b);
                }
                vec![sum]
            }
            Task::Forward => {
                let operands = self.operands(op);
                let (ins, statistics) = reads.split_at(operands.len());
                let made = if matches!(o.kind, OpKind::Map(_)) {
                    let known = |v: ValueId| {
                        let at = operands.iter().position(|(m, at)| graph.flow[*m].inputs[*at] == v);
                        at.map(|at| ins[at])
                    };
                    self.chain(op, &known)
                } else {
                    self.world.forward(o, ins, statistics, &place)
                };
                vec![self.ordered(made, o.output)]
            }
            Task::Statistic(n) => vec![self.statistic(step, o, n, &reads)],
            Task::Backward => self.backward(step, op, &reads, device),
        }
    }

    /// The result of `op` through the chain before it.
    fn chain<'k>(&self, op: OpId, known: &dyn Fn(ValueId) -> Option<&'k Array>) -> Array {
        let o = &self.world.graph.flow[op];
        let inside = |v: ValueId| {
            let before = self.world.graph.producer(v).expect("what is not read is made inside the chain");
            self.chain(before, known)
        };
        let ins: Vec<_> = o.inputs.iter().map(|v| known(*v).map_or_else(|| inside(*v), Clone::clone)).collect();
        self.world.forward(o, &ins.iter().collect::<Vec<_>>(), &[], &|_| Vec::new())
    }

    /// Dimensions in the order of the value.
    fn ordered(&self, array: Array, value: ValueId) -> Array {
        let dims = self.world.graph.value(value).dims.clone();
        if dims == array.space.dims {
            return array;
        }
        array.within(&Space::new(dims, |d| array.space.of(d).to_vec()))
    }

    fn statistic(&self, step: &Step, o: &Op, n: u8, reads: &[&Array]) -> Array {
        let first = self.tensor(step.reads[0]);
        let backward = first.content == Content::Gradient;
        let again = self.again(step, o, reads, usize::from(backward));
        self.world.statistic(o, n, backward.then(|| reads[0]), &again)
    }

    /// What of `reads` are operands, result and statistics of `o`.
    fn again<'r>(&self, step: &Step, o: &Op, reads: &[&'r Array], from: usize) -> Again<'r> {
        let rest = || step.reads.iter().zip(reads).skip(from).map(|(t, a)| (self.tensor(*t), *a));
        let value = |v: ValueId| {
            let found = rest().find(|(t, _)| t.value == v && t.content == Content::Value);
            found.map(|(_, a)| a)
        };
        let statistics = rest().filter(|(t, _)| matches!(t.content, Content::Statistic(_))).map(|(_, a)| a).collect();
        let mut operands: Vec<_> = o.inputs.iter().map(|v| value(*v)).collect();
        if matches!(o.kind, OpKind::Attention(_)) {
            // One value may be read in several places.
            operands = (0..o.inputs.len()).map(|at| reads.get(from + at).copied()).collect();
        }
        let result = step.reads.iter().zip(reads).skip(from);
        let mut result = result.filter(|(t, _)| self.tensor(**t).content == Content::Value);
        let result = result.next_back().filter(|(t, _)| self.tensor(**t).value == o.output).map(|(_, a)| *a);
        Again { operands, result, statistics }
    }

    fn backward(&self, step: &Step, op: OpId, reads: &[&Array], device: usize) -> Vec<Array> {
        let graph = self.world.graph;
        let o = &graph.flow[op];
        let dy = reads[0];
        let written: Vec<&Tensor> = step.writes.iter().map(|t| self.tensor(*t)).collect();
        let target = |tensor: &Tensor, operand: Option<&Array>| {
            let canonical = self.space(tensor, device);
            Space::new(canonical.dims.clone(), |d| {
                let known = operand.into_iter().chain([dy]).find(|a| a.space.at(d).is_some());
                known.map_or_else(|| canonical.of(d).to_vec(), |a| a.space.of(d).to_vec())
            })
        };
        let mut out = if matches!(o.kind, OpKind::Map(_)) {
            self.chain_back(step, op, reads, &written, &target)
        } else {
            let again = self.again(step, o, reads, 1);
            let mut targets = vec![None; o.inputs.len()];
            for tensor in &written {
                let at = (0..o.inputs.len()).find(|at| o.inputs[*at] == tensor.value && targets[*at].is_none());
                let at = at.expect("a gradient of an operand");
                let operand = again.operands.get(at).copied().flatten();
                targets[at] = Some(match &o.kind {
                    // These say themselves what they make.
                    OpKind::Take { .. } | OpKind::Embed { .. } | OpKind::Dispatch(_) | OpKind::Combine(_) => {
                        self.space(tensor, device)
                    }
                    _ => target(tensor, operand),
                });
            }
            let made = self.world.backward(o, dy, &again, &targets);
            made.into_iter().flatten().collect()
        };
        for (array, tensor) in out.iter_mut().zip(&written) {
            *array = self.ordered(array.clone(), tensor.value);
        }
        // A product adds to what is there.
        let last = self.tensor(*step.reads.last().expect("a backward reads"));
        if step.reads.len() > 1 && last.content == Content::Gradient {
            assert_eq!((out.len(), last.value), (1, written[0].value), "a product adds to the gradient it makes");
            let there = reads[reads.len() - 1];
            out[0].data.iter_mut().zip(&there.data).for_each(|(a, b)| *a += b);
        }
        out
    }

    fn chain_back(
        &self,
        step: &Step,
        tail: OpId,
        reads: &[&Array],
        written: &[&Tensor],
        target: &dyn Fn(&Tensor, Option<&Array>) -> Space,
    ) -> Vec<Array> {
        let graph = self.world.graph;
        let read = |v: ValueId| {
            let found = step.reads.iter().zip(reads).skip(1).find(|(t, _)| self.tensor(**t).value == v);
            found.map(|(_, a)| *a)
        };
        let known = |v: ValueId| read(v);
        let mut grads: Vec<(ValueId, Array)> = vec![(graph.flow[tail].output, reads[0].clone())];
        let entering = self.operands(tail);
        let mut left = written.iter();
        let wanted: Vec<_> = entering
            .iter()
            .filter(|(m, at)| self.reference.needs_grad(graph.flow[*m].inputs[*at]))
            .map(|o| (*o, *left.next().expect("a gradient for each operand that has one")))
            .collect();
        assert!(left.next().is_none(), "a gradient for each operand that has one");
        let mut found: Vec<((OpId, usize), Array)> = Vec::new();
        for member in self.sharded.chains[&tail].iter().rev() {
            let o = &graph.flow[*member];
            let dy = grads.iter().position(|(v, _)| *v == o.output).map(|at| grads.remove(at).1);
            let dy = dy.expect("the chain is one line");
            let linear = World::needs_no_operands(o);
            // Operands made inside the chain are made again, where the slope needs them.
            let values: Vec<Option<Array>> = o
                .inputs
                .iter()
                .map(|v| match read(*v) {
                    Some(a) => Some(a.clone()),
                    None if linear => None,
                    None => graph
                        .producer(*v)
                        .filter(|p| self.sharded.chains[&tail].contains(p))
                        .map(|p| self.chain(p, &known)),
                })
                .collect();
            let again =
                Again { operands: values.iter().map(Option::as_ref).collect(), result: None, statistics: Vec::new() };
            let mut targets = Vec::new();
            for (at, v) in o.inputs.iter().enumerate() {
                let outside = wanted.iter().find(|(operand, _)| *operand == (*member, at));
                let inside = !entering.contains(&(*member, at));
                targets.push(match outside {
                    Some((_, tensor)) => Some(target(tensor, values[at].as_ref())),
                    None if inside => Some(
                        dy.space.without(
                            &dy.space
                                .dims
                                .iter()
                                .copied()
                                .filter(|d| !graph.value(*v).dims.contains(d))
                                .collect::<Vec<_>>(),
                        ),
                    ),
                    None => None,
                });
            }
            let made = self.world.backward(o, &dy, &again, &targets);
            for (at, made) in made.into_iter().enumerate() {
                let Some(made) = made else { continue };
                if entering.contains(&(*member, at)) {
                    found.push(((*member, at), made));
                } else {
                    grads.push((o.inputs[at], made));
                }
            }
        }
        let take = |operand: &(OpId, usize)| {
            let at = found.iter().find(|(o, _)| o == operand);
            at.map(|(_, a)| a.clone()).expect("every operand was met")
        };
        wanted.iter().map(|(operand, _)| take(operand)).collect()
    }

    /// Moves every tensor of a step within its groups.
    fn collective(&self, step: &Step, c: &Collective) -> Vec<Vec<Array>> {
        let mut made = Vec::new();
        // By device: the larger of what goes in and out, and what comes from others, in bytes.
        let mut larger = vec![0.0; self.devices()];
        let mut received = vec![0.0; self.devices()];
        for (from, to) in step.reads.iter().zip(&step.writes) {
            let (old, new) = (self.tensor(*from), self.tensor(*to));
            assert_eq!((old.value, old.content), (new.value, new.content), "a collective moves what it reads");
            self.is_what_it_says(c, old, new);
            let held = self.read(*from);
            let each = self.width(c, old);
            let mut pieces = Vec::new();
            for device in 0..self.devices() {
                let group = self.group(device, &c.axes);
                let (piece, foreign) = self.gathered(c, old, new, held, device, &group);
                let (inside, outside) = (held[device].data.len() as f64, piece.data.len() as f64);
                larger[device] += each * inside.max(outside);
                received[device] += each * foreign;
                pieces.push(piece);
            }
            made.push(pieces);
        }
        let n: usize = c.axes.iter().map(|a| self.size(*a)).product();
        let stated = self.numbers[c.bytes.0 as usize];
        // Pieces of what does not divide are of different sizes: the plan states the largest.
        let most = larger.iter().copied().fold(0.0, f64::max);
        let n = n as f64;
        let (stated, share) = match c.kind {
            // A ring of n ranks passes n − 1 blocks on.
            CollectiveKind::Permute => (stated * n / (n - 1.0).max(1.0), (n - 1.0) / n),
            CollectiveKind::Slice => (stated, 0.0),
            CollectiveKind::AllReduce => (stated, (n - 1.0)),
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => {
                (stated, (n - 1.0) / n)
            }
        };
        if n > 1.0 {
            assert!(
                super::close(most, stated),
                "the plan states {stated} bytes and {most} were moved: {c:?}\n{step:?}"
            );
            let most = received.iter().copied().fold(0.0, f64::max);
            let uneven = step.reads.iter().chain(&step.writes).any(|t| !self.tensor(*t).cut.is_empty());
            if !uneven {
                assert!(super::close(most, stated * share), "{most} bytes came in for {}: {c:?}", stated * share);
            }
        }
        made
    }

    /// Bytes of an element.
    fn width(&self, c: &Collective, tensor: &Tensor) -> f64 {
        match (c.purpose, self.world.graph.value(tensor.value).role) {
            (Purpose::Statistics, _) => 4.0,
            (Purpose::GatherParam, _) => self.bytes.gather,
            (Purpose::ReduceGrad, _) | (_, ValueRole::Param(_)) => self.bytes.reduce,
            (_, ValueRole::Input | ValueRole::Loss) => 4.0,
            (_, ValueRole::Activation | ValueRole::Logits) => self.bytes.wire,
        }
    }

    /// A collective does on its axes what its kind does, and nothing on others.
    fn is_what_it_says(&self, c: &Collective, old: &Tensor, new: &Tensor) {
        for axis in self.layout.axis_ids() {
            let (from, to) = (old.place.on(axis), new.place.on(axis));
            let cut = (old.cut.contains(&axis), new.cut.contains(&axis));
            let fits = if c.axes.contains(&axis) {
                match c.kind {
                    CollectiveKind::AllReduce => (from, to) == (Partial, Whole) && cut.0 == cut.1,
                    CollectiveKind::AllGather => {
                        cut == (true, false) && from == to
                            || matches!(from, Split(_)) && to == Whole && cut == (false, false)
                    }
                    CollectiveKind::ReduceScatter => {
                        from == Partial && (to == Whole && cut == (false, true) || matches!(to, Split(_)))
                    }
                    CollectiveKind::AllToAll => matches!((from, to), (Split(a), Split(b)) if a != b),
                    CollectiveKind::Slice => from == Whole && (matches!(to, Split(_)) || cut == (false, true)),
                    CollectiveKind::Permute => matches!((from, to), (Split(_), Whole) | (Partial, Split(_))),
                }
            } else {
                from == to && cut.0 == cut.1
            };
            assert!(fits, "{c:?} over {axis:?} brings {old:?}\nto {new:?}");
        }
    }

    /// What a device holds after a collective, and how many elements came from others.
    fn gathered(
        &self,
        c: &Collective,
        old: &Tensor,
        new: &Tensor,
        held: &[Array],
        device: usize,
        group: &[usize],
    ) -> (Array, f64) {
        let space = match new.content {
            Content::Statistic(_) => held[device].space.clone(),
            _ => stored::space(self, new, device),
        };
        let travels = matches!(c.purpose, Purpose::Dispatch | Purpose::Combine);
        let settled = space.clone();
        let space = if travels { self.named_slots(space, new, device, old) } else { space };
        let sums = c.axes.iter().any(|a| old.place.on(*a) == Partial);
        let mut out = Array::filled(space.clone(), if c.maximum { f64::NEG_INFINITY } else { 0.0 });
        let mut met = vec![0u32; out.data.len()];
        let mut foreign = 0.0;
        // Its own piece first: nobody sends what is there.
        let mut order = vec![device];
        order.extend(group.iter().copied().filter(|g| *g != device));
        for member in order {
            let mut source = stored::opened(self, old, new, member, &held[member]);
            if travels {
                source.space = self.named_slots(source.space, old, member, new);
            }
            let spots = stored::spots(&space, &source.space);
            for (to, from) in spots {
                if !sums && met[to] > 0 {
                    continue;
                }
                met[to] += 1;
                foreign += f64::from(u8::from(member != device));
                let x = source.data[from];
                out.data[to] = if c.maximum { out.data[to].max(x) } else { out.data[to] + x };
            }
        }
        let wanted = if sums { group.len() as u32 } else { 1 };
        assert!(
            met.iter().all(|m| *m == wanted),
            "the group lacks elements that {new:?} of {} asks for on device {device}: it comes from {old:?}",
            self.named(new.value),
        );
        out.space = settled;
        (out, foreign)
    }

    /// Each device moves its part of every parameter down the gradient.
    fn optimize(&mut self) {
        for param in self.sharded.units.iter().flat_map(|u| &u.params) {
            let tensor = self.tensor(param.updated).clone();
            let mut made = Vec::new();
            for device in 0..self.devices() {
                let place = Tensor { cut: SmallVec::new(), along: None, ..tensor.clone() };
                let value = &self.reference.values[tensor.value.0 as usize];
                let before = value.as_ref().expect("a parameter").within(&self.space(&place, device));
                let mut piece = stored::cut(self, &tensor, device, &before);
                if let Some(gradient) = param.gradient {
                    assert!(self.tensor(gradient).place.partial.is_empty(), "a gradient is summed before the update");
                    let old = self.tensor(gradient);
                    let held = stored::opened(self, old, &tensor, device, &self.read(gradient)[device]);
                    let spots = stored::spots(&piece.space, &held.space);
                    assert_eq!(
                        spots.len(),
                        piece.data.len(),
                        "the optimizer has the gradient of what it updates: {old:?} for {tensor:?}"
                    );
                    for (to, from) in spots {
                        piece.data[to] -= RATE * held.data[from];
                    }
                }
                made.push(piece);
            }
            self.held[param.updated.0 as usize] = Some(made);
        }
    }

    /// Gradients and updated parameters are what they are without partitioning.
    pub(super) fn check_params(&self) {
        for param in self.sharded.units.iter().flat_map(|u| &u.params) {
            let value = self.world.graph.params[param.param as usize].value;
            let Some(gradient) = &self.reference.gradients[value.0 as usize] else {
                assert!(param.gradient.is_none(), "{} has no gradient", self.named(value));
                continue;
            };
            let before = self.reference.values[value.0 as usize].as_ref().expect("a parameter");
            let after = before.zip(gradient, |w, g| w - RATE * g);
            let id = param.gradient.unwrap_or_else(|| panic!("{} lost its gradient", self.named(value)));
            for (id, truth) in [(id, gradient), (param.settled, &after)] {
                let tensor = self.tensor(id);
                for device in 0..self.devices() {
                    let whole = Tensor { cut: SmallVec::new(), along: None, ..tensor.clone() };
                    let wanted = stored::cut(self, tensor, device, &truth.within(&self.space(&whole, device)));
                    let found = &self.read(id)[device];
                    assert_eq!(found.space, wanted.space, "{tensor:?}");
                    let largest = truth.data.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
                    for (found, wanted) in found.data.iter().zip(&wanted.data) {
                        assert!(
                            (found - wanted).abs() <= 1e-9 * largest,
                            "device {device}: {:?} of {} is {found}, and {wanted} without partitioning\n{tensor:?}",
                            tensor.content,
                            self.named(value),
                        );
                    }
                }
            }
            // The next step begins as this one did.
            let rests =
                self.sharded.tensors.iter().find(|t| {
                    t.value == value && t.content == Content::Value && t.cut == self.tensor(param.settled).cut
                });
            assert!(rests.is_some(), "{} settles as it rests", self.named(value));
        }
    }
}

//! A graph as LLVM IR.
//!
//! Two functions. `body(blocks, in, out)` evaluates whole blocks of eight points: one basic block, its nodes in order as
//! explicit `<8 x double>` operations, a Bool as `<8 x i1>`. `parc_evaluate(n, in, out)` calls it, and once more on a
//! copy on the stack for the points that are left. There are no fast-math flags and no passes: the graph is folded and
//! shared already, and its order of operations is its meaning. `parc::expr::scalar` has the same series as here.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicTypeEnum, FloatType, IntType, PointerType, StructType, VectorType};
use inkwell::values::{BasicMetadataValueEnum, BasicValue, FunctionValue, IntValue, PointerValue, VectorValue};
use inkwell::{AddressSpace, FloatPredicate, IntPredicate};
use parc::expr::{Graph, Id, InputId, Kind, Node, scalar};

/// The exported function: `int32_t parc_evaluate(int64_t n, const double *const *in, double *const *out)`.
pub(crate) const EVALUATE: &str = "parc_evaluate";

/// Points of a block.
const LANES: u32 = 8;

/// Bytes of a block of one column.
const BLOCK: u64 = 8 * LANES as u64;

/// The machine to compile for.
pub(crate) struct Cpu {
    pub(crate) name: String,
    pub(crate) features: String,
}

/// The module of `graph`.
pub(crate) fn module<'c>(
    context: &'c Context,
    graph: &Graph,
    roots: &[Id],
    cpu: &Cpu,
) -> Result<Module<'c>, BuilderError> {
    let double = context.f64_type();
    let pointer = context.ptr_type(AddressSpace::default());
    let unit = context.create_module("parc");
    let tables = graph.tables().iter().map(|table| constants(context, &unit, &table.values)).collect();
    let emitter = Emitter {
        context,
        module: unit,
        builder: context.create_builder(),
        double,
        int: context.i64_type(),
        pointer,
        lanes: double.vec_type(LANES),
        bits: context.i64_type().vec_type(LANES),
        inputs: context.struct_type(&vec![pointer.into(); graph.inputs().len()], false),
        outputs: context.struct_type(&vec![pointer.into(); roots.len()], false),
        tables,
    };
    let body = emitter.body(graph, roots, cpu)?;
    emitter.evaluate(body, graph, roots, cpu)?;
    Ok(emitter.module)
}

/// Gives the function of a module its exported name, and the module a text: `SYMBOL_evaluate` and `SYMBOL_schema`.
pub(crate) fn export<'c>(context: &'c Context, module: &Module<'c>, symbol: &str, schema: &str) {
    if let Some(function) = module.get_function(EVALUATE) {
        function.as_global_value().set_name(&format!("{symbol}_evaluate"));
    }
    let text = context.const_string(schema.as_bytes(), true);
    let global = module.add_global(text.get_type(), None, &format!("{symbol}_schema"));
    global.set_initializer(&text);
    global.set_constant(true);
}

struct Emitter<'c> {
    context: &'c Context,
    module: Module<'c>,
    builder: Builder<'c>,
    double: FloatType<'c>,
    int: IntType<'c>,
    pointer: PointerType<'c>,
    lanes: VectorType<'c>,
    bits: VectorType<'c>,
    /// The array of column pointers, as a struct.
    inputs: StructType<'c>,
    outputs: StructType<'c>,
    /// Where each table's values lie.
    tables: Vec<PointerValue<'c>>,
}

/// A table's values in the module's constants.
fn constants<'c>(context: &'c Context, module: &Module<'c>, values: &[f64]) -> PointerValue<'c> {
    let double = context.f64_type();
    let values: Vec<_> = values.iter().map(|v| double.const_float(*v)).collect();
    let global = module.add_global(double.array_type(values.len() as u32), None, "table");
    global.set_initializer(&double.const_array(&values));
    global.set_constant(true);
    global.set_linkage(Linkage::Internal);
    global.as_pointer_value()
}

type Lanes<'c> = VectorValue<'c>;

impl<'c> Emitter<'c> {
    fn function(&self, name: &str, linkage: Linkage, returns: Option<IntType<'c>>, cpu: &Cpu) -> FunctionValue<'c> {
        let parameters = [self.int.into(), self.pointer.into(), self.pointer.into()];
        let ty = match returns {
            Some(ty) => ty.fn_type(&parameters, false),
            None => self.context.void_type().fn_type(&parameters, false),
        };
        let function = self.module.add_function(name, ty, Some(linkage));
        // The JIT reads the machine from the function, not from the engine.
        for (key, value) in [
            ("target-cpu", cpu.name.as_str()),
            ("target-features", cpu.features.as_str()),
            ("prefer-vector-width", "512"),
        ] {
            function.add_attribute(AttributeLoc::Function, self.context.create_string_attribute(key, value));
        }
        let flag = |name| self.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        function.add_attribute(AttributeLoc::Function, flag("nounwind"));
        function.add_attribute(AttributeLoc::Param(1), flag("noalias"));
        function.add_attribute(AttributeLoc::Param(2), flag("noalias"));
        function
    }

    fn body(&self, graph: &Graph, roots: &[Id], cpu: &Cpu) -> Result<FunctionValue<'c>, BuilderError> {
        let b = &self.builder;
        let function = self.function("body", Linkage::Internal, None, cpu);
        let (blocks, columns, out) = parameters(function);
        let entry = self.context.append_basic_block(function, "entry");
        let block = self.context.append_basic_block(function, "block");
        let exit = self.context.append_basic_block(function, "exit");

        b.position_at_end(entry);
        let ins =
            used(graph).map(|i| self.column(self.inputs, columns, i).map(|p| (i, p))).collect::<Result<Vec<_>, _>>()?;
        let outs = (0..roots.len() as u32)
            .map(|i| self.column(self.outputs, out, InputId(i)))
            .collect::<Result<Vec<_>, _>>()?;
        let end = b.build_int_mul(blocks, self.int.const_int(BLOCK, false), "end")?;
        let zero = self.int.const_zero();
        let none = b.build_int_compare(IntPredicate::EQ, blocks, zero, "none")?;
        b.build_conditional_branch(none, exit, block)?;

        b.position_at_end(block);
        let offset = b.build_phi(self.int, "offset")?;
        let at = offset.as_basic_value().into_int_value();
        let mut values: Vec<Lanes> = Vec::with_capacity(graph.len());
        for id in graph.ids() {
            let value = match graph.node(id) {
                Node::Input(i) => {
                    let column = ins.iter().find(|(j, _)| *j == i).expect("every input of a node is used").1;
                    let given = self.load(self.place(column, at)?)?;
                    self.promised(graph, i, given)?
                }
                node => self.node(node, graph, &values)?,
            };
            values.push(value);
        }
        for (root, column) in roots.iter().zip(outs) {
            let value = values[root.0 as usize];
            let value = if graph.kind(*root) == Kind::Bool {
                self.select(value, self.splat(1.0), self.splat(0.0))?
            } else {
                value
            };
            let store = b.build_store(self.place(column, at)?, value)?;
            store.set_alignment(8).expect("8 is an alignment of a store");
        }
        let next = b.build_int_add(at, self.int.const_int(BLOCK, false), "next")?;
        offset.add_incoming(&[(&zero, entry), (&next, block)]);
        let done = b.build_int_compare(IntPredicate::EQ, next, end, "done")?;
        b.build_conditional_branch(done, exit, block)?;

        b.position_at_end(exit);
        b.build_return(None)?;
        Ok(function)
    }

    /// The exported function: whole blocks in place, the rest through a copy.
    fn evaluate(&self, body: FunctionValue<'c>, graph: &Graph, roots: &[Id], cpu: &Cpu) -> Result<(), BuilderError> {
        let b = &self.builder;
        let status = self.context.i32_type();
        let function = self.function(EVALUATE, Linkage::External, Some(status), cpu);
        let (n, columns, out) = parameters(function);
        let entry = self.context.append_basic_block(function, "entry");
        let some = self.context.append_basic_block(function, "some");
        let rest = self.context.append_basic_block(function, "rest");
        let exit = self.context.append_basic_block(function, "exit");
        let number = |v: u64| self.int.const_int(v, false);

        b.position_at_end(entry);
        let none = b.build_int_compare(IntPredicate::SLE, n, number(0), "none")?;
        b.build_conditional_branch(none, exit, some)?;

        b.position_at_end(some);
        let blocks = b.build_right_shift(n, number(3), false, "blocks")?;
        b.build_call(body, &[blocks.into(), columns.into(), out.into()], "")?;
        let left = b.build_and(n, number(7), "left")?;
        let whole = b.build_int_compare(IntPredicate::EQ, left, number(0), "whole")?;
        b.build_conditional_branch(whole, exit, rest)?;

        b.position_at_end(rest);
        let done = b.build_int_mul(blocks, number(BLOCK), "done")?;
        let mask = self.first(left)?;
        let (pad_in, pad_out) = (b.build_alloca(self.inputs, "in")?, b.build_alloca(self.outputs, "out")?);
        for i in used(graph) {
            let from = self.place(self.column(self.inputs, columns, i)?, done)?;
            let given = self.intrinsic(
                "llvm.masked.load",
                &[self.lanes.into(), self.pointer.into()],
                &[from.into(), mask.into(), self.lanes.const_zero().into()],
            )?;
            let copy = b.build_alloca(self.lanes, "copy")?;
            b.build_store(copy, given.expect("a load gives a value"))?;
            b.build_store(b.build_struct_gep(self.inputs, pad_in, i.0, "")?, copy)?;
        }
        let copies = (0..roots.len() as u32)
            .map(|i| {
                let copy = b.build_alloca(self.lanes, "copy")?;
                b.build_store(b.build_struct_gep(self.outputs, pad_out, i, "")?, copy)?;
                Ok(copy)
            })
            .collect::<Result<Vec<_>, BuilderError>>()?;
        b.build_call(body, &[number(1).into(), pad_in.into(), pad_out.into()], "")?;
        for (i, copy) in copies.into_iter().enumerate() {
            let to = self.place(self.column(self.outputs, out, InputId(i as u32))?, done)?;
            let value = self.load(copy)?;
            self.intrinsic(
                "llvm.masked.store",
                &[self.lanes.into(), self.pointer.into()],
                &[value.into(), to.into(), mask.into()],
            )?;
        }
        b.build_unconditional_branch(exit)?;

        b.position_at_end(exit);
        b.build_return(Some(&status.const_zero()))?;
        Ok(())
    }

    /// The pointer to column `i` of an array of them.
    fn column(
        &self,
        array: StructType<'c>,
        columns: PointerValue<'c>,
        i: InputId,
    ) -> Result<IntValue<'c>, BuilderError> {
        let place = self.builder.build_struct_gep(array, columns, i.0, "")?;
        let column = self.builder.build_load(self.pointer, place, "column")?.into_pointer_value();
        self.builder.build_ptr_to_int(column, self.int, "")
    }

    fn place(&self, column: IntValue<'c>, offset: IntValue<'c>) -> Result<PointerValue<'c>, BuilderError> {
        let address = self.builder.build_int_add(column, offset, "")?;
        self.builder.build_int_to_ptr(address, self.pointer, "")
    }

    fn load(&self, place: PointerValue<'c>) -> Result<Lanes<'c>, BuilderError> {
        let value = self.builder.build_load(self.lanes, place, "")?;
        let load = value.as_instruction_value().expect("a load is an instruction");
        load.set_alignment(8).expect("8 is an alignment of a load");
        Ok(value.into_vector_value())
    }

    /// Whether a lane is among the first `count`.
    fn first(&self, count: IntValue<'c>) -> Result<VectorValue<'c>, BuilderError> {
        let mut all = self.bits.get_poison();
        let mut places = Vec::new();
        for lane in 0..u64::from(LANES) {
            let place = self.int.const_int(lane, false);
            all = self.builder.build_insert_element(all, count, place, "")?;
            places.push(place);
        }
        self.builder.build_int_compare(IntPredicate::ULT, VectorType::const_vector(&places), all, "mask")
    }

    fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> Result<Option<Lanes<'c>>, BuilderError> {
        let intrinsic = Intrinsic::find(name).expect("LLVM has the intrinsic");
        let function = intrinsic.get_declaration(&self.module, types).expect("LLVM has it for these types");
        let call = self.builder.build_call(function, arguments, "")?;
        Ok(call.try_as_basic_value().basic().map(|value| value.into_vector_value()))
    }

    fn unary(&self, name: &str, a: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        Ok(self.intrinsic(name, &[self.lanes.into()], &[a.into()])?.expect("it gives a value"))
    }

    fn splat(&self, value: f64) -> Lanes<'c> {
        VectorType::const_vector(&[self.double.const_float(value); LANES as usize])
    }

    fn splat_bits(&self, value: u64) -> Lanes<'c> {
        VectorType::const_vector(&[self.int.const_int(value, false); LANES as usize])
    }

    fn select(&self, c: Lanes<'c>, a: Lanes<'c>, b: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        Ok(self.builder.build_select(c, a, b, "")?.into_vector_value())
    }

    fn compare(&self, how: FloatPredicate, a: Lanes<'c>, b: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        self.builder.build_float_compare(how, a, b, "")
    }

    fn min(&self, a: Lanes<'c>, b: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        self.select(self.compare(FloatPredicate::OLT, a, b)?, a, b)
    }

    fn max(&self, a: Lanes<'c>, b: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        self.select(self.compare(FloatPredicate::OGT, a, b)?, a, b)
    }

    /// A column's values, brought into the input's range.
    fn promised(&self, graph: &Graph, i: InputId, given: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        let input = &graph.inputs()[i.0 as usize];
        let value = self.max(given, self.splat(input.lo))?;
        let value = self.min(value, self.splat(input.hi))?;
        match input.kind {
            Kind::Int => self.unary("llvm.floor", value),
            Kind::Real => Ok(value),
            Kind::Bool => self.compare(FloatPredicate::OGT, value, self.splat(0.0)),
        }
    }

    fn node(&self, node: Node, graph: &Graph, values: &[Lanes<'c>]) -> Result<Lanes<'c>, BuilderError> {
        let b = &self.builder;
        let v = |id: Id| values[id.0 as usize];
        let quotient = |p: Id, q: Id, round| self.unary(round, b.build_float_div(v(p), v(q), "")?);
        match node {
            Node::Int(value) => Ok(self.splat(value as f64)),
            Node::Real(bits) => Ok(self.splat(f64::from_bits(bits))),
            Node::Bool(value) => {
                let lane = self.context.bool_type().const_int(value.into(), false);
                Ok(VectorType::const_vector(&[lane; LANES as usize]))
            }
            Node::Input(_) => unreachable!("inputs are loaded by the body"),
            Node::Add(p, q) => b.build_float_add(v(p), v(q), ""),
            Node::Sub(p, q) => b.build_float_sub(v(p), v(q), ""),
            Node::Mul(p, q) => b.build_float_mul(v(p), v(q), ""),
            Node::Div(p, q) => b.build_float_div(v(p), v(q), ""),
            Node::ToReal(p) => Ok(v(p)),
            Node::Floor(p) => self.unary("llvm.floor", v(p)),
            Node::Ceil(p) => self.unary("llvm.ceil", v(p)),
            Node::Sqrt(p) => self.unary("llvm.sqrt", v(p)),
            Node::Log2(p) => self.log2(v(p)),
            Node::Exp2(p) => self.exp2(v(p)),
            Node::FloorDiv(p, q) | Node::ExactDiv(p, q) => quotient(p, q, "llvm.floor"),
            Node::CeilDiv(p, q) => quotient(p, q, "llvm.ceil"),
            Node::Mod(p, q) => {
                let taken = b.build_float_mul(v(q), quotient(p, q, "llvm.floor")?, "")?;
                b.build_float_sub(v(p), taken, "")
            }
            Node::Min(p, q) => self.min(v(p), v(q)),
            Node::Max(p, q) => self.max(v(p), v(q)),
            Node::Select(c, p, q) => self.select(v(c), v(p), v(q)),
            Node::Lookup(table, index) => self.lookup(self.tables[table.0 as usize], v(index)),
            Node::Le(p, q) => self.compare(FloatPredicate::OLE, v(p), v(q)),
            Node::Lt(p, q) => self.compare(FloatPredicate::OLT, v(p), v(q)),
            Node::Eq(p, q) if graph.kind(p) == Kind::Bool => b.build_int_compare(IntPredicate::EQ, v(p), v(q), ""),
            Node::Eq(p, q) => self.compare(FloatPredicate::OEQ, v(p), v(q)),
            Node::And(p, q) => b.build_and(v(p), v(q), ""),
            Node::Or(p, q) => b.build_or(v(p), v(q), ""),
            Node::Not(p) => b.build_not(v(p), ""),
        }
    }

    /// The values of a table at whole numbers, lane by lane: the index is in its range.
    fn lookup(&self, table: PointerValue<'c>, index: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        let b = &self.builder;
        let base = b.build_ptr_to_int(table, self.int, "")?;
        let places = b.build_float_to_signed_int(index, self.bits, "")?;
        let offsets = b.build_left_shift(places, self.splat_bits(3), "")?;
        let mut values = self.lanes.get_poison();
        for lane in 0..u64::from(LANES) {
            let lane = self.int.const_int(lane, false);
            let offset = b.build_extract_element(offsets, lane, "")?.into_int_value();
            let value = b.build_load(self.double, self.place(base, offset)?, "")?.into_float_value();
            values = b.build_insert_element(values, value, lane, "")?;
        }
        Ok(values)
    }

    fn as_bits(&self, a: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        Ok(self.builder.build_bit_cast(a, self.bits, "")?.into_vector_value())
    }

    fn as_double(&self, a: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        Ok(self.builder.build_bit_cast(a, self.lanes, "")?.into_vector_value())
    }

    /// A polynomial in `x`, lowest coefficient first.
    fn series(&self, coefficients: &[f64], x: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        let (last, rest) = coefficients.split_last().expect("the series has terms");
        let mut sum = self.splat(*last);
        for c in rest.iter().rev() {
            let product = self.builder.build_float_mul(sum, x, "")?;
            sum = self.builder.build_float_add(product, self.splat(*c), "")?;
        }
        Ok(sum)
    }

    fn log2(&self, x: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        let b = &self.builder;
        let one = self.splat(1.0);
        let bits = self.as_bits(x)?;
        let high = b.build_right_shift(bits, self.splat_bits(52), false, "")?;
        let high = self.as_double(b.build_or(high, self.splat_bits(scalar::TWO_52.to_bits()), "")?)?;
        let exponent = b.build_float_sub(high, self.splat(scalar::BIASED), "")?;
        let low = b.build_and(bits, self.splat_bits(0x000f_ffff_ffff_ffff), "")?;
        let mantissa = self.as_double(b.build_or(low, self.splat_bits(1f64.to_bits()), "")?)?;
        let fold = self.compare(FloatPredicate::OGT, mantissa, self.splat(scalar::LOG2_FOLD))?;
        let m = self.select(fold, b.build_float_mul(mantissa, self.splat(0.5), "")?, mantissa)?;
        let e = self.select(fold, b.build_float_add(exponent, one, "")?, exponent)?;
        let s = b.build_float_div(b.build_float_sub(m, one, "")?, b.build_float_add(m, one, "")?, "")?;
        let z = b.build_float_mul(s, s, "")?;
        let sum = self.series(&scalar::LOG2_SERIES, z)?;
        b.build_float_add(e, b.build_float_mul(s, sum, "")?, "")
    }

    fn exp2(&self, x: Lanes<'c>) -> Result<Lanes<'c>, BuilderError> {
        let b = &self.builder;
        let x = self.max(x, self.splat(scalar::EXP2_DOMAIN.0))?;
        let x = self.min(x, self.splat(scalar::EXP2_DOMAIN.1))?;
        let n = self.unary("llvm.floor", b.build_float_add(x, self.splat(0.5), "")?)?;
        let f = b.build_float_sub(x, n, "")?;
        let sum = self.series(&scalar::EXP2_SERIES, f)?;
        let biased = self.as_bits(b.build_float_add(n, self.splat(scalar::BIASED), "")?)?;
        let power = self.as_double(b.build_left_shift(biased, self.splat_bits(52), "")?)?;
        b.build_float_mul(sum, power, "")
    }
}

/// The inputs that nodes read.
fn used(graph: &Graph) -> impl Iterator<Item = InputId> {
    graph.ids().filter_map(|id| if let Node::Input(i) = graph.node(id) { Some(i) } else { None })
}

fn parameters(function: FunctionValue<'_>) -> (IntValue<'_>, PointerValue<'_>, PointerValue<'_>) {
    let parameter = |i| function.get_nth_param(i).expect("the function has three parameters");
    (parameter(0).into_int_value(), parameter(1).into_pointer_value(), parameter(2).into_pointer_value())
}

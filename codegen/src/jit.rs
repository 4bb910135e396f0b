//! A kernel in this process's memory.
#![expect(unsafe_code, reason = "calls machine code made at run time")]

use crate::ir::{self, Cpu};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use parc::expr::{Graph, Id, wire};

/// Larger graphs would compile for minutes; the interpreter serves them.
const MOST_NODES: usize = 100_000;

type Evaluate = unsafe extern "C" fn(i64, *const *const f64, *const *mut f64) -> i32;

/// Machine code for a graph.
pub struct Kernel {
    evaluate: Evaluate,
    // Fields drop in order: the code before the context it was made in.
    _engine: ExecutionEngine<'static>,
    _context: Box<Context>,
}

impl Kernel {
    /// Compiles the bytes of a graph for this machine.
    pub fn compile(bytes: &[u8]) -> Result<Self, String> {
        let (graph, roots) = decode(bytes)?;
        let cpu = cpu()?;
        let context = Box::new(Context::create());
        // SAFETY: the context is on the heap, is dropped after the engine, and nothing else borrowed from it is kept.
        let borrowed: &'static Context = unsafe { &*std::ptr::from_ref(&*context) };
        let module = ir::module(borrowed, &graph, &roots, &cpu).map_err(|e| e.to_string())?;
        module.verify().map_err(|e| e.to_string())?;
        let engine = module.create_jit_execution_engine(OptimizationLevel::Default).map_err(|e| e.to_string())?;
        let address = engine.get_function_address(ir::EVALUATE).map_err(|e| e.to_string())?;
        // SAFETY: `ir::module` gives the function of this name this type.
        let evaluate = unsafe { std::mem::transmute::<usize, Evaluate>(address) };
        Ok(Kernel { evaluate, _engine: engine, _context: context })
    }

    /// The LLVM IR of the bytes of a graph, as it is compiled for this machine.
    pub fn ir(bytes: &[u8]) -> Result<String, String> {
        let (graph, roots) = decode(bytes)?;
        let context = Context::create();
        let module = ir::module(&context, &graph, &roots, &cpu()?).map_err(|e| e.to_string())?;
        module.verify().map_err(|e| e.to_string())?;
        Ok(module.print_to_string().to_string())
    }

    /// An object file with the function `symbol` and the text `schema`, for any machine of this kind, and its LLVM IR.
    pub fn object(bytes: &[u8], symbol: &str, schema: &str) -> Result<(Vec<u8>, String), String> {
        let (graph, roots) = decode(bytes)?;
        Target::initialize_native(&InitializationConfig::default())?;
        let cpu = common_cpu();
        let triple = TargetMachine::get_default_triple();
        let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
        let machine = target
            .create_target_machine(
                &triple,
                &cpu.name,
                &cpu.features,
                OptimizationLevel::Default,
                RelocMode::PIC,
                CodeModel::Default,
            )
            .ok_or("no code for this kind of machine")?;
        let context = Context::create();
        let module = ir::module(&context, &graph, &roots, &cpu).map_err(|e| e.to_string())?;
        module.set_triple(&triple);
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        ir::export(&context, &module, symbol, schema);
        module.verify().map_err(|e| e.to_string())?;
        let object = machine.write_to_memory_buffer(&module, FileType::Object).map_err(|e| e.to_string())?;
        Ok((object.as_slice().to_vec(), module.print_to_string().to_string()))
    }

    /// Runs the kernel; the pointers are as in [`crate::abi::parc_codegen_run`], whose caller answers for them.
    pub(crate) fn evaluate(&self, n: i64, columns: *const *const f64, out: *const *mut f64) -> i32 {
        // SAFETY: the code lives as long as `self`; the pointers are the caller's promise.
        unsafe { (self.evaluate)(n, columns, out) }
    }
}

fn decode(bytes: &[u8]) -> Result<(Graph, Vec<Id>), String> {
    let (graph, roots) = wire::decode(bytes).map_err(|e| e.to_string())?;
    if graph.len() > MOST_NODES {
        return Err(format!("a graph of {} nodes, at most {MOST_NODES} are compiled", graph.len()));
    }
    Ok((graph, roots))
}

/// What every machine of this kind has that trains models: on x86-64 the instructions of 2013 and later (AVX2).
fn common_cpu() -> Cpu {
    let name = if cfg!(target_arch = "x86_64") { "x86-64-v3" } else { "generic" };
    Cpu { name: name.to_owned(), features: String::new() }
}

/// This machine.
fn cpu() -> Result<Cpu, String> {
    Target::initialize_native(&InitializationConfig::default())?;
    Ok(Cpu {
        name: TargetMachine::get_host_cpu_name().to_string(),
        features: TargetMachine::get_host_cpu_features().to_string(),
    })
}

//! Compiled evaluators: an expression graph as machine code, through the LLVM back end in its own library.
//!
//! The library is opened when first needed. Where it is missing, the answer is [`Unavailable`] with the reason, and the
//! caller goes on with [`crate::expr::Block`], whose results are the same bits.

#[cfg(feature = "llvm")]
mod library;
pub mod product;

use crate::expr::{Graph, Id, wire};
use std::fmt;
use std::path::PathBuf;

/// What the library must answer to `parc_codegen_version`: its C interface (high half), the format and meaning of
/// graphs (low half).
pub const ABI: u32 = (3 << 16) | wire::VERSION;

/// Names the back end's library, where it is not beside the program: a path.
pub const LIBRARY_VARIABLE: &str = "PARC_CODEGEN";

/// Why there is no compiled evaluator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// The compiler was built without the feature `llvm`.
    NotBuilt,
    /// The back end's library is in none of these places.
    NotFound(Vec<PathBuf>),
    /// The library is there but cannot be opened: the system's words.
    NotOpened(PathBuf, String),
    /// The library is of another version: its answer.
    Version(PathBuf, u32),
    /// The graph has a node that double lanes cannot compute.
    ExactOnly(Id),
    /// The back end refused the graph: its words.
    Refused(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NotBuilt => write!(f, "parc was built without LLVM"),
            Unavailable::NotFound(places) => {
                write!(f, "no LLVM back end at")?;
                for (i, place) in places.iter().enumerate() {
                    write!(f, "{} `{}`", if i == 0 { "" } else { "," }, place.display())?;
                }
                Ok(())
            }
            Unavailable::NotOpened(path, why) => write!(f, "`{}` cannot be opened: {why}", path.display()),
            Unavailable::Version(path, found) => {
                write!(f, "`{}` has version {found:#x}, this parc needs {ABI:#x}", path.display())
            }
            Unavailable::ExactOnly(_) => write!(f, "the sizes are too large for double precision"),
            Unavailable::Refused(why) => write!(f, "the LLVM back end: {why}"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The LLVM IR that evaluates `roots` on this machine, as text.
pub fn llvm_ir(graph: &Graph, roots: &[Id]) -> Result<String, Unavailable> {
    if let Some(id) = graph.exact_only(roots) {
        return Err(Unavailable::ExactOnly(id));
    }
    #[cfg(feature = "llvm")]
    return library::ir(&wire::encode(graph, roots));
    #[cfg(not(feature = "llvm"))]
    Err(Unavailable::NotBuilt)
}

/// An object file whose function `symbol` evaluates `roots`, for any machine of this kind, and its LLVM IR. `schema` is a
/// text the object holds beside it.
pub fn object(graph: &Graph, roots: &[Id], symbol: &str, schema: &str) -> Result<(Vec<u8>, String), Unavailable> {
    if let Some(id) = graph.exact_only(roots) {
        return Err(Unavailable::ExactOnly(id));
    }
    #[cfg(feature = "llvm")]
    return library::object(&wire::encode(graph, roots), symbol, schema);
    #[cfg(not(feature = "llvm"))]
    {
        let _ = (symbol, schema);
        Err(Unavailable::NotBuilt)
    }
}

/// A compiled evaluator. It can be used from many threads at once.
#[derive(Debug)]
pub struct Kernel {
    #[cfg(feature = "llvm")]
    code: library::Code,
    #[cfg(not(feature = "llvm"))]
    never: std::convert::Infallible,
}

impl Kernel {
    /// Compiles the evaluation of `roots`.
    pub fn compile(graph: &Graph, roots: &[Id]) -> Result<Kernel, Unavailable> {
        if let Some(id) = graph.exact_only(roots) {
            return Err(Unavailable::ExactOnly(id));
        }
        #[cfg(feature = "llvm")]
        return library::compile(&wire::encode(graph, roots), graph.inputs().len(), roots.len())
            .map(|code| Kernel { code });
        #[cfg(not(feature = "llvm"))]
        Err(Unavailable::NotBuilt)
    }

    /// Evaluates `n` points, as [`crate::expr::Block::run`] does.
    pub fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        #[cfg(feature = "llvm")]
        return self.code.run(n, columns);
        #[cfg(not(feature = "llvm"))]
        {
            let _ = (n, columns);
            match self.never {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, Unavailable};
    use crate::expr::{Block, Graph, Input, Kind};

    fn graph() -> (Graph, Vec<crate::expr::Id>) {
        let mut g = Graph::new();
        let n = g.input(Input { name: "n".to_owned(), kind: Kind::Int, lo: 1.0, hi: 100.0 });
        let x = g.input(Input { name: "x".to_owned(), kind: Kind::Real, lo: 0.0, hi: 10.0 });
        let three = g.int(3);
        let third = g.ceil_div(n, three);
        let root = g.mul(third, x);
        (g, vec![root, third])
    }

    #[test]
    fn a_kernel_is_the_block_interpreter_or_a_reason() {
        let (g, roots) = graph();
        let (ns, xs): (Vec<f64>, Vec<f64>) = (1..=21).map(|i| (f64::from(i), f64::from(i) / 7.0)).unzip();
        // The last column is short.
        let columns = [ns.as_slice(), &xs[..19]];
        let expected = Block::new(&g, &roots).run(21, &columns);
        match Kernel::compile(&g, &roots) {
            Ok(kernel) => assert_eq!(kernel.run(21, &columns), expected),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
        assert!((expected[0][18] - 7.0 * 19.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn the_code_can_be_read() {
        let (g, roots) = graph();
        match super::llvm_ir(&g, &roots) {
            Ok(ir) => assert!(ir.contains("@parc_evaluate(") && ir.contains("<8 x double>"), "{ir}"),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }

    #[test]
    fn what_lanes_cannot_do_is_refused() {
        let mut g = Graph::new();
        let n = g.input(Input { name: "n".to_owned(), kind: Kind::Int, lo: 1.0, hi: 1e18 });
        let three = g.int(3);
        let root = g.floor_div(n, three);
        assert_eq!(Kernel::compile(&g, &[root]).err(), Some(Unavailable::ExactOnly(root)));
    }
}

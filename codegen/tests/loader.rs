//! The library as the compiler finds and opens it, beside the running program.

use parc::emit::evaluator::{Kernel, Unavailable};
use parc::expr::{Block, Graph, Input, Kind};

#[test]
fn the_compiler_opens_the_library_beside_it() {
    let mut g = Graph::new();
    let [m, n] = ["m", "n"].map(|name| g.input(Input { name: name.to_owned(), kind: Kind::Int, lo: 1.0, hi: 1e6 }));
    let tiles = g.ceil_div(m, n);
    let padded = g.mul(tiles, n);
    let waste = g.div(m, padded);
    let roots = [tiles, waste];
    let columns = [&[1000.0, 999.0, 7.0, 64.0][..], &[128.0, 333.0, 49.0, 64.0]];
    let expected = Block::new(&g, &roots).run(4, &columns);
    assert_eq!(expected[0], [8.0, 3.0, 1.0, 1.0]);
    match Kernel::compile(&g, &roots) {
        Ok(kernel) if cfg!(feature = "llvm") => {
            assert_eq!(kernel.run(4, &columns), expected);
            // Columns that are short or missing count as 0, which the range makes 1.
            let short = [&[5.0, 6.0][..]];
            assert_eq!(kernel.run(3, &short), Block::new(&g, &roots).run(3, &short));
        }
        result => assert_eq!(result.err(), Some(Unavailable::Refused("built without LLVM".to_owned()))),
    }
}

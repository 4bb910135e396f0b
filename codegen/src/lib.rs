//! The LLVM back end: a serialised expression graph in, a native kernel out.

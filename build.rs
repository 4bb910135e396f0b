//! Generates the parser from `grammar/`, and has the crate rebuilt when a folder it embeds changes.

fn main() {
    println!("cargo:rerun-if-changed=grammar");
    // `include_dir!` sees changes of files, not new ones.
    println!("cargo:rerun-if-changed=stdlib");
    println!("cargo:rerun-if-changed=templates");
    println!("cargo:rerun-if-changed=src/diagnostics/explain");
    lalrpop::Configuration::new()
        .set_in_dir("grammar")
        .emit_rerun_directives(true)
        .process()
        .expect("the grammar is checked in and has no conflict");
}

//! The integration tests, one binary: rules of the repository, and what a user sees.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests read files, run the command, and fail by panicking"
)]

mod accuracy;
mod accuracy_memory;
mod check;
mod clusters;
mod compile;
mod constructs;
mod cost;
mod diff;
mod disturb;
mod docs;
mod docs_pages;
mod eval;
mod examples;
mod experts;
mod explain;
mod files;
mod folds;
mod fuzz;
mod fuzz_edits;
mod fuzz_syntax;
mod hand;
mod hardware;
mod import;
mod import_configs;
mod import_launch;
mod import_topo;
mod layout_presets;
mod llama;
mod megatron_examples;
mod megatron_rules;
mod mistakes;
mod models;
mod models_all;
mod modules;
mod new;
mod numeric;
mod offload;
mod optimize;
mod oracle;
mod partition;
mod placing;
mod plan_json;
mod props;
mod props_check;
mod props_syntax;
mod recompute;
mod report;
mod sample_plans;
mod schedules;
mod schema;
mod search;
mod simulate;
mod specs;
mod syntax;
mod syntax_editing;
mod syntax_editing_check;
mod syntax_fix;
mod syntax_format;
mod tables;
mod targets_experts;
mod targets_files;
mod targets_launchers;
mod targets_megatron;
mod targets_output;
mod targets_scripts;
mod targets_torch;
mod testing;
mod tidy;
mod ui;
mod values;
mod via;
mod work;

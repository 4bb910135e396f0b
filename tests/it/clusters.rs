//! Trees of levels: what selections of them are, and what a layout on them sees.

use parc::diagnostics::{Code, Sink};
use parc::driver;
use parc::elaborate::{Cluster, Site};
use parc::eval::{Env, Evaluator, Value};
use parc::expr::Graph;
use parc::hir::ModuleId;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources, Span};
use parc::syntax::ast::{Body, Entry, ItemKind};

/// Nodes of 4 A100 and of 8 H100, in racks with two of each; 3 racks.
const MIXED: &str = "level small = 4 of A100_SXM_80 over NVLink3
  level large = 8 of H100_SXM over NVLink4
  level rack = [old: 2 of small, new: 2 of large] over 8 * IB_HDR
  level hall = 3 of rack over 16 * IB_NDR";

/// Evaluates the cluster of `levels`, and in it the path `on` of `place a on …`; shows the result by `show`.
fn at<R>(
    levels: &str,
    on: &str,
    show: impl for<'p> FnOnce(&mut Evaluator<'p, '_>, Cluster<'p>, &'p parc::syntax::ast::Expr) -> R,
) -> Result<R, Vec<Code>> {
    let text = format!("edition 1\ncluster C {{\n  {levels}\n}}\nlayout L {{\n  mesh [a = 1]\n  place a on {on}\n}}\n");
    let world = MemoryWorld::new([("main.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let roots = [RootFile { shown: "main.par".into(), path: "main.par".into() }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    let mut graph = Graph::new();
    let shown = (|| {
        let entries = &program.modules[program.roots[0].0 as usize].ast.entries;
        let Some(Entry::Decl(layout)) = entries.last() else { panic!("the layout is last") };
        let Body::Block(block) = &layout.body else { panic!("it has items") };
        let path = block.items.iter().find_map(|i| match &i.kind {
            ItemKind::Place { on, .. } => Some(on),
            _ => None,
        });
        let (id, _) = program.entries(program.roots[0]).next()?;
        let mut eval = Evaluator::new(&program, &mut graph, &mut sink);
        let Value::Instance(instance) = eval.entry(id, Span::NOWHERE) else { return None };
        let cluster = Cluster::new(&mut eval, &instance, Span::NOWHERE)?;
        Some(show(&mut eval, cluster, path?))
    })();
    let codes: Vec<Code> = sink.finish().iter().map(|d| d.code).filter(|c| c.info().number.starts_with('E')).collect();
    // The checker says of literals what evaluation says of everything.
    let codes = codes.into_iter().fold(Vec::new(), |mut all: Vec<Code>, c| {
        if all.last() != Some(&c) {
            all.push(c);
        }
        all
    });
    if codes.is_empty() { Ok(shown.expect("no error, so a cluster")) } else { Err(codes) }
}

/// The devices `path` selects, as ranges.
fn devices(levels: &str, path: &str) -> Result<Vec<(i64, i64)>, Vec<Code>> {
    let env = Env::top(ModuleId(0));
    at(levels, path, |eval, cluster, e| {
        // Of the same program, but without local names.
        let env = std::rc::Rc::new(Env { module: env.module, vars: Vec::new(), outer: None });
        cluster.select(eval, e, &env).map(|d| d.ranges).unwrap_or_default()
    })
}

#[test]
fn paths_select_devices_in_tree_order() {
    // A rack is 2 × 4 + 2 × 8 = 24 devices.
    assert_eq!(devices(MIXED, "cluster"), Ok(vec![(0, 72)]));
    assert_eq!(devices(MIXED, "cluster.rack[1]"), Ok(vec![(24, 48)]));
    assert_eq!(devices(MIXED, "cluster.rack[1..]"), Ok(vec![(24, 72)]));
    assert_eq!(devices(MIXED, "cluster.old"), Ok(vec![(0, 8), (24, 32), (48, 56)]));
    assert_eq!(devices(MIXED, "cluster.new"), Ok(vec![(8, 24), (32, 48), (56, 72)]));
    assert_eq!(devices(MIXED, "cluster.large[1..3]"), Ok(vec![(16, 24), (32, 40)]), "counted through all racks");
    assert_eq!(devices(MIXED, "cluster.rack[2].large[0].gpu[3]"), Ok(vec![(59, 60)]));
    assert_eq!(devices(MIXED, "cluster.large.gpu[0..4]").unwrap().len(), 6, "the first half of each");
    assert_eq!(devices(MIXED, "[cluster.rack[0], cluster.rack[1].old]"), Ok(vec![(0, 32)]));
    assert_eq!(devices(MIXED, "cluster.hall"), Ok(vec![(0, 72)]));
}

#[test]
fn selections_that_are_none_are_said() {
    assert_eq!(devices(MIXED, "cluster.rack[3]"), Err(vec![Code::OutOfRange]));
    assert_eq!(devices(MIXED, "cluster.rack[1..5]"), Err(vec![Code::OutOfRange]));
    assert_eq!(devices(MIXED, "cluster.shelf"), Err(vec![Code::FieldUnknown]));
}

#[test]
fn a_selection_is_a_cluster_of_its_own() {
    let seen = |path: &str| {
        at(MIXED, path, |eval, cluster, e| {
            let env = std::rc::Rc::new(Env { module: ModuleId(0), vars: Vec::new(), outer: None });
            let devices = cluster.select(eval, e, &env).unwrap();
            let part = cluster.within(&devices, Span::NOWHERE);
            let levels: Vec<_> = part.levels.iter().map(|l| format!("{} {}", l.name, l.devices)).collect();
            let kinds: Vec<_> = part.kinds.iter().map(|(d, n)| format!("{n} {}", d.name)).collect();
            format!("{}: {}", kinds.join(" + "), levels.join(", "))
        })
        .unwrap()
    };
    assert_eq!(seen("cluster.new"), "48 H100_SXM: large 8, rack 16, hall 48");
    assert_eq!(seen("cluster.rack[0].old"), "8 A100_SXM_80: small 4, rack 8, hall 8");
    // Whole: what all nodes have in common is four devices.
    assert_eq!(seen("cluster"), "24 A100_SXM_80 + 48 H100_SXM: small 4, rack 24, hall 72");
    // One node whole and half of another: again four.
    assert_eq!(seen("[cluster.large[0], cluster.large[1].gpu[0..4]]"), "12 H100_SXM: large 4, rack 12, hall 12");
}

#[test]
fn dead_devices_are_left_out() {
    let levels = "level node = 8 of H100_SXM over NVLink4
  level pod = 4 of node over 8 * IB_NDR { without = [node[1], node[2].gpu[3]] }";
    assert_eq!(devices(levels, "cluster"), Ok(vec![(0, 8), (16, 19), (20, 32)]));
    assert_eq!(devices(levels, "cluster.node[1..3]"), Ok(vec![(16, 19), (20, 24)]));
}

#[test]
fn large_clusters_are_never_enumerated() {
    let levels = "level node = 8 of H100_SXM over NVLink4
  level pod = 1000000 of node over 8 * IB_NDR
  level world = 100000 of pod over 8 * IB_NDR";
    assert_eq!(devices(levels, "cluster.node[3..5]"), Ok(vec![(24, 40)]));
    assert_eq!(devices(levels, "cluster.pod[99999]"), Ok(vec![(799_992_000_000, 800_000_000_000)]));
    // Half of each of 10^11 nodes would be as many pieces.
    assert_eq!(devices(levels, "cluster.node.gpu[0..4]"), Err(vec![Code::LimitExceeded]));
}

#[test]
fn places_are_levels_or_directions() {
    let torus = "level slice = 512 of H100_SXM over 2 * NVLink4 { topology = torus(x = 8, y = 8, z = 8) }";
    let site = |levels: &str, on: &str| at(levels, on, |eval, cluster, e| cluster.site(eval, e));
    assert_eq!(site(MIXED, "cluster.rack"), Ok(Some(Site::Level(1))));
    assert_eq!(site(MIXED, "cluster.large"), Ok(Some(Site::Level(0))), "beside `small` at one height");
    assert_eq!(site(torus, "cluster.slice.y"), Ok(Some(Site::Directions { level: 0, along: vec![1] })));
    let two = Site::Directions { level: 0, along: vec![1, 2] };
    assert_eq!(site(torus, "[cluster.slice.y, cluster.slice.z]"), Ok(Some(two)));
    assert_eq!(site(torus, "cluster.slice.w"), Err(vec![Code::FieldUnknown]));
    assert_eq!(site(torus, "[cluster.slice.y, cluster.slice.y]"), Err(vec![Code::KindMismatch]));
}

#[test]
fn topologies_are_checked() {
    let made = |topology: &str| {
        let level = format!("level node = 4 of H100_SXM over NVLink4 {{ topology = {topology} }}");
        at(&level, "cluster", |_, cluster, _| (cluster.levels[0].topology.word(), cluster.levels[0].child_bandwidth()))
    };
    // 450 GB/s each way, of which large messages reach 0.98 in the library; only ratios matter here.
    let whole = made("switch").unwrap().1;
    assert_eq!(made("fat_tree(rails = 4, oversubscription = 2)"), Ok(("fat_tree", whole / 2.0)));
    assert_eq!(
        made("graph(links = [[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]])"),
        Ok(("graph", whole * 4.0))
    );
    for word in ["ring", "mesh2d", "rail", "all_to_all", "host_bridge", "wan", "dragonfly(global_links = 4)"] {
        assert!(made(word).is_ok(), "{word}");
    }
    assert_eq!(made("torus(x = 2, y = 2, wrap = false)").unwrap().0, "torus");
    assert_eq!(made("torus(x = 2, y = 3)"), Err(vec![Code::ClusterShape]));
    assert_eq!(made("graph(links = [[0, 1], [1, 0]])"), Err(vec![Code::ClusterShape]));
    assert_eq!(
        made("graph(links = [[0, 1, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]])"),
        Err(vec![Code::ClusterShape])
    );
    assert_eq!(made("fat_tree(oversubscription = 0.5)"), Err(vec![Code::OutOfRange]));
    assert_eq!(made("ring(4)"), Err(vec![Code::ArgumentWrong]));
    assert!(made("auto").is_err());
}

#[test]
fn with_replaces_levels_where_they_stand() {
    let text = "edition 1
cluster Twice = DGX_H100(nodes = 2) with {
  nodes = 3
  level node = 4 of H100_SXM over NVLink4
}
cluster Other(n: Int) { level node = n of H100_SXM over NVLink4 }
";
    let world = MemoryWorld::new([("main.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let roots = [RootFile { shown: "main.par".into(), path: "main.par".into() }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    let mut graph = Graph::new();
    let (id, _) = program.entries(program.roots[0]).next().unwrap();
    let mut eval = Evaluator::new(&program, &mut graph, &mut sink);
    let Value::Instance(instance) = eval.entry(id, Span::NOWHERE) else { panic!("a cluster") };
    let cluster = Cluster::new(&mut eval, &instance, Span::NOWHERE).unwrap();
    assert_eq!(cluster.devices, 12);
    assert_eq!(cluster.levels.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["node", "pod"]);
}

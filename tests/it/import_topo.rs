//! `parc import topo`: what the tools of a machine print, as they print it, becomes a cluster; what is cut off, mixed up
//! or made up becomes a diagnostic.

use crate::compile;
use parc::diagnostics::{Code, Diagnostic};
use parc::import;
use parc::source::Sources;
use std::fmt::Write as _;

/// `nvidia-smi -q` of `n` such devices: the lines around those that matter are as the tool prints them.
fn smi(n: usize, product: &str, generation: u32) -> String {
    let mut t = format!(
        "\n==============NVSMI LOG==============\n
Timestamp                                 : Mon Nov 30 12:00:00 2026
Driver Version                            : 570.86.15
CUDA Version                              : 12.8\n
Attached GPUs                             : {n}\n"
    );
    for i in 0..n {
        let _ = write!(
            t,
            "GPU 00000000:{:02X}:00.0
    Product Name                          : {product}
    Product Brand                         : NVIDIA
    Product Architecture                  : Hopper
    PCI
        Bus                               : 0x{i:02X}
        GPU Link Info
            PCIe Generation
                Max                       : {generation}
                Current                   : {generation}
                Device Current            : {generation}
                Device Max                : {generation}
                Host Max                  : {generation}
            Link Width
                Max                       : 16x
                Current                   : 16x
    FB Memory Usage
        Total                             : 81559 MiB
        Reserved                          : 551 MiB
        Used                              : 0 MiB
",
            0x1B + i
        );
    }
    t
}

/// `nvidia-smi topo -m`: `cell(i, j)` between two devices, `nics` adapters, and the escape codes that underline its head.
fn topo(n: usize, nics: usize, cell: impl Fn(usize, usize) -> String) -> String {
    let head: Vec<_> = (0..n).map(|i| format!("GPU{i}")).chain((0..nics).map(|i| format!("NIC{i}"))).collect();
    let mut t = format!("\t\u{1b}[4m{}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n", head.join("\t"));
    for i in 0..n {
        let row: Vec<_> = (0..n).map(|j| if i == j { " X ".into() } else { cell(i, j) }).collect();
        let nics = "\tPXB".repeat(nics);
        let _ = writeln!(t, "GPU{i}\t{}{nics}\t0-47,96-143\t{}\t\tN/A", row.join("\t"), i * 2 / n);
    }
    for i in 0..nics {
        let _ = writeln!(t, "NIC{i}\t{}\t X \t\t\t", "PXB\t".repeat(n));
    }
    t + "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
}

/// `ibstat` of ports with a rate, a layer and whether they are up.
fn ibstat(ports: &[(&str, &str, bool)]) -> String {
    let mut t = String::new();
    for (i, (rate, layer, up)) in ports.iter().enumerate() {
        let (state, physical) = if *up { ("Active", "LinkUp") } else { ("Down", "Disabled") };
        let _ = write!(
            t,
            "CA 'mlx5_{i}'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: {state}
\t\tPhysical state: {physical}
\t\tRate: {rate}
\t\tBase lid: 0
\t\tCapability mask: 0x00010000
\t\tLink layer: {layer}
"
        );
    }
    t
}

fn imported(files: &[String]) -> (Option<String>, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let ids: Vec<_> =
        files.iter().enumerate().map(|(i, t)| sources.add(format!("{i}.txt"), t.clone(), false)).collect();
    let imported = import::topo(&sources, &ids);
    (imported.text, imported.said)
}

/// The program of files that must be right, checked: its levels.
#[track_caller]
fn levels(files: &[String]) -> Vec<String> {
    let (text, said) = imported(files);
    assert!(said.is_empty(), "{said:?}");
    let text = text.expect("a program");
    compile::clean(&text);
    text.lines().filter(|l| l.starts_with("  level")).map(|l| l.trim().to_string()).collect()
}

#[test]
fn an_hgx_of_eight_h100() {
    let mut ports = vec![("400", "InfiniBand", true); 8];
    ports.push(("100", "Ethernet", true));
    ports.push(("10", "Ethernet", false));
    let files = [smi(8, "NVIDIA H100 80GB HBM3", 5), topo(8, 10, |_, _| "NV18".into()), ibstat(&ports)];
    let wanted = [
        "level node = 8 of H100_SXM over NVLink4 { topology = switch, in_network_reduction = true }",
        "level pod = nodes of node over 8 * IB_NDR { topology = fat_tree(rails = 8) }",
    ];
    assert_eq!(levels(&files), wanted);
    // In any order.
    let [a, b, c] = files;
    assert_eq!(levels(&[c, a, b]), wanted);
}

#[test]
fn boxes_without_nvlink_and_with_bridges() {
    let sockets = |i: usize, j: usize| if i / 2 == j / 2 { "PHB".to_string() } else { "SYS".to_string() };
    let files = [smi(4, "NVIDIA GeForce RTX 4090", 4), topo(4, 0, sockets), ibstat(&[("100", "Ethernet", true)])];
    assert_eq!(
        levels(&files),
        [
            "level node = 4 of RTX4090 over PCIe4_x16 { topology = host_bridge }",
            "level pod = nodes of node over RoCE_100 { topology = switch }"
        ]
    );
    let bridges = |i: usize, j: usize| if i / 2 == j / 2 { "NV12".to_string() } else { "SYS".to_string() };
    let files = [smi(4, "NVIDIA A100 80GB PCIe", 4), topo(4, 1, bridges), ibstat(&[("200", "InfiniBand", true)])];
    assert_eq!(
        levels(&files)[..2],
        [
            "level pair = 2 of A100_PCIe_80 over 12 * NVLink3_Single { topology = switch }",
            "level node = 2 of pair over 2 * PCIe4_x16 { topology = host_bridge }"
        ]
    );
    // DGX-1: V100 in a mesh of single and double links.
    let mesh = [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]];
    let files = [
        smi(4, "Tesla V100-SXM2-32GB", 3),
        topo(4, 0, |i, j| format!("NV{}", mesh[i][j])),
        ibstat(&[("100", "InfiniBand", true)]),
    ];
    assert!(
        levels(&files)[0].starts_with("level node = 4 of V100_SXM2_32 over NVLink2_Single {"),
        "{:?}",
        levels(&files)
    );
}

#[test]
fn what_is_missing_is_said() {
    let codes = |files: &[String]| imported(files).1.iter().map(|d| d.code).collect::<Vec<_>>();
    let message = |files: &[String]| imported(files).1[0].message.clone();
    let (smi8, topo8) = (smi(8, "NVIDIA H100 80GB HBM3", 5), topo(8, 8, |_, _| "NV18".into()));
    // One device needs no matrix, several do.
    assert_eq!(levels(&[smi(1, "NVIDIA L4", 4), ibstat(&[("25", "Ethernet", true)])]).len(), 2);
    assert!(message(std::slice::from_ref(&smi8)).contains("how the 8 devices are joined"));
    assert!(message(std::slice::from_ref(&topo8)).contains("no file says which devices"));
    // Without `ibstat` there is a cluster, and a word about it.
    let (text, said) = imported(&[smi8.clone(), topo8.clone()]);
    assert!(text.is_some_and(|t| t.contains("Eth_10")));
    assert_eq!(said.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::ImportIgnored]);
    // Cut off in the middle.
    let half = |t: &str| t[..t.len() / 2].to_string();
    assert_eq!(codes(&[half(&smi8), topo8.clone()]), [Code::ImportMalformed]);
    let cut = topo8.split_inclusive('\n').take(5).collect::<String>();
    assert!(message(&[smi8.clone(), cut]).contains("the output is not whole"));
    assert!(
        message(&[smi8.clone(), topo(4, 0, |_, _| "NV18".into())]).contains("has 8 devices, `nvidia-smi topo -m` 4")
    );
    assert!(message(&[smi8.clone(), smi8.clone()]).contains("the same tool"));
    assert_eq!(codes(&[smi(8, "NVIDIA H999", 5), topo8.clone()]), [Code::ImportUnknown]);
    assert_eq!(codes(&["hello".into()]), [Code::ImportMalformed]);
    assert_eq!(codes(&[String::new()]), [Code::ImportMalformed]);
}

#[test]
fn nothing_hostile_gets_through() {
    let smi8 = smi(8, "NVIDIA H100 80GB HBM3", 5);
    let code = |topo: &str| imported(&[smi8.clone(), topo.to_string()]).1.first().map(|d| d.code);
    let whole = topo(8, 0, |_, _| "NV18".into());
    for (from, to) in
        [("NV18", "NV99999999999"), ("NV18", "NV0"), ("NV18", "\u{202e}"), (" X ", "NV18"), ("GPU3\t", "GPU30\t")]
    {
        assert_eq!(code(&whole.replacen(from, to, 3)), Some(Code::ImportMalformed), "{to}");
    }
    // One direction otherwise than the other.
    assert_eq!(code(&whole.replacen("NV18", "NV17", 1)), Some(Code::ImportMalformed));
    let huge = (0..5000).map(|i| format!("GPU{i}")).collect::<Vec<_>>().join("\t");
    assert_eq!(code(&format!("\t{huge}\n")), Some(Code::LimitExceeded));
    // A name is data: it never becomes text of the program.
    let evil = smi(1, "NVIDIA H100 80GB HBM3\" } cluster X { //", 5);
    assert_eq!(imported(&[evil]).1[0].code, Code::ImportUnknown);
    for rate in ["-1", "1e999", "NaN", "many"] {
        let ports = ibstat(&[(rate, "InfiniBand", true)]);
        assert_eq!(imported(&[smi8.clone(), whole.clone(), ports]).1[0].code, Code::ImportMalformed, "{rate}");
    }
    // Every prefix, and every line left out, is a program or a diagnostic.
    for text in [&smi8, &whole] {
        for n in (0..text.len()).step_by(97) {
            let (program, said) = imported(&[smi8.clone(), text[..text.floor_char_boundary(n)].to_string()]);
            assert!(program.is_some() || !said.is_empty());
        }
    }
}

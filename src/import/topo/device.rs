//! Product names as `nvidia-smi` prints them, and what the library calls them.

/// A product the library knows.
#[derive(Debug)]
pub(super) struct Product {
    /// What `nvidia-smi` prints after `NVIDIA`.
    name: &'static str,
    /// The device.
    pub(super) device: &'static str,
    /// All its direct links together, where it has any.
    pub(super) fabric: Option<&'static str>,
    /// One of its links.
    pub(super) single: Option<&'static str>,
    /// Whether the switches it comes with add up what they pass on.
    pub(super) adds: bool,
}

const fn product(
    name: &'static str,
    device: &'static str,
    links: Option<(&'static str, &'static str)>,
    adds: bool,
) -> Product {
    let (fabric, single) = match links {
        Some((all, one)) => (Some(all), Some(one)),
        None => (None, None),
    };
    Product { name, device, fabric, single, adds }
}

const V2: Option<(&str, &str)> = Some(("NVLink2", "NVLink2_Single"));
const V3: Option<(&str, &str)> = Some(("NVLink3", "NVLink3_Single"));
const V4: Option<(&str, &str)> = Some(("NVLink4", "NVLink4_Single"));
const V5: Option<(&str, &str)> = Some(("NVLink5", "NVLink5_Single"));

/// Names in full: `A100-SXM4-40GB` and `A100-SXM4-80GB` are two devices.
const PRODUCTS: &[Product] = &[
    product("Tesla V100-SXM2-16GB", "V100_SXM2_16", V2, false),
    product("Tesla V100-SXM2-32GB", "V100_SXM2_32", V2, false),
    product("Tesla V100-PCIE-32GB", "V100_PCIe_32", None, false),
    product("A100-SXM4-40GB", "A100_SXM_40", V3, false),
    product("A100-SXM4-80GB", "A100_SXM_80", V3, false),
    product("A100-PCIE-40GB", "A100_PCIe_40", V3, false),
    product("A100-PCIE-80GB", "A100_PCIe_80", V3, false),
    product("A100 80GB PCIe", "A100_PCIe_80", V3, false),
    product("A800-SXM4-80GB", "A800_SXM_80", Some(("NVLink3_A800", "NVLink3_Single")), false),
    product("A10G", "A10G", None, false),
    product("L4", "L4", None, false),
    product("L40S", "L40S", None, false),
    product("GeForce RTX 3090", "RTX3090", Some(("NVLink3_Bridge", "NVLink3_Bridge_Single")), false),
    product("GeForce RTX 4090", "RTX4090", None, false),
    product("GeForce RTX 5090", "RTX5090", None, false),
    product("RTX 6000 Ada Generation", "RTX6000_Ada", None, false),
    product("RTX PRO 6000 Blackwell Server Edition", "RTX_PRO_6000", None, false),
    product("H100 80GB HBM3", "H100_SXM", V4, true),
    product("H100 PCIe", "H100_PCIe", V4, false),
    product("H100 NVL", "H100_NVL", V4, false),
    product("H800", "H800_SXM", Some(("NVLink4_H800", "NVLink4_Single")), true),
    product("H20", "H20_SXM", V4, true),
    product("H200", "H200_SXM", V4, true),
    product("GH200 144G HBM3e", "GH200_144", V4, true),
    product("B200", "B200_SXM", V5, true),
    product("B300", "B300_SXM", V5, true),
    product("GB200", "GB200", V5, true),
    product("GB300", "GB300", V5, true),
];

/// The product of this name.
pub(super) fn find(name: &str) -> Option<&'static Product> {
    let name = name.strip_prefix("NVIDIA ").unwrap_or(name).trim();
    PRODUCTS.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

/// What `nvidia-smi` calls the devices the library has.
pub(super) fn known() -> Vec<&'static str> {
    PRODUCTS.iter().map(|p| p.name).collect()
}

/// The link of a port of so many Gb/s.
pub(super) fn port(gigabits: u32, infiniband: bool) -> Option<&'static str> {
    Some(match (gigabits, infiniband) {
        (100, true) => "IB_EDR",
        (200, true) => "IB_HDR",
        (400, true) => "IB_NDR",
        (800, true) => "IB_XDR",
        (10, false) => "Eth_10",
        (25, false) => "Eth_25",
        (100, false) => "RoCE_100",
        (200, false) => "RoCE_200",
        (400, false) => "RoCE_400",
        (800, false) => "RoCE_800",
        _ => return None,
    })
}

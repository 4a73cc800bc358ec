//! The models.

use super::{Geometry, Model, geometry as g};

#[derive(Clone, Copy)]
struct Board {
    memory_mib: u64,
    reserved_mib: u64,
    multiprocessors: u32,
    capability: (u32, u32),
    pci: u32,
    power_w: (u32, u32),
    clocks_mhz: (u32, u32),
}

const fn model(key: &'static str, name: &'static str, b: Board, mig: Option<&'static Geometry>) -> Model {
    Model {
        key,
        name,
        memory_mib: b.memory_mib,
        reserved_mib: b.reserved_mib,
        multiprocessors: b.multiprocessors,
        compute_capability: b.capability,
        pci_device_id: b.pci,
        idle_mw: b.power_w.0 * 1000,
        limit_mw: b.power_w.1 * 1000,
        clocks_mhz: b.clocks_mhz,
        mig,
        is_unsure: false,
    }
}

const fn unsure(model: Model) -> Model {
    Model { is_unsure: true, ..model }
}

const A100_40: Board = Board {
    memory_mib: 40960,
    reserved_mib: 454,
    multiprocessors: 108,
    capability: (8, 0),
    pci: 0x20B0_10DE,
    power_w: (45, 400),
    clocks_mhz: (1410, 1215),
};
const A100_80: Board =
    Board { memory_mib: 81920, reserved_mib: 569, pci: 0x20B2_10DE, clocks_mhz: (1410, 1593), ..A100_40 };
const H100_80: Board = Board {
    memory_mib: 81559,
    reserved_mib: 551,
    multiprocessors: 132,
    capability: (9, 0),
    pci: 0x2330_10DE,
    power_w: (70, 700),
    clocks_mhz: (1980, 2619),
};
const B200: Board = Board {
    memory_mib: 183_359,
    reserved_mib: 716,
    multiprocessors: 148,
    capability: (10, 0),
    pci: 0x2901_10DE,
    power_w: (140, 1000),
    clocks_mhz: (1965, 3996),
};

/// All models.
pub static MODELS: [Model; 11] = [
    model("a100-40", "NVIDIA A100-SXM4-40GB", A100_40, Some(&g::A100_40)),
    model("a100-80", "NVIDIA A100-SXM4-80GB", A100_80, Some(&g::A100_80)),
    model(
        "a30",
        "NVIDIA A30",
        Board {
            memory_mib: 24576,
            reserved_mib: 446,
            multiprocessors: 56,
            pci: 0x20B7_10DE,
            power_w: (30, 165),
            clocks_mhz: (1440, 1215),
            ..A100_40
        },
        Some(&g::A30),
    ),
    model("h100-80", "NVIDIA H100 80GB HBM3", H100_80, Some(&g::H100_80)),
    model(
        "h100-nvl",
        "NVIDIA H100 NVL",
        Board { memory_mib: 95830, pci: 0x2321_10DE, power_w: (60, 400), ..H100_80 },
        Some(&g::H100_NVL),
    ),
    unsure(model(
        "h200",
        "NVIDIA H200",
        Board { memory_mib: 143_771, pci: 0x2335_10DE, clocks_mhz: (1980, 3201), ..H100_80 },
        Some(&g::H200),
    )),
    unsure(model("b200", "NVIDIA B200", B200, Some(&g::B200))),
    unsure(model(
        "gb200",
        "NVIDIA GB200",
        Board { memory_mib: 189_471, multiprocessors: 152, pci: 0x2941_10DE, power_w: (150, 1200), ..B200 },
        Some(&g::GB200),
    )),
    model(
        "t4",
        "Tesla T4",
        Board {
            memory_mib: 15360,
            reserved_mib: 450,
            multiprocessors: 40,
            capability: (7, 5),
            pci: 0x1EB8_10DE,
            power_w: (10, 70),
            clocks_mhz: (1590, 5001),
        },
        None,
    ),
    model(
        "l40s",
        "NVIDIA L40S",
        Board {
            memory_mib: 46068,
            reserved_mib: 598,
            multiprocessors: 142,
            capability: (8, 9),
            pci: 0x26B9_10DE,
            power_w: (35, 350),
            clocks_mhz: (2520, 9001),
        },
        None,
    ),
    unsure(model(
        "gb10",
        "NVIDIA GB10",
        Board {
            memory_mib: 122_880,
            reserved_mib: 0,
            multiprocessors: 48,
            capability: (12, 1),
            pci: 0x2E12_10DE,
            power_w: (5, 140),
            clocks_mhz: (3003, 8533),
        },
        None,
    )),
];

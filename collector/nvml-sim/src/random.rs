//! Timelines drawn from a seed: the same seed gives the same scenario on every machine.

mod draw;
mod happen;
mod node;

pub use draw::Draw;

use crate::scenario::{Driver, GpuSpec, MigSpec, Scenario, Span};
use node::Node;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How large a drawn scenario is.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of GPUs, at most 16.
    pub gpus: usize,
    /// Length of the timeline.
    pub length: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self { gpus: 4, length: Span::seconds(600) }
    }
}

/// A drawn scenario.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The scenario.
    pub scenario: Scenario,
    /// How often each hard case came up.
    pub cases: BTreeMap<&'static str, u32>,
}

impl Drawn {
    /// The scenario as a file, with the cases as comments at its head.
    ///
    /// # Errors
    /// It cannot be written as YAML.
    pub fn yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        let mut text = format!("# Drawn from seed {}. Hard cases in it:\n", self.scenario.seed);
        for (case, count) in &self.cases {
            let _ = writeln!(text, "# {count:4} {case}");
        }
        text.push_str(&serde_saphyr::to_string(&self.scenario)?);
        Ok(text)
    }
}

/// Models and how many in a hundred have MIG on.
const MODELS: [(&str, u64); 6] =
    [("h100-80", 50), ("a100-80", 50), ("h200", 40), ("a30", 60), ("t4", 0), ("l40s", 0)];

/// Releases a node may run, with their CUDA.
const DRIVERS: [(&str, u32); 4] =
    [("535.183.01", 12_020), ("550.54.15", 12_040), ("580.105.08", 13_000), ("610.20.01", 13_030)];

/// Draws a scenario.
pub fn scenario(seed: u64, settings: Settings) -> Drawn {
    let mut draw = Draw::new(seed);
    let gpus: Vec<GpuSpec> =
        (0..settings.gpus.clamp(1, 16)).map(|gpu| gpu_spec(&mut draw, seed, gpu)).collect();
    let (version, cuda) = draw.pick(&DRIVERS).copied().unwrap_or(DRIVERS[0]);
    let mut node = Node::new(draw, &gpus);
    happen::fill(&mut node, settings.length.0);
    let (timeline, cases) = node.finish();
    let scenario = Scenario {
        name: format!("random-{seed}"),
        about: String::new(),
        covers: Vec::new(),
        seed,
        node: format!("random-{seed}"),
        driver: Driver { version: version.to_owned(), cuda, ..Driver::default() },
        gpus,
        timeline,
        ..Scenario::bare()
    };
    Drawn { scenario, cases }
}

fn gpu_spec(draw: &mut Draw, seed: u64, gpu: usize) -> GpuSpec {
    let (model, mig_percent) = draw.pick(&MODELS).copied().unwrap_or(MODELS[0]);
    let uuid = format!("GPU-{:08x}-0000-4000-8000-{gpu:012x}", seed & 0xFFFF_FFFF);
    let has_mig = draw.chance(mig_percent);
    GpuSpec {
        mig: if has_mig { MigSpec::On } else { MigSpec::Off },
        accounting: draw.chance(40),
        energy_mj: draw.between(0, 1_000_000_000),
        ..GpuSpec::new(&uuid, model)
    }
}

#[cfg(test)]
mod tests;

//! Which MIG profile an instance has, from its memory and its SMs.

use gpuledger_domain::geometry::ModelGeometry;

/// What the capture shows of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Streaming multiprocessors.
    pub(super) sms: u64,
    /// Framebuffer in MiB; a little less than its memory slices have.
    pub(super) mib: u64,
    /// Framebuffer of the whole GPU in MiB.
    pub(super) total_mib: u64,
    /// Whether it has an optical flow accelerator, which small profiles have as `+me` only.
    pub(super) media: bool,
}

/// SMs by (what the model's name begins with, after the vendor, compute slices, memory slices), as `nvidia-smi mig -lgip` and the vendor's MIG guide show them.
/// Sevenths of the GPU's SMs are no rule: a 3g of an H100 has 60 and a 1g with double memory 26.
const SMS: [(&str, u8, u8, u64); 26] = [
    ("A30", 1, 1, 14),
    ("A30", 2, 2, 28),
    ("A30", 4, 4, 56),
    ("A100", 1, 1, 14),
    ("A100", 1, 2, 14),
    ("A100", 2, 2, 28),
    ("A100", 3, 4, 42),
    ("A100", 4, 4, 56),
    ("A100", 7, 8, 98),
    ("H100 80GB HBM3", 1, 1, 16),
    ("H100 80GB HBM3", 1, 2, 26),
    ("H100 80GB HBM3", 2, 2, 32),
    ("H100 80GB HBM3", 3, 4, 60),
    ("H100 80GB HBM3", 4, 4, 64),
    ("H100 80GB HBM3", 7, 8, 132),
    ("H100 NVL", 4, 4, 64),
    ("H100 NVL", 7, 8, 132),
    ("H200", 1, 1, 16),
    ("H200", 1, 2, 26),
    ("H200", 2, 2, 32),
    ("H200", 3, 4, 60),
    ("H200", 4, 4, 64),
    ("H200", 7, 8, 132),
    ("B200", 1, 1, 18),
    ("B200", 1, 2, 30),
    ("B200", 2, 2, 36),
];

/// The profile that fits, with its name and compute slices; else why it cannot be told.
pub(super) fn of(model: &ModelGeometry, name: &str, seen: &Seen) -> Result<(String, u8), String> {
    let slices = u64::from(model.memory_slices);
    // Driver and firmware keep a part of each slice: the slices are the framebuffer's share, rounded up.
    let memory = seen.mib.saturating_mul(slices).div_ceil(seen.total_mib.max(1));
    let fits: Vec<_> = model
        .profiles
        .iter()
        .filter(|p| {
            u64::from(p.memory_slices) == memory
                && sms(name, p.compute_slices, p.memory_slices) == Some(seen.sms)
        })
        .filter(|p| p.name.contains('+') == (p.compute_slices <= 2 && seen.media))
        .collect();
    match fits.as_slice() {
        [one] => Ok((one.name.clone(), one.compute_slices)),
        _ => Err(format!(
            "{} SMs and {} MiB fit {} profiles of the model; give its placement and profile by a node's own inventory",
            seen.sms,
            seen.mib,
            fits.len()
        )),
    }
}

fn sms(name: &str, compute: u8, memory: u8) -> Option<u64> {
    // Drivers before 470 leave the vendor out.
    let name = name.strip_prefix("NVIDIA ").unwrap_or(name);
    let row = SMS.iter().find(|(model, c, m, _)| name.starts_with(model) && (*c, *m) == (compute, memory));
    row.map(|(_, _, _, sms)| *sms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_of_an_h100_is_told_by_what_the_tool_shows_of_it() {
        let name = "NVIDIA H100 80GB HBM3";
        let known = gpuledger_wire::geometry::geometry();
        let model = known.of(name).unwrap();
        // MiB and SMs as `nvidia-smi mig -lgip` lists them.
        for (profile, mib, sms, media) in [
            ("1g.10gb", 9_984, 16, false),
            ("1g.10gb+me", 9_984, 16, true),
            ("1g.20gb", 20_096, 26, false),
            ("2g.20gb", 20_096, 32, false),
            ("3g.40gb", 40_448, 60, false),
            ("4g.40gb", 40_448, 64, false),
            ("7g.80gb", 81_152, 132, true),
        ] {
            let found = of(model, name, &Seen { sms, mib, total_mib: 81_559, media });
            assert_eq!(found.map(|(name, _)| name), Ok(profile.to_owned()));
        }
        let smaller = Seen { sms: 114, mib: 81_152, total_mib: 81_559, media: true };
        assert!(
            of(model, "NVIDIA H100 PCIe", &smaller).is_err(),
            "another board has other SM counts, which nobody told us"
        );
    }
}

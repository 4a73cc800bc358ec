//! The geometry of MIG-capable models, read from the data in `schemas/geometry/`, which names its sources.

use gpuledger_domain::geometry::{Geometry, ModelGeometry, Profile};
use serde::Deserialize;

/// Each file of `schemas/geometry/`, by name.
const FILES: [(&str, &str); 5] = [
    ("a30", include_str!("../../../schemas/geometry/a30.json")),
    ("a100-40gb", include_str!("../../../schemas/geometry/a100-40gb.json")),
    ("a100-80gb", include_str!("../../../schemas/geometry/a100-80gb.json")),
    ("h100-80gb", include_str!("../../../schemas/geometry/h100-80gb.json")),
    ("h100-94gb", include_str!("../../../schemas/geometry/h100-94gb.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "sources")]
    _sources: Vec<String>,
    models: Vec<String>,
    compute_slices: u8,
    memory_slices: u8,
    profiles: Vec<FileProfile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProfile {
    name: String,
    compute_slices: u8,
    memory_slices: u8,
    starts: Vec<u8>,
}

/// Every model known. The files are part of the program; a test proves that each of them is read.
pub fn geometry() -> Geometry {
    Geometry { models: FILES.into_iter().filter_map(|(_, text)| read(text).ok()).collect() }
}

fn read(text: &str) -> serde_json::Result<ModelGeometry> {
    let file: File = serde_json::from_str(text)?;
    Ok(ModelGeometry {
        models: file.models,
        compute_slices: file.compute_slices,
        memory_slices: file.memory_slices,
        profiles: file.profiles.into_iter().map(profile).collect(),
    })
}

fn profile(profile: FileProfile) -> Profile {
    Profile {
        name: profile.name,
        compute_slices: profile.compute_slices,
        memory_slices: profile.memory_slices,
        starts: profile.starts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/geometry");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut named: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        there.sort();
        named.sort_unstable();
        assert_eq!(there, named);
        for (name, text) in FILES {
            assert!(read(text).is_ok(), "{name}: {:?}", read(text).err());
        }
    }

    #[test]
    fn a_model_stands_in_one_file_and_its_profiles_fit() {
        let geometry = geometry();
        let mut models = BTreeSet::new();
        for family in &geometry.models {
            assert!(family.models.iter().all(|model| models.insert(model.clone())), "{:?}", family.models);
            for profile in &family.profiles {
                assert!(profile.compute_slices <= family.compute_slices, "{}", profile.name);
                for start in &profile.starts {
                    assert!(start + profile.memory_slices <= family.memory_slices, "{}", profile.name);
                    assert_eq!(
                        start % profile.memory_slices,
                        0,
                        "{} at {start} is not aligned",
                        profile.name
                    );
                }
            }
        }
    }

    #[test]
    fn the_vendor_tables_hold() {
        let geometry = geometry();
        let whole = |model: &str| {
            let family = geometry.of(model).unwrap();
            family
                .profiles
                .iter()
                .map(|p| format!("{} {}/{} {:?}", p.name, p.compute_slices, p.memory_slices, p.starts))
                .collect()
        };
        let a30: Vec<String> = whole("NVIDIA A30");
        assert_eq!(a30[0], "1g.6gb 1/1 [0, 1, 2, 3]");
        assert_eq!(a30[2], "2g.12gb 2/2 [0, 2]");
        let h100: Vec<String> = whole("NVIDIA H100 80GB HBM3");
        assert_eq!(h100[2], "1g.20gb 1/2 [0, 2, 4, 6]");
        assert_eq!(h100[3], "2g.20gb 2/2 [0, 2, 4]");
        assert_eq!(h100[4], "3g.40gb 3/4 [0, 4]");
        assert_eq!(h100[6], "7g.80gb 7/8 [0]");
    }

    /// Real vendor data nobody here wrote; absent on a bare checkout.
    #[test]
    fn profiles_agree_with_the_shared_inventory_data() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../shared/data/gpu-inventory/mig_profiles.json");
        let Ok(text) = std::fs::read_to_string(path) else {
            println!("SKIPPED profiles_agree_with_the_shared_inventory_data: ../shared/data is absent");
            return;
        };
        let data: serde_json::Value = serde_json::from_str(&text).unwrap();
        let geometry = geometry();
        for (family, model) in [
            ("A100-40GB", "NVIDIA A100-SXM4-40GB"),
            ("A100-80GB", "NVIDIA A100 80GB PCIe"),
            ("H100-80GB", "NVIDIA H100 PCIe"),
        ] {
            let profiles = data["gpus"][family]["profiles"].as_object().unwrap();
            let ours = geometry.of(model).unwrap();
            assert_eq!(ours.profiles.len(), profiles.len(), "{family}");
            for (name, numbers) in profiles {
                let profile = ours.profile(name).unwrap();
                let slices = serde_json::json!([profile.memory_slices, profile.compute_slices]);
                assert_eq!([&numbers[0], &numbers[1]], [&slices[0], &slices[1]], "{family} {name}");
            }
        }
    }
}

//! The geometry of MIG-capable models, read from the data in `schemas/geometry/`, which names its sources.

use gpuledger_domain::geometry::{Geometry, ModelGeometry, Profile};
use serde::Deserialize;

/// Each file of `schemas/geometry/`, by name. A model without one is taken from what its inventory says (ADR 44).
const FILES: [(&str, &str); 11] = [
    ("a30", include_str!("../../../schemas/geometry/a30.json")),
    ("a100-40gb", include_str!("../../../schemas/geometry/a100-40gb.json")),
    ("a100-80gb", include_str!("../../../schemas/geometry/a100-80gb.json")),
    ("h100-80gb", include_str!("../../../schemas/geometry/h100-80gb.json")),
    ("h100-94gb", include_str!("../../../schemas/geometry/h100-94gb.json")),
    ("h100-96gb", include_str!("../../../schemas/geometry/h100-96gb.json")),
    ("gh200-144gb", include_str!("../../../schemas/geometry/gh200-144gb.json")),
    ("h200-141gb", include_str!("../../../schemas/geometry/h200-141gb.json")),
    ("b200-180gb", include_str!("../../../schemas/geometry/b200-180gb.json")),
    ("gb200", include_str!("../../../schemas/geometry/gb200.json")),
    ("rtx-pro-6000-blackwell", include_str!("../../../schemas/geometry/rtx-pro-6000-blackwell.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "sources")]
    _sources: Vec<String>,
    /// Where the starts were seen. Which profiles there are is often published, where they may lie seldom.
    #[serde(rename = "placements")]
    _placements: String,
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
        let rtx: Vec<String> = whole("NVIDIA RTX PRO 6000 Blackwell Server Edition");
        assert_eq!(rtx[0], "1g.24gb 1/3 [0, 3, 6, 9]");
        assert_eq!(rtx[5], "2g.48gb 2/6 [0, 6]");
        for (model, names) in [
            ("NVIDIA H200", ["1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"]),
            ("NVIDIA B200", ["1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"]),
            ("NVIDIA GB200", ["1g.24gb", "1g.47gb", "2g.47gb", "3g.95gb", "4g.95gb", "7g.189gb"]),
            ("NVIDIA GH200 480GB", ["1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"]),
        ] {
            let family = geometry.of(model).unwrap();
            let slices = names.map(|name| {
                let profile = family.profile(name).unwrap();
                (profile.compute_slices, profile.memory_slices, profile.starts.len())
            });
            assert_eq!(slices, [(1, 1, 7), (1, 2, 4), (2, 2, 3), (3, 4, 2), (4, 4, 1), (7, 8, 1)], "{model}");
        }
    }

    #[test]
    fn a_profile_of_a_compute_instance_is_that_of_its_gpu_instance() {
        let geometry = geometry();
        let h100 = geometry.of("NVIDIA H100 80GB HBM3").unwrap();
        assert_eq!(h100.profile("1c.3g.40gb"), h100.profile("3g.40gb"));
        assert_eq!(h100.profile("1g.18gb"), None);
        assert_eq!(h100.profile("unknown"), None);
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
            ("H200-141GB", "NVIDIA H200"),
            ("B200-180GB", "NVIDIA B200"),
        ] {
            let profiles = data["gpus"][family]["profiles"].as_object().unwrap();
            let ours = geometry.of(model).unwrap();
            assert_eq!(ours.profiles.len(), profiles.len(), "{family}");
            for (name, numbers) in profiles {
                let profile = ours.profile(name).unwrap();
                let slices = serde_json::json!([profile.memory_slices, profile.compute_slices]);
                assert_eq!([&numbers[0], &numbers[1]], [&slices[0], &slices[1]], "{family} {name}");
                if !name.contains('+') {
                    assert_eq!(numbers[2], serde_json::json!(profile.starts.len()), "{family} {name}");
                }
            }
        }
    }

    /// The vendor's partition editor says how often each profile fits on an empty GPU: as often as it has starts.
    #[test]
    fn profiles_fit_as_often_as_the_vendors_editor_makes_them() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../shared/data/gpu-inventory/mig-parted-config-default.yaml");
        let Ok(text) = std::fs::read_to_string(path) else {
            println!(
                "SKIPPED profiles_fit_as_often_as_the_vendors_editor_makes_them: ../shared/data is absent"
            );
            return;
        };
        let uniform = text.split("\n  all-").filter(|section| !section.starts_with("balanced"));
        let made: BTreeSet<(String, usize)> = uniform
            .flat_map(str::lines)
            .filter_map(|line| {
                let (name, count) = line.trim().strip_prefix('"')?.split_once("\": ")?;
                Some((name.to_owned(), count.parse().ok()?))
            })
            .collect();
        let geometry = geometry();
        let mut compared = 0;
        for profile in geometry.models.iter().flat_map(|model| &model.profiles) {
            let counts: Vec<usize> =
                made.iter().filter(|(name, _)| *name == profile.name).map(|(_, count)| *count).collect();
            // Only one instance can have the media engines. An early driver's name of GB200's smallest is another board's double one here.
            let one_only = profile.name.contains("+me");
            let renamed = (profile.name.as_str(), profile.starts.len()) == ("1g.24gb", 7);
            if counts.is_empty() || one_only || renamed {
                continue;
            }
            assert!(counts.contains(&profile.starts.len()), "{}: {counts:?}", profile.name);
            compared += 1;
        }
        assert!(compared >= 55, "{compared} profiles compared");
    }
}

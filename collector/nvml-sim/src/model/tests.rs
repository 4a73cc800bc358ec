use super::*;

fn geometries() -> impl Iterator<Item = (&'static Model, &'static Geometry)> {
    MODELS.iter().filter_map(|model| model.mig.map(|geometry| (model, geometry)))
}

#[test]
fn every_placement_lies_on_the_axis() {
    for (model, geometry) in geometries() {
        for profile in geometry.profiles {
            for start in profile.starts {
                assert!(
                    start + profile.memory_slices <= geometry.memory_slices,
                    "{} {}",
                    model.key,
                    profile.name
                );
            }
            assert!(profile.compute_slices <= geometry.compute_slices);
            assert!(profile.multiprocessors <= model.multiprocessors);
        }
    }
}

#[test]
fn as_many_instances_fit_as_the_profile_says() {
    for (model, geometry) in geometries() {
        for profile in geometry.profiles.iter().filter(|profile| !profile.has_media_extensions()) {
            let mut free_from = 0;
            let mut fit = 0;
            for start in profile.starts {
                if *start >= free_from {
                    fit += 1;
                    free_from = start + profile.memory_slices;
                }
            }
            assert_eq!(fit, profile.max_instances, "{} {}", model.key, profile.name);
        }
    }
}

#[test]
fn profile_ids_and_names_are_unique() {
    for (_, geometry) in geometries() {
        let ids: std::collections::BTreeSet<u32> =
            geometry.profiles.iter().map(|profile| profile.id).collect();
        let names: std::collections::BTreeSet<&str> =
            geometry.profiles.iter().map(|profile| profile.name).collect();
        assert_eq!((ids.len(), names.len()), (geometry.profiles.len(), geometry.profiles.len()));
    }
}

#[test]
fn instance_ids_are_pool_numbers_of_the_size() {
    let eight = Model::find("a100-80").unwrap().mig.unwrap();
    assert_eq!(eight.instance_ids(8), 0..=0);
    assert_eq!(eight.instance_ids(4), 1..=2);
    assert_eq!(eight.instance_ids(2), 3..=6);
    assert_eq!(eight.instance_ids(1), 7..=14);
    let four = Model::find("a30").unwrap().mig.unwrap();
    assert_eq!((four.instance_ids(4), four.instance_ids(2), four.instance_ids(1)), (0..=0, 1..=2, 3..=6));
}

#[test]
fn the_whole_instance_of_an_a100_lacks_ten_multiprocessors() {
    let model = Model::find("a100-40").unwrap();
    let whole = model.mig.unwrap().profile("7g.40gb").unwrap();
    assert_eq!((whole.multiprocessors, model.multiprocessors), (98, 108));
}

use super::*;
use crate::geometry::Profile;

fn family(models: &[&str], profiles: &[(&str, u8)]) -> ModelGeometry {
    ModelGeometry {
        models: models.iter().map(|name| (*name).to_owned()).collect(),
        compute_slices: 7,
        memory_slices: 8,
        profiles: profiles
            .iter()
            .map(|(name, memory_slices)| Profile {
                name: (*name).to_owned(),
                compute_slices: 1,
                memory_slices: *memory_slices,
                starts: vec![0],
            })
            .collect(),
    }
}

fn geometry() -> Geometry {
    let small = family(&["NVIDIA A100-SXM4-40GB"], &[("1g.5gb", 1), ("1g.10gb", 2), ("3g.20gb", 4)]);
    let large = family(&["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"], &[("1g.10gb", 1), ("1g.10gb+me", 1)]);
    Geometry { models: vec![small, large] }
}

fn book(models: &[(&str, &str)], names: &[(&str, &str)]) -> SkuBook {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, SkuId> {
        pairs.iter().map(|(name, sku)| ((*name).to_owned(), SkuId::new(sku))).collect()
    };
    SkuBook { by_model: map(models), by_name: map(names) }
}

fn weight(book: &SkuBook, sku: &str) -> String {
    unplaced_weight(&geometry(), book, &SkuId::new(sku)).to_string()
}

#[test]
fn a_profile_counts_its_memory_slices_under_the_default_id_m_4() {
    let none = SkuBook::default();
    assert_eq!(weight(&none, "h100-80gb-hbm3/1g.10gb"), "1/8");
    assert_eq!(weight(&none, "h100-80gb-hbm3/1g.10gb+me/share"), "1/8");
    assert_eq!(weight(&none, "a100-sxm4-40gb/1g.10gb"), "1/4");
    assert_eq!(weight(&none, "a100-sxm4-40gb/1c.3g.20gb"), "1/2");
    for whole in ["h100-80gb-hbm3", "h100-80gb-hbm3/share", "gpu", "l40s/1g.10gb", "h100-80gb-hbm3/9g.90gb"] {
        assert_eq!(weight(&none, whole), "1", "{whole}");
    }
}

#[test]
fn a_product_of_ones_own_is_the_models_it_names_m_4() {
    let book = book(&[("NVIDIA H100 PCIe", "hopper"), ("NVIDIA A100-SXM4-40GB", "ampere")], &[]);
    assert_eq!(weight(&book, "hopper/1g.10gb"), "1/8");
    assert_eq!(weight(&book, "ampere/1g.10gb/share"), "1/4");
    assert_eq!(weight(&book, "a100-sxm4-40gb/1g.5gb"), "1/8", "the default id is still understood");
    assert_eq!(weight(&book, "other/1g.10gb"), "1");
}

#[test]
fn a_profile_in_a_foreign_name_counts_where_all_models_agree_m_4() {
    let names = [("gpu:a100_3g.20gb", "half"), ("nvidia.com/mig-1g.10gb.me", "small"), ("gpu:h100", "whole")];
    let book = book(&[], &names);
    assert_eq!(weight(&book, "half"), "1/2");
    assert_eq!(weight(&book, "a100_3g.20gb"), "1/2");
    assert_eq!(weight(&book, "small"), "1", "1g.10gb is a quarter of one model and an eighth of another");
    assert_eq!(weight(&book, "whole"), "1");
}

#[test]
fn profiles_are_found_in_foreign_names() {
    for (name, found) in [
        ("gpu:1g.5gb", Some("1g.5gb")),
        ("nvidia_a100_3g.20gb", Some("3g.20gb")),
        ("nvidia.com/mig-1g.10gb.me", Some("1g.10gb")),
        ("1c.4g.20gb", Some("4g.20gb")),
        ("h100-80gb-hbm3", None),
        ("g.gb", None),
        ("", None),
    ] {
        assert_eq!(profile_in(name).as_deref(), found, "{name}");
    }
}

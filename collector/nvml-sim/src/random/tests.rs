use super::*;
use crate::scenario::read;
use crate::world::World;

#[test]
fn every_seed_gives_a_scenario_that_can_happen_and_comes_back_from_its_text() {
    for seed in 0..150 {
        let settings = Settings { gpus: 1 + usize::try_from(seed % 8).unwrap(), ..Settings::default() };
        let text = scenario(seed, settings).yaml().unwrap();
        let again = read(&text, "random.yaml").unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        let end = text.find("name:").unwrap();
        assert_eq!(serde_saphyr::to_string(&again).unwrap(), text[end..], "seed {seed}");
        World::new(again).unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{text}"));
    }
}

#[test]
fn the_same_seed_gives_the_same_scenario_and_another_one_another() {
    let text = |seed| scenario(seed, Settings::default()).yaml().unwrap();
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn every_hard_case_comes_up_within_a_hundred_seeds() {
    let mut cases = BTreeMap::new();
    for seed in 0..100 {
        for (case, count) in scenario(seed, Settings::default()).cases {
            *cases.entry(case).or_insert(0) += count;
        }
    }
    assert_eq!(cases.len(), 21, "{cases:?}");
    assert!(cases.values().all(|count| *count >= 5), "{cases:?}");
}

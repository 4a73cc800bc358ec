use super::*;
use crate::scenario::read;

const S: u64 = 1_000_000;

fn world(text: &str) -> World {
    World::new(read(text, "t.yaml").unwrap()).unwrap_or_else(|fault| panic!("{fault}"))
}

const STORY: &str = "
name: t
uptime: 1h
start: 2026-10-01T00:00:00Z
gpus: [{uuid: GPU-1, model: a100-40, mig: on}, {uuid: GPU-2, model: t4}]
timeline:
- {at: 0s, create_instance: {gpu: 0, profile: 3g.20gb, start: 4, gi: 2}}
- {at: 2s, start: {pid: 9, started_before: 1s5ms, on: [{gpu: 0, gi: 2, sm: 30%, memory: 1GiB}]}}
- {at: 3s, change: {pid: 9, gpu: 0, memory: 2GiB, memory_unknown: true}}
- {at: 5s, stop: {pid: 9, leaves: zombie}}
- {at: 6s, reap: {pid: 9}}
- {at: 7s, destroy_instance: {gpu: 0, gi: 2}}
- {at: 7s, create_instance: {gpu: 0, profile: 3g.20gb, start: 4, gi: 2}}
- {at: 8s, lose: {gpu: 1}}
- {at: 9s, recover: {gpu: 1}}
- {at: 9s, reload_driver: {down: 1s}}
";

#[test]
fn the_truth_of_a_story_is_what_it_says() {
    let world = world(STORY);
    let truth = truth(&world, 0, 12 * S);
    let [first, second] = truth.instances.as_slice() else { panic!("two lives") };
    assert_eq!((first.generation, second.generation, first.size), (0, 1, 4));
    assert_eq!((first.busy_us, second.busy_us), (900_000, 0));
    assert_eq!(second.to, world.steady_us(9 * S), "the reload ends it");
    let [process] = truth.processes.as_slice() else { panic!("one context") };
    assert_eq!(process.started_at, world.steady_us(990_000), "to the tick");
    assert_eq!((process.from, process.to), (world.steady_us(2 * S), world.steady_us(6 * S)));
    assert_eq!(process.ended_at, Some(world.steady_us(5 * S)));
    assert_eq!(process.memory_byte_us, u128::from(S + 2 * 3 * S) << 30);
    assert_eq!((process.memory_unknown_us, process.memory_bytes_max), (3 * S, 2 << 30));
    let reasons: Vec<Reason> = truth.gpus[1].absent.iter().map(|absence| absence.reason).collect();
    assert_eq!(reasons, [Reason::Lost, Reason::NoDriver]);
    assert_eq!((truth.gpus[0].mig.len(), truth.gpus[1].mig.len()), (1, 0));
}

#[test]
fn the_truths_of_parts_add_up_to_the_truth_of_the_whole() {
    for seed in 0..20 {
        let drawn = crate::random::scenario(seed, crate::random::Settings::default());
        let world = World::new(drawn.scenario).unwrap();
        let sum = |from, to| {
            let truth = truth(&world, from, to);
            let gpus = truth.gpus.iter().map(|gpu| (u128::from(gpu.busy_us), gpu.memory_byte_us));
            let instances = truth.instances.iter().map(|it| (u128::from(it.busy_us), it.memory_byte_us));
            let processes = truth.processes.iter().map(|it| (u128::from(it.busy_us), it.memory_byte_us));
            gpus.chain(instances).chain(processes).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
        };
        let (one, two, all) = (sum(0, 123_456_789), sum(123_456_789, 600 * S), sum(0, 600 * S));
        assert_eq!((one.0 + two.0, one.1 + two.1), all, "seed {seed}");
    }
}

#[test]
fn what_is_outside_of_the_span_is_left_out_and_numbers_are_text() {
    let json = serde_json::to_value(truth(&world(STORY), 0, S)).unwrap();
    assert_eq!(json["processes"], serde_json::json!([]));
    assert_eq!(json["gpus"][0]["busy_us"], "0");
    assert_eq!(json["instances"][0]["from"], "2026-10-01T00:00:00Z");
}

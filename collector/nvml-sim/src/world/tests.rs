use super::*;
use crate::scenario::read;

mod naive;

const S: u64 = 1_000_000;

fn world(head: &str, timeline: &str) -> World {
    let text = format!("name: t\n{head}\ntimeline:\n{timeline}");
    World::new(read(&text, "t.yaml").unwrap()).unwrap_or_else(|fault| panic!("{fault}"))
}

const PLAIN: &str = "gpus: [{uuid: GPU-1, model: a100-40, accounting: true}]";
const MIG: &str = "gpus: [{uuid: GPU-1, model: a100-40, mig: on}]";

#[test]
fn what_two_processes_want_above_the_whole_is_divided() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0, sm: 80%}]}}\n- {at: 1s, start: {pid: 2, on: [{gpu: 0, sm: 80%}]}}\n- {at: 2s, stop: {pid: 1}}\n",
    );
    let busy: Vec<u64> = world.contexts().iter().map(|context| context.busy.busy_us(0, 3 * S)).collect();
    assert_eq!(busy, [1_300_000, 1_300_000]);
    assert_eq!(world.device_busy(0).busy_us(0, 3 * S), 2_600_000);
}

#[test]
fn a_device_with_mig_weighs_its_instances_by_multiprocessors() {
    let world = world(
        MIG,
        "- {at: 0s, create_instance: {gpu: 0, profile: 3g.20gb}}\n- {at: 0s, start: {pid: 1, on: [{gpu: 0, gi: 1, sm: 100%}]}}\n",
    );
    assert_eq!(world.gpu_instance(0).busy.at(0), 1_000_000);
    assert_eq!(world.device_busy(0).at(0), 42 * 1_000_000 / 108);
}

#[test]
fn an_instance_that_comes_back_has_the_same_names_and_another_generation() {
    let world = world(
        MIG,
        "- {at: 0s, create_instance: {gpu: 0, profile: 1g.5gb}}\n- {at: 1s, destroy_instance: {gpu: 0, gi: 7}}\n- {at: 1s500ms, create_instance: {gpu: 0, profile: 1g.5gb}}\n",
    );
    let [first, second] = world.gpu_instances() else { panic!("two lives") };
    assert_eq!((first.id, first.generation, second.id, second.generation), (7, 0, 7, 1));
    assert_eq!(world.compute_instance(0).uuid, world.compute_instance(1).uuid);
    assert_eq!(world.compute_instance(0).uuid.len(), 40);
    assert!(world.state(0, S).mig_devices.is_empty() && world.state(0, 2 * S).mig_devices.len() == 1);
    assert_eq!(world.events(0, 2 * S).len(), 2, "the one at 0 is not after 0");
}

#[test]
fn a_place_in_the_list_stays_while_its_neighbour_goes() {
    let create = "- {at: 0s, create_instance: {gpu: 0, profile: 1g.5gb}}\n".repeat(3);
    let more = "- {at: 1s, destroy_instance: {gpu: 0, gi: 8}}\n- {at: 2s, create_instance: {gpu: 0, profile: 2g.10gb, start: 4}}\n";
    let world = world(MIG, &format!("{create}{more}"));
    let places = |t| world.state(0, t).mig_devices.iter().map(|it| it.index).collect::<Vec<_>>();
    assert_eq!((places(0), places(S), places(2 * S)), (vec![0, 1, 2], vec![0, 2], vec![0, 1, 2]));
}

#[test]
fn compute_instances_share_the_memory_of_their_gpu_instance() {
    let world = world(
        MIG,
        "- {at: 0s, create_instance: {gpu: 0, profile: 3g.20gb, compute: [{slices: 1}, {slices: 2}]}}\n- {at: 0s, start: {pid: 1, on: [{gpu: 0, gi: 1, ci: 0, memory: 1GiB}, {gpu: 0, gi: 1, ci: 1, memory: 2GiB}]}}\n",
    );
    assert_eq!(world.instance_memory(0, 0).used, 3 << 30);
    let [one, two] = world.compute_instances() else { panic!("two") };
    assert_eq!((one.multiprocessors, one.start, two.multiprocessors, two.start), (14, 0, 28, 1));
}

#[test]
fn what_a_dead_process_left_is_held_until_it_is_reaped_and_is_not_busy() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0, sm: 50%, memory: 1GiB}]}}\n- {at: 2s, stop: {pid: 1, leaves: rows}}\n- {at: 5s, reap: {pid: 1}}\n",
    );
    assert_eq!(world.context(0).busy.busy_us(0, 9 * S), S);
    assert_eq!(world.context(0).memory.byte_us(0, 9 * S), u128::from(5 * S) << 30);
    assert_eq!(world.state(0, 4 * S).contexts.len(), 1);
    assert_eq!(world.process(0).state(3 * S), None);
}

#[test]
fn a_lost_gpu_has_no_contexts_and_refuses() {
    let world = world(
        MIG,
        "- {at: 0s, create_instance: {gpu: 0, profile: 1g.5gb}}\n- {at: 0s, start: {pid: 1, on: [{gpu: 0, gi: 7, sm: 50%, memory: 1GiB}]}}\n- {at: 2s, lose: {gpu: 0}}\n- {at: 4s, recover: {gpu: 0}}\n",
    );
    assert_eq!(world.state(0, 2 * S).refusal(), Some(ReturnCode::GPU_IS_LOST));
    assert_eq!(world.state(0, 4 * S).refusal(), None);
    assert_eq!((world.gpu_instance(0).until_us, world.context(0).gone_us), (2 * S, 2 * S));
    assert_eq!(world.device_memory(0).at(3 * S), 0);
    assert!(world.process(0).state(5 * S).is_some(), "the process goes on");
}

#[test]
fn the_ring_has_six_samples_a_second_and_72_in_all() {
    let world = world(PLAIN, "- {at: 10s, start: {pid: 1, on: [{gpu: 0, sm: 40%}]}}\n");
    let all = world.utilization_samples(0, 30 * S, 0);
    assert_eq!(all.len(), 72);
    assert!(all.iter().all(|sample| sample.percent == 40));
    let since = all[65].stamp_us;
    assert_eq!(world.utilization_samples(0, 30 * S, since).len(), 6);
    assert_eq!(all[71].stamp_us, world.stamp_us(30 * S));
    assert_eq!(world.utilization_percent(0, 10 * S), 0);
    assert_eq!(world.utilization_percent(0, 11 * S), 40);
}

#[test]
fn a_process_row_is_the_mean_since_the_stamp_and_names_the_last_busy_sample() {
    let world = world(
        PLAIN,
        "- {at: 10s, start: {pid: 1, on: [{gpu: 0, sm: 40%}]}}\n- {at: 10s, start: {pid: 2, on: [{gpu: 0}]}}\n- {at: 10s500ms, stop: {pid: 1}}\n",
    );
    let rows = world.process_utilization(0, 11 * S, world.stamp_us(10 * S));
    assert_eq!(
        rows,
        [ProcessSample { process: 0, stamp_us: world.stamp_us(10 * S + S / 2), sm_percent: 20 }]
    );
    assert_eq!(world.process_utilization(0, 12 * S, world.stamp_us(11 * S)), []);
    assert_eq!(world.process_utilization(0, 40 * S, 0), []);
}

#[test]
fn accounting_counts_a_sample_a_second_and_survives_the_end() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0, sm: 40%, memory: 1GiB}]}}\n- {at: 4s, change: {pid: 1, gpu: 0, memory: 2GiB}}\n- {at: 10s500ms, stop: {pid: 1}}\n",
    );
    let at = |t| world.accounting(0, t).unwrap()[0];
    let running = at(5 * S);
    assert_eq!((running.samples, running.gpu_percent_hundredths, running.time_ms), (5, 20_000, 0));
    let ended = at(60 * S);
    assert_eq!((ended.samples, ended.gpu_percent(), ended.time_ms), (10, 40, 10_500));
    assert_eq!((ended.memory_bytes_max, ended.is_running), (2 << 30, false));
    assert_eq!(ended.start_stamp_us, world.stamp_us(0));
}

#[test]
fn accounting_keeps_the_latest_of_a_pid_and_nothing_after_it_is_cleared() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0}]}}\n- {at: 4s, stop: {pid: 1}}\n- {at: 5s, start: {pid: 1, on: [{gpu: 0}]}}\n- {at: 9s, clear_accounting: {gpu: 0}}\n",
    );
    let starts = |t| world.accounting(0, t).unwrap().iter().map(|it| it.process).collect::<Vec<_>>();
    assert_eq!((starts(4 * S), starts(6 * S), starts(9 * S)), (vec![0], vec![1], vec![]));
}

#[test]
fn energy_is_rest_and_work_and_starts_again_where_it_is_set() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0, sm: 50%}]}}\n- {at: 10s, set_energy: {gpu: 0, to_mj: 7}}\n",
    );
    let (idle, limit) = (u64::from(world.model(0).idle_mw), u64::from(world.model(0).limit_mw));
    assert_eq!(world.energy_mj(0, 9 * S), idle * 9 + (limit - idle) * 9 / 2);
    assert_eq!(world.energy_mj(0, 10 * S), 7);
    assert_eq!(u64::from(world.power_mw(0, S)), idle + (limit - idle) / 2);
}

#[test]
fn a_driver_reload_ends_contexts_and_starts_counters_again() {
    let world = world(
        PLAIN,
        "- {at: 0s, start: {pid: 1, on: [{gpu: 0, sm: 50%}]}}\n- {at: 10s, reload_driver: {version: 610.20.01, cuda: 13030, down: 5s}}\n",
    );
    assert!(world.driver(12 * S).is_none());
    let life = world.driver(15 * S).unwrap();
    assert_eq!((life.epoch, life.driver.nvml_version().as_str()), (1, "13.610.20.01"));
    assert_eq!(world.energy_mj(0, 15 * S), 0);
    assert_eq!(world.state(0, 15 * S).contexts, []);
    assert_eq!(world.utilization_samples(0, 16 * S, 0).len(), 6, "only what it sampled itself");
}

#[test]
fn timestamps_may_count_from_boot() {
    let world = world(
        &format!("uptime: 2h\ndriver: {{timestamps: boottime}}\n{PLAIN}"),
        "- {at: 0s, mig_event: {gpu: 0}}\n",
    );
    assert_eq!(world.stamp_us(5), 7_200_000_005);
}

#[test]
fn open_modules_translate_pids_in_a_container_and_closed_ones_do_not() {
    for (is_open, pids) in [(false, [Some(700), Some(800)]), (true, [Some(7), None])] {
        let head = format!("namespace: container\nopen_kernel_modules: {is_open}\n{PLAIN}");
        let world = world(&head, "- {at: 0s, start: {pid: 700, ns_pid: 7}}\n- {at: 0s, start: {pid: 800}}\n");
        assert_eq!([0, 1].map(|index| world.visible_pid(world.process(index))), pids);
    }
}

#[test]
fn every_scenario_of_the_package_can_be_worked_out_and_is_named_as_its_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let world = World::load(&path).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(Some(world.scenario().name.as_str()), path.file_stem().and_then(|name| name.to_str()));
        assert!(!world.scenario().about.is_empty(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 30, "{count}");
}

#[test]
fn the_examples_of_the_readme_can_be_worked_out() {
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> =
        readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [example, steps] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    World::new(read(example, "README.md").unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
    world(PLAIN, &format!("- {{at: 0s, start: {{pid: 4711}}}}\n{steps}"));
}

use crate::sim::*;

fn scenario() -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: h100-80, mig: on}}\n- {{uuid: GPU-2, model: a100-80}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}}}\n\
         - {{at: 0s, create_instance: {{gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}}}\n\
         - {{at: 0s, start: {{pid: 7, on: [{{gpu: 0, gi: 1, sm: 40%}}]}}}}\n\
         - {{at: 10s, change: {{pid: 7, gpu: 0, sm: 80%}}}}\n\
         - {{at: 20s, wrong_echo: {{gpu: 0, metric: 3, for: 1s}}}}\n\
         - {{at: 30s, stop: {{pid: 7}}}}\n- {{at: 30s, destroy_instance: {{gpu: 0, gi: 1}}}}\n\
         - {{at: 30s, create_instance: {{gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}}}\n"
    )
}

/// The structure as a client of some header lays it: a header of 24 bytes and rows of 40.
struct Query(Vec<u64>);

impl Query {
    fn new(samples: [usize; 2], metrics: &[u64], rows: usize) -> Self {
        let mut words = vec![0xaaaa_aaaa_aaaa_aaaa; 3 + 5 * rows];
        words[0] = 1 | u64::try_from(metrics.len()).unwrap() << 32;
        (words[1], words[2]) = (u64::try_from(samples[0]).unwrap(), u64::try_from(samples[1]).unwrap());
        for (place, metric) in metrics.iter().enumerate() {
            words[3 + 5 * place] = *metric;
        }
        Self(words)
    }

    fn get(&mut self, sim: &Sim) -> u32 {
        sim.call("nvmlGpmMetricsGet", [address(&mut self.0)])
    }

    /// Number, return code, value of a row.
    fn row(&self, place: usize) -> (u32, u32, f64) {
        let row = &self.0[3 + 5 * place..];
        let half = halves(&row[..1]);
        (half[0], half[1], f64::from_bits(row[1]))
    }
}

fn sample(sim: &Sim) -> usize {
    sim.handle("nvmlGpmSampleAlloc", [])
}

fn between(sim: &Sim, id: usize, from_ms: u64, to_ms: u64) -> [usize; 2] {
    [from_ms, to_ms].map(|at_ms| {
        sim.set_ms(at_ms);
        let taken = sample(sim);
        sim.ok("nvmlGpmMigSampleGet", [sim.gpu(0), id, taken]);
        taken
    })
}

#[test]
fn the_mean_between_two_samples_is_exact() {
    sim(&scenario(), |sim| {
        sim.init();
        let mut query = Query::new(between(sim, 1, 5_000, 15_000), &[2, 1, 4000], 98);
        assert_eq!(query.get(sim), SUCCESS);
        assert_eq!(query.row(0), (2, SUCCESS, 60.0));
        assert_eq!(query.row(1), (1, SUCCESS, 60.0));
        assert_eq!((query.row(2).0, query.row(2).1), (4000, NOT_SUPPORTED));
        let mut idle = Query::new(between(sim, 2, 16_000, 17_000), &[2], 98);
        idle.get(sim);
        assert_eq!(idle.row(0), (2, SUCCESS, 0.0), "per GPU instance");
    });
}

#[test]
fn only_the_rows_asked_for_are_touched() {
    sim(&scenario(), |sim| {
        sim.init();
        let samples = between(sim, 1, 1_000, 2_000);
        for rows in [1, 98, 210, 333, 477] {
            let mut query = Query::new(samples, &[2], rows);
            let mut room = query.0.clone();
            room.push(0xbbbb);
            query.0 = room;
            assert_eq!(query.get(sim), SUCCESS);
            assert!(query.0[8..8 + 5 * (rows - 1)].iter().all(|word| *word == 0xaaaa_aaaa_aaaa_aaaa));
            assert_eq!(query.0.last(), Some(&0xbbbb));
        }
    });
}

#[test]
fn another_number_may_come_back() {
    sim(&scenario(), |sim| {
        sim.init();
        let mut query = Query::new(between(sim, 1, 20_000, 20_500), &[2], 98);
        query.get(sim);
        assert_eq!(query.row(0).0, 3);
    });
}

#[test]
fn an_instance_recreated_under_the_same_id_gives_a_value_that_is_nobodys() {
    sim(&scenario(), |sim| {
        sim.init();
        let mut query = Query::new(between(sim, 1, 29_000, 31_000), &[2], 98);
        assert_eq!(query.get(sim), SUCCESS);
        assert_eq!(query.row(0), (2, SUCCESS, 40.0), "half of it was the old one at 80 %");
    });
}

#[test]
fn what_cannot_be_measured_is_refused() {
    sim(&scenario(), |sim| {
        sim.init();
        let supported = |gpu| {
            let mut support = [1_u32, 9];
            sim.ok("nvmlGpmQueryDeviceSupport", [sim.gpu(gpu), address(&mut support)]);
            support[1]
        };
        assert_eq!((supported(0), supported(1)), (1, 0));
        let taken = sample(sim);
        assert_eq!(sim.call("nvmlGpmSampleGet", [sim.gpu(1), taken]), NOT_SUPPORTED, "an A100");
        assert_eq!(sim.call("nvmlGpmMigSampleGet", [sim.gpu(0), 5, taken]), NOT_FOUND);
        assert_eq!(
            sim.call("nvmlGpmSampleGet", [sim.mig(sim.gpu(0), 0), taken]),
            NOT_SUPPORTED,
            "before driver 610"
        );
        let [first, second] = between(sim, 1, 1_000, 2_000);
        assert_eq!(Query::new([second, first], &[2], 98).get(sim), INVALID_ARGUMENT);
        assert_eq!(Query::new([first, taken], &[2], 98).get(sim), INVALID_ARGUMENT, "never taken");
        sim.ok("nvmlGpmSampleFree", [second]);
        assert_eq!(Query::new([first, second], &[2], 98).get(sim), INVALID_ARGUMENT);
        let mut wrong = Query::new([first, second], &[2], 98);
        wrong.0[0] += 1;
        assert_eq!(wrong.get(sim), VERSION_MISMATCH);
        let mut close = Query::new(between(sim, 1, 3_000, 3_050), &[2], 98);
        assert_eq!(close.get(sim), SUCCESS);
        assert_eq!(close.row(0).1, 21, "no data below 100 ms");
    });
}

#[test]
fn a_failure_and_a_delay_of_one_instance_find_it_though_it_is_an_argument() {
    let text = scenario()
        + "- {at: 40s, fail: {call: nvmlGpmMigSampleGet, gpu: 0, gi: 2, for: 1s, returns: UNKNOWN}}\n\
           - {at: 42s, delay: {call: nvmlGpmMigSampleGet, gi: 1, times: 1, by: 3s}}\n";
    sim(&text, |sim| {
        sim.init();
        let taken = sample(sim);
        let of = |id| sim.call("nvmlGpmMigSampleGet", [sim.gpu(0), id, taken]);
        sim.set_ms(40_000);
        assert_eq!((of(1), of(2)), (SUCCESS, UNKNOWN));
        sim.set_ms(42_000);
        assert_eq!((of(2), sim.now_ms()), (SUCCESS, 42_000));
        assert_eq!((of(1), sim.now_ms()), (SUCCESS, 45_000));
    });
}

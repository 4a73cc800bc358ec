//! Failures and delays, counted by call. This is all that changes while the library is in use.

use crate::code::ReturnCode;
use crate::world::{Injection, InjectionEffect, World};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the calls that each injection matches. One for each time the library is loaded.
#[derive(Debug, Default)]
pub struct Injector {
    counts: Vec<AtomicU64>,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It takes that many microseconds before its answer is made.
    pub delay_us: u64,
    /// It answers this and nothing else.
    pub returns: Option<ReturnCode>,
}

impl Injector {
    /// Nothing counted yet.
    pub fn new(world: &World) -> Self {
        Self { counts: world.injections().iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts a call and says what happens to it. `gpu_instance` is an id of NVML.
    pub fn consult(
        &self,
        world: &World,
        call: &str,
        gpu: Option<usize>,
        gpu_instance: Option<u32>,
        t_us: u64,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for (injection, count) in world.injections().iter().zip(&self.counts) {
            if !is_meant(injection, call, gpu, gpu_instance, t_us) {
                continue;
            }
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            if number < injection.nth || number - injection.nth >= injection.times {
                continue;
            }
            match injection.effect {
                InjectionEffect::Delay(us) => verdict.delay_us += us,
                InjectionEffect::Returns(code) => verdict.returns = Some(code),
            }
        }
        verdict
    }
}

fn is_meant(
    injection: &Injection,
    call: &str,
    gpu: Option<usize>,
    gpu_instance: Option<u32>,
    t_us: u64,
) -> bool {
    let is_call = match injection.call.strip_suffix('*') {
        Some(start) => call.starts_with(start),
        None => call == injection.call,
    };
    is_call
        && (injection.from_us..injection.until_us).contains(&t_us)
        && (injection.gpu.is_none() || injection.gpu == gpu)
        && (injection.gpu_instance.is_none() || injection.gpu_instance == gpu_instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::read;

    fn world(timeline: &str) -> World {
        let text = format!(
            "name: t\ngpus:\n- {{uuid: GPU-1, model: t4}}\n- {{uuid: GPU-2, model: t4}}\ntimeline:\n{timeline}"
        );
        World::new(read(&text, "t.yaml").unwrap()).unwrap()
    }

    #[test]
    fn the_nth_call_of_a_gpu_fails_as_often_as_said() {
        let world = world(
            "- {at: 1s, fail: {call: nvmlDeviceGetUUID, gpu: 1, nth: 2, times: 2, returns: GPU_IS_LOST}}\n",
        );
        let injector = Injector::new(&world);
        let call = |gpu, t| injector.consult(&world, "nvmlDeviceGetUUID", Some(gpu), None, t).returns;
        assert_eq!(call(1, 0), None, "before its time it is not even counted");
        let answers: Vec<_> = (0..4).map(|_| call(1, 1_000_000)).collect();
        let lost = Some(ReturnCode::GPU_IS_LOST);
        assert_eq!(answers, [None, lost, lost, None]);
        assert_eq!(call(0, 1_000_000), None, "another GPU");
    }

    #[test]
    fn a_star_means_any_ending_and_delays_add_up() {
        let world = world(
            "- {at: 0s, delay: {call: 'nvmlGpm*', by: 3ms, for: 1s}}\n- {at: 0s, delay: {call: '*', by: 1ms}}\n",
        );
        let injector = Injector::new(&world);
        let delay = |call, t| injector.consult(&world, call, None, None, t).delay_us;
        assert_eq!(delay("nvmlGpmSampleGet", 0), 4000);
        assert_eq!(delay("nvmlGpmSampleGet", 1_000_000), 1000);
        assert_eq!(delay("nvmlInit_v2", 0), 1000);
    }
}

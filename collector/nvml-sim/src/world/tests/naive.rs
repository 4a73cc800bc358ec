//! The integrals against a slow count: a drawn timeline played again, millisecond by millisecond, by code of its own.

use super::*;
use crate::random::{Settings, scenario};
use crate::scenario::{Action, ContextSpec, Leaves, Load, Percent, Scenario, Span};

#[derive(Clone)]
struct Counted {
    pid: u32,
    gpu: usize,
    gi: Option<u32>,
    load: Option<Load>,
    memory: u64,
    is_gone: bool,
    busy: u128,
    byte_us: u128,
}

#[derive(Default)]
struct Count {
    contexts: Vec<Counted>,
    /// (gpu, id, alive, busy, byte-time) in order of creation.
    instances: Vec<(usize, u32, bool, u128, u128)>,
}

impl Count {
    fn add(&mut self, pid: u32, on: &[ContextSpec]) {
        self.contexts.extend(on.iter().map(|spec| Counted {
            pid,
            gpu: spec.gpu,
            gi: spec.gi,
            load: Some(spec.sm.clone()),
            memory: spec.memory.0,
            is_gone: false,
            busy: 0,
            byte_us: 0,
        }));
    }

    fn end(&mut self, is_meant: impl Fn(&Counted) -> bool) {
        for context in self.contexts.iter_mut().filter(|context| is_meant(context)) {
            context.is_gone = true;
        }
    }

    fn end_gpu(&mut self, gpu: usize) {
        self.end(|context| context.gpu == gpu);
        self.instances.iter_mut().filter(|it| it.0 == gpu).for_each(|it| it.2 = false);
    }

    fn act(&mut self, action: &Action, gpus: usize) {
        match action {
            Action::Start(it) => self.add(it.pid, &it.on),
            Action::Stop(it) if it.leaves == Leaves::Nothing => self.end(|context| context.pid == it.pid),
            Action::Stop(it) => {
                let theirs =
                    self.contexts.iter_mut().filter(|context| context.pid == it.pid && !context.is_gone);
                theirs.for_each(|context| context.load = None);
            }
            Action::Reap(it) => self.end(|context| context.pid == it.pid),
            Action::Change(it) => {
                let theirs = self.contexts.iter_mut().find(|context| {
                    !context.is_gone && (context.pid, context.gpu, context.gi) == (it.pid, it.gpu, it.gi)
                });
                let context = theirs.unwrap();
                context.memory = it.memory.map_or(context.memory, |memory| memory.0);
                context.load = it.sm.clone().or(context.load.take());
            }
            Action::CreateInstance(it) => self.instances.push((it.gpu, it.gi.unwrap(), true, 0, 0)),
            Action::DestroyInstance(it) => {
                self.instances.iter_mut().filter(|i| (i.0, i.1) == (it.gpu, it.gi)).for_each(|i| i.2 = false);
            }
            Action::Lose(it) | Action::RequireReset(it) => self.end_gpu(it.gpu),
            Action::ChangeMig(it) => self.end_gpu(it.gpu),
            Action::ReloadDriver(_) => (0..gpus).for_each(|gpu| self.end_gpu(gpu)),
            _ => {}
        }
    }

    /// A millisecond passes.
    fn pass(&mut self, t_us: u64) {
        let cell = usize::try_from(t_us / S % 64).unwrap();
        let wants: Vec<u64> = self
            .contexts
            .iter()
            .map(|context| match context.load.as_ref().filter(|_| !context.is_gone) {
                None => 0,
                Some(Load::Constant(share)) => u64::from(share.0),
                Some(Load::Cells(cells)) => u64::from(cells[cell % cells.len()].0),
                Some(Load::Drawn { .. }) => unreachable!("replaced"),
            })
            .collect();
        for i in 0..self.contexts.len() {
            let unit = (self.contexts[i].gpu, self.contexts[i].gi);
            let (mut sum, mut floors, mut rank) = (0, 0, 0);
            let peers: Vec<usize> = (0..self.contexts.len())
                .filter(|j| wants[*j] > 0 && (self.contexts[*j].gpu, self.contexts[*j].gi) == unit)
                .collect();
            for j in &peers {
                sum += wants[*j];
            }
            for j in &peers {
                floors += wants[*j] * 1_000_000 / sum;
                rank += u64::from(*j < i);
            }
            let got = match wants[i] {
                0 => 0,
                want if sum <= 1_000_000 => want,
                want => want * 1_000_000 / sum + u64::from(rank < 1_000_000 - floors),
            };
            let busy = u128::from(got) * 1000;
            let context = &mut self.contexts[i];
            let byte_us = if context.is_gone { 0 } else { u128::from(context.memory) * 1000 };
            context.busy += busy;
            context.byte_us += byte_us;
            let mut alive = self.instances.iter_mut().filter(|it| (it.0, Some(it.1)) == unit && it.2);
            if let Some(instance) = alive.next() {
                instance.3 += busy;
                instance.4 += byte_us;
            }
        }
    }
}

/// Instants become whole milliseconds, and loads such as can be counted without drawing.
fn countable(mut scenario: Scenario) -> Scenario {
    let replace = |load: &mut Load| {
        if let Load::Drawn { from, to } = *load {
            *load = Load::Cells(vec![from, to, Percent(0), to]);
        }
    };
    for step in &mut scenario.timeline {
        step.at.0 -= step.at.0 % 1000;
        match &mut step.action {
            Action::Start(it) => it.on.iter_mut().for_each(|spec| replace(&mut spec.sm)),
            Action::Change(it) => it.sm.iter_mut().for_each(replace),
            _ => {}
        }
    }
    scenario
}

#[test]
fn integrals_equal_a_slow_count() {
    let (mut divided, length_us) = (0, 60 * S);
    for seed in 0..8 {
        let drawn = scenario(seed, Settings { gpus: 3, length: Span(length_us) });
        let scenario = countable(drawn.scenario);
        let mut count = Count::default();
        let mut steps = scenario.timeline.iter().peekable();
        for t_us in (0..length_us).step_by(1000) {
            while let Some(step) = steps.next_if(|step| step.at.0 <= t_us) {
                count.act(&step.action, 3);
            }
            count.pass(t_us);
        }
        let world = World::new(scenario.clone()).unwrap();
        let contexts: Vec<_> = world.contexts().iter().filter(|it| it.from_us < length_us).collect();
        assert_eq!(contexts.len(), count.contexts.len());
        for (context, counted) in contexts.iter().zip(&count.contexts) {
            assert_eq!(context.busy.until(length_us), counted.busy, "seed {seed} pid {}", counted.pid);
            assert_eq!(context.memory.until(length_us), counted.byte_us, "seed {seed} pid {}", counted.pid);
            divided += u32::from(counted.busy % 10_000_000 != 0);
        }
        let alive: Vec<_> = world.gpu_instances().iter().filter(|it| it.from_us < length_us).collect();
        for (instance, counted) in alive.iter().zip(&count.instances) {
            let found = (instance.busy.until(length_us), instance.memory.until(length_us));
            assert_eq!(found, (counted.3, counted.4), "seed {seed} instance {} of {}", counted.1, counted.0);
        }
    }
    assert!(divided > 5, "{divided} contexts had to divide their unit");
}

//! Steps that make calls fail, wait or lie.

use super::{Builder, Outcome, wrong};
use crate::scenario::{Delay, Fail, GarbageRows, Span, WrongEcho};
use crate::world::Period;
use crate::world::lives::{Injection, InjectionEffect};

impl Builder {
    pub(super) fn fail(&mut self, it: &Fail) -> Outcome {
        self.inject(Injection {
            from_us: self.now_us,
            until_us: self.until(it.lasts),
            call: it.call.clone(),
            gpu: it.gpu,
            gpu_instance: it.gi,
            nth: it.nth,
            times: it.times.unwrap_or(u64::MAX),
            effect: InjectionEffect::Returns(it.returns),
        })
    }

    pub(super) fn delay(&mut self, it: &Delay) -> Outcome {
        self.inject(Injection {
            from_us: self.now_us,
            until_us: self.until(it.lasts),
            call: it.call.clone(),
            gpu: it.gpu,
            gpu_instance: it.gi,
            nth: it.nth,
            times: it.times.unwrap_or(u64::MAX),
            effect: InjectionEffect::Delay(it.by.0),
        })
    }

    fn inject(&mut self, injection: Injection) -> Outcome {
        if let Some(gpu) = injection.gpu {
            self.gpu(gpu)?;
        }
        let call = &injection.call;
        if !call.starts_with("nvml") && call != "*" {
            return wrong(
                "call",
                format!(
                    "`{call}` is no function, expected a C name such as nvmlDeviceGetMemoryInfo_v2, nvmlGpm*, or *"
                ),
            );
        }
        if injection.nth == 0 {
            return wrong("nth", "0, expected 1 or more");
        }
        self.world.injections.push(injection);
        Ok(())
    }

    pub(super) fn wrong_echo(&mut self, it: &WrongEcho) -> Outcome {
        self.gpu(it.gpu)?;
        let until_us = self.until(it.lasts);
        self.world.echoes.push(Period { gpu: it.gpu, from_us: self.now_us, until_us, value: it.metric });
        Ok(())
    }

    pub(super) fn garbage_rows(&mut self, it: &GarbageRows) -> Outcome {
        self.gpu(it.gpu)?;
        let until_us = self.until(it.lasts);
        let value = it.rows.clone();
        self.world.garbage.push(Period { gpu: it.gpu, from_us: self.now_us, until_us, value });
        Ok(())
    }

    fn until(&self, lasts: Option<Span>) -> u64 {
        lasts.map_or(u64::MAX, |lasts| self.now_us.saturating_add(lasts.0))
    }
}

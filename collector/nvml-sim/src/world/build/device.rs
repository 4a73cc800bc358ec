//! Steps that change a GPU, the driver or the clock.

use super::{Builder, Outcome, wrong};
use crate::scenario::{DoubleBit, ReloadDriver, SetGpu, Xid};
use crate::world::lives::{DeviceEvent, DriverLife, EventKind};
use crate::world::state::Presence;

impl Builder {
    pub(super) fn lose(&mut self, gpu: usize, presence: Presence) -> Outcome {
        let live = self.gpu(gpu)?;
        live.presence = presence;
        live.accounting_since_us = None;
        live.recovery_action = if presence == Presence::ResetRequired { 1 } else { 2 };
        self.end_contexts_on(gpu);
        self.end_instances(gpu);
        Ok(())
    }

    pub(super) fn recover(&mut self, gpu: usize) -> Outcome {
        let now_us = self.now_us;
        let is_accounting = self.world.scenario.gpus.get(gpu).is_some_and(|spec| spec.accounting);
        let live = self.gpu(gpu)?;
        if live.presence == Presence::Present {
            return wrong("recover.gpu", "the GPU answers, expected a lost one");
        }
        live.presence = Presence::Present;
        live.recovery_action = 0;
        live.errors = 0;
        if let Some(mig) = live.mig.as_mut() {
            mig.is_on = mig.is_on_pending;
        }
        live.accounting_since_us = (is_accounting && !live.is_mig_on()).then_some(now_us);
        Ok(())
    }

    pub(super) fn set_energy(&mut self, gpu: usize, to_mj: u64) -> Outcome {
        self.gpu(gpu)?;
        self.world.gpus[gpu].energy.push((self.now_us, to_mj));
        Ok(())
    }

    pub(super) fn clear_accounting(&mut self, gpu: usize) -> Outcome {
        let now_us = self.now_us;
        let live = self.gpu(gpu)?;
        live.accounting_since_us = live.accounting_since_us.map(|_| now_us);
        Ok(())
    }

    pub(super) fn set_accounting(&mut self, gpu: usize, on: bool) -> Outcome {
        let now_us = self.now_us;
        let live = self.gpu(gpu)?;
        if on && live.is_mig_on() {
            return wrong("set_accounting.on", "MIG is on there, which forces accounting off");
        }
        live.accounting_since_us = on.then_some(live.accounting_since_us.unwrap_or(now_us));
        Ok(())
    }

    pub(super) fn set_gpu(&mut self, it: &SetGpu) -> Outcome {
        let live = self.gpu(it.gpu)?;
        live.compute_mode = it.compute_mode.unwrap_or(live.compute_mode);
        live.has_persistence = it.persistence.unwrap_or(live.has_persistence);
        live.recovery_action = it.recovery_action.unwrap_or(live.recovery_action);
        Ok(())
    }

    pub(super) fn reload_driver(&mut self, it: &ReloadDriver) -> Outcome {
        let Some(last) = self.world.drivers.last_mut() else { return Ok(()) };
        if last.from_us > self.now_us {
            return wrong("reload_driver", "the driver is not loaded yet, expected a later instant");
        }
        last.until_us = self.now_us;
        let mut driver = last.driver.clone();
        let epoch = last.epoch + 1;
        if let Some(version) = &it.version {
            driver.version.clone_from(version);
            driver.nvml = None;
            driver.process_record_bytes = None;
        }
        driver.cuda = it.cuda.unwrap_or(driver.cuda);
        let from_us = self.now_us.saturating_add(it.down.0);
        self.world.drivers.push(DriverLife { epoch, driver, from_us, until_us: u64::MAX });
        for gpu in 0..self.gpus.len() {
            self.end_contexts_on(gpu);
            self.end_instances(gpu);
            self.world.gpus[gpu].energy.push((from_us, 0));
            let is_accounting = self.gpus[gpu].accounting_since_us.is_some();
            let live = self.gpu(gpu)?;
            live.errors = 0;
            // Without persistence the mode is lost with the driver.
            live.accounting_since_us = (is_accounting && live.has_persistence).then_some(from_us);
        }
        Ok(())
    }

    pub(super) fn xid(&mut self, it: &Xid) -> Outcome {
        self.gpu(it.gpu)?;
        self.report(it.gpu, EventKind::Xid(it.number), it.gi, it.ci);
        Ok(())
    }

    pub(super) fn mig_event(&mut self, gpu: usize) -> Outcome {
        self.gpu(gpu)?;
        self.report(gpu, EventKind::MigChange, None, None);
        Ok(())
    }

    pub(super) fn double_bit(&mut self, it: &DoubleBit) -> Outcome {
        let live = self.gpu(it.gpu)?;
        live.errors = live.errors.saturating_add(it.count);
        live.errors_ever = live.errors_ever.saturating_add(it.count);
        self.report(it.gpu, EventKind::DoubleBit, None, None);
        Ok(())
    }

    fn report(
        &mut self,
        gpu: usize,
        kind: EventKind,
        gpu_instance: Option<u32>,
        compute_instance: Option<u32>,
    ) {
        let t_us = self.now_us;
        self.world.events.push(DeviceEvent { t_us, gpu, kind, gpu_instance, compute_instance });
    }

    pub(super) fn revoke(&mut self, gpu: Option<usize>, is_revoked: bool) -> Outcome {
        let all = 0..self.gpus.len();
        let which = gpu.map_or(all, |gpu| gpu..gpu + 1);
        for gpu in which {
            self.gpu(gpu)?.is_revoked = is_revoked;
        }
        Ok(())
    }

    pub(super) fn jump_clock(&mut self, by_us: i64) -> Outcome {
        self.world.jumps.push((self.now_us, by_us));
        Ok(())
    }
}

/// A UUID of the name-based kind (version 5 in its form; the digest is a plain one, of FNV-1a).
pub(super) fn named_uuid(name: &str) -> String {
    let half = |seed: u64| {
        name.bytes().fold(seed, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
    };
    let high = (half(0xCBF2_9CE4_8422_2325) & !0xF000) | 0x5000;
    let low = (half(0x9AE1_6A3B_2F90_404F) & !(0xC << 60)) | (0x8 << 60);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

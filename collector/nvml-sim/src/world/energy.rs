//! Energy, power, temperature and clocks: plain functions of how busy a GPU is.

use super::World;

impl World {
    /// The energy counter in millijoules, as it stands since it was last set.
    pub fn energy_mj(&self, gpu: usize, t_us: u64) -> u64 {
        let epochs = &self.gpus[gpu].energy;
        let next = epochs.partition_point(|(from, _)| *from <= t_us);
        let (from, base) = next.checked_sub(1).map_or((0, 0), |last| epochs[last]);
        base.saturating_add(self.used_mj(gpu, from, t_us))
    }

    /// Energy used over `[from, to)` in millijoules: at rest all the time, the rest by how busy it is.
    pub fn used_mj(&self, gpu: usize, from_us: u64, to_us: u64) -> u64 {
        let model = self.model(gpu);
        let rest = u128::from(model.idle_mw) * u128::from(to_us.saturating_sub(from_us));
        let work = u128::from(model.limit_mw - model.idle_mw) * self.device_busy(gpu).between(from_us, to_us);
        u64::try_from((rest + work / 1_000_000) / 1_000_000).unwrap_or(u64::MAX)
    }

    /// Power in milliwatts: of the instant on GA100 and older, else the mean of the last second.
    pub fn power_mw(&self, gpu: usize, t_us: u64) -> u32 {
        let model = self.model(gpu);
        let busy = self.device_busy(gpu);
        let ppm = if model.has_mean_power() {
            busy.mean_ppm(t_us.saturating_sub(1_000_000), t_us)
        } else {
            busy.at(t_us)
        };
        model.idle_mw + scaled(model.limit_mw - model.idle_mw, ppm)
    }

    /// Degrees Celsius.
    pub fn temperature_c(&self, gpu: usize, t_us: u64) -> u32 {
        30 + scaled(45, self.device_busy(gpu).mean_ppm(t_us.saturating_sub(1_000_000), t_us))
    }

    /// Clocks of multiprocessors and memory in MHz: low at rest, else the highest.
    pub fn clocks_mhz(&self, gpu: usize, t_us: u64) -> (u32, u32) {
        let (sm, memory) = self.model(gpu).clocks_mhz;
        if self.device_busy(gpu).at(t_us) == 0 { (210, memory) } else { (sm, memory) }
    }
}

fn scaled(whole: u32, ppm: u32) -> u32 {
    u32::try_from(u64::from(whole) * u64::from(ppm) / 1_000_000).unwrap_or(whole)
}

//! Readings by number.

use super::argument::{Argument, Rows};
use super::call::{Call, begin, guard};
use super::code::Code;
use super::handle::DeviceHandle;
use super::layout::FieldValue;
use super::since;
use super::target::Target;
use crate::model::Model;
use std::ffi::{c_int, c_uint};
use std::fmt::{self, Write};

/// Value types of fields.
const UNSIGNED_INT: c_uint = 1;
const UNSIGNED_LONG_LONG: c_uint = 3;

/// Answers each field by itself: one that cannot be answered does not spoil the others.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlDeviceGetFieldValues(
    device: DeviceHandle,
    number: c_int,
    mut values: Rows<FieldValue>,
) -> c_uint {
    guard(move || {
        let number = c_uint::try_from(number).map_err(|_| Code::INVALID_ARGUMENT)?;
        let fields = values.filled(number)?;
        let call = begin("nvmlDeviceGetFieldValues", &[&device, &number, &Fields(fields)])?;
        let target = call.target(device)?;
        for row in fields {
            let answer = field(&call, &target, row.field);
            row.timestamp_us = call.world().realtime_us(call.t_us);
            row.latency_us = 0;
            row.code = answer.map_or_else(|code| code.0, |_| 0);
            (row.value_type, row.value) = answer.unwrap_or((UNSIGNED_INT, 0));
        }
        Ok(())
    })
}

/// Type and value of a field. Numbers are those of the header.
fn field(call: &Call, target: &Target<'_>, number: c_uint) -> Result<(c_uint, u64), Code> {
    let world = call.world();
    let (gpu, t_us, model, state) = (target.gpu, call.t_us, target.model(), target.state);
    if target.instance().is_some() {
        return Err(Code::NOT_SUPPORTED);
    }
    let has_ecc = world.spec(gpu).ecc;
    Ok(match number {
        1 | 2 => (UNSIGNED_INT, has_ecc.into()),
        3 | 5 if has_ecc => (UNSIGNED_LONG_LONG, 0),
        4 if has_ecc => (UNSIGNED_LONG_LONG, state.uncorrectable_errors),
        6 if has_ecc => (UNSIGNED_LONG_LONG, state.uncorrectable_errors_ever),
        82 => (UNSIGNED_INT, world.temperature_c(gpu, t_us).into()),
        83 | 191 => (UNSIGNED_LONG_LONG, world.energy_mj(gpu, t_us)),
        142..=145 if model.compute_capability.0 >= 8 => (UNSIGNED_INT, 0),
        185 => (
            UNSIGNED_INT,
            power_mw(model, world.device_busy(gpu).mean_ppm(t_us.saturating_sub(1_000_000), t_us)),
        ),
        186 => (UNSIGNED_INT, power_mw(model, world.device_busy(gpu).at(t_us))),
        188..=190 | 192 => (UNSIGNED_INT, model.limit_mw.into()),
        187 => (UNSIGNED_INT, model.idle_mw.into()),
        230 if since::has_recovery_action(call.release) => (UNSIGNED_INT, state.recovery_action.into()),
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

fn power_mw(model: &Model, busy_ppm: u32) -> u64 {
    u64::from(model.idle_mw) + u64::from(model.limit_mw - model.idle_mw) * u64::from(busy_ppm) / 1_000_000
}

struct Fields<'a>(&'a [FieldValue]);

impl Argument for Fields<'_> {
    fn record(&self, to: &mut String) -> fmt::Result {
        to.write_char('[')?;
        for (place, row) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(to, "{comma}{:x},{:x},0,0,0,0,0,0,0,0", row.field, row.scope)?;
        }
        to.write_char(']')
    }
}

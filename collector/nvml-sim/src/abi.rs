//! The C interface: what `libnvidia-ml.so.1` exports, answered by the world of a scenario.
//!
//! One file holds the exports of one subject. An exported function is declared by [`export!`]; its body gets the [`call::Call`], in which
//! failures, delays and the driver's age are dealt with, and returns a code. Handles are numbers and never followed, pointers are written once and
//! only where C said there is room; so no client can crash the simulator but by handing in an address that is not its own.
//!
//! The environment says what to simulate: see [`engine`].

/// Declares exported functions.
macro_rules! export {
    ($($(#[doc = $doc:literal])* fn $name:ident($call:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block)*) => { $(
        $(#[doc = $doc])*
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($argument: $type),*) -> std::ffi::c_uint {
            super::call::guard(move || {
                let $call = &super::call::begin(stringify!($name), &[$(&$argument),*])?;
                $body
            })
        }
    )* };
}

mod accounting;
mod argument;
mod call;
mod code;
mod engine;
mod events;
mod fields;
mod fit;
mod gpm;
mod handle;
mod identity;
mod instances;
mod layout;
mod memory;
mod mig;
mod processes;
mod readings;
mod record;
mod replay;
mod since;
mod slots;
mod system;
mod target;
mod utilization;

pub use fit::fit;
pub use replay::{ReplayError, Replayed, replay};

//! What the collector shows on its own port: `/metrics`, `/healthz`, `/readyz`.
//!
//! Lanes put their latest figures on a [`Board`]; it is written out when somebody asks, so that nobody asking costs nothing. A value is on the board once,
//! at the scope where it was measured; what is gone or too old is left out, because a value that nobody vouches for is worse than none.

mod board;
mod dcgm;
mod durations;
mod exposition;
mod figures;
mod own;
mod server;

pub use board::{Board, Outcome};
pub use figures::{GpuFigures, Holder, InstanceFigures, ReadingFigure, UnitFigures};
pub use server::{bind, serve};

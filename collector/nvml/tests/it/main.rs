//! NVML against the simulator: the C interface as a driver would fill it in.

mod accounting;
mod drivers;
mod events;
mod gpm;
mod life;
mod mig;
mod processes;
mod readings;
mod sim;
mod utilization;

//! A window as protobuf, by hand: the product's own writer has no part in the bench. Members as in `schemas/telemetry.proto`.

use crate::fleet::{Fleet, Owner, Row, WINDOW_US, Window};

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(u8::try_from(value & 127).unwrap_or(0) | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        present(out, field, value);
    }
}

/// A number that is written where it is zero, too.
fn present(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3);
    varint(out, value);
}

fn signed(out: &mut Vec<u8>, field: u8, value: i64) {
    number(out, field, (value.unsigned_abs() << 1) - u64::from(value < 0));
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, u64::try_from(value.len()).unwrap_or(0));
    out.extend(value);
}

fn label(out: &mut Vec<u8>, field: u8, reading: &str, label: &str) {
    let mut entry = Vec::with_capacity(48);
    bytes(&mut entry, 1, reading.as_bytes());
    bytes(&mut entry, 2, label.as_bytes());
    bytes(out, field, &entry);
}

fn placement(out: &mut Vec<u8>, row: &Row) {
    let mut inner = Vec::with_capacity(4);
    number(&mut inner, 1, row.slice);
    number(&mut inner, 2, 1);
    bytes(out, 2, &inner);
}

fn memory(out: &mut Vec<u8>, field: u8, row: &Row) {
    let product = memory_byte_us(row);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    let mut inner = vec![1 << 3 | 1];
    inner.extend(low.to_le_bytes());
    number(&mut inner, 2, u64::try_from(product >> 64).unwrap_or(0));
    bytes(out, field, &inner);
}

/// Bytes times microseconds of a row.
pub(crate) fn memory_byte_us(row: &Row) -> u128 {
    u128::from(row.memory_bytes) * u128::from(row.covered_us)
}

fn sm_label(row: &Row, label: &'static str) -> &'static str {
    if row.sm_active_us.is_some() { label } else { "unavailable(timed_out)" }
}

fn unit(gpu: &str, row: &Row) -> Vec<u8> {
    let mut out = Vec::with_capacity(200);
    bytes(&mut out, 1, gpu.as_bytes());
    placement(&mut out, row);
    row.sm_active_us.iter().for_each(|sm| present(&mut out, 3, *sm));
    memory(&mut out, 4, row);
    present(&mut out, 5, row.memory_bytes);
    number(&mut out, 7, row.covered_us);
    label(&mut out, 8, "memory_byte_us", "point_gauge");
    label(&mut out, 8, "sm_active_us", sm_label(row, "interval_mean"));
    out
}

fn process(gpu: &str, row: &Row, began_us: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(240);
    bytes(&mut out, 1, gpu.as_bytes());
    placement(&mut out, row);
    number(&mut out, 3, row.pid);
    signed(&mut out, 4, began_us);
    match &row.owner {
        Some(Owner::Pod(pod)) => bytes(&mut out, 6, pod.as_bytes()),
        Some(Owner::Job(job)) => bytes(&mut out, 7, job.as_bytes()),
        None => {}
    }
    row.sm_active_us.iter().for_each(|sm| present(&mut out, 8, *sm));
    memory(&mut out, 9, row);
    number(&mut out, 10, row.covered_us);
    label(&mut out, 11, "memory_byte_us", "point_gauge");
    label(&mut out, 11, "owner", "cgroup");
    label(&mut out, 11, "sm_active_us", sm_label(row, "driver_counter"));
    out
}

/// The bytes of a window.
pub(crate) fn encode(fleet: &Fleet, window: &Window, gpus: &[String]) -> Vec<u8> {
    let mut out = Vec::with_capacity(26_000);
    bytes(&mut out, 1, fleet.node_name(window.node).as_bytes());
    bytes(&mut out, 2, fleet.boot(window.node).as_bytes());
    bytes(&mut out, 3, fleet.stream(window.node).as_bytes());
    number(&mut out, 4, window.sequence);
    signed(&mut out, 5, window.start.as_micros());
    signed(&mut out, 6, window.start.plus(WINDOW_US).as_micros());
    let gpu_of = |row: &Row| gpus.get(usize::try_from(row.gpu).unwrap_or(0)).map_or("", String::as_str);
    for row in &window.units {
        bytes(&mut out, 7, &unit(gpu_of(row), row));
    }
    let began_us = fleet.start.as_micros() - 1;
    for row in &window.processes {
        bytes(&mut out, 8, &process(gpu_of(row), row, began_us));
    }
    out
}

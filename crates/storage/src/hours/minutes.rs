//! Series of a packed row as bytes: the column `minutes`.
//!
//! A byte of version (1), a byte that says which series follow (bits 0 to 3: the owner's covered time, SM-active time, memory, energy; bits
//! 4 to 7: the unit's), then each: eight bytes with a bit for each minute that has a value, lowest first, and the values of those minutes.
//! A value is the zigzag of its difference to the one before, as a varint; a zero is followed by the number of further zeros. Steady
//! readings, which are most, take a few bytes.

use super::series::{Amount, MINUTES, Series};
use super::used::Used;

const VERSION: u8 = 1;

/// The bytes of both parts of a row.
pub(super) fn encode(owner: Option<&Used>, unit: Option<&Used>) -> Vec<u8> {
    let (mut which, mut body) = (0, Vec::new());
    for (shift, used) in [(0, owner), (4, unit)] {
        if let Some(used) = used {
            let bits = [
                put(&mut body, &used.covered_us),
                put(&mut body, &used.sm_active_us),
                put(&mut body, &used.memory_byte_us),
                put(&mut body, &used.energy_mj),
            ];
            for (place, is_there) in (0_u8..).zip(bits) {
                which |= u8::from(is_there) << (place + shift);
            }
        }
    }
    let mut bytes = vec![VERSION, which];
    bytes.append(&mut body);
    bytes
}

/// Both parts again, without what stands in other columns; none where a part has no covered time.
pub(super) fn decode(bytes: &[u8]) -> Result<(Option<Used>, Option<Used>), String> {
    let [version, which, body @ ..] = bytes else { return Err("no version and series".to_owned()) };
    if *version != VERSION {
        return Err(format!("version {version}, expected {VERSION}"));
    }
    let mut rest = body;
    let owner = part(&mut rest, which & 15)?;
    let unit = part(&mut rest, which >> 4)?;
    if rest.is_empty() { Ok((owner, unit)) } else { Err(format!("{} bytes too many", rest.len())) }
}

fn part(rest: &mut &[u8], which: u8) -> Result<Option<Used>, String> {
    let used = Used {
        covered_us: take(rest, which & 1 != 0)?,
        sm_active_us: take(rest, which & 2 != 0)?,
        memory_byte_us: take(rest, which & 4 != 0)?,
        energy_mj: take(rest, which & 8 != 0)?,
        ..Used::default()
    };
    Ok(Some(used).filter(|used| !used.covered_us.is_empty()))
}

fn put<T: Amount>(out: &mut Vec<u8>, series: &Series<T>) -> bool {
    if series.is_empty() {
        return false;
    }
    out.extend(series.present().to_le_bytes());
    let (mut before, mut zeros) = (0, None);
    for (_, amount) in series.iter() {
        let value: u128 = amount.into();
        let step = zigzag(value.wrapping_sub(before));
        before = value;
        match (step, zeros) {
            (0, None) => zeros = Some(0_u128),
            (0, Some(more)) => zeros = Some(more + 1),
            _ => {
                end_run(out, &mut zeros);
                varint(out, step);
            }
        }
    }
    end_run(out, &mut zeros);
    true
}

fn end_run(out: &mut Vec<u8>, zeros: &mut Option<u128>) {
    if let Some(more) = zeros.take() {
        out.push(0);
        varint(out, more);
    }
}

fn take<T: Amount>(rest: &mut &[u8], is_there: bool) -> Result<Series<T>, String> {
    let mut series = Series::default();
    if !is_there {
        return Ok(series);
    }
    let (mask, after) = rest.split_first_chunk::<8>().ok_or("ends within a series")?;
    *rest = after;
    let present = u64::from_le_bytes(*mask);
    let (mut before, mut zeros) = (0_u128, 0_u128);
    for minute in (0..MINUTES).filter(|minute| present & (1 << minute) != 0) {
        if zeros > 0 {
            zeros -= 1;
        } else {
            let step = read_varint(rest)?;
            if step == 0 {
                zeros = read_varint(rest)?;
            }
            before = before.wrapping_add(unzigzag(step));
        }
        series.add(minute, T::try_from(before).map_err(|_| format!("{before} is too large"))?);
    }
    Ok(series)
}

/// Small differences of either sign become small numbers.
fn zigzag(difference: u128) -> u128 {
    let sign = if difference >> 127 == 0 { 0 } else { u128::MAX };
    (difference << 1) ^ sign
}

fn unzigzag(step: u128) -> u128 {
    (step >> 1) ^ (step & 1).wrapping_neg()
}

fn varint(out: &mut Vec<u8>, mut value: u128) {
    loop {
        let low = u8::try_from(value & 127).unwrap_or(127);
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 128);
    }
}

fn read_varint(rest: &mut &[u8]) -> Result<u128, String> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("ends within a number")?;
        *rest = after;
        value |= u128::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(value);
        }
    }
    Err("a number longer than 128 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(steps: &[(u8, u64, Option<u64>, Option<u128>)]) -> Used {
        let mut used = Used::default();
        for (minute, covered, sm, memory) in steps {
            used.covered_us.add(*minute, *covered);
            sm.iter().for_each(|sm| used.sm_active_us.add(*minute, *sm));
            memory.iter().for_each(|memory| used.memory_byte_us.add(*minute, *memory));
        }
        used
    }

    #[test]
    fn what_was_written_is_read_absent_and_zero_apart_m_8() {
        let owner =
            used(&[(0, 60, Some(0), None), (1, 60, None, Some(u128::MAX)), (59, 0, Some(u64::MAX), Some(0))]);
        let unit = used(&[(7, u64::MAX, Some(5), Some(1 << 90)), (8, 3, Some(4), Some(1 << 90))]);
        for (owner, unit) in
            [(Some(&owner), Some(&unit)), (None, Some(&unit)), (Some(&owner), None), (None, None)]
        {
            let (owner_back, unit_back) = decode(&encode(owner, unit)).unwrap();
            assert_eq!((owner_back.as_ref(), unit_back.as_ref()), (owner, unit));
        }
    }

    #[test]
    fn a_steady_hour_is_short() {
        let minutes: Vec<_> =
            (0..60).map(|minute| (minute, 60_000_000, Some(30_000_000), Some(1 << 60))).collect();
        assert!(encode(Some(&used(&minutes)), None).len() < 70);
    }

    #[test]
    fn what_is_cut_or_of_another_version_is_refused() {
        let bytes = encode(Some(&used(&[(0, 60, Some(1), None)])), None);
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(decode(&longer).is_err() && decode(&[2, 0]).is_err());
    }
}

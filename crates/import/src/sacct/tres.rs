//! GPUs in a TRES list such as `billing=12,cpu=12,gres/gpu=2,gres/gpu:a100=2,mem=31000M,node=1`.
//!
//! `gres/gpu` is the total; `gres/gpu:<type>` repeat its parts by type, and are not added to it. Types without a total are
//! the total. Where the types name fewer than the total, the rest is of no named type.

use crate::emit::Unit;
use crate::mapping::{SkuRule, sku_of_gres};
use crate::report::{Reason, Reject, shown};
use crate::table::name_of;
use std::collections::BTreeMap;

/// The most units an event may count; no job holds as many.
const MOST: u64 = 65_536;
const FIELD: &str = "alloctres";

/// Whether the list names GPUs, however many.
pub(super) fn names_gpus(tres: &str) -> bool {
    tres.split(',').filter_map(|part| part.split_once('=')).any(|(key, _)| is_gpu(key.trim()))
}

fn is_gpu(key: &str) -> bool {
    key == "gres/gpu" || key.starts_with("gres/gpu:")
}

/// The units that the list holds; none where it holds no GPU.
pub(super) fn units(tres: &str, skus: &[SkuRule]) -> Result<Vec<Unit>, Reject> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut shares = None;
    for part in tres.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(Reject::value(FIELD, format!("{} is not of the form key=value", shown(part))));
        };
        if is_gpu(key) {
            let count = value.parse::<u64>().ok().filter(|n| *n <= MOST);
            let count = count.ok_or_else(|| {
                Reject::value(FIELD, format!("{} is not a number of GPUs from 0 to {MOST}", shown(part)))
            })?;
            if seen.insert(key, count).is_some() {
                return Err(Reject::new(
                    Reason::Contradiction,
                    Some(FIELD),
                    format!("{} is there twice", shown(key)),
                ));
            }
        } else if ["gres/shard", "gres/mps"].iter().any(|share| key.starts_with(share)) {
            shares = Some(part);
        }
    }
    let split = split(&seen)?;
    if split.is_empty()
        && let Some(part) = shares
    {
        let message = format!(
            "{} is a share of a GPU, and the dump does not tell how many make a whole one",
            shown(part)
        );
        return Err(Reject::new(Reason::ShareUnknown, Some(FIELD), message));
    }
    products(&split, skus)
}

/// Counts by type; `None` stands for no named type.
fn split<'t>(seen: &BTreeMap<&'t str, u64>) -> Result<Vec<(Option<&'t str>, u64)>, Reject> {
    let mut typed: Vec<(Option<&str>, u64)> = seen
        .iter()
        .filter_map(|(key, count)| key.strip_prefix("gres/gpu:").map(|kind| (Some(kind), *count)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let sum: u64 = typed.iter().map(|(_, count)| count).sum();
    let Some(total) = seen.get("gres/gpu").copied() else { return Ok(typed) };
    match typed.as_mut_slice() {
        _ if sum == total => {}
        _ if sum < total => typed.push((None, total - sum)),
        // The total is what Slurm schedules and bills by.
        [only] if total > 0 => only.1 = total,
        _ => {
            let message = format!(
                "the types name {sum} GPUs and the total {total}; the types may not exceed the total"
            );
            return Err(Reject::new(Reason::Contradiction, Some(FIELD), message));
        }
    }
    Ok(typed)
}

/// One unit a product, in the order of their ids.
fn products(split: &[(Option<&str>, u64)], skus: &[SkuRule]) -> Result<Vec<Unit>, Reject> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, count) in split {
        let kind = kind.map(|kind| name_of(FIELD, kind)).transpose()?;
        *counts.entry(sku_of_gres(skus, kind)).or_default() += count;
    }
    counts
        .into_iter()
        .map(|(sku, count)| {
            let count = u32::try_from(count).ok().filter(|n| u64::from(*n) <= MOST);
            let count = count.ok_or_else(|| Reject::value(FIELD, format!("more than {MOST} GPUs")))?;
            Ok(Unit { sku, count, share: None })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tres: &str) -> Result<Vec<(String, u32)>, Reason> {
        units(tres, &[]).map(|u| u.into_iter().map(|u| (u.sku, u.count)).collect()).map_err(|r| r.reason)
    }

    fn held(units: &[(&str, u32)]) -> Result<Vec<(String, u32)>, Reason> {
        Ok(units.iter().map(|(sku, count)| ((*sku).to_owned(), *count)).collect())
    }

    #[test]
    fn a_total_beside_its_types_counts_once() {
        assert_eq!(read("gres/gpu=4,gres/gpu:tesla=4"), held(&[("tesla", 4)]));
        assert_eq!(read("gres/gpu:tesla=4,gres/gpu=4"), held(&[("tesla", 4)]));
        assert_eq!(
            read("gres/gpu=5,gres/gpu:a100=1,gres/gpu:h100=2"),
            held(&[("a100", 1), ("gpu", 2), ("h100", 2)])
        );
        assert_eq!(read("gres/gpu:a100=1,gres/gpu:h100=2"), held(&[("a100", 1), ("h100", 2)]));
        assert_eq!(read("gres/gpu=2,gres/gpu:a100=3"), held(&[("a100", 2)]));
        assert_eq!(read("gres/gpu=2,gres/gpu:a100=2,gres/gpu:h100=2"), Err(Reason::Contradiction));
    }

    #[test]
    fn what_is_no_gpu() {
        assert_eq!(read(""), held(&[]));
        assert_eq!(read("billing=1,cpu=1,mem=1000M,node=1"), held(&[]));
        assert_eq!(read("cpu=1,gres/gpu=0"), held(&[]));
        assert_eq!(read("gres/gpumem=40G,gres/gpuutil=90"), held(&[]));
        assert!(
            !names_gpus("gres/gpumem=40G") && names_gpus("cpu=1,gres/gpu=0") && names_gpus("gres/gpu:a=1")
        );
        assert_eq!(read("gres/shard=2"), Err(Reason::ShareUnknown));
        assert_eq!(read("gres/shard:a100=2,gres/gpu=1"), held(&[("gpu", 1)]));
    }

    #[test]
    fn hostile_lists() {
        for bad in [
            "gres/gpu=NaN",
            "gres/gpu=-1",
            "gres/gpu=",
            "gres/gpu=99999999999999999999",
            "gres/gpu=1.5",
            "gres/gpu",
        ] {
            assert_eq!(read(bad), Err(Reason::BadValue), "{bad}");
        }
        assert_eq!(read("gres/gpu=1,gres/gpu=1"), Err(Reason::Contradiction));
    }

    #[test]
    fn types_of_one_product_are_one_unit() {
        let rule = SkuRule {
            sku: "a100".to_owned(),
            gres: vec!["gpu:x".to_owned(), "gpu:y".to_owned()],
            labels: Vec::new(),
        };
        let units = units("gres/gpu:x=1,gres/gpu:y=2", &[rule]).unwrap();
        assert_eq!(units, [Unit { sku: "a100".to_owned(), count: 3, share: None }]);
    }
}

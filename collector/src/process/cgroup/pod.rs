//! The pod in a path: its UID behind `pod`.

use gpuledger_wire::text::Name;

/// The last pod of the path.
pub(super) fn innermost(steps: &[&str]) -> Option<Name> {
    steps.iter().rev().find_map(|step| pod_uid_in(step))
}

/// The UID of the pod whose control group has this name: `podUID`, `kubepods-burstable-podUID.slice`, with or without `:RUNTIME:ID` behind it.
/// Systemd writes `_` for `-`; the UID is given with `-`. A static pod has 32 digits without either.
pub fn pod_uid_in(step: &str) -> Option<Name> {
    let step = step.split(':').next()?;
    let step = step.strip_suffix(".slice").unwrap_or(step);
    let (before, uid) = step.rsplit_once("pod")?;
    if !before.is_empty() && !before.ends_with('-') {
        return None;
    }
    let uid = uid.replace('_', "-");
    (is_uuid(&uid) || is_hash(&uid)).then(|| Name::new(&uid).ok()).flatten()
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| is_hex(part))
}

fn is_hash(text: &str) -> bool {
    text.len() == 32 && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

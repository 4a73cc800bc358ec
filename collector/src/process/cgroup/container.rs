//! The container in a path: 64 hexadecimal digits, plain or behind the name of the runtime.

use crate::process::identity::Container;
use gpuledger_wire::text::Name;

/// The last container of the path, with the first one where there are several (containers within containers).
pub(super) fn innermost(steps: &[&str]) -> Option<Container> {
    let mut ids = steps.iter().filter_map(|step| container_id(step));
    let first = ids.next()?;
    Some(match ids.next_back() {
        Some(last) => Container { id: name(last)?, outer: Some(name(first)?) },
        None => Container { id: name(first)?, outer: None },
    })
}

/// `ID`, `RUNTIME-ID`, `RUNTIME-ID.scope`, `SLICE:RUNTIME:ID`. The monitor of a container (`crio-conmon-ID.scope`) is not the container.
fn container_id(step: &str) -> Option<&str> {
    let step = step.strip_suffix(".scope").unwrap_or(step);
    let (runtime, id) = match step.rfind(['-', ':']) {
        Some(at) => (&step[..at], &step[at + 1..]),
        None => ("", step),
    };
    let is_id = id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && !runtime.ends_with("conmon")).then_some(id)
}

fn name(id: &str) -> Option<Name> {
    Name::new(id).ok()
}

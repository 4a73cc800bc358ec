//! What the tests of the importers share.

use crate::{ImportError, Options, Report, Sink};
use serde_json::Value;

/// Runs an importer over a text; every event must be one that the wire accepts in full.
pub(crate) fn import(
    importer: impl FnOnce(&[u8], &str, &Options, &mut Sink<'_>) -> Result<Report, ImportError>,
    text: &[u8],
    file: &str,
    options: &Options,
) -> Result<(Vec<Value>, Report), ImportError> {
    let mut events = Vec::new();
    let report = importer(text, file, options, &mut |event| {
        accept(&event);
        events.push(event);
        Ok(())
    })?;
    assert_eq!(report.emitted, u64::try_from(events.len()).unwrap());
    Ok((events, report))
}

/// Fails where the wire refuses the event or does not know a member of it.
pub(crate) fn accept(event: &Value) {
    let read = gpuledger_wire::decode_structured(event.to_string().as_bytes());
    let read = read.unwrap_or_else(|e| panic!("{event}: {e}"));
    assert!(read.unknown_members().is_empty(), "{event}: {:?}", read.unknown_members());
}

/// The listed cases as people read them.
pub(crate) fn listed(report: &Report) -> Vec<String> {
    report.unmapped.iter().map(ToString::to_string).collect()
}

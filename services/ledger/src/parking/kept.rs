//! What is kept of a record that could not be read, so that it can be read again later.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// A record with its headers as one structured event: `ce_` headers become attributes, the value becomes `data`, byte by byte, so that what was
/// wrong stays wrong. A record whose value is no JSON, or is a whole event already, is kept as its value alone.
pub(crate) fn kept_record(headers: &[(String, Vec<u8>)], payload: &[u8]) -> Vec<u8> {
    structured(headers, payload).unwrap_or_else(|| payload.to_vec())
}

fn structured(headers: &[(String, Vec<u8>)], payload: &[u8]) -> Option<Vec<u8>> {
    let data = std::str::from_utf8(payload).ok()?;
    serde_json::from_str::<IgnoredAny>(data).ok()?;
    let mut attributes = Map::new();
    for (name, value) in headers {
        let value = std::str::from_utf8(value).ok()?;
        if let Some(name) = name.strip_prefix("ce_") {
            // A second attribute of one name is a fault that an object cannot show.
            let first = attributes.insert(name.to_owned(), Value::from(value));
            if first.is_some() || name == "data" {
                return None;
            }
        } else if name.eq_ignore_ascii_case("content-type") && value != "application/json" {
            return None;
        }
    }
    let attributes = serde_json::to_string(&attributes).ok().filter(|_| !attributes.is_empty())?;
    Some(format!("{},\"data\":{data}}}", attributes.strip_suffix('}')?).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::{decode_binary, decode_structured};

    fn headers(more: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        let mut all = vec![
            ("ce_specversion", "1.0"),
            ("ce_id", "x"),
            ("ce_source", "/a"),
            ("ce_type", "gpuledger.allocation.released.v1"),
            ("ce_time", "2026-10-01T00:00:00Z"),
        ];
        all.extend(more);
        all.into_iter().map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn a_record_is_read_again_with_the_same_fault() {
        for data in [r#"{"allocation":7}"#, r#"{"allocation":"a","allocation":"b"}"#, "{}", "[]"] {
            let headers = headers(&[]);
            let first = decode_binary(&headers, data.as_bytes()).unwrap_err();
            let again = decode_structured(&kept_record(&headers, data.as_bytes())).unwrap_err();
            // The place in the text is another one.
            let what = |error: gpuledger_wire::EventError| {
                error.fault.to_string().split(" at line").next().map(str::to_owned)
            };
            assert_eq!(what(first), what(again.clone()), "{data}");
            assert_eq!((again.about.source.as_deref(), again.about.id.as_deref()), (Some("/a"), Some("x")));
        }
    }

    #[test]
    fn what_a_structured_event_cannot_say_is_kept_as_it_came() {
        let plain = b"{\"allocation\":".as_slice();
        assert_eq!(kept_record(&headers(&[]), plain), plain, "broken JSON");
        let good = b"{}".as_slice();
        for more in [("content-type", "application/protobuf"), ("ce_id", "y"), ("ce_data", "1")] {
            assert_eq!(kept_record(&headers(&[more]), good), good, "{more:?}");
        }
        assert_eq!(kept_record(&[], good), good);
    }
}

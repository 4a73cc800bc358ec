use super::*;

fn event(id: &str, tenant: &str) -> Vec<u8> {
    let text = format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"/a","type":"gpuledger.allocation.transferred.v1","time":"2026-10-01T02:00:00+02:00","data":{{"allocation":"a","tenant":"{tenant}"}}}}"#
    );
    text.into_bytes()
}

fn row(reason: &str, body: Vec<u8>) -> ParkedRow {
    ParkedRow {
        seq: 7,
        reason: reason.to_owned(),
        detail: "why".to_owned(),
        source: Some("/a".to_owned()),
        id: Some("x".to_owned()),
        subject: "a".to_owned(),
        at_us: Some(1_790_812_800_000_000),
        received_at_us: 0,
        origin: "f:1".to_owned(),
        body,
        retry_of: None,
    }
}

fn standing(body: &[u8]) -> Standing {
    let event = decode_structured(body).unwrap();
    Standing {
        seq: 3,
        received_at_us: 0,
        body: event.canonical_bytes(),
        digest: event.content_digest().to_vec(),
    }
}

fn explained(reason: &str, body: Vec<u8>, stands: Option<Standing>) -> Explanation {
    explanation(row(reason, body), stands, None, Vec::new(), None)
}

#[test]
fn a_conflict_shows_what_stands_and_in_what_it_differs_i_1() {
    let found = explained("conflict", event("x", "beta"), Some(standing(&event("x", "acme"))));
    let differences = found.differences.unwrap();
    assert_eq!(differences.len(), 1, "the same instant in another zone is no difference");
    assert_eq!(differences[0].path, "data.tenant");
    assert_eq!(differences[0].parked, Some(Value::from("beta")));
    assert_eq!(differences[0].stands, Some(Value::from("acme")));
    assert!(found.remedies.iter().any(|text| text.contains("id of its own")), "{:?}", found.remedies);
}

#[test]
fn what_was_accepted_since_is_said_to_miss_nothing() {
    let found = explained("future", event("x", "acme"), Some(standing(&event("x", "acme"))));
    assert_eq!(found.differences, Some(Vec::new()));
    assert_eq!(found.remedies.len(), 1);
    assert!(found.remedies[0].contains("nothing is missing"), "{:?}", found.remedies);
}

#[test]
fn each_reason_has_its_own_remedy_and_all_can_be_discarded() {
    for (reason, words) in [
        ("bad_value", "parked retry 7 --with FILE"),
        ("conflict", "What stands first stays"),
        ("future", "by itself at 2026-09-30T23:55:00Z"),
        ("not_entitled", "To vouch for it"),
        ("late_refused", "reopens its period"),
        ("another", "When its cause is gone"),
    ] {
        let found = explained(reason, b"{".to_vec(), None);
        assert!(found.remedies.iter().any(|text| text.contains(words)), "{reason}: {:?}", found.remedies);
        assert!(found.remedies.iter().any(|text| text.contains("parked discard 7")), "{reason}");
        assert_eq!((found.event, found.differences), (None, None), "what is no JSON is shown as bytes");
    }
}

#[test]
fn what_is_decided_has_no_remedy() {
    let decision = DecisionRow {
        decision: "discarded".to_owned(),
        reason: "typo".to_owned(),
        decided_at_us: 0,
        principal: "cli".to_owned(),
    };
    let found = explanation(row("bad_value", b"{}".to_vec()), None, Some(decision), vec![9], None);
    assert!(found.remedies.is_empty());
    assert_eq!(found.retries, [9]);
}

#[test]
fn what_stands_is_the_same_by_its_keyed_digest_though_somebody_is_erased_in_it_l_3() {
    let erased = Standing { digest: vec![7; 32], ..standing(&event("x", "acme")) };
    let row = row("future", event("x", "beta"));
    let found = explanation(row.clone(), Some(erased.clone()), None, Vec::new(), Some([7; 32]));
    assert!(found.remedies[0].contains("nothing is missing"), "{:?}", found.remedies);
    let found = explanation(row, Some(erased), None, Vec::new(), Some([8; 32]));
    assert!(found.remedies.len() > 1, "{:?}", found.remedies);
}

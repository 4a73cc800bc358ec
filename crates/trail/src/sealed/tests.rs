use super::*;
use crate::keys::Secret;

fn key(digit: &str) -> SubjectKey {
    SubjectKey::new(&Secret::parse(&digit.repeat(64)).unwrap())
}

/// Subject 17 lives, subject 18 is erased.
fn opener() -> Opener {
    Opener(BTreeMap::from([(17, Some(key("5"))), (18, None)]))
}

fn text_of(number: i64, value: &str) -> String {
    format!("{PREFIX}{number}.{}", URL_SAFE_NO_PAD.encode(key("5").seal(value.as_bytes()).unwrap()))
}

fn opened(body: &str, gone: Gone) -> String {
    String::from_utf8(opener().opened(body.as_bytes(), gone)).unwrap()
}

#[test]
fn a_sealed_event_opens_to_the_bytes_it_was_l_3() {
    let plain = r#"{"operator": "bob" ,"labels":{"owner":"al\u0069ce","team":"red"},"n":1.50}"#;
    let sealed = plain
        .replace(r#""bob""#, &format!("\"{}\"", text_of(17, r#""bob""#)))
        .replace(r#""al\u0069ce""#, &format!("\"{}\"", text_of(17, r#""al\u0069ce""#)));
    assert!(!sealed.contains("bob") && is_sealed(sealed.as_bytes()));
    assert_eq!(numbers(sealed.as_bytes()), BTreeSet::from([17]));
    assert_eq!(opened(&sealed, Gone::Said), plain);
    let mark = String::from_utf8(mark(17)).unwrap();
    assert!(sealed.contains(&mark) && !plain.contains(&mark));
}

#[test]
fn what_is_erased_is_said_or_stays_l_3() {
    let sealed = format!(r#"{{"approver":"{}","gpu":"g"}}"#, text_of(18, r#""carol""#));
    assert_eq!(opened(&sealed, Gone::Said), r#"{"approver":"erased","gpu":"g"}"#);
    assert_eq!(opened(&sealed, Gone::Kept), sealed);
    let whole = text_of(18, "user=carol");
    assert_eq!(opened(&whole, Gone::Said), ERASED);
    assert_eq!(opened(&text_of(17, "user=carol"), Gone::Said), "user=carol");
}

#[test]
fn what_only_looks_sealed_stays_as_it_came() {
    let forged = text_of(17, r#""bob""#).replace("$sealed.17.", "$sealed.17.AAAA");
    for body in [
        format!(r#"{{"operator":"{forged}"}}"#),
        format!(r#"{{"gpu":"{}"}}"#, text_of(17, r#""bob""#)),
        format!(r#"{{"operator":"{}"}}"#, text_of(99, r#""bob""#)),
        r#"{"operator":"$sealed.x","user":"$sealed.17"}"#.to_owned(),
        "$sealed.".to_owned(),
    ] {
        assert_eq!(opened(&body, Gone::Said), body);
    }
}

#[test]
fn a_label_is_shown_opened_erased_or_sealed_l_3() {
    let shown = |text: &str| opener().label(text);
    assert_eq!(shown(&text_of(17, r#""alice""#)).as_deref(), Some("alice"));
    assert_eq!(shown(&text_of(18, r#""alice""#)).as_deref(), Some(ERASED));
    assert_eq!(shown(&text_of(99, r#""alice""#)).as_deref(), Some(SEALED));
    assert_eq!(shown("red"), None, "it was never sealed");
}

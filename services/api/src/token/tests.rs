use super::*;
use aws_lc_rs::encoding::AsDer;
use gpuledger_domain::time::Instant;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::time::Duration;

const NOW: Instant = Instant::from_micros(1_790_000_000_000_000);
const NOW_SECONDS: u64 = 1_790_000_000;
const HOUR: Duration = Duration::from_secs(3600);

fn key() -> SigningKey {
    SigningKey::from_pem(generate_ed25519_pem().unwrap().as_bytes()).unwrap()
}

fn claims() -> Claims {
    Claims {
        subject: "collector-n1".to_owned(),
        role: Role::Node,
        tenant: None,
        source: Some("/nodes/n1".to_owned()),
        nodes: vec!["n1".to_owned()],
        pools: Vec::new(),
    }
}

fn body() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "s", "exp": NOW_SECONDS + 60, "nbf": NOW_SECONDS, "role": "admin"})
}

fn typed(typ: Option<&str>, key: &SigningKey) -> Header {
    Header { typ: typ.map(str::to_owned), ..Header::new(key.algorithm) }
}

fn check(header: &Header, body: &Value, key: &SigningKey) -> Result<Claims, TokenError> {
    verify(&encode(header, body, &key.key).unwrap(), &key.verify_key().unwrap(), NOW)
}

#[test]
fn a_token_says_what_was_put_in() {
    let key = key();
    let token = mint(&claims(), &key, NOW, HOUR).unwrap();
    assert_eq!(verify(&token, &key.verify_key().unwrap(), NOW), Ok(claims()));
}

#[test]
fn time_is_the_given_clock_with_five_seconds_of_grace() {
    let key = key();
    let token = mint(&claims(), &key, NOW, HOUR).unwrap();
    let at = |seconds: i64| verify(&token, &key.verify_key().unwrap(), NOW.plus(seconds * 1_000_000));
    assert!(at(3604).is_ok());
    assert_eq!(at(3605), Err(TokenError::Expired));
    assert!(at(-5).is_ok());
    assert_eq!(at(-6), Err(TokenError::Immature));
}

#[test]
fn another_key_or_algorithm_signs_nothing() {
    let (key, other) = (key(), key());
    let verify_key = key.verify_key().unwrap();
    assert_eq!(
        verify(&mint(&claims(), &other, NOW, HOUR).unwrap(), &verify_key, NOW),
        Err(TokenError::Signature)
    );
    // The classic confusion: HMAC with the public key as its secret.
    let public = verify_key.key.try_get_as_bytes().unwrap();
    let forged =
        encode(&Header::new(Algorithm::HS256), &body(), &EncodingKey::from_secret(public).unwrap()).unwrap();
    assert_eq!(verify(&forged, &verify_key, NOW), Err(TokenError::Signature));
    for broken in ["", ".", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30."] {
        let refused = verify(broken, &verify_key, NOW);
        assert!(
            matches!(refused, Err(TokenError::Signature | TokenError::Unreadable)),
            "{broken}: {refused:?}"
        );
    }
    let long = "a".repeat(MAX_TOKEN_BYTES + 1);
    assert_eq!(verify(&long, &verify_key, NOW), Err(TokenError::TooLong));
}

#[test]
fn every_registered_claim_is_needed_and_right() {
    let key = key();
    let header = typed(Some("at+jwt"), &key);
    assert!(check(&header, &body(), &key).is_ok());
    for name in ["iss", "aud", "sub", "exp", "nbf", "role"] {
        let mut lacking = body();
        lacking.as_object_mut().unwrap().remove(name);
        assert_eq!(check(&header, &lacking, &key), Err(TokenError::Unreadable), "{name}");
    }
    let with = |name: &str, value: Value| {
        let mut changed = body();
        changed[name] = value;
        check(&header, &changed, &key)
    };
    assert_eq!(with("iss", json!("someone")), Err(TokenError::Foreign));
    assert_eq!(with("aud", json!("another")), Err(TokenError::Foreign));
    assert_eq!(with("aud", json!([])), Err(TokenError::Foreign));
    assert!(with("aud", json!(["another", AUDIENCE])).is_ok());
    assert_eq!(with("role", json!("root")), Err(TokenError::Unreadable));
    assert_eq!(with("exp", json!("soon")), Err(TokenError::Unreadable));
    assert!(matches!(with("sub", json!("")), Err(TokenError::Claims(_))));
    assert!(
        matches!(with("role", json!("tenant")), Err(TokenError::Claims(_))),
        "a tenant without its tenant"
    );
    assert!(matches!(with("tenant", json!("*")), Err(TokenError::Claims(_))));
    assert!(matches!(with("source", json!("nodes/n1")), Err(TokenError::Claims(_))));
}

#[test]
fn the_type_is_checked_and_unknown_critical_headers_are_refused() {
    let key = key();
    for fine in ["at+jwt", "JWT", "application/at+jwt"] {
        assert!(check(&typed(Some(fine), &key), &body(), &key).is_ok(), "{fine}");
    }
    for other in [None, Some("dpop+jwt"), Some("logout+jwt")] {
        assert_eq!(check(&typed(other, &key), &body(), &key), Err(TokenError::Type), "{other:?}");
    }
    let critical = Header { crit: Some(vec!["exp".to_owned()]), ..typed(Some("at+jwt"), &key) };
    assert_eq!(check(&critical, &body(), &key), Err(TokenError::Signature));
}

#[test]
fn claims_that_make_no_sense_are_not_minted() {
    let key = key();
    let of = |change: fn(&mut Claims)| {
        let mut claims = claims();
        change(&mut claims);
        mint(&claims, &key, NOW, HOUR)
    };
    assert!(of(|claims| claims.role = Role::Tenant).is_err());
    assert!(of(|claims| claims.subject.clear()).is_err());
    assert!(of(|claims| claims.source = Some("nodes".to_owned())).is_err());
}

#[test]
fn a_private_key_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let pem = generate_ed25519_pem().unwrap();
    write_key_file(&path, &pem).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(write_key_file(&path, &pem).is_err(), "an existing key is not overwritten");
    let read = std::fs::read(&path).unwrap();
    let signing = SigningKey::from_pem(&read).unwrap();
    let token = mint(&claims(), &signing, NOW, HOUR).unwrap();
    assert!(
        verify(&token, &VerifyKey::from_pem(&read).unwrap(), NOW).is_ok(),
        "the private file verifies too"
    );
}

#[test]
fn public_and_rsa_keys_are_read() {
    let public = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
    assert_eq!(VerifyKey::from_pem(public).unwrap().algorithm, Algorithm::EdDSA);
    assert!(matches!(SigningKey::from_pem(public), Err(KeyError::Public)));
    let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let rsa = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
    let key = SigningKey::from_pem(rsa.as_bytes()).unwrap();
    assert_eq!(key.algorithm, Algorithm::RS256);
    let token = mint(&claims(), &key, NOW, HOUR).unwrap();
    assert!(verify(&token, &VerifyKey::from_pem(rsa.as_bytes()).unwrap(), NOW).is_ok());
    assert!(matches!(VerifyKey::from_pem(b"hello"), Err(KeyError::Pem(_))));
}

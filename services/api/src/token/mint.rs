//! Making tokens: for development and tests; a site has its own issuer.

use super::verify::TokenError;
use super::{AUDIENCE, Audience, Body, Claims, ISSUER, SigningKey};
use gpuledger_domain::time::{Instant, SECOND_US};
use jsonwebtoken::{Header, encode};
use std::time::Duration;

/// A token for `claims`, good from `now` for `ttl` (whole seconds).
///
/// # Errors
/// The claims make no sense together, or the key does not sign.
pub fn mint(claims: &Claims, key: &SigningKey, now: Instant, ttl: Duration) -> Result<String, TokenError> {
    if let Some(fault) = claims.fault() {
        return Err(TokenError::Claims(fault));
    }
    let start = seconds(now)?;
    let body = Body {
        iss: ISSUER.to_owned(),
        aud: Audience::One(AUDIENCE.to_owned()),
        sub: claims.subject.clone(),
        exp: start.saturating_add(ttl.as_secs()),
        nbf: start,
        iat: Some(start),
        jti: Some(uuid::Uuid::new_v4().to_string()),
        role: claims.role,
        tenant: claims.tenant.clone(),
        source: claims.source.clone(),
        nodes: claims.nodes.clone(),
        pools: claims.pools.clone(),
    };
    let header = Header { typ: Some("at+jwt".to_owned()), ..Header::new(key.algorithm) };
    encode(&header, &body, &key.key).map_err(|why| TokenError::Sign(why.to_string()))
}

/// Unix time in whole seconds.
pub(super) fn seconds(at: Instant) -> Result<u64, TokenError> {
    u64::try_from(at.as_micros().div_euclid(SECOND_US))
        .map_err(|_| TokenError::Claims("the clock stands before 1970"))
}

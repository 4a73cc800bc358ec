//! Reading tokens, strictly (RFC 8725).

use super::mint::seconds;
use super::{AUDIENCE, Body, Claims, ISSUER, LEEWAY_SECONDS, MAX_TOKEN_BYTES, VerifyKey};
use gpuledger_domain::time::Instant;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode};

/// Why a token is not made or not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than is read.
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// No token, or one that somebody changed, or one that was signed with another key or algorithm.
    #[error("the token is not signed as it should be")]
    Signature,
    /// Not of type `at+jwt` or `JWT`.
    #[error("the token's type is none of an access token")]
    Type,
    /// Its header or claims are not JSON, lack something, or have something that is not understood.
    #[error("the token cannot be read")]
    Unreadable,
    /// Made by another issuer or for another audience.
    #[error("the token is not meant for this service")]
    Foreign,
    /// Its time is over.
    #[error("the token is expired")]
    Expired,
    /// Its time has not begun.
    #[error("the token is not valid yet")]
    Immature,
    /// Claims that make no sense together.
    #[error("the token's claims make no sense: {0}")]
    Claims(&'static str),
    /// The key does not sign.
    #[error("the token cannot be signed: {0}")]
    Sign(String),
}

/// Checks a token against the key and the clock.
///
/// # Errors
/// The first thing that is wrong, in words that give nothing away.
pub fn verify(token: &str, key: &VerifyKey, now: Instant) -> Result<Claims, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::TooLong);
    }
    let data = decode::<Body>(token, &key.key, &validation(key)).map_err(|why| explain(why.kind()))?;
    // Signed, so the header is the issuer's word; the library does not look at the type.
    let media = data.header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
    if !matches!(media.trim_start_matches("application/"), "at+jwt" | "jwt") {
        return Err(TokenError::Type);
    }
    let body = data.claims;
    let now = seconds(now)?;
    // By hand: the library asks the machine's clock, which is not the clock of this process.
    if body.exp.saturating_add(LEEWAY_SECONDS) <= now {
        return Err(TokenError::Expired);
    }
    if body.nbf > now.saturating_add(LEEWAY_SECONDS) {
        return Err(TokenError::Immature);
    }
    let claims = Claims {
        subject: body.sub,
        role: body.role,
        tenant: body.tenant,
        source: body.source,
        nodes: body.nodes,
        pools: body.pools,
    };
    claims.fault().map_or(Ok(claims.clone()), |fault| Err(TokenError::Claims(fault)))
}

fn validation(key: &VerifyKey) -> Validation {
    let mut validation = Validation::new(key.algorithm);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub", "nbf"]);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation
}

fn explain(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidIssuer | ErrorKind::InvalidAudience => TokenError::Foreign,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => {
            TokenError::Unreadable
        }
        _ => TokenError::Signature,
    }
}

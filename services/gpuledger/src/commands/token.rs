//! Development tokens.

use super::serve::read_or_make;
use crate::cli::TokenArgs;
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_api::token::{Claims, Role, SigningKey, mint};
use gpuledger_telemetry::terminal::say;
use std::time::Duration;

/// Mints a token with the key of `jwt_key_file`.
pub(crate) fn run(settings: &Settings, args: TokenArgs) -> Result<Outcome> {
    say(&token(settings, args)?);
    Ok(Outcome::Done)
}

/// The token itself.
pub(crate) fn token(settings: &Settings, args: TokenArgs) -> Result<String> {
    let words: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let role = Role::parse(&args.role)
        .ok_or_else(|| Usage(format!("--role {}: want {}", args.role, words.join(", "))))?;
    let pem = read_or_make(&settings.jwt_key_file)?;
    let wrong =
        |error: &dyn std::fmt::Display| Usage(format!("{}: {error}", settings.jwt_key_file.display()));
    let key = SigningKey::from_pem(pem.as_bytes()).map_err(|error| wrong(&error))?;
    let claims = Claims {
        subject: args.tenant.clone().unwrap_or_else(|| format!("{}@cli", args.role)),
        role,
        tenant: args.tenant,
        source: args.source,
        nodes: args.nodes,
        pools: args.pools,
    };
    let ttl = Duration::from_secs(u64::from(args.hours) * 3600);
    Ok(mint(&claims, &key, now()?, ttl).map_err(|error| Usage(error.to_string()))?)
}

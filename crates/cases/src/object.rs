//! Business objects that most cases need, in one line each.

use super::times::instant;
use super::words::Words;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `tenant acme zone=Europe/Berlin currency=EUR vat=0.19`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantLine {
    /// Its id.
    pub name: String,
    /// Its IANA zone.
    pub zone: String,
    /// Its currency.
    pub currency: String,
    /// Rate of its only tax, or none.
    pub vat: Option<String>,
}

/// `pool chat work window=1m input_tokens=1 output_tokens=4 idle=even`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLine {
    /// Its id.
    pub name: String,
    /// `entitlement`, `measured` or `work`.
    pub policy: String,
    /// `1m`, `5m` or `15m`.
    pub window: String,
    /// `provider`, `proportional` or `even`.
    pub idle: String,
    /// What one of each kind of work weighs.
    pub weights: BTreeMap<String, String>,
}

impl TenantLine {
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let mut words = Words::new(line, &["zone", "currency", "vat"]);
        let option =
            |words: &Words<'_>, name: &str, default: &str| words.option(name).unwrap_or(default).to_owned();
        let tenant = Self {
            name: words.next("a tenant")?.to_owned(),
            zone: option(&words, "zone", "UTC"),
            currency: option(&words, "currency", "EUR"),
            vat: words.option("vat").map(str::to_owned),
        };
        words.end()?;
        Ok(tenant)
    }

    /// The document that `apply` reads.
    pub fn document(&self) -> Value {
        let mut document = json!({"kind": "Tenant", "id": self.name, "name": self.name, "time_zone": self.zone, "currency": self.currency});
        if let Some(rate) = &self.vat {
            document["tax"] = json!([{"name": "VAT", "rate": rate}]);
        }
        document
    }
}

impl PoolLine {
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let kinds = ["input_tokens", "output_tokens", "cached_tokens", "requests", "kv_byte_us", "units"];
        let mut words = Words::new(line, &[&["window", "idle"][..], &kinds].concat());
        let weights =
            kinds.iter().filter_map(|kind| Some(((*kind).to_owned(), words.option(kind)?.to_owned())));
        let pool = Self {
            weights: weights.collect(),
            window: words.option("window").unwrap_or("1m").to_owned(),
            idle: words.option("idle").unwrap_or("provider").to_owned(),
            name: words.next("a pool")?.to_owned(),
            policy: words.next("a policy")?.to_owned(),
        };
        words.end()?;
        Ok(pool)
    }

    /// The document that `apply` reads.
    pub fn document(&self) -> Value {
        let mut document = json!({"kind": "Pool", "id": self.name, "policy": self.policy, "idle": self.idle});
        if self.policy == "work" {
            document["window"] = json!(self.window);
            document["weights"] = json!(self.weights);
        }
        document
    }
}

/// A date such as 2026-10-25, from which the lines below count.
pub(super) fn date(word: &str) -> Result<String, String> {
    instant("00:00", word).map_err(|_| format!("`{word}` is no date, expected such as 2026-10-25"))?;
    Ok(word.to_owned())
}

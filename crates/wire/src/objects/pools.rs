//! Pools: by what the time of shared or served units is divided.

use super::words::Tag;
use super::{Kind, refuse};
use crate::amount::Unsigned;
use crate::bodies::Problem;
use crate::text::Name;
use crate::time::Span;
use gpuledger_domain::pool::{self, Idle, Policy, WorkKind, WorkWindow};
use gpuledger_domain::time::MINUTE_US;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `kind: Pool`: how a shared unit is divided among tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Always `Pool`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// By what.
    pub policy: PoolPolicy,
    /// Of reported work: kind of work to its weight.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<Name, Unsigned>,
    /// Of reported work: in windows of 1, 5 or 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Who bears idle time.
    #[serde(default)]
    pub idle: IdlePolicy,
}

/// By what a pool is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolPolicy {
    /// By granted share.
    Entitlement,
    /// By SM-active time.
    Measured,
    /// By reported work.
    Work,
}

/// Who bears a pool's idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdlePolicy {
    /// The operator.
    #[default]
    Provider,
    /// The tenants, in proportion to their use.
    Proportional,
    /// The tenants, in equal parts.
    Even,
}

impl Pool {
    /// The pool as the rules see it.
    pub fn rule(&self) -> pool::Pool {
        let policy = match self.policy {
            PoolPolicy::Entitlement => Policy::Entitlement,
            PoolPolicy::Measured => Policy::Measured,
            PoolPolicy::Work => {
                Policy::Work { weights: self.kinds(), window: self.length().unwrap_or_default() }
            }
        };
        let idle = match self.idle {
            IdlePolicy::Provider => Idle::Provider,
            IdlePolicy::Proportional => Idle::Proportional,
            IdlePolicy::Even => Idle::Even,
        };
        pool::Pool { policy, idle }
    }

    fn kinds(&self) -> BTreeMap<WorkKind, gpuledger_domain::share::Share> {
        self.weights
            .iter()
            .filter_map(|(word, weight)| Some((WorkKind::parse(word)?, weight.ratio())))
            .collect()
    }

    /// The length of the windows; none where it is none that a pool can have, or is not said.
    fn length(&self) -> Option<WorkWindow> {
        match self.window?.micros() / MINUTE_US {
            1 => Some(WorkWindow::One),
            5 => Some(WorkWindow::Five),
            15 => Some(WorkWindow::Fifteen),
            _ => None,
        }
        .filter(|length| self.window.is_some_and(|window| window.micros() == length.micros()))
    }

    fn check_work(&self) -> Result<(), Problem> {
        if self.weights.is_empty() {
            return refuse(
                "weights",
                "is missing, expected weights of the reported work, such as input_tokens: 1",
            );
        }
        if let Some(word) = self.weights.keys().find(|word| WorkKind::parse(word).is_none()) {
            let known = WorkKind::ALL.map(WorkKind::as_str).join(", ");
            return refuse(
                format!("weights.{word}"),
                format_args!("is no kind of work, expected one of {known}"),
            );
        }
        if self.weights.values().all(|weight| weight.get().is_zero()) {
            return refuse("weights", "are all 0: nobody would ever be served");
        }
        Ok(())
    }
}

impl Kind for Pool {
    fn check(&self) -> Result<(), Problem> {
        if self.window.is_some() && self.length().is_none() {
            return refuse("window", "expected 1m, 5m or 15m");
        }
        match self.policy {
            PoolPolicy::Work => self.check_work(),
            PoolPolicy::Entitlement | PoolPolicy::Measured if !self.weights.is_empty() => {
                refuse("weights", "have no meaning beside this policy, expected `policy: work`")
            }
            PoolPolicy::Entitlement | PoolPolicy::Measured if self.window.is_some() => {
                refuse("window", "has no meaning beside this policy, expected `policy: work`")
            }
            PoolPolicy::Entitlement | PoolPolicy::Measured => Ok(()),
        }
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Object, parse_documents};
    use gpuledger_domain::share::Share;

    fn read(text: &str) -> Result<Pool, (String, String)> {
        let text = format!("{{kind: Pool, id: p, {text}}}");
        match parse_documents(&text, "f") {
            Ok(objects) => match objects.into_iter().next() {
                Some(Object::Pool(pool)) => Ok(pool),
                other => panic!("no pool: {other:?}"),
            },
            Err(faults) => Err((faults[0].field.clone(), faults[0].to_string())),
        }
    }

    #[test]
    fn a_work_pool_names_known_kinds_and_one_of_three_windows_a_10() {
        for (text, field) in [
            ("policy: work", "weights"),
            ("policy: work, weights: {tokens: 1}", "weights.tokens"),
            ("policy: work, weights: {requests: 0}", "weights"),
            ("policy: work, weights: {requests: -1}", "weights.requests"),
            ("policy: work, weights: {requests: 1}, window: 90s", "window"),
            ("policy: work, weights: {requests: 1}, window: 30m", "window"),
            ("policy: measured, weights: {requests: 1}", "weights"),
            ("policy: entitlement, window: 5m", "window"),
        ] {
            let (at, message) = read(text).unwrap_err();
            assert_eq!(at, field, "{text}: {message}");
        }
        let (_, message) = read("policy: work, weights: {tokens: 1}").unwrap_err();
        assert!(message.ends_with(
            "expected one of input_tokens, output_tokens, cached_tokens, requests, kv_byte_us, units"
        ));
    }

    #[test]
    fn the_rules_see_exact_weights_and_a_minute_where_no_window_is_said() {
        let every = "input_tokens: 1, output_tokens: 4, cached_tokens: \"0.25\", requests: 0, kv_byte_us: \"0.0000000001\", units: 2";
        let pool = read(&format!("policy: work, weights: {{{every}}}, idle: even")).unwrap().rule();
        let Policy::Work { weights, window } = &pool.policy else { panic!("a work pool") };
        assert_eq!((*window, pool.idle, weights.len()), (WorkWindow::One, Idle::Even, 6));
        assert_eq!(weights[&WorkKind::CachedTokens], Share::new(1, 4));
        assert_eq!(weights[&WorkKind::KvByteUs], Share::new(1, 10_000_000_000));
        for (text, wanted) in
            [("60s", WorkWindow::One), ("5m", WorkWindow::Five), ("15m", WorkWindow::Fifteen)]
        {
            let pool = read(&format!("policy: work, weights: {{requests: 1}}, window: {text}")).unwrap();
            assert!(matches!(pool.rule().policy, Policy::Work { window, .. } if window == wanted), "{text}");
        }
        assert_eq!(read("policy: measured, idle: proportional").unwrap().rule().idle, Idle::Proportional);
    }
}

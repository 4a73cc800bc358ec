//! The rate limit: a bucket of tokens per principal, filled at an even rate.

use actix_web::http::header::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Principals that are remembered at once; full buckets are forgotten first, and none beyond it is refused for their sake.
const MAX_BUCKETS: usize = 10_000;

/// How much a principal may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests at once, and in each window; 1 or more.
    pub requests: u32,
    /// Time in which so many come back; a second or more.
    pub window: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { requests: 6_000, window: Duration::from_mins(1) }
    }
}

/// How a principal stands after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    limit: RateLimit,
    /// Whether the request is within the limit.
    pub(crate) allowed: bool,
    /// Requests left at once.
    remaining: u32,
    /// Time until there is one (when refused), or until the bucket is full.
    wait: Duration,
}

impl Standing {
    /// Seconds to wait, rounded up.
    pub(crate) fn seconds(&self) -> u64 {
        self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)
    }

    /// `RateLimit` and `RateLimit-Policy` (IETF draft).
    pub(crate) fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let policy = format!("\"default\";q={};w={}", self.limit.requests, self.limit.window.as_secs());
        let state = format!("\"default\";r={};t={}", self.remaining, self.seconds());
        [("ratelimit-policy", policy), ("ratelimit", state)]
            .into_iter()
            .filter_map(|(name, value)| {
                Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
            })
            .collect()
    }
}

/// One principal's bucket: how much of the window is used up, and when that was so. A full bucket has used nothing.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    used: Duration,
    at: Instant,
}

/// Buckets of all principals.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl Limiter {
    /// Everyone starts with a full bucket.
    pub(crate) fn new(limit: RateLimit) -> Self {
        let limit =
            RateLimit { requests: limit.requests.max(1), window: limit.window.max(Duration::from_secs(1)) };
        Self { limit, buckets: Mutex::default() }
    }

    /// Counts a request of `principal` at `now` (of the monotonic clock).
    pub(crate) fn take(&self, principal: &str, now: Instant) -> Standing {
        let cost = self.limit.window / self.limit.requests;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(principal) {
            buckets.retain(|_, bucket| !bucket.used_at(now).is_zero());
            if buckets.len() >= MAX_BUCKETS {
                buckets.pop_first();
            }
        }
        let used = buckets.get(principal).map_or(Duration::ZERO, |bucket| bucket.used_at(now));
        let after = used + cost;
        let allowed = after <= self.limit.window;
        let used = if allowed { after } else { used };
        buckets.insert(principal.to_owned(), Bucket { used, at: now });
        let left = self.limit.window.saturating_sub(used);
        let remaining = u32::try_from(left.as_nanos() / cost.as_nanos().max(1)).unwrap_or(u32::MAX);
        let wait = if allowed { used } else { after.saturating_sub(self.limit.window) };
        Standing { limit: self.limit, allowed, remaining, wait }
    }
}

impl Bucket {
    fn used_at(&self, now: Instant) -> Duration {
        self.used.saturating_sub(now.saturating_duration_since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: u32) -> (Limiter, Instant) {
        (Limiter::new(RateLimit { requests, window: Duration::from_mins(1) }), Instant::now())
    }

    #[test]
    fn a_bucket_empties_and_fills_evenly() {
        let (limiter, start) = limiter(3);
        let left: Vec<u32> = (0..3).map(|_| limiter.take("a", start).remaining).collect();
        assert_eq!(left, [2, 1, 0]);
        let refused = limiter.take("a", start);
        assert!(!refused.allowed && refused.seconds() == 20, "{refused:?}");
        assert!(!limiter.take("a", start + Duration::from_secs(19)).allowed);
        assert!(limiter.take("a", start + Duration::from_secs(20)).allowed);
        assert!(!limiter.take("a", start + Duration::from_secs(20)).allowed);
    }

    #[test]
    fn principals_do_not_share_a_bucket() {
        let (limiter, start) = limiter(1);
        assert!(limiter.take("a", start).allowed);
        assert!(!limiter.take("a", start).allowed);
        assert!(limiter.take("b", start).allowed);
    }

    #[test]
    fn the_headers_say_policy_and_standing() {
        let (limiter, start) = limiter(60);
        let texts: Vec<String> = limiter
            .take("a", start)
            .headers()
            .iter()
            .map(|(_, value)| value.to_str().unwrap().to_owned())
            .collect();
        assert_eq!(texts, ["\"default\";q=60;w=60", "\"default\";r=59;t=1"]);
    }

    #[test]
    fn the_memory_is_bounded() {
        let (limiter, start) = limiter(2);
        for number in 0..MAX_BUCKETS + 50 {
            assert!(limiter.take(&number.to_string(), start).allowed);
        }
        assert!(limiter.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}

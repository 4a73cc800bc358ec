//! What an answer to `POST /v1/events` means for each event that was sent.

use crate::sink::Taken;
use serde::Deserialize;
use std::time::Duration;

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One for each event.
    Taken(Vec<Taken>),
    /// Nothing, or nobody knows: send it again.
    Later {
        /// In words.
        why: String,
        /// How long the service asks to be left alone.
        wait: Option<Duration>,
    },
    /// The batch cannot be read as it is: too large, or something in it breaks it.
    NotLikeThis(String),
}

impl Answer {
    /// To be tried again.
    pub(crate) fn later(why: impl ToString) -> Self {
        Self::Later { why: why.to_string(), wait: None }
    }

    /// The meaning of a status and body, for a batch of `count` events.
    pub(crate) fn of(status: u16, wait: Option<Duration>, body: &str, count: usize) -> Self {
        match status {
            202 => taken(body, count),
            // The events themselves. Whatever else is wrong (address, token, role, media type) can be mended without them.
            400 | 413 | 422 => Self::NotLikeThis(problem(status, body)),
            _ => Self::Later { why: problem(status, body), wait },
        }
    }
}

/// The body of a 202.
#[derive(Deserialize)]
struct Body {
    accepted: usize,
    #[serde(default)]
    not_entitled: Vec<Item>,
    #[serde(default)]
    refused: Vec<Item>,
}

/// One event that was set aside.
#[derive(Deserialize)]
struct Item {
    index: usize,
    field: Option<String>,
    detail: String,
}

impl Item {
    fn words(&self) -> String {
        match &self.field {
            Some(field) => format!("{field}: {}", self.detail),
            None => self.detail.clone(),
        }
    }
}

fn taken(body: &str, count: usize) -> Answer {
    let Ok(body) = serde_json::from_str::<Body>(body) else {
        return Answer::later("the answer 202 has no body of the events interface: is the address right?");
    };
    let answered = body.accepted + body.not_entitled.len() + body.refused.len();
    if answered != count {
        return Answer::later(format!("the answer is about {answered} events, {count} were sent"));
    }
    let mut taken = vec![Taken::Stored; count];
    let not_entitled = body.not_entitled.iter().map(|item| (item.index, Taken::NotEntitled(item.words())));
    let refused = body.refused.iter().map(|item| (item.index, Taken::Refused(item.words())));
    for (index, what) in not_entitled.chain(refused) {
        match taken.get_mut(index) {
            Some(place) => *place = what,
            None => return Answer::later(format!("the answer names event {index} of {count}")),
        }
    }
    Answer::Taken(taken)
}

/// A problem (RFC 9457), or the begin of what else was answered.
fn problem(status: u16, body: &str) -> String {
    #[derive(Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let words = match serde_json::from_str::<Problem>(body) {
        Ok(problem) => [problem.title, problem.detail].into_iter().flatten().collect::<Vec<_>>().join(": "),
        Err(_) => body.chars().filter(|c| !c.is_control()).take(200).collect(),
    };
    format!("status {status}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Answer {
        Answer::of(status, None, body, 2)
    }

    #[test]
    fn each_item_has_its_own_fate() {
        let body = r#"{"accepted":0,"not_entitled":[{"index":1,"detail":"node n2 is none of the token's nodes"}],
            "refused":[{"index":0,"field":"data.end","detail":"is before start"}]}"#;
        let expected = vec![
            Taken::Refused("data.end: is before start".to_owned()),
            Taken::NotEntitled("node n2 is none of the token's nodes".to_owned()),
        ];
        assert_eq!(of(202, body), Answer::Taken(expected));
    }

    #[test]
    fn an_answer_that_does_not_account_for_all_events_is_none() {
        for body in [
            "",
            "<html>",
            "{}",
            r#"{"accepted":1}"#,
            r#"{"accepted":1,"refused":[{"index":7,"detail":"x"}]}"#,
        ] {
            assert!(matches!(of(202, body), Answer::Later { .. }), "{body}");
        }
        assert!(matches!(of(200, r#"{"accepted":2}"#), Answer::Later { .. }), "a proxy's 200 is not ours");
    }

    #[test]
    fn only_what_is_wrong_with_the_events_is_held_against_them() {
        for status in [400, 413, 422] {
            assert!(matches!(of(status, "{}"), Answer::NotLikeThis(_)), "{status}");
        }
        for status in [301, 401, 403, 404, 405, 408, 415, 429, 500, 502, 503, 504] {
            assert!(matches!(of(status, "{}"), Answer::Later { .. }), "{status}");
        }
    }

    #[test]
    fn a_problem_is_told_in_its_own_words() {
        let body = r#"{"title":"The rate limit is reached","detail":"try later"}"#;
        let Answer::Later { why, .. } = of(429, body) else { panic!() };
        assert_eq!(why, "status 429: The rate limit is reached: try later");
    }
}

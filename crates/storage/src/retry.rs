//! Repeating a transaction that lost against another one.

use crate::error::StorageError;
use std::time::Duration;

/// Tries in all. Batches take their locks in one order, so losing is rare and losing twice rarer.
const ATTEMPTS: u32 = 8;
/// First wait; doubles with each attempt.
const FIRST_WAIT: Duration = Duration::from_millis(5);

/// Errors that may carry a storage error.
pub trait Retryable {
    /// Whether the same transaction may be tried again at once.
    fn is_retryable(&self) -> bool;
}

impl Retryable for StorageError {
    fn is_retryable(&self) -> bool {
        self.is_transient()
    }
}

/// Runs `transaction`, which must begin and commit its own, again after a serialization failure or a deadlock
/// (SQLSTATE 40001 and 40P01), eight times at most.
///
/// # Errors
/// The last error of `transaction`.
pub async fn retry<T, E, F, Fut>(mut transaction: F) -> Result<T, E>
where
    E: Retryable,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match transaction().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(wait).await,
            result => return result,
        }
        wait *= 2;
    }
    transaction().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Lost(bool);

    impl Retryable for Lost {
        fn is_retryable(&self) -> bool {
            self.0
        }
    }

    #[tokio::test]
    async fn a_loser_tries_again_and_others_do_not() {
        let mut tries = 0;
        let result = retry(|| {
            tries += 1;
            let outcome = if tries < 3 { Err(Lost(true)) } else { Ok(tries) };
            async move { outcome }
        })
        .await;
        assert_eq!(result, Ok(3));

        let mut tries = 0;
        let result: Result<(), Lost> = retry(|| {
            tries += 1;
            async { Err(Lost(false)) }
        })
        .await;
        assert_eq!((result, tries), (Err(Lost(false)), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn it_gives_up() {
        let mut tries = 0;
        let result: Result<(), Lost> = retry(|| {
            tries += 1;
            async { Err(Lost(true)) }
        })
        .await;
        assert_eq!((result, tries), (Err(Lost(true)), ATTEMPTS));
    }
}

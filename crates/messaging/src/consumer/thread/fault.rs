//! Which errors of a poll pass by themselves.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::error::MessagingError;

/// What to do about an error.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The library tries again by itself.
    Wait(RDKafkaErrorCode),
    /// Some position lies outside its log.
    OutOfRange(RDKafkaErrorCode),
    /// Going on could skip records or never succeed: end, and let the caller decide.
    End(MessagingError),
}

/// Judges an error. What is not known to pass ends the consumer: after a broken record or batch the library would go
/// on with the next one.
pub(super) fn judge(error: KafkaError) -> Verdict {
    match error {
        KafkaError::MessageConsumption(
            code @ (RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange),
        ) => Verdict::OutOfRange(code),
        KafkaError::MessageConsumption(code) if passes(code) => Verdict::Wait(code),
        KafkaError::MessageConsumption(code) | KafkaError::MessageConsumptionFatal(code) => {
            Verdict::End(MessagingError::Consumption(code))
        }
        other => Verdict::End(MessagingError::Kafka { doing: "poll".to_owned(), source: other }),
    }
}

fn passes(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        // The network, and brokers that come and go.
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::NetworkException
            | Code::BrokerNotAvailable
            | Code::SSL
            | Code::Authentication
            // Leaders that move.
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::ReplicaNotAvailable
            | Code::UnknownTopicOrPartition
            | Code::UnknownTopic
            | Code::UnknownPartition
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            // The group, which is joined again.
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::NotCoordinator
            | Code::WaitingForCoordinator
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::RebalanceInProgress
            | Code::PollExceeded
            | Code::AssignmentLost
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_passes() {
        let verdict = judge(KafkaError::MessageConsumption(RDKafkaErrorCode::BrokerTransportFailure));
        assert!(matches!(verdict, Verdict::Wait(_)), "{verdict:?}");
    }

    #[test]
    fn a_broken_record_ends_the_consumer_because_the_library_would_skip_it() {
        let verdict = judge(KafkaError::MessageConsumption(RDKafkaErrorCode::BadMessage));
        assert!(matches!(verdict, Verdict::End(MessagingError::Consumption(_))), "{verdict:?}");
    }

    #[test]
    fn an_expired_offset_never_resets() {
        let verdict = judge(KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset));
        assert!(matches!(verdict, Verdict::OutOfRange(_)), "{verdict:?}");
    }

    #[test]
    fn a_fenced_member_ends() {
        let verdict = judge(KafkaError::MessageConsumptionFatal(RDKafkaErrorCode::FencedInstanceId));
        assert!(matches!(verdict, Verdict::End(_)), "{verdict:?}");
    }
}

//! Producing: acknowledged, counted, resumable, partitioned as Java does.

use gpuledger_messaging::{MessagingError, Producer, ProducerSettings, Record};

use crate::support::{PATIENCE, Store, bootstrap, member, record, settings, start_member, topic};

#[tokio::test]
async fn a_stopped_publication_goes_on_from_its_count() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 3).await;
    let producer = Producer::new(&kafka, &ProducerSettings::default()).unwrap();
    let fault = || MessagingError::Setting("line 700 is not JSON".to_owned());
    let broken = (0..1000).map(|n| if n == 700 { Err(fault()) } else { Ok(record(&name, n)) });
    let stopped = producer.publish(broken, 0, |_| ()).await.unwrap_err();
    assert_eq!(stopped.acknowledged, 700, "all before the broken line is stored");
    assert!(stopped.to_string().contains("line 700 is not JSON"), "{stopped}");

    let mut progress = Vec::new();
    let whole = (0..1000).map(|n| Ok::<_, MessagingError>(record(&name, n)));
    let total = producer.publish(whole, stopped.acknowledged, |n| progress.push(n)).await.unwrap();
    assert_eq!(total, 1000);
    assert_eq!(progress, (701..=1000).collect::<Vec<u64>>());
    producer.close(PATIENCE).await.unwrap();

    let store = Store::default();
    let mut consumer = start_member(&kafka, member(&kafka, "one", &name), &store);
    while store.count() < 1000 {
        let batch = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap();
        store.apply(&batch).unwrap();
    }
    store.assert_exactly_once(1000);
    consumer.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn keys_go_where_javas_murmur2_puts_them() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 10).await;
    let producer = Producer::new(&kafka, &ProducerSettings::default()).unwrap();
    for (key, partition) in
        [("21", MURMUR_21), ("foobar", MURMUR_FOOBAR), ("a-little-bit-long-string", MURMUR_LONG)]
    {
        let delivered = producer.send(&keyed(&name, key)).await.unwrap();
        assert_eq!(delivered.partition, partition, "{key}");
    }
    producer.close(PATIENCE).await.unwrap();
}

/// Kafka's own test vectors (`UtilsTest.testMurmur2`): -973932308, -790332482, -985981536, made positive by clearing
/// the sign bit, modulo 10.
const MURMUR_21: i32 = (-973_932_308 & 0x7fff_ffff) % 10;
const MURMUR_FOOBAR: i32 = (-790_332_482 & 0x7fff_ffff) % 10;
const MURMUR_LONG: i32 = (-985_981_536 & 0x7fff_ffff) % 10;

fn keyed(topic: &str, key: &str) -> Record {
    Record { topic: topic.to_owned(), key: key.into(), headers: Vec::new(), payload: b"x".to_vec() }
}

#[tokio::test]
async fn a_record_the_topic_refuses_is_reported() {
    let Some(broker) = bootstrap() else { return };
    let kafka = settings(&broker);
    let name = topic(&kafka, "facts", 1).await;
    let producer = Producer::new(&kafka, &ProducerSettings::default()).unwrap();
    let random = std::iter::repeat_with(uuid::Uuid::new_v4).take(131_072);
    let mut large = keyed(&name, "k");
    large.payload = random.flat_map(uuid::Uuid::into_bytes).collect();
    let fault = producer.send(&large).await.unwrap_err();
    assert!(matches!(&fault, MessagingError::Delivery { topic, .. } if *topic == name), "{fault}");
    producer.send(&keyed(&name, "k")).await.unwrap();
}

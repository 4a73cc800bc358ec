use crate::examples::{all, example};
use crate::{EVENT_TYPES, Event, decode_structured};
use gpuledger_domain::fact::{Cause, FactBody, GrantUnit, PlacedOf, State};
use gpuledger_domain::time::Instant;

fn read(name: &str) -> Event {
    decode_structured(example(name).to_string().as_bytes()).unwrap()
}

/// Of scrub s-1 on GPU-1: SHA-256 of `GPU-1/s-1`, so that begin and end of one scrub find each other.
const SCRUB: &str = "gpu:GPU-1 scrub:573f13522825107e867ada39826af1fa3e0ed353f95d8255b9f03b81020b4cfe";

#[test]
fn subjects_topics_and_keys_of_every_type() {
    let rows = [
        (
            "node.inventory",
            "facts",
            "n1",
            "gpu:GPU-aaaaaaaa-0000-0000-0000-000000000001 gpu:GPU-aaaaaaaa-0000-0000-0000-000000000002 node:n1",
            "n1",
        ),
        ("node.decommissioned", "facts", "n1", "node:n1", "n1"),
        ("unit.state", "facts", "GPU-1", "gpu:GPU-1", "GPU-1"),
        ("telemetry.window", "telemetry", "n1", "node:n1", "n1"),
        (
            "allocation.granted",
            "facts",
            "a-2",
            "alloc:a-2 gpu:GPU-1 job:4711 pod:p-1 pool:chat source-grants:/nodes/n1/collector",
            "a-2",
        ),
        ("allocation.placed", "facts", "GPU-1", "gpu:GPU-1 job:4711", "GPU-1"),
        ("allocation.state", "facts", "a-1", "alloc:a-1", "a-1"),
        ("allocation.transferred", "facts", "a-1", "alloc:a-1", "a-1"),
        ("allocation.released", "facts", "a-1", "alloc:a-1", "a-1"),
        (
            "allocation.snapshot",
            "facts",
            "/nodes/n1/collector",
            "snapshot:/nodes/n1/collector",
            "/nodes/n1/collector e-allocation.snapshot",
        ),
        ("scrub.started", "facts", "GPU-1", SCRUB, "GPU-1"),
        ("scrub.finished", "facts", "GPU-1", SCRUB, "GPU-1"),
        ("quarantine.released", "facts", "GPU-1", "gpu:GPU-1", "GPU-1"),
        ("work.reported", "work", "chat", "pool:chat", "acme"),
        ("usage.reported", "facts", "acme", "", "acme"),
        ("charge.recorded", "facts", "acme", "", "acme"),
        ("dispute.resolved", "facts", "a-1", "alloc:a-1", "a-1"),
        ("signal.raised", "signals", "acme", "gpu:GPU-1 gpu:GPU-2", "GPU-1"),
        ("signal.acknowledged", "signals", "s-1", "", "/nodes/n1/collector e-signal.acknowledged"),
    ];
    assert_eq!(rows.len(), EVENT_TYPES.len());
    for (name, topic, key, subjects, finding) in rows {
        let event = read(name);
        assert_eq!(event.topic(), format!("gpuledger.{topic}.v1"), "{name}");
        assert_eq!(event.partition_key(), key, "{name}");
        assert_eq!(event.subjects().join(" "), subjects, "{name}");
        assert_eq!(event.subject_of_finding(), finding, "{name}");
    }
}

#[test]
fn facts_say_what_the_events_say() {
    let FactBody::Granted(grant) = read("allocation.granted").to_fact().body else { panic!("a grant") };
    assert_eq!((grant.tenant.as_str(), grant.units.len(), grant.labels.len()), ("acme", 2, 2));
    let GrantUnit::Placed(unit) = &grant.units[0] else { panic!("a device") };
    assert_eq!(unit.mig.as_ref().unwrap().uuid.as_deref(), Some("MIG-1"));
    let FactBody::UnitState(state) = read("unit.state").to_fact().body else { panic!("a state") };
    assert_eq!(state.state, State::Fault(Cause::Hardware));
    let FactBody::Placed(placed) = read("allocation.placed").to_fact().body else { panic!("a placement") };
    assert!(matches!(placed.of, PlacedOf::Runtime(runtime) if runtime.slurm_job.as_deref() == Some("4711")));
    let FactBody::Work(work) = read("work.reported").to_fact().body else { panic!("work") };
    let kinds: Vec<String> = work.amounts.iter().map(|(kind, n)| format!("{} {n}", kind.as_str())).collect();
    assert_eq!(
        kinds.join(", "),
        "input_tokens 1000, output_tokens 200, cached_tokens 0, requests 3, kv_byte_us 9007199254740993, units 3/2"
    );
    assert_eq!((work.pool.as_str(), work.adapter.as_deref()), ("chat", Some("lora-1")));
    assert_eq!(work.end.since(work.start), 60_000_000);
    let FactBody::Inventory(inventory) = read("node.inventory").to_fact().body else {
        panic!("an inventory")
    };
    assert_eq!((inventory.gpus.len(), inventory.gpus[0].instances[0].compute_slices), (2, Some(3)));
}

#[test]
fn a_telemetry_window_is_proof_of_life_at_its_end() {
    let fact = read("telemetry.window").to_fact();
    assert_eq!(fact.at, Instant::from_micros(1_790_816_400_000_000));
    assert!(matches!(fact.body, FactBody::NodeAlive(node) if node.as_str() == "n1"));
}

#[test]
fn types_that_move_no_gpu_time_are_other() {
    let others = all().into_iter().filter(|event| {
        let event = decode_structured(event.to_string().as_bytes()).unwrap();
        event.to_fact().body == FactBody::Other
    });
    assert_eq!(others.count(), 5);
}

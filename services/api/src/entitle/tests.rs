use super::*;
use gpuledger_wire::decode_structured;
use serde_json::{Value, json};

fn claims(role: Role, source: Option<&str>, nodes: &[&str], pools: &[&str]) -> Claims {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Claims {
        subject: "p".to_owned(),
        role,
        tenant: None,
        source: source.map(str::to_owned),
        nodes: list(nodes),
        pools: list(pools),
    }
}

fn event(source: &str, kind: &str, data: Value) -> Event {
    let event = json!({
        "specversion": "1.0", "id": "1", "source": source, "type": format!("gpuledger.{kind}.v1"),
        "time": "2026-10-01T00:00:00Z", "data": data,
    });
    decode_structured(event.to_string().as_bytes()).unwrap()
}

/// One event of each type an outsider may send, from `source`.
fn all(source: &str) -> Vec<Event> {
    let gpu = "GPU-1";
    let window = json!({"node": "n1", "boot_id": "b", "stream": "s", "sequence": 1,
        "start": "2026-10-01T00:00:00Z", "end": "2026-10-01T00:00:10Z", "units": [], "processes": [], "gaps": []});
    let grant = json!({"allocation": "a", "tenant": "t", "units": [{"sku": "gpu", "count": 1}], "mode": "exclusive",
        "class": "on_demand"});
    let scrub = json!({"scrub": "s", "gpu": gpu, "started_at": "2026-10-01T00:00:00Z", "result": "passed", "class": "clear",
        "steps": [], "tool": {"name": "t", "version": "1", "digest": "d"}, "platform": {"driver": "1"},
        "coverage": {"bytes_total": 1, "bytes_covered": 1, "bytes_reserved": 0},
        "verification": {"method": "full", "bytes_read": 1, "mismatches": 0}, "operator": "o"});
    let times = ("2026-10-01T00:00:00Z", "2026-10-01T01:00:00Z");
    [
        ("node.inventory", json!({"node": "n1", "boot_id": "b", "gpus": []})),
        ("telemetry.window", window),
        ("unit.state", json!({"gpu": gpu, "state": "ok"})),
        ("scrub.started", json!({"scrub": "s", "gpu": gpu})),
        ("scrub.finished", scrub),
        ("allocation.placed", json!({"allocation": "a", "units": [{"gpu": gpu}]})),
        ("allocation.granted", grant),
        ("allocation.state", json!({"allocation": "a", "state": "ready"})),
        ("allocation.transferred", json!({"allocation": "a", "tenant": "t"})),
        ("allocation.released", json!({"allocation": "a"})),
        ("allocation.snapshot", json!({"scope": {"nodes": ["n1"]}, "allocations": []})),
        ("signal.acknowledged", json!({"signal": "s", "outcome": "accepted"})),
        ("work.reported", json!({"pool": "chat", "tenant": "t", "start": times.0, "end": times.1})),
        ("usage.reported", json!({"tenant": "t", "sku": "s", "quantity": "1", "unit": "u", "start": times.0, "end": times.1})),
        ("node.decommissioned", json!({"node": "n1"})),
        ("quarantine.released", json!({"gpu": gpu, "approver": "a", "reason": "r"})),
        ("charge.recorded", json!({"tenant": "t", "description": "d", "amount": "1.00", "currency": "EUR"})),
        ("dispute.resolved", json!({"allocation": "a", "outcome": "o", "reason": "r", "approver": "a"})),
    ]
    .into_iter()
    .map(|(kind, data)| event(source, kind, data))
    .collect()
}

fn allowed(claims: &Claims, source: &str) -> Vec<String> {
    let fine = all(source).into_iter().filter(|event| refusal(claims, event).is_none());
    fine.map(|event| event.type_name().trim_start_matches("gpuledger.").trim_end_matches(".v1").to_owned())
        .collect()
}

#[test]
fn each_role_speaks_of_its_own() {
    let node = claims(Role::Node, Some("/nodes/n1"), &["n1"], &[]);
    let of_node = [
        "node.inventory",
        "telemetry.window",
        "unit.state",
        "scrub.started",
        "scrub.finished",
        "allocation.placed",
    ];
    assert_eq!(allowed(&node, "/nodes/n1/collector"), of_node);

    let allocator = claims(Role::Allocator, Some("/allocators/slurm"), &["n1"], &[]);
    let of_allocator = [
        "unit.state",
        "scrub.started",
        "scrub.finished",
        "allocation.placed",
        "allocation.granted",
        "allocation.state",
        "allocation.transferred",
        "allocation.released",
        "allocation.snapshot",
        "signal.acknowledged",
    ];
    assert_eq!(allowed(&allocator, "/allocators/slurm"), of_allocator);

    let gateway = claims(Role::Gateway, Some("/gateways/g"), &[], &["chat"]);
    assert_eq!(allowed(&gateway, "/gateways/g"), ["work.reported", "usage.reported"]);

    let platform = claims(Role::Platform, Some("/platform"), &[], &[]);
    let of_platform = [
        "usage.reported",
        "node.decommissioned",
        "quarantine.released",
        "charge.recorded",
        "dispute.resolved",
    ];
    assert_eq!(allowed(&platform, "/platform"), of_platform);

    assert_eq!(allowed(&claims(Role::Admin, None, &[], &[]), "/anything").len(), all("/a").len());
    for role in [Role::Tenant, Role::Finance, Role::Auditor] {
        assert!(allowed(&claims(role, Some("/x"), &["*"], &["*"]), "/x").is_empty(), "{role}");
    }
}

#[test]
fn a_source_is_bound_at_the_edge_of_a_segment() {
    let node = claims(Role::Node, Some("/nodes/n1"), &["n1"], &[]);
    assert!(allowed(&node, "/nodes/n11/collector").is_empty());
    assert!(allowed(&node, "/nodes").is_empty());
    assert!(allowed(&node, "/allocators/nodes/n1").is_empty());
    assert!(!allowed(&node, "/nodes/n1").is_empty());
    let slash = claims(Role::Node, Some("/nodes/n1/"), &["n1"], &[]);
    assert!(!allowed(&slash, "/nodes/n1/collector").is_empty() && allowed(&slash, "/nodes/n12").is_empty());
    assert!(allowed(&claims(Role::Node, None, &["n1"], &[]), "/nodes/n1").is_empty(), "no source, no word");
    assert!(
        allowed(&claims(Role::Admin, Some("/admin"), &[], &[]), "/nodes/n1").is_empty(),
        "a claim narrows an admin too"
    );
}

#[test]
fn an_empty_claim_covers_nothing_and_a_star_everything() {
    let source = "/nodes/n1";
    assert!(allowed(&claims(Role::Node, Some(source), &[], &[]), source).is_empty());
    let other = allowed(&claims(Role::Node, Some(source), &["n2"], &[]), source);
    assert!(
        !other.contains(&"node.inventory".to_owned()) && !other.contains(&"telemetry.window".to_owned()),
        "{other:?}"
    );
    assert_eq!(allowed(&claims(Role::Node, Some(source), &["*"], &[]), source).len(), 6);
    assert!(allowed(&claims(Role::Allocator, Some("/a"), &[], &[]), "/a").is_empty());
    let scoped = allowed(&claims(Role::Allocator, Some("/a"), &["n2"], &[]), "/a");
    assert!(!scoped.contains(&"allocation.snapshot".to_owned()), "{scoped:?}");
    assert_eq!(allowed(&claims(Role::Gateway, Some("/g"), &[], &["other"]), "/g"), ["usage.reported"]);
}

#[test]
fn the_claim_on_nodes_goes_along_where_it_binds() {
    let nodes = |role, names: &[&str]| speaker(&claims(role, Some("/x"), names, &[])).nodes;
    assert_eq!(nodes(Role::Node, &["n1"]), Some(vec!["n1".to_owned()]));
    assert_eq!(nodes(Role::Allocator, &["n1", "n2"]), Some(vec!["n1".to_owned(), "n2".to_owned()]));
    assert_eq!(nodes(Role::Allocator, &["*"]), None);
    assert_eq!(nodes(Role::Admin, &[]), None);
}

//! Joins of both witnesses, over time.

use super::*;
use crate::pods::{DeviceId, Given, Life, Pod};
use crate::process::{Belonging, JobName, Owner, ProcessId, SlurmJob};
use gpuledger_nvml::{Identity, MigInstance, Placement as Slices};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn at(seconds: u64) -> Stamp {
    let real = i64::try_from(seconds * SECOND).unwrap();
    Stamp { monotonic_us: seconds * SECOND, real: Instant::from_micros(real) }
}

fn identity(index: u32, minor: u32) -> Identity {
    Identity {
        uuid: format!("GPU-{index}"),
        index,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        pci_bus_id: String::new(),
        minor: Some(minor),
        compute_capability: None,
    }
}

fn mig(
    index: u32,
    gpu_instance: u32,
    compute_instance: u32,
    start: u32,
    compute_profile: Option<&str>,
) -> MigInstance {
    MigInstance {
        index,
        uuid: format!("MIG-{gpu_instance}-{compute_instance}"),
        gpu_instance,
        compute_instance,
        profile: Ok("3g.40gb".to_owned()),
        compute_profile: compute_profile.map(str::to_owned),
        placement: Ok(Slices { start, size: 4 }),
        compute_slices: Ok(3),
        multiprocessors: Ok(60),
        memory_bytes: Ok(1),
    }
}

/// GPU 0 whole, GPU 1 with three MIG devices, two of them in one GPU instance, GPU 2 and 3 with exchanged device files.
struct Node {
    identities: Vec<Identity>,
    instances: Vec<MigInstance>,
}

impl Node {
    fn new() -> Self {
        let identities = vec![identity(0, 0), identity(1, 1), identity(2, 3), identity(3, 2)];
        let part = Some("1c.3g.40gb");
        Self {
            identities,
            instances: vec![mig(0, 1, 0, 0, part), mig(1, 1, 1, 0, part), mig(4, 2, 0, 4, None)],
        }
    }

    fn devices(&self) -> Vec<NodeDevice<'_>> {
        let of = |identity: &Identity| if identity.index == 1 { self.instances.as_slice() } else { &[] };
        self.identities.iter().map(|identity| NodeDevice { identity, instances: of(identity) }).collect()
    }
}

/// A placer on a node, with what it is shown.
struct Scene {
    node: Node,
    placer: Placer,
}

type On = (u32, &'static str, Option<(u32, u32)>, Owner);

impl Scene {
    fn new(rules: Rules) -> Self {
        Self { node: Node::new(), placer: Placer::new(rules) }
    }

    fn show(
        &mut self,
        seconds: u64,
        processes: &[On],
        listing: Option<&Listing>,
    ) -> (Vec<Value>, Vec<String>) {
        let sightings: Vec<Sighting<'_>> = processes
            .iter()
            .map(|(pid, gpu, instance, owner)| Sighting {
                gpu,
                gpu_instance: instance.map(|(gi, _)| gi),
                compute_instance: instance.map(|(_, ci)| ci),
                process: ProcessId { pid: *pid, started_at: Instant::from_micros(1) },
                owner,
            })
            .collect();
        let outcome = self.placer.observe(at(seconds), &self.node.devices(), &sightings, listing);
        let said = outcome.placed.iter().map(|placement| {
            let mut body = serde_json::to_value(&placement.body).unwrap();
            body["at"] = json!(placement.at.as_micros() / 1_000_000);
            body
        });
        (said.collect(), outcome.disagreements.iter().map(ToString::to_string).collect())
    }

    fn said(&mut self, seconds: u64, processes: &[On], listing: Option<&Listing>) -> Vec<Value> {
        let (said, disagreements) = self.show(seconds, processes, listing);
        assert_eq!(disagreements, Vec::<String>::new());
        said
    }
}

fn of_pod(uid: &str) -> Owner {
    Owner::Known(Belonging { pod_uid: Some(name(uid)), ..Belonging::default() })
}

fn of_job(job: JobName, is_daemon: bool) -> Owner {
    Owner::Known(Belonging {
        slurm: Some(SlurmJob { name: job, step: None, is_daemon }),
        ..Belonging::default()
    })
}

fn job(number: &str) -> Owner {
    of_job(JobName::Number(name(number)), false)
}

fn pod(uid: Option<&str>, life: Life, ids: &[&str]) -> Pod {
    let given = ids.iter().map(|id| Given {
        container: "main".to_owned(),
        resource: "nvidia.com/gpu".to_owned(),
        text: (*id).to_owned(),
        id: DeviceId::of_plugin(id).or_else(|| DeviceId::of_claim(id)),
    });
    Pod {
        name: format!("ml/{}", uid.unwrap_or("nameless")),
        uid: uid.map(name),
        life,
        given: given.collect(),
    }
}

fn listing(seconds: u64, pods: Vec<Pod>) -> Listing {
    let replicas = [(crate::pods::Device::Gpu("GPU-0".to_owned()), 4)].into();
    Listing { asked: at(seconds), pods, replicas: Some(replicas) }
}

#[test]
fn a_job_is_said_once_with_all_its_devices_when_they_have_settled() {
    let mut scene = Scene::new(Rules::default());
    assert_eq!(scene.said(0, &[(1, "GPU-0", None, job("42"))], None), Vec::<Value>::new());
    let both = [(1, "GPU-0", None, job("42")), (2, "GPU-2", None, job("42"))];
    assert_eq!(scene.said(1, &both, None), Vec::<Value>::new());
    let fact =
        json!({"at": 3, "runtime": {"slurm_job": "42"}, "units": [{"gpu": "GPU-0"}, {"gpu": "GPU-2"}]});
    assert_eq!(scene.said(3, &both, None), [fact]);
    for seconds in 4..100 {
        assert_eq!(scene.said(seconds, &both, None), Vec::<Value>::new());
    }
    let more = [(1, "GPU-0", None, job("42")), (3, "GPU-3", None, job("42"))];
    assert_eq!(scene.said(100, &more, None), Vec::<Value>::new());
    let fact =
        json!({"at": 103, "runtime": {"slurm_job": "42"}, "units": [{"gpu": "GPU-0"}, {"gpu": "GPU-3"}]});
    assert_eq!(scene.said(103, &more, None), [fact], "what it holds now");
}

#[test]
fn a_job_that_ends_early_is_said_at_the_instant_it_was_last_seen() {
    let mut scene = Scene::new(Rules::default());
    scene.said(5, &[(1, "GPU-0", None, job("42"))], None);
    let fact = json!({"at": 5, "runtime": {"slurm_job": "42"}, "units": [{"gpu": "GPU-0"}]});
    assert_eq!(scene.said(6, &[], None), [fact]);
    assert_eq!(scene.said(7, &[], None), Vec::<Value>::new());
}

#[test]
fn a_number_that_only_the_process_declares_counts_where_it_is_trusted() {
    let declared = || of_job(JobName::Declared(name("42")), false);
    let sluid =
        || of_job(JobName::Sluid { sluid: name("s5K1KKYAYG5D00"), declared: Some(name("43")) }, false);
    let daemon = || of_job(JobName::Number(name("44")), true);
    let all = [(1, "GPU-0", None, declared()), (2, "GPU-2", None, sluid()), (3, "GPU-3", None, daemon())];
    let jobs = |trust_declared_jobs| {
        let mut scene = Scene::new(Rules { settle_us: 0, trust_declared_jobs });
        let said = scene.said(0, &all, None);
        said.iter().map(|fact| fact["runtime"]["slurm_job"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(jobs(false), Vec::<String>::new());
    assert_eq!(jobs(true), ["42", "43"]);
}

const NOW: Rules = Rules { settle_us: 0, trust_declared_jobs: false };

#[test]
fn every_name_of_a_device_means_its_unit() {
    let mig2 = json!({"gpu": "GPU-1", "mig": {"uuid": "MIG-2-0", "profile": "3g.40gb", "placement": {"start": 4, "size": 4}}});
    let part = json!({"gpu": "GPU-1", "share": "1/3", "mig": {"uuid": "MIG-1-1", "profile": "1c.3g.40gb", "placement": {"start": 0, "size": 4}}});
    for (id, unit) in [
        ("GPU-0", json!({"gpu": "GPU-0"})),
        ("GPU-0::3", json!({"gpu": "GPU-0", "share": "1/4"})),
        ("MIG-2-0", mig2.clone()),
        ("MIG-2-0::1", mig2.clone()),
        ("MIG-1-1", part.clone()),
        ("nvidia3", json!({"gpu": "GPU-2"})),
        ("nvidia0/vgpu1", json!({"gpu": "GPU-0"})),
        ("nvidia1/gi2", mig2.clone()),
        ("2", json!({"gpu": "GPU-2"})),
        ("1:4", mig2.clone()),
        ("1:1", part),
        ("gpu-0", json!({"gpu": "GPU-0"})),
        ("gpu-1-mig-9-4-4", mig2.clone()),
        ("gpu-1-mig-3g40gb-9-4", mig2),
    ] {
        let mut scene = Scene::new(NOW);
        let said = scene.said(0, &[], Some(&listing(0, vec![pod(Some("u1"), Life::Alive, &[id])])));
        assert_eq!(said, [json!({"at": 0, "runtime": {"pod_uid": "u1"}, "units": [unit]})], "{id}");
    }
}

#[test]
fn a_device_that_cannot_be_told_is_named_and_not_guessed() {
    for (id, why) in [
        ("GPU-9", "is no device of this node now"),
        ("MIG-9", "is no device of this node now"),
        ("1:2", "is no device of this node now"),
        ("nvidia1/gi1", "may mean several devices of this node"),
        ("gpu-2", "may mean several devices of this node"),
        ("gpu-1-mig-9-0-4", "may mean several devices of this node"),
        ("gpu-1-mig-1g10gb-19-0", "is no device of this node now"),
        ("strange/1", "is written in no known form"),
    ] {
        let mut scene = Scene::new(NOW);
        let pods = vec![pod(Some("u1"), Life::Alive, &[id])];
        let said = scene.said(0, &[(1, "GPU-3", None, of_pod("u1"))], Some(&listing(0, pods)));
        assert_eq!(said, Vec::<Value>::new(), "{id}: nothing is said for or against the pod");
        let unplaceable: Vec<String> = scene.placer.unplaceable().map(ToString::to_string).collect();
        assert_eq!(unplaceable, [format!("device `{id}` (nvidia.com/gpu) of pod ml/u1 {why}")]);
    }
}

#[test]
fn replicas_of_one_device_add_up() {
    let mut scene = Scene::new(NOW);
    let pods = vec![
        pod(Some("u1"), Life::Alive, &["GPU-0::0", "GPU-0::1"]),
        pod(Some("u2"), Life::Alive, &["GPU-0::2"]),
    ];
    let said = scene.said(0, &[], Some(&listing(0, pods)));
    let unit = |share| json!([{"gpu": "GPU-0", "share": share}]);
    assert_eq!((&said[0]["units"], &said[1]["units"]), (&unit("1/2"), &unit("1/4")));
}

#[test]
fn a_finished_pod_that_is_still_listed_is_not_placed() {
    let mut scene = Scene::new(NOW);
    let pods = vec![pod(Some("old"), Life::Ended, &["GPU-0"]), pod(Some("new"), Life::Alive, &["GPU-0"])];
    let said = scene.said(0, &[(1, "GPU-0", None, of_pod("new"))], Some(&listing(0, pods)));
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["runtime"]["pod_uid"], "new");
}

#[test]
fn a_pod_is_placed_where_it_was_put_used_or_not() {
    let mut scene = Scene::new(NOW);
    let pods = listing(0, vec![pod(Some("u1"), Life::Alive, &["GPU-0", "GPU-2"])]);
    let said = scene.said(0, &[(1, "GPU-0", None, of_pod("u1"))], Some(&pods));
    assert_eq!(said[0]["units"], json!([{"gpu": "GPU-0"}, {"gpu": "GPU-2"}]));
    assert_eq!(scene.said(1, &[], Some(&pods)), Vec::<Value>::new());
}

#[test]
fn a_process_on_a_device_its_pod_was_not_given_is_a_disagreement_and_places_nothing() {
    let mut scene = Scene::new(NOW);
    let pods = |seconds| {
        let pods = vec![pod(Some("u1"), Life::Alive, &["GPU-0"]), pod(Some("u2"), Life::Alive, &["GPU-2"])];
        listing(seconds, pods)
    };
    scene.said(0, &[], Some(&pods(0)));
    let intruder = [(7, "GPU-2", None, of_pod("u1"))];
    assert_eq!(
        scene.show(5, &intruder, Some(&pods(0))),
        (vec![], vec![]),
        "the list is older than the process"
    );
    let (said, disagreements) = scene.show(10, &intruder, Some(&pods(10)));
    assert_eq!(said, Vec::<Value>::new());
    let text = "process 7 of pod u1 works on GPU-2, which the kubelet gave to ml/u2; the pod was given GPU-0";
    assert_eq!(disagreements, [text]);
    assert_eq!(scene.show(20, &intruder, Some(&pods(20))), (vec![], vec![]), "it is said once");
    assert_eq!(scene.placer.disagreements().map(|d| d.since).collect::<Vec<_>>(), [at(10).real], "and lasts");
    scene.said(30, &[], Some(&pods(30)));
    assert_eq!(scene.placer.disagreements().count(), 0);
}

#[test]
fn a_pod_that_was_given_nothing_has_no_business_on_a_device() {
    let mut scene = Scene::new(NOW);
    let (said, disagreements) = scene.show(0, &[(7, "GPU-3", None, of_pod("u9"))], Some(&listing(0, vec![])));
    assert_eq!(said, Vec::<Value>::new());
    let text =
        "process 7 of pod u9 works on GPU-3, which the kubelet gave to nobody; the pod was given nothing";
    assert_eq!(disagreements, [text]);
}

#[test]
fn on_instances_of_one_device_each_pod_keeps_to_its_own() {
    let mut scene = Scene::new(NOW);
    let pods = vec![pod(Some("u1"), Life::Alive, &["MIG-1-0"]), pod(Some("u2"), Life::Alive, &["GPU-1"])];
    let processes = [
        (1, "GPU-1", Some((1, 0)), of_pod("u1")),
        (2, "GPU-1", Some((1, 1)), of_pod("u1")),
        (3, "GPU-1", Some((2, 0)), of_pod("u2")),
        (4, "GPU-1", None, of_pod("u1")),
        (5, "GPU-1", Some((9, 0)), of_pod("u1")),
    ];
    let (_, disagreements) = scene.show(0, &processes, Some(&listing(0, pods)));
    let text = "process 2 of pod u1 works on MIG-1-1 of GPU-1, which the kubelet gave to ml/u2; the pod was given MIG-1-0 of GPU-1";
    assert_eq!(
        disagreements,
        [text],
        "whole device given: any instance; rows without a live instance: no judgement"
    );
}

#[test]
fn a_pod_without_a_known_uid_is_found_by_its_processes() {
    let mut scene = Scene::new(NOW);
    let pods = || vec![pod(None, Life::Untold, &["GPU-0"]), pod(Some("u2"), Life::Alive, &["GPU-2"])];
    let placed =
        |said: &[Value]| said.iter().map(|fact| fact["runtime"]["pod_uid"].clone()).collect::<Vec<_>>();
    assert_eq!(placed(&scene.said(0, &[], Some(&listing(0, pods())))), ["u2"]);
    let said = scene.said(1, &[(1, "GPU-0", None, of_pod("u1"))], Some(&listing(1, pods())));
    assert_eq!(said, [json!({"at": 1, "runtime": {"pod_uid": "u1"}, "units": [{"gpu": "GPU-0"}]})]);
}

#[test]
fn without_a_kubelet_processes_place_their_pods() {
    let mut scene = Scene::new(NOW);
    let said = scene.said(
        0,
        &[(1, "GPU-1", Some((2, 0)), of_pod("u1")), (2, "GPU-0", None, Owner::Known(Belonging::default()))],
        None,
    );
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["units"][0]["mig"]["uuid"], "MIG-2-0");
}

#[test]
fn an_instance_made_anew_elsewhere_is_another_unit() {
    let mut scene = Scene::new(NOW);
    let process = [(1, "GPU-1", Some((2, 0)), job("42"))];
    assert_eq!(scene.said(0, &process, None).len(), 1);
    scene.node.instances[2].placement = Ok(Slices { start: 0, size: 4 });
    let said = scene.said(1, &process, None);
    assert_eq!(said[0]["units"][0]["mig"]["placement"], json!({"start": 0, "size": 4}));
    assert_eq!(said[0]["units"].as_array().unwrap().len(), 1);
}

/// Who stands at which unit: `GPU-1/2 ml/u1 main`.
fn holders(pods: Vec<Pod>) -> Vec<String> {
    let holders = sole_holders(&listing(0, pods), &Node::new().devices());
    let place = |(gpu, instance): (String, Option<u32>)| {
        instance.map_or_else(|| gpu.clone(), |instance| format!("{gpu}/{instance}"))
    };
    let line = |(at, of): (_, crate::metrics::Holder)| {
        format!("{} {}/{} {}", place(at), of.namespace, of.pod, of.container)
    };
    holders.into_iter().map(line).collect()
}

fn alive(uid: &str, ids: &[&str]) -> Pod {
    pod(Some(uid), Life::Alive, ids)
}

#[test]
fn a_unit_has_a_holder_where_exactly_one_pod_was_given_it() {
    let found = holders(vec![
        alive("u1", &["GPU-0", "MIG-2-0"]),
        alive("u2", &["GPU-2::0", "GPU-2::1"]),
        pod(None, Life::Untold, &["GPU-3"]),
        pod(Some("old"), Life::Ended, &["GPU-0"]),
        alive("u3", &["GPU-9"]),
    ]);
    assert_eq!(
        found,
        ["GPU-0 ml/u1 main", "GPU-1/2 ml/u1 main", "GPU-2 ml/u2 main", "GPU-3 ml/nameless main"],
        "of GPU-1 as a whole nobody"
    );
}

#[test]
fn what_several_pods_were_given_has_no_holder() {
    assert_eq!(holders(vec![alive("u1", &["GPU-0::0"]), alive("u2", &["GPU-0::1"])]), Vec::<String>::new());
    let compute_instances = vec![alive("u1", &["MIG-1-0"]), alive("u2", &["MIG-1-1"])];
    assert_eq!(
        holders(compute_instances),
        Vec::<String>::new(),
        "they share the values of their GPU instance"
    );
    let both = vec![alive("u1", &["GPU-1"]), alive("u2", &["MIG-2-0"])];
    assert_eq!(holders(both), ["GPU-1/1 ml/u1 main"], "the whole GPU is not u1's alone");
}

#[test]
fn a_whole_gpu_is_held_with_its_instances() {
    assert_eq!(
        holders(vec![alive("u1", &["GPU-1"])]),
        ["GPU-1 ml/u1 main", "GPU-1/1 ml/u1 main", "GPU-1/2 ml/u1 main"]
    );
}

#[test]
fn several_containers_of_one_pod_leave_the_pod() {
    let mut shared = alive("u1", &["GPU-0", "GPU-0"]);
    "side".clone_into(&mut shared.given[1].container);
    assert_eq!(holders(vec![shared]), ["GPU-0 ml/u1 "]);
}

#[test]
fn while_a_name_could_mean_any_device_nobody_is_the_only_one() {
    for strange in ["strange/1", "gpu-2"] {
        assert_eq!(holders(vec![alive("u1", &["GPU-0"]), alive("u2", &[strange])]), Vec::<String>::new());
    }
}

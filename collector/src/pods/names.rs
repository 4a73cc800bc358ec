//! From the name of a pod to its UID: the kubelet keeps the logs of each pod in a folder `NAMESPACE_NAME_UID`.

use gpuledger_wire::text::Name;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// UID by namespace and name.
pub(super) type Uids = BTreeMap<(String, String), Name>;

/// The UIDs of all pods with a log folder. A pod that was made anew under its name has two until the old one is cleaned up: the
/// folder that changed last is the present one's. Empty where the folder cannot be read.
pub(super) fn uids(logs: &Path) -> Uids {
    let mut latest: BTreeMap<(String, String), (SystemTime, Name)> = BTreeMap::new();
    for entry in fs::read_dir(logs).into_iter().flatten().flatten() {
        let Some((pod, uid)) = entry.file_name().to_str().and_then(split) else { continue };
        let Ok(changed) = entry.metadata().and_then(|about| about.modified()) else { continue };
        let found = (changed, uid);
        let best = latest.entry(pod).or_insert_with(|| found.clone());
        if *best < found {
            *best = found;
        }
    }
    latest.into_iter().map(|(pod, (_, uid))| (pod, uid)).collect()
}

/// Names of Kubernetes have no `_`.
fn split(folder: &str) -> Option<((String, String), Name)> {
    let mut parts = folder.split('_');
    let (namespace, name, uid) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(())?;
    Some(((namespace.to_owned(), name.to_owned()), Name::new(uid).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;
    use tempfile::TempDir;

    #[test]
    fn a_name_has_the_uid_of_its_folder_and_of_several_the_latest() {
        let dir = TempDir::new().unwrap();
        for (age, folder) in [
            (1, "ml_train-0_uid-old"),
            (9, "ml_train-0_uid-new"),
            (5, "ml_train-0_uid-mid"),
            (1, "kube-system_etcd-n1_0123"),
            (1, "stray"),
        ] {
            let path = dir.path().join(folder);
            fs::create_dir(&path).unwrap();
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(age);
            File::open(&path).unwrap().set_modified(changed).unwrap();
        }
        let uids = uids(dir.path());
        let uid = |namespace: &str, name: &str| {
            uids.get(&(namespace.to_owned(), name.to_owned())).map(Name::as_str)
        };
        assert_eq!(uid("ml", "train-0"), Some("uid-new"));
        assert_eq!(uid("kube-system", "etcd-n1"), Some("0123"));
        assert_eq!(uids.len(), 2);
    }

    #[test]
    fn without_the_folder_no_uid_is_known() {
        assert!(uids(Path::new("/nonexistent/pods")).is_empty());
    }
}

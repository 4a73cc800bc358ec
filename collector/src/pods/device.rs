//! How device plugins and drivers name devices.

/// A device as the kubelet names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    /// Which device.
    pub device: Device,
    /// Which of its replicas, where it is shared by time-slicing or MPS.
    pub replica: Option<u32>,
}

/// A device by one of its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// `GPU-…`.
    Gpu(String),
    /// `MIG-…`, by drivers before 470 `MIG-GPU-…/GI/CI`.
    Mig(String),
    /// `nvidia0`, `nvidia0/gi3`: the number of the device file, and NVML's id of the GPU instance.
    Minor {
        /// Number of `/dev/nvidiaN`.
        minor: u32,
        /// GPU instance.
        gpu_instance: Option<u32>,
    },
    /// `0`, `0:1`: places in NVML's lists of devices and of their MIG devices.
    Index {
        /// Place of the GPU.
        gpu: u32,
        /// Place of the MIG device.
        mig: Option<u32>,
    },
    /// Of a resource claim: `gpu-0`, `gpu-0-mig-19-2-1`. There is no UUID.
    Claimed(Claimed),
}

/// A device of a resource claim. Its number is that of the device file, in older drivers the place in NVML's list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claimed {
    /// `gpu-N`.
    Gpu(u32),
    /// `gpu-N-mig-PROFILEID-START-SIZE`.
    MigPlaced {
        /// Number of the GPU.
        gpu: u32,
        /// First memory slice.
        start: u32,
        /// Number of memory slices.
        size: u32,
    },
    /// `gpu-N-mig-3g40gb-PROFILEID-START`: the profile is written without its dot.
    MigNamed {
        /// Number of the GPU.
        gpu: u32,
        /// Profile without the dot.
        profile: String,
        /// First memory slice.
        start: u32,
    },
}

impl DeviceId {
    /// Reads the id a device plugin gave. None: no form that is known.
    pub fn of_plugin(id: &str) -> Option<Self> {
        if let Some((device, replica)) = id.split_once("::") {
            return Some(Self { device: plain(device)?, replica: Some(number(replica)?) });
        }
        if let Some((device, replica)) = id.rsplit_once("/vgpu") {
            return Some(Self { device: plain(device)?, replica: Some(number(replica)?) });
        }
        Some(Self { device: plain(id)?, replica: None })
    }

    /// Reads the name of a device of a resource claim.
    pub fn of_claim(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.strip_prefix("gpu-")?.split('-').collect();
        let claimed = match parts.as_slice() {
            [gpu] => Claimed::Gpu(number(gpu)?),
            [gpu, "mig", profile, start, size] if number(profile).is_some() => {
                Claimed::MigPlaced { gpu: number(gpu)?, start: number(start)?, size: number(size)? }
            }
            [gpu, "mig", profile @ .., _, start] if !profile.is_empty() => {
                Claimed::MigNamed { gpu: number(gpu)?, profile: profile.join("-"), start: number(start)? }
            }
            _ => return None,
        };
        Some(Self { device: Device::Claimed(claimed), replica: None })
    }
}

fn plain(id: &str) -> Option<Device> {
    if id.starts_with("GPU-") {
        return Some(Device::Gpu(id.to_owned()));
    }
    if id.starts_with("MIG-") {
        return Some(Device::Mig(id.to_owned()));
    }
    if let Some(file) = id.strip_prefix("nvidia") {
        let (minor, gpu_instance) = match file.split_once("/gi") {
            Some((minor, instance)) => (minor, Some(number(instance)?)),
            None => (file, None),
        };
        return Some(Device::Minor { minor: number(minor)?, gpu_instance });
    }
    let (gpu, mig) = match id.split_once(':') {
        Some((gpu, mig)) => (gpu, Some(number(mig)?)),
        None => (id, None),
    };
    Some(Device::Index { gpu: number(gpu)?, mig })
}

/// Digits only: no sign, as the standard reading would take.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(uuid: &str) -> Device {
        Device::Gpu(uuid.to_owned())
    }

    fn mig(uuid: &str) -> Device {
        Device::Mig(uuid.to_owned())
    }

    #[test]
    fn every_form_of_a_plugin_is_read() {
        let minor = |minor, gpu_instance| Device::Minor { minor, gpu_instance };
        let index = |gpu, mig| Device::Index { gpu, mig };
        for (id, device, replica) in [
            (
                "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76",
                gpu("GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76"),
                None,
            ),
            ("GPU-8dcd427f::3", gpu("GPU-8dcd427f"), Some(3)),
            ("MIG-c7384736", mig("MIG-c7384736"), None),
            ("MIG-c7384736::0", mig("MIG-c7384736"), Some(0)),
            ("MIG-GPU-8dcd427f/3/0", mig("MIG-GPU-8dcd427f/3/0"), None),
            ("nvidia0", minor(0, None), None),
            ("nvidia12/gi3", minor(12, Some(3)), None),
            ("nvidia0/vgpu2", minor(0, None), Some(2)),
            ("nvidia0/gi3/vgpu1", minor(0, Some(3)), Some(1)),
            ("3", index(3, None), None),
            ("0:1", index(0, Some(1)), None),
            ("0:1::2", index(0, Some(1)), Some(2)),
            ("3::1", index(3, None), Some(1)),
        ] {
            assert_eq!(DeviceId::of_plugin(id), Some(DeviceId { device, replica }), "{id}");
        }
        for id in [
            "",
            "nvidia",
            "nvidiactl",
            "nvidia0/gi",
            "nvidia0/vgpu",
            "mlx5_0",
            "0:",
            ":1",
            "-1",
            "+1",
            "GPU-x::y",
        ] {
            assert_eq!(DeviceId::of_plugin(id), None, "{id}");
        }
    }

    #[test]
    fn every_form_of_a_claim_is_read() {
        let named = |gpu, profile: &str, start| Claimed::MigNamed { gpu, profile: profile.to_owned(), start };
        for (name, claimed) in [
            ("gpu-0", Claimed::Gpu(0)),
            ("gpu-3-mig-19-2-1", Claimed::MigPlaced { gpu: 3, start: 2, size: 1 }),
            ("gpu-3-mig-4g95gb-5-0", named(3, "4g95gb", 0)),
            ("gpu-3-mig-1g24gb-me-20-6", named(3, "1g24gb-me", 6)),
        ] {
            let id = DeviceId { device: Device::Claimed(claimed), replica: None };
            assert_eq!(DeviceId::of_claim(name), Some(id), "{name}");
        }
        for name in ["", "gpu-", "gpu-x", "gpu-vfio-0", "channel-0", "gpu-0-mig", "gpu-0-mig-19"] {
            assert_eq!(DeviceId::of_claim(name), None, "{name}");
        }
    }
}

//! Opening devices, each in a lane of its own: one that hangs keeps the others from nothing.

use crate::lanes::{Answer, Lane};
use gpuledger_nvml::{Absent, Driver, Gpu, Identity, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long devices may take to be opened at first: the first call to one initialises it, where nothing keeps the driver awake.
pub(crate) const OPEN_DEADLINE: Duration = Duration::from_secs(30);

/// A device that was opened and tells its name, or why not.
type Device = Reading<(Identity, Box<dyn Gpu>)>;

/// A place in the list of devices.
pub(crate) struct Opened {
    /// Its index.
    pub(crate) index: u32,
    /// The device, if it can be opened and tells its name.
    pub(crate) device: Device,
}

/// Devices that are being opened.
#[derive(Default)]
pub(crate) struct Opening {
    /// Those that have not come back yet, by index: at most one thread each, however often they are asked for.
    under_way: BTreeMap<u32, Lane<(), Device>>,
}

impl Opening {
    /// Opens the first `count` devices. One that takes longer than the deadline is [`Absent::TimedOut`], and its answer is taken up with the
    /// next call.
    pub(crate) fn all(&mut self, driver: &Arc<dyn Driver>, count: u32, deadline: Duration) -> Vec<Opened> {
        for index in 0..count {
            self.begin(driver, index);
        }
        let until = Instant::now() + deadline;
        (0..count).map(|index| Opened { index, device: self.answer(index, until) }).collect()
    }

    fn begin(&mut self, driver: &Arc<dyn Driver>, index: u32) {
        if self.under_way.contains_key(&index) {
            return;
        }
        let driver = Arc::clone(driver);
        match Lane::start(&format!("open-{index}"), move |()| open(&*driver, index)) {
            Ok(mut lane) => {
                lane.order(());
                self.under_way.insert(index, lane);
            }
            Err(error) => tracing::error!(index, %error, "no thread can be started to open a device"),
        }
    }

    fn answer(&mut self, index: u32, until: Instant) -> Device {
        let answer = self.under_way.get_mut(&index).map(|lane| lane.answer(until));
        if let Some(Answer::Late(_)) = answer {
            return Err(Absent::TimedOut);
        }
        self.under_way.remove(&index);
        match answer {
            Some(Answer::Done(device)) => device,
            // It panicked, or there was no thread for it.
            Some(_) | None => Err(Absent::Unknown),
        }
    }
}

fn open(driver: &dyn Driver, index: u32) -> Device {
    let gpu = driver.gpu(index)?;
    Ok((gpu.identity()?, gpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::tests::world::{Script, World};
    use gpuledger_nvml::{DeviceEvent, Versions};
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Two devices, of which the second waits for the gate.
    struct Node {
        world: World,
        gate: Mutex<Receiver<()>>,
    }

    fn node() -> (Arc<dyn Driver>, Sender<()>) {
        let (open, gate) = channel();
        (Arc::new(Node { world: World::new(Script::default()), gate: Mutex::new(gate) }), open)
    }

    impl Driver for Node {
        fn versions(&self) -> Reading<Versions> {
            Err(Absent::NotSupported)
        }

        fn gpu_count(&self) -> Reading<u32> {
            Ok(2)
        }

        fn gpu(&self, index: u32) -> Reading<Box<dyn Gpu>> {
            if index == 1 {
                self.gate.lock().unwrap().recv().map_err(|_| Absent::Lost)?;
            }
            Ok(Box::new(self.world.gpu()))
        }

        fn next_event(&self, _: Duration) -> Reading<Option<DeviceEvent>> {
            Ok(None)
        }
    }

    fn errors(opened: &[Opened]) -> Vec<Option<Absent>> {
        opened.iter().map(|opened| opened.device.as_ref().err().copied()).collect()
    }

    #[test]
    fn a_device_that_hangs_is_named_and_taken_up_when_it_comes_back() {
        let (driver, gate) = node();
        let mut opening = Opening::default();
        let short = Duration::from_millis(500);
        for _ in 0..2 {
            let late = opening.all(&driver, 2, short);
            assert_eq!(errors(&late), [None, Some(Absent::TimedOut)]);
            assert_eq!(opening.under_way.len(), 1, "no second thread for the same device");
        }
        // One permission is enough: it was asked once.
        gate.send(()).unwrap();
        assert_eq!(errors(&opening.all(&driver, 2, Duration::from_secs(10))), [None, None]);
        assert!(opening.under_way.is_empty());
    }

    #[test]
    fn a_device_that_cannot_be_opened_says_why() {
        let (driver, gate) = node();
        drop(gate);
        let opened = Opening::default().all(&driver, 2, Duration::from_secs(10));
        assert_eq!(errors(&opened), [None, Some(Absent::Lost)]);
    }
}

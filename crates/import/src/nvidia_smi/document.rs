//! The XML of a capture, reduced to the fields an inventory needs. Elements are told by their path, so that fields other
//! schema versions add or move (v12, v13) do no harm.

use super::counted::Counted;
use crate::report::shown;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::collections::BTreeMap;
use std::io::BufRead;

const ROOT: &str = "nvidia_smi_log";
/// Deeper nesting than any schema has.
const MOST_DEPTH: usize = 32;
/// Longer than any field that is read, in bytes.
const MOST_TEXT: usize = 4096;
const GPU_FIELDS: [&str; 4] = ["product_name", "uuid", "mig_mode/current_mig", "fb_memory_usage/total"];
const MIG_FIELDS: [&str; 6] = [
    "uuid",
    "gpu_instance_id",
    "compute_instance_id",
    "device_attributes/shared/multiprocessor_count",
    "device_attributes/shared/ofa_count",
    "fb_memory_usage/total",
];

/// One capture.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) line: u64,
    pub(super) timestamp: Option<String>,
    pub(super) attached: Option<String>,
    pub(super) gpus: Vec<Element>,
}

/// A GPU with its MIG devices, or a MIG device.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) line: u64,
    /// The bus address, of a GPU.
    pub(super) id: Option<String>,
    fields: BTreeMap<&'static str, String>,
    pub(super) instances: Vec<Element>,
}

impl Element {
    /// The field at this path; none where it is absent, empty or not available.
    pub(super) fn get(&self, path: &str) -> Option<&str> {
        let text = self.fields.get(path)?.as_str();
        let absent =
            ["", "N/A", "[N/A]", "None", "ERR!", "Unknown Error", "[Unknown Error]", "[GPU is lost]"];
        (!absent.contains(&text)).then_some(text)
    }

    /// The whole number at this path.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.get(path)?.parse().ok()
    }

    /// The size at this path in MiB.
    pub(super) fn mib(&self, path: &str) -> Option<u64> {
        self.get(path)?.strip_suffix(" MiB")?.parse().ok().filter(|mib| *mib > 0)
    }
}

/// Why a capture cannot be read.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: u64,
    pub(super) message: String,
}

/// The captures of a file.
pub(super) struct Documents<R: BufRead> {
    reader: Reader<Counted<R>>,
    path: Vec<String>,
    text: String,
}

impl<R: BufRead> Documents<R> {
    pub(super) fn new(input: R) -> Self {
        Self { reader: Reader::from_reader(Counted::new(input)), path: Vec::new(), text: String::new() }
    }

    /// Bytes read so far.
    pub(super) fn bytes(&mut self) -> u64 {
        self.reader.get_mut().bytes
    }

    fn line(&mut self) -> u64 {
        self.reader.get_mut().lines
    }

    fn fault(&mut self, message: impl Into<String>) -> Fault {
        Fault { line: self.line(), message: message.into() }
    }

    /// The next capture; none at the end of the file.
    pub(super) fn next_document(&mut self) -> Result<Option<Document>, Fault> {
        let mut document = Document::default();
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let line = self.line();
            let event = match self.reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(e) => {
                    return Err(
                        self.fault(format!("no well-formed XML: {e}; the file is cut off or damaged"))
                    );
                }
            };
            match event {
                Event::Eof if self.path.is_empty() => return Ok(None),
                Event::Eof => {
                    let open = self.path.join("/");
                    return Err(self.fault(format!("the file ends inside {open}; it is cut off")));
                }
                Event::Start(start) => self.open(&start, line, &mut document)?,
                Event::Empty(start) => {
                    self.open(&start, line, &mut document)?;
                    self.close(&mut document);
                }
                Event::End(_) => {
                    self.close(&mut document);
                    if self.path.is_empty() {
                        return Ok(Some(document));
                    }
                }
                Event::Text(text) => self.add(&text),
                Event::CData(text) => self.add(&text),
                Event::GeneralRef(reference) => self.reference(&reference)?,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn open(&mut self, start: &BytesStart<'_>, line: u64, document: &mut Document) -> Result<(), Fault> {
        let name = start.name().into_inner().to_owned();
        if self.path.is_empty() && name != ROOT {
            let message =
                format!("the file is {}; expected {ROOT}, the output of `nvidia-smi -q -x`", shown(&name));
            return Err(self.fault(message));
        }
        if self.path.is_empty() {
            document.line = line;
        }
        if self.path.len() == MOST_DEPTH {
            return Err(self.fault(format!("elements are nested more than {MOST_DEPTH} deep")));
        }
        self.path.push(name);
        self.text.clear();
        match self.inside().as_slice() {
            ["gpu"] => {
                let id = start.try_get_attribute("id").ok().flatten().map(|a| a.value.into_owned());
                document.gpus.push(Element { line, id, ..Element::default() });
            }
            ["gpu", "mig_devices", "mig_device"] => {
                if let Some(gpu) = document.gpus.last_mut() {
                    gpu.instances.push(Element { line, ..Element::default() });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The path below the root.
    fn inside(&self) -> Vec<&str> {
        self.path.iter().skip(1).map(String::as_str).collect()
    }

    fn add(&mut self, text: &str) {
        let room = MOST_TEXT.saturating_sub(self.text.len());
        self.text.extend(text.chars().take(room));
    }

    /// A character or one of XML's own names; captures define no others, and none is looked up.
    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), Fault> {
        let known = quick_xml::escape::resolve_predefined_entity(reference);
        match (known, reference.resolve_char_ref()) {
            (Some(text), _) => self.add(text),
            (None, Ok(Some(character))) => self.add(character.encode_utf8(&mut [0; 4])),
            (None, Ok(None) | Err(_)) => {
                let name: &str = reference;
                return Err(self.fault(format!("the entity {} is not one of XML's own", shown(name))));
            }
        }
        Ok(())
    }

    fn close(&mut self, document: &mut Document) {
        let text = self.text.trim().to_owned();
        self.text.clear();
        match self.inside().as_slice() {
            ["timestamp"] => document.timestamp = Some(text),
            ["attached_gpus"] => document.attached = Some(text),
            ["gpu", "mig_devices", "mig_device", below @ ..] => {
                let instance = document.gpus.last_mut().and_then(|gpu| gpu.instances.last_mut());
                keep(instance, &MIG_FIELDS, below, text);
            }
            ["gpu", below @ ..] => keep(document.gpus.last_mut(), &GPU_FIELDS, below, text),
            _ => {}
        }
        self.path.pop();
    }
}

/// Keeps the text where its path is one that is wanted; the first of several counts.
fn keep(element: Option<&mut Element>, wanted: &[&'static str], below: &[&str], text: String) {
    let path = below.join("/");
    if let (Some(element), Some(field)) = (element, wanted.iter().find(|field| **field == path)) {
        element.fields.entry(field).or_insert(text);
    }
}

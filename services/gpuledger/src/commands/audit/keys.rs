//! Keys of the log: where they lie, and new ones.

use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_audit::key;
use gpuledger_audit::signer::FileSigner;
use gpuledger_audit::socket::Signing;
use gpuledger_telemetry::terminal::{say, say_err};
use gpuledger_tlog::note::Verifier;
use gpuledger_trail::keys::{Seal, Secret};

/// Origin of a key that is made for development.
const DEVELOPMENT: &str = "gpuledger.invalid/development";

/// Makes the log's key and the file of its signed head, and prints the public key.
pub(crate) fn new(settings: &Settings, origin: &str) -> Result<Outcome> {
    let (signer, text) =
        key::generate(origin).map_err(|error| Usage(format!("--origin {origin:?}: {error}")))?;
    let verifier = signer.verifier().to_string();
    key::write_new(&settings.audit_key_file, &text)?;
    FileSigner::new(signer, &settings.audit_head_file).begin(&settings.audit_head_file)?;
    say(&verifier);
    say_err(&format!(
        "key in {}, signed head in {}: keep copies of the key, and never put an older head back",
        settings.audit_key_file.display(),
        settings.audit_head_file.display()
    ));
    Ok(Outcome::Done)
}

/// Makes the key that keys of subjects are sealed under.
pub(crate) fn new_kek(settings: &Settings) -> Result<Outcome> {
    let missing = || Usage("say by `audit_kek_file` where it is to lie".to_owned());
    let path = settings.audit_kek_file.as_deref().ok_or_else(missing)?;
    key::write_new(path, &format!("{}\n", Secret::random()?.to_text()))?;
    say_err(&format!("key-encryption key in {}: without it no commitment can be opened", path.display()));
    Ok(Outcome::Done)
}

/// What keys of subjects are sealed by.
pub(crate) fn seal(settings: &Settings) -> Result<Seal> {
    let Some(path) = &settings.audit_kek_file else { return Ok(Seal::default()) };
    let wrong = |why: String| Usage(format!("audit_kek_file {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Ok(Seal::new(Some(Secret::parse(&text).map_err(|error| wrong(error.to_string()))?)))
}

/// The log's public key.
pub(crate) fn verifier(settings: &Settings) -> Result<Verifier> {
    match &settings.audit_log_key {
        Some(text) => Ok(Verifier::parse(text).map_err(|error| Usage(format!("audit_log_key: {error}")))?),
        None => Ok(file_signer(settings)?.verifier().clone()),
    }
}

/// The signer of the key file.
pub(crate) fn file_signer(settings: &Settings) -> Result<FileSigner> {
    let key =
        key::read(&settings.audit_key_file).map_err(|error| Usage(format!("audit_key_file: {error}")))?;
    Ok(FileSigner::new(key, &settings.audit_head_file))
}

/// The way to the signer. Where there is neither key nor head and nothing was published, a key is made, for development.
pub(crate) fn signing(settings: &Settings, is_published: bool) -> Result<Signing> {
    if let Some(path) = &settings.audit_signer_socket {
        let missing = || Usage("audit_signer_socket needs audit_log_key: the signer's public key".to_owned());
        settings.audit_log_key.as_ref().ok_or_else(missing)?;
        return Ok(Signing::Socket { path: path.clone(), log: verifier(settings)? });
    }
    let (has_key, has_head) = (settings.audit_key_file.exists(), settings.audit_head_file.exists());
    match (has_key, has_head) {
        (false, false) if !is_published => {
            say_err(
                "made a development key of the audit log; `gpuledger audit key new --origin ORIGIN` makes one to keep",
            );
            new(settings, DEVELOPMENT)?;
        }
        (false, _) => {
            let why = "is not there, but heads were signed with it: another key would be another log";
            return Err(Usage(format!("audit_key_file {} {why}", settings.audit_key_file.display())).into());
        }
        (true, _) => {}
    }
    Ok(Signing::File(file_signer(settings)?))
}

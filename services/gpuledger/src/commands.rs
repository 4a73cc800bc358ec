//! What each command does.

mod audit;
mod backup;
mod billing;
mod demo;
pub(crate) mod events;
mod export;
pub(crate) mod import;
mod maintain;
pub(crate) mod objects;
mod parked;
pub(crate) mod publish;
pub(crate) mod reports;
mod residue;
mod serve;
mod signals;
mod token;

use crate::cli::{Cli, Command, Export, Ledger, Signals};
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_storage::{Db, Role, connect};
use gpuledger_trail::personal::Marked;
use gpuledger_trail::sealed::{Terms, configure};

/// Runs one command.
pub(crate) async fn run(cli: Cli) -> Result<Outcome> {
    let settings = Settings::load()?;
    match cli.command {
        Command::Migrate => objects::migrate(&settings).await,
        Command::Apply { file } => objects::apply(&settings, &file).await,
        Command::Get { kind, id, output } => objects::get(&settings, &kind, id.as_deref(), &output).await,
        Command::Replay { files, archive, from, to, as_of, now } => {
            let archived = archive.map(|url| events::Archived { url, from, to });
            events::replay(&settings, &files, archived, as_of, now).await
        }
        Command::Maintain => maintain::run(&settings).await,
        Command::Export { what: Export::Events { facts_only, from, to } } => {
            export::events(&settings, !facts_only, from, to).await
        }
        Command::Usage(args) => reports::usage(&settings, args).await,
        Command::Ledger { what: Ledger::Balance { from, to, gpu, as_of, format } } => {
            reports::balance(&settings, from, to, gpu.as_deref(), as_of, format).await
        }
        Command::Ledger { what: Ledger::Verify { gpu, from } } => {
            reports::verify(&settings, &gpu, from).await
        }
        Command::Findings { as_of, format } => reports::findings(&settings, as_of, format).await,
        Command::Residue { what } => residue::run(&settings, what).await,
        Command::Signals { what: Signals::List { format } } => signals::list(&settings, &format).await,
        Command::Serve { only } => serve::run(&settings, &only).await,
        Command::Token(args) => token::run(&settings, args),
        Command::Import(args) => import::run(&args),
        Command::Publish { files, skip } => publish::run(&settings, &files, skip).await,
        Command::Backup { what } => backup::run(&settings, what).await,
        Command::Parked { what } => parked::run(&settings, what).await,
        Command::Period { what } => billing::period(&settings, what).await,
        Command::Invoice { what } => billing::invoice(&settings, what).await,
        Command::Why { line, format } => billing::why(&settings, &line, &format).await,
        Command::Audit { what } => audit::run(&settings, what).await,
        Command::Demo(args) => demo::run(args).await,
    }
}

/// The database in the ledger's role, with what personal fields are sealed by.
async fn writer(settings: &Settings) -> Result<Db> {
    let marked = Marked::Names(settings.personal_labels.iter().cloned().collect());
    let terms = Terms { seal: audit::keys::seal(settings)?, marked };
    let db = connect(settings.database_url()?, Role::Writer).await?;
    configure(&db, terms);
    Ok(db)
}

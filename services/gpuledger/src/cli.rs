//! The command line, as the contract has it.

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use gpuledger_domain::time::Instant;
use std::path::PathBuf;

/// Meters, bills and audits the tenants of a GPU cloud.
#[derive(Debug, Parser)]
#[command(name = "gpuledger", version, propagate_version = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database's schema up to date
    Migrate,
    /// Apply business objects from YAML files
    Apply {
        /// A file of YAML documents
        #[arg(short, long = "file", required = true)]
        file: Vec<PathBuf>,
    },
    /// Print business objects as YAML
    Get {
        /// Kind, such as Tenant
        kind: String,
        /// Id; all of the kind where none is given
        id: Option<String>,
        /// Format
        #[arg(short, long, default_value = "yaml", value_parser = ["yaml", "json"])]
        output: String,
    },
    /// Run the services until stopped
    Serve {
        /// Only these roles
        #[arg(long, value_delimiter = ',', value_parser = ["api", "ledger", "audit"])]
        only: Vec<String>,
    },
    /// Mint a development token
    Token(TokenArgs),
    /// Turn a public format into NDJSON events on standard output
    Import(ImportArgs),
    /// Send NDJSON events to Kafka
    Publish {
        /// NDJSON files; `-` for standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Events at the front that are read but not sent: where an earlier publication stopped
        #[arg(long, default_value_t = 0)]
        skip: u64,
    },
    /// Take NDJSON events straight into the ledger, without Kafka
    Replay {
        /// NDJSON files; `-` for standard input
        #[arg(required_unless_present = "archive")]
        files: Vec<PathBuf>,
        /// Take the telemetry of an archive first: a folder or bucket, as `archive_url` names it
        #[arg(long)]
        archive: Option<String>,
        /// Of the archive, only hours that begin at this time or later
        #[arg(long, value_parser = time, requires = "archive")]
        from: Option<Instant>,
        /// Of the archive, only hours that begin before this time
        #[arg(long, value_parser = time, requires = "archive")]
        to: Option<Instant>,
        /// Horizon of the ledger afterwards; default: the newest accepted event time
        #[arg(long, value_parser = time)]
        as_of: Option<Instant>,
        /// Time of acceptance; default: the clock
        #[arg(long, value_parser = time)]
        now: Option<Instant>,
    },
    /// Make partitions ahead, archive telemetry that is due, drop what the settings let go; `serve` does the same by itself
    Maintain,
    /// Print accepted facts
    Export {
        /// What to export
        #[command(subcommand)]
        what: Export,
    },
    /// Report usage
    Usage(UsageArgs),
    /// The balance sheet of the fleet
    Ledger {
        /// What to do
        #[command(subcommand)]
        what: Ledger,
    },
    /// What a person should look at
    Findings {
        /// Horizon; default: the ledger's
        #[arg(long, value_parser = time)]
        as_of: Option<Instant>,
        /// Format
        #[arg(long, default_value = "table")]
        format: Format,
    },
    /// Who held a memory slice last, and what was done about it
    Residue {
        /// What to do
        #[command(subcommand)]
        what: Residue,
    },
    /// Orders to allocators
    Signals {
        /// What to do
        #[command(subcommand)]
        what: Signals,
    },
    /// Events that were not applied
    Parked {
        /// What to do
        #[command(subcommand)]
        what: Parked,
    },
    /// A restored database, before it is served
    Backup {
        /// What to do
        #[command(subcommand)]
        what: Backup,
    },
    /// Billing periods
    Period {
        /// What to do
        #[command(subcommand)]
        what: Period,
    },
    /// Documents
    Invoice {
        /// What to do
        #[command(subcommand)]
        what: Invoice,
    },
    /// Explain an invoice line
    Why {
        /// Id of the line
        line: String,
        /// Format
        #[arg(long, default_value = "table", value_parser = ["table", "json"])]
        format: String,
    },
    /// The audit log: proofs, exports, keys
    Audit {
        /// What to do
        #[command(subcommand)]
        what: Audit,
    },
    /// The whole product on this machine, on a private Postgres
    Demo(DemoArgs),
}

/// The audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Verify an exported log, or one proof, offline: no database, no network; the exit code is the verdict
    #[command(group(ArgGroup::new("what").args(["folder", "bundle"]).required(true)))]
    Verify {
        /// Folder of an exported log
        folder: Option<PathBuf>,
        /// Or a proof file
        #[arg(long)]
        bundle: Option<PathBuf>,
        /// The log's public key, as you know it from elsewhere; a folder's own policy says only that it agrees with itself
        #[arg(long)]
        key: Option<String>,
        /// A tlog-policy instead, with key, witnesses and how many of them must have cosigned
        #[arg(long, requires = "folder", conflicts_with = "key")]
        policy: Option<PathBuf>,
        /// As the folder was exported: entries from this leaf on only; what leaves say is not looked at then
        #[arg(long, requires = "folder")]
        from: Option<u64>,
        /// As the folder was exported: entries before this leaf only
        #[arg(long, requires = "folder")]
        to: Option<u64>,
        /// The last checkpoint you have seen of this log: the export must extend it
        #[arg(long, requires = "folder")]
        last: Option<PathBuf>,
        /// Only what any verifier of the format checks: signature, tiles, root; not what the leaves say
        #[arg(long, requires = "folder")]
        hashes_only: bool,
    },
    /// Print the proof that a leaf stands in the log, with the leaf and what opens it
    #[command(group(ArgGroup::new("which").args(["index", "event"]).required(true)))]
    Prove {
        /// Index of the leaf
        index: Option<u64>,
        /// Or source and id of the event it records
        #[arg(long, num_args = 2, value_names = ["SOURCE", "ID"])]
        event: Option<Vec<String>>,
    },
    /// Print the published checkpoint with its cosignatures
    Checkpoint,
    /// Write the log to a folder that any verifier of its formats reads
    Export {
        /// An empty folder, or one that is made
        folder: PathBuf,
        /// Entries of this leaf on only; the hashes are always all
        #[arg(long)]
        from: Option<u64>,
        /// Entries before this leaf only
        #[arg(long)]
        to: Option<u64>,
        /// With what opens the commitments, in `salts.ndjson`: names and persons are readable with it
        #[arg(long)]
        openings: bool,
    },
    /// Destroy the key of a person or tenant, so that nobody can open what leaves commit to and what is stored sealed about them
    Erase {
        /// KIND:NAME, such as `person:alice`
        #[arg(long)]
        subject: String,
        /// Under which rule; it is on record
        #[arg(long)]
        basis: String,
    },
    /// Keys of the log
    Key {
        /// What to do
        #[command(subcommand)]
        what: AuditKey,
    },
    /// Sign heads for whoever may open a unix socket, with the key and the head of the settings
    Signer {
        /// Where to listen
        #[arg(long)]
        socket: PathBuf,
    },
}

/// Keys of the log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditKey {
    /// Make the log's key and sign its empty head; prints the public key
    New {
        /// The log's name: a URL without scheme, which never changes
        #[arg(long)]
        origin: String,
    },
    /// Make the key that keys of persons and tenants are sealed under
    Kek,
    /// Print the public key
    Show,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a person
    Table,
    /// For a program; stable
    Json,
    /// RFC 4180
    Csv,
}

/// Residue between tenants.
#[derive(Debug, Subcommand)]
pub(crate) enum Residue {
    /// Who held memory slices before and after, and the scrubs between
    Report(ResidueReport),
    /// Evidence of a period: every release, what was found, every scrub
    Pack {
        /// First instant
        #[arg(long, value_parser = time)]
        from: Instant,
        /// First instant after it
        #[arg(long, value_parser = time)]
        to: Instant,
        /// Horizon; default: the ledger's
        #[arg(long, value_parser = time)]
        as_of: Option<Instant>,
        /// A new folder
        dir: PathBuf,
    },
}

/// What a report of residue is about.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("about").required(true).args(["at", "allocation"])))]
pub(crate) struct ResidueReport {
    /// Which GPU, by its UUID
    #[arg(long, required_unless_present = "allocation")]
    pub(crate) gpu: Option<String>,
    /// Which memory slice, counted from 0; default: all of them
    #[arg(long)]
    pub(crate) slice: Option<u8>,
    /// Around this time: a grant at it is the holder after
    #[arg(long, value_parser = time, requires = "gpu")]
    pub(crate) at: Option<Instant>,
    /// Around the begin and the end of this allocation
    #[arg(long)]
    pub(crate) allocation: Option<String>,
    /// As this tenant may read it: others have no names
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Horizon; default: the ledger's
    #[arg(long, value_parser = time)]
    pub(crate) as_of: Option<Instant>,
    /// Format
    #[arg(long, default_value = "table", value_parser = ["table", "json"])]
    pub(crate) format: String,
}

/// Signals.
#[derive(Debug, Subcommand)]
pub(crate) enum Signals {
    /// All of them, in the order of raising
    List {
        /// Format
        #[arg(long, default_value = "table", value_parser = ["table", "json"])]
        format: String,
    },
}

/// What to export.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// All accepted facts and telemetry as NDJSON, what is archived from the archive: replayed elsewhere they give identical balances
    Events {
        /// Facts only; `replay --archive` brings the telemetry
        #[arg(long)]
        facts_only: bool,
        /// Not before this time
        #[arg(long, value_parser = time)]
        from: Option<Instant>,
        /// Before this time
        #[arg(long, value_parser = time)]
        to: Option<Instant>,
    },
}

/// Options of `usage`.
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// From this time on
    #[arg(long, value_parser = time)]
    pub(crate) from: Instant,
    /// Before this time
    #[arg(long, value_parser = time)]
    pub(crate) to: Instant,
    /// Horizon; default: the ledger's
    #[arg(long, value_parser = time)]
    pub(crate) as_of: Option<Instant>,
    /// Only this tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Only this project
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// tenant, project, sku, class, allocation, node, day, hour, month, label.NAME
    #[arg(long, value_delimiter = ',', default_value = "tenant")]
    pub(crate) group_by: Vec<String>,
    /// Weight of whole-GPU equivalents: by memory slices, compute slices, the larger of both, or SM-active time
    #[arg(long, default_value = "memory", value_parser = ["memory", "compute", "dominant", "sm"])]
    pub(crate) weight: String,
    /// Format
    #[arg(long, default_value = "table")]
    pub(crate) format: Format,
}

/// The balance sheet.
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Where each GPU's slice-time stands
    Balance {
        /// From this time on
        #[arg(long, value_parser = time)]
        from: Instant,
        /// Before this time
        #[arg(long, value_parser = time)]
        to: Instant,
        /// Only this GPU
        #[arg(long)]
        gpu: Option<String>,
        /// Horizon; default: the ledger's
        #[arg(long, value_parser = time)]
        as_of: Option<Instant>,
        /// Format
        #[arg(long, default_value = "table")]
        format: Format,
    },
    /// Derive everything anew by a second, naive method and compare
    Verify {
        /// Only these GPUs, by comma, from `--from` on
        #[arg(long, value_delimiter = ',', requires = "from")]
        gpu: Vec<String>,
        /// From this hour on, of the GPUs of `--gpu`
        #[arg(long, value_parser = time, requires = "gpu")]
        from: Option<Instant>,
    },
}

/// Parked events.
#[derive(Debug, Subcommand)]
pub(crate) enum Parked {
    /// List them
    List {
        /// Which
        #[command(flatten)]
        of: ParkedOf,
        /// Format
        #[arg(long, default_value = "table", value_parser = ["table", "json"])]
        format: String,
    },
    /// Say what was wrong with one, what it says, what stands instead, and what would make it right
    Explain {
        /// Its number
        number: i64,
        /// Format
        #[arg(long, default_value = "table", value_parser = ["table", "json"])]
        format: String,
    },
    /// Take them in again: one, those of a kind or source, or all
    Retry {
        /// Its number
        number: Option<i64>,
        /// Which
        #[command(flatten)]
        of: ParkedOf,
        /// File with the corrected event, which is taken in instead; `-` for standard input
        #[arg(long, requires = "number", conflicts_with_all = ["kind", "source"])]
        with: Option<PathBuf>,
        /// Why
        #[arg(long, default_value = "retried by hand")]
        reason: String,
    },
    /// Give them up: one, or those of a kind or source
    #[command(group(ArgGroup::new("which").args(["number", "kind", "source"]).required(true).multiple(true)))]
    Discard {
        /// Its number
        number: Option<i64>,
        /// Which
        #[command(flatten)]
        of: ParkedOf,
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// Which parked events.
#[derive(Debug, Args)]
pub(crate) struct ParkedOf {
    /// Only this reason: `bad_value`, `conflict`, `future`, `not_entitled`, `late_refused`
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Only this source
    #[arg(long)]
    pub(crate) source: Option<String>,
}

/// A restored database.
#[derive(Debug, Subcommand)]
pub(crate) enum Backup {
    /// Compare the stored offsets with the broker; `serve` does the same before it starts
    Check {
        /// Format
        #[arg(long, default_value = "table", value_parser = ["table", "json"])]
        format: String,
    },
    /// Let partitions whose stored offset does not fit be read from the oldest record kept: what was read before counts once
    Rewind {
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// Billing periods.
#[derive(Debug, Subcommand)]
pub(crate) enum Period {
    /// Make drafts of a period that is over
    Close {
        /// Such as 2026-10
        #[arg(long)]
        period: String,
        /// Only this tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Say what would be closed, change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which document.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Id of a document
    pub(crate) id: Option<String>,
    /// Of this tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Of this period
    #[arg(long)]
    pub(crate) period: Option<String>,
}

/// Documents.
#[derive(Debug, Subcommand)]
pub(crate) enum Invoice {
    /// List documents
    List {
        /// Of this tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Of this period
        #[arg(long)]
        period: Option<String>,
        /// Format
        #[arg(long, default_value = "table")]
        format: Format,
    },
    /// Show one
    Show {
        /// Which
        #[command(flatten)]
        which: Which,
        /// Format
        #[arg(long, default_value = "table")]
        format: Format,
    },
    /// Give it its number; from then on it never changes
    Issue {
        /// Which
        #[command(flatten)]
        which: Which,
    },
    /// Discard a draft
    Discard {
        /// Which
        #[command(flatten)]
        which: Which,
    },
    /// Write it to standard output
    Export {
        /// Which
        #[command(flatten)]
        which: Which,
        /// Format
        #[arg(long, value_parser = ["html", "json", "csv"])]
        format: String,
    },
}

/// Options of `token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// tenant, finance, platform, allocator, gateway, node, auditor or admin
    #[arg(long)]
    pub(crate) role: String,
    /// Tenant of role `tenant`
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Prefix of the sources it may speak for
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Nodes it may speak of
    #[arg(long, value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,
    /// Pools it may speak of
    #[arg(long, value_delimiter = ',')]
    pub(crate) pools: Vec<String>,
    /// Hours until it expires
    #[arg(long, default_value_t = 12)]
    pub(crate) hours: u32,
}

/// Options of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Format
    #[arg(value_parser = ["azure-llm", "openb", "sacct", "nvidia-smi"])]
    pub(crate) format: String,
    /// Files
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// A column that becomes the tenant
    #[arg(long)]
    pub(crate) tenant_key: Option<String>,
    /// The tenant of a trace's requests; default: by the file's name
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// The pool that served a trace's requests
    #[arg(long)]
    pub(crate) pool: Option<String>,
    /// YAML file with `kind: Mapping` documents
    #[arg(long)]
    pub(crate) mapping: Option<PathBuf>,
    /// Zone of times that carry none
    #[arg(long, default_value = "UTC")]
    pub(crate) zone: String,
    /// Instant of second 0, or of an inventory without a time
    #[arg(long, value_parser = time)]
    pub(crate) start: Option<Instant>,
    /// Node of an inventory; default: the file's name
    #[arg(long)]
    pub(crate) node: Option<String>,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Format of the user's own file
    #[arg(long, value_parser = ["sacct", "openb", "events"], requires = "path")]
    pub(crate) from: Option<String>,
    /// The user's own file
    #[arg(requires = "from")]
    pub(crate) path: Option<PathBuf>,
    /// Price per hour, SKU=PRICE
    #[arg(long)]
    pub(crate) price: Vec<String>,
    /// Keep database and bills in this folder
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

fn time(text: &str) -> Result<Instant, String> {
    gpuledger_wire::time::parse_time(text).map_err(|why| why.to_string())
}

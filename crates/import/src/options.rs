//! What the caller may say about a file that the file does not say itself.

use crate::mapping::{SkuRule, TenantRule};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use gpuledger_domain::geometry::Geometry;

/// How far an import has come. Sent every 1,024 rows and once at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input read.
    pub bytes: u64,
    /// Rows read (of an inventory: GPUs).
    pub rows: u64,
    /// Events emitted.
    pub events: u64,
}

/// Options of the importers; each names the formats it serves. `Options::default()` suits the public files.
pub struct Options {
    /// openb, sacct: the column whose text is the tenant. Default: openb the request shape
    /// `cpu_milli-memory_mib-num_gpu-gpu_milli` (the trace has no tenants), sacct the account. A matching [`TenantRule`] goes first.
    pub tenant_column: Option<String>,
    /// openb, sacct: the column whose text is the project; default none.
    pub project_column: Option<String>,
    /// openb, sacct: who a foreign account is (`kind: Mapping`).
    pub tenants: Vec<TenantRule>,
    /// openb, sacct: which product a gres type or a GPU label is (`kind: Sku`).
    pub skus: Vec<SkuRule>,
    /// azure-llm: the tenant of all requests. Default: the file's name without folder, extension and what all traces begin with.
    pub tenant: Option<String>,
    /// azure-llm: the pool that served them. Default `azure-llm`.
    pub pool: Option<String>,
    /// azure-llm, sacct, nvidia-smi: the zone of times that carry none. Default UTC.
    pub zone: Tz,
    /// openb: the instant of second 0. Default 2023-01-01T00:00:00Z, which is our choice: the trace has no date.
    pub trace_start: DateTime<Utc>,
    /// sacct: the cluster of rows without one. Default `slurm`.
    pub cluster: Option<String>,
    /// sacct: the columns of a dump without a header, by their sacct names. Default: the 26 columns of Open `XDMoD`'s dumps.
    pub columns: Option<Vec<String>>,
    /// sacct: whether jobs that still run are granted (without a release). Default yes. A dump that is imported again and again
    /// while jobs run is better imported without them: the `state` label of the grant changes when the job ends, and the
    /// same identity with other content is a conflict (I-1), though it changes no charge.
    pub open_jobs: bool,
    /// nvidia-smi: the node's name. Default: the file's name without folder and extension.
    pub node: Option<String>,
    /// nvidia-smi: the instant of the inventory, instead of the capture's own timestamp.
    pub at: Option<DateTime<Utc>>,
    /// nvidia-smi: the node's boot id, which a capture does not tell. Default `unknown`: one constant, so that two captures of a
    /// node do not look like a reboot nobody saw.
    pub boot_id: Option<String>,
    /// nvidia-smi: what MIG-capable models can be cut into. Default: the product's own data.
    pub geometry: Geometry,
    /// How many unmapped rows are kept in the report; all are counted. Default 1,000.
    pub keep_unmapped: usize,
    /// Longest line in bytes; longer ones are listed and skipped without being held in memory. Default 1 MiB.
    pub max_line_bytes: usize,
    /// Called as the import goes on.
    pub progress: Option<Box<dyn Fn(Progress) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tenant_column: None,
            project_column: None,
            tenants: Vec::new(),
            skus: Vec::new(),
            tenant: None,
            pool: None,
            zone: Tz::UTC,
            // 2023-01-01T00:00:00Z
            trace_start: DateTime::from_timestamp(1_672_531_200, 0).unwrap_or_default(),
            cluster: None,
            columns: None,
            open_jobs: true,
            node: None,
            at: None,
            boot_id: None,
            geometry: gpuledger_wire::geometry::geometry(),
            keep_unmapped: 1_000,
            max_line_bytes: 1 << 20,
            progress: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("tenant_column", &self.tenant_column)
            .field("project_column", &self.project_column)
            .field("tenants", &self.tenants)
            .field("skus", &self.skus)
            .field("tenant", &self.tenant)
            .field("pool", &self.pool)
            .field("zone", &self.zone)
            .field("trace_start", &self.trace_start)
            .field("cluster", &self.cluster)
            .field("columns", &self.columns)
            .field("open_jobs", &self.open_jobs)
            .field("node", &self.node)
            .field("at", &self.at)
            .field("boot_id", &self.boot_id)
            .finish_non_exhaustive()
    }
}

//! `GET /checkpoint`, `/tile/…`, `/v1/audit/…`: the log (L-2). The checkpoint is for everybody: it says nothing but size and root. Tiles and leaves show by their times
//! and GPUs who was active when: they are for auditors and administrators, and a tenant reads the leaves that name it.

mod path;

use crate::params::Faults;
use crate::principal::{Principal, ReadScope};
use crate::problem::{FORBIDDEN, NOT_FOUND, Problem, ProblemBody};
use crate::state::State;
use crate::token::Role;
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpResponse, Responder};
use gpuledger_storage::audit_log::{LeafRow, leaf};
use gpuledger_storage::{Scope, Tx, subject_keys};
use gpuledger_tlog::hash::Hash;
use gpuledger_trail::keys::KeyError;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::{Opening, extra, openings};
use gpuledger_trail::stored::{self, StoredError};
use path::{Asked, read};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Media type of notes and proof files.
const TEXT: &str = "text/plain; charset=utf-8";

/// Query of `GET /v1/audit/proof`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProofParams {
    /// Which leaf.
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,18}$", example = "0")]
    index: Option<String>,
}

/// A leaf.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Record {
    /// Its place in the log.
    index: String,
    /// Its bytes, as text: what is hashed.
    leaf: String,
    /// Its leaf hash (RFC 6962), in hexadecimal digits.
    hash: String,
    /// What opens the commitments this reader may open.
    openings: Vec<Salt>,
}

/// What opens one commitment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Salt {
    /// Which field of the leaf's content, as a JSON pointer.
    field: String,
    /// 64 hexadecimal digits.
    salt: String,
}

impl From<&Opening> for Salt {
    fn from(opening: &Opening) -> Self {
        Self { field: opening.field.clone(), salt: gpuledger_trail::hex(&opening.salt) }
    }
}

/// The published checkpoint
///
/// A signed note of C2SP (tlog-checkpoint), with the cosignatures of witnesses. For everybody.
#[utoipa::path(
    get,
    path = "/checkpoint",
    tag = "audit",
    operation_id = "getCheckpoint",
    security(()),
    responses(
        (status = 200, description = "The checkpoint", body = String, content_type = "text/plain"),
        (status = 404, description = "Nothing is published yet", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn checkpoint(state: Data<State>) -> Result<impl Responder, Problem> {
    let mut tx = state.db.snapshot().await?;
    let head = stored::published(&mut tx).await?;
    tx.commit().await?;
    let head = head.ok_or_else(|| Problem::with(NOT_FOUND, "nothing is published yet"))?;
    Ok(HttpResponse::Ok().content_type(TEXT).body(head.note))
}

/// Tiles and entries
///
/// C2SP's layout (tlog-tiles): `LEVEL/INDEX[.p/WIDTH]` and `entries/INDEX[.p/WIDTH]`. Partial ones are there for every published size. Roles: `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/tile/{path}",
    tag = "audit",
    operation_id = "getTile",
    params(("path" = String, Path, description = "Which tile", example = "0/000.p/1")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "Hashes of 32 bytes, or entries each after its length", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No such tile under the published checkpoint", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn tile(
    principal: Principal,
    state: Data<State>,
    path: Path<String>,
) -> Result<impl Responder, Problem> {
    if reads(&principal)?.tenant.is_some() {
        return Err(Problem::with(
            FORBIDDEN,
            "tiles show everybody's activity: a tenant reads proofs of its own leaves",
        ));
    }
    let none = || Problem::with(NOT_FOUND, "no such tile under the published checkpoint");
    let asked = read(&path).ok_or_else(none)?;
    let mut tx = state.db.snapshot_of(Scope::All).await?;
    let size = stored::published(&mut tx).await?.ok_or_else(none)?.size;
    let bytes = match asked {
        Asked::Tile(tile) => stored::tile_bytes(&mut tx, tile, size).await?,
        Asked::Entries(index, width) => stored::entries(&mut tx, index, width, size).await?,
    };
    tx.commit().await?;
    Ok(HttpResponse::Ok().content_type("application/octet-stream").body(bytes.ok_or_else(none)?))
}

/// A leaf
///
/// With what opens its commitments, as far as this reader may. Roles: `tenant` (leaves that name it), `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/audit/records/{index}",
    tag = "audit",
    operation_id = "getAuditRecord",
    params(("index" = String, Path, description = "Which leaf", pattern = "^[0-9]{1,18}$", example = "0")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The leaf", body = Record),
        (status = 400, description = "The index", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is none, or it does not name this tenant", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn record(
    principal: Principal,
    state: Data<State>,
    index: Path<String>,
) -> Result<impl Responder, Problem> {
    let scope = reads(&principal)?;
    let (row, shown) = find(&state, &scope, number(Some(index.as_str()))?).await?;
    Ok(HttpResponse::Ok().json(Record {
        index: row.leaf_index.to_string(),
        leaf: String::from_utf8_lossy(&row.leaf).into_owned(),
        hash: Hash::of_leaf(&row.leaf).to_string(),
        openings: shown.iter().map(Salt::from).collect(),
    }))
}

/// The proof of a leaf
///
/// A proof file of C2SP (tlog-proof) under the published checkpoint; `extra` has the leaf and what opens its commitments, as far as this reader may.
/// `gpuledger audit verify --bundle` reads it. Roles: `tenant` (leaves that name it), `auditor`, `admin`.
#[utoipa::path(
    get,
    path = "/v1/audit/proof",
    tag = "audit",
    operation_id = "getAuditProof",
    params(ProofParams),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The proof file", body = String, content_type = "text/plain"),
        (status = 400, description = "The index", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "Not for this role", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is none, it does not name this tenant, or no published checkpoint covers it yet", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Rate limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Database out of reach", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn proof(
    principal: Principal,
    state: Data<State>,
    params: Query<ProofParams>,
) -> Result<impl Responder, Problem> {
    let scope = reads(&principal)?;
    let index = number(params.index.as_deref())?;
    let (row, shown) = find(&state, &scope, index).await?;
    // The path is made of hashes of everybody's leaves: nothing else of them leaves here.
    let mut tx = state.db.snapshot_of(Scope::All).await?;
    let file = stored::proof(&mut tx, index, Some(extra(&row.leaf, &shown))).await?;
    tx.commit().await?;
    let file = file.ok_or_else(|| {
        Problem::with(NOT_FOUND, format!("no published checkpoint covers leaf {index} yet"))
    })?;
    Ok(HttpResponse::Ok().content_type(TEXT).body(file.text()))
}

/// Whose leaves a principal reads.
fn reads(principal: &Principal) -> Result<ReadScope, Problem> {
    match principal.0.role {
        Role::Tenant | Role::Auditor | Role::Admin => principal.reads(None),
        Role::Finance | Role::Platform | Role::Allocator | Role::Gateway | Role::Node => {
            Err(Problem::with(FORBIDDEN, format!("role {} does not read the log", principal.0.role)))
        }
    }
}

fn number(text: Option<&str>) -> Result<u64, Problem> {
    let mut faults = Faults::default();
    let is_number = |text: &&str| (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.filter(is_number).and_then(|text| text.parse().ok());
    if number.is_none() {
        faults.add("index", "expected the index of a leaf, such as 0");
    }
    faults.done()?;
    Ok(number.unwrap_or(0))
}

/// The leaf as row security shows it, and what opens it.
async fn find(state: &State, scope: &ReadScope, index: u64) -> Result<(LeafRow, Vec<Opening>), Problem> {
    let none = || Problem::with(NOT_FOUND, format!("leaf {index}"));
    let mut tx = state.db.snapshot_of(scope.scope()).await?;
    let found = leaf(&mut tx, i64::try_from(index).unwrap_or(i64::MAX)).await?;
    let row = found.ok_or_else(none)?;
    let shown = opened(&mut tx, state, &row).await?;
    tx.commit().await?;
    Ok((row, shown))
}

async fn opened(tx: &mut Tx, state: &State, row: &LeafRow) -> Result<Vec<Opening>, Problem> {
    let Some(leaf) = Leaf::parse(&row.leaf) else { return Ok(Vec::new()) };
    let subjects = subject_keys::by_numbers(tx, &row.subjects).await?;
    Ok(openings(&leaf, &row.subjects, &subjects, &state.seal, None)?)
}

impl From<StoredError> for Problem {
    fn from(error: StoredError) -> Self {
        match error {
            StoredError::Storage(error) => error.into(),
            StoredError::OutOfRange { .. } => Self::new(NOT_FOUND),
            StoredError::Missing(_) => failed(&error),
        }
    }
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        failed(&error)
    }
}

fn failed(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "a request failed");
    Problem::new(crate::problem::INTERNAL)
}

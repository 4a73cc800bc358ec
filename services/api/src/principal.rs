//! Who calls: the token of a request, and what its role may read.

use crate::limit::Standing;
use crate::problem::{FORBIDDEN, INTERNAL, Problem, TOO_MANY};
use crate::state::State;
use crate::token::{Claims, Role, verify};
use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use gpuledger_storage::Scope;
use std::future::{Ready, ready};

/// The principal of a request; a handler that takes one is not reached without a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Principal(pub(crate) Claims);

/// Whose rows a request may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadScope {
    /// One tenant's; none: everyone's.
    pub(crate) tenant: Option<String>,
}

impl ReadScope {
    /// The same for row security.
    pub(crate) fn scope(&self) -> Scope<'_> {
        self.tenant.as_deref().map_or(Scope::All, Scope::Tenant)
    }
}

impl Principal {
    /// Whose rows it may read, narrowed to the tenant it asks for.
    ///
    /// # Errors
    /// 403 for roles that read nothing, and for another tenant than the token's.
    pub(crate) fn reads(&self, asked: Option<&str>) -> Result<ReadScope, Problem> {
        let claims = &self.0;
        match claims.role {
            Role::Tenant | Role::Finance | Role::Platform | Role::Auditor | Role::Admin => {}
            Role::Allocator | Role::Gateway | Role::Node => {
                let why = format!("role {} reads nothing here", claims.role);
                return Err(Problem::with(FORBIDDEN, why));
            }
        }
        match (claims.tenant.as_deref(), asked) {
            (Some(own), Some(asked)) if own != asked => {
                Err(Problem::with(FORBIDDEN, "the token is for another tenant than the one asked for"))
            }
            (Some(own), _) => Ok(ReadScope { tenant: Some(own.to_owned()) }),
            (None, asked) => Ok(ReadScope { tenant: asked.map(str::to_owned) }),
        }
    }

    /// Whether it may send events at all; which ones is for [`crate::entitle`].
    ///
    /// # Errors
    /// 403 for roles that only read.
    pub(crate) fn may_send(&self) -> Result<(), Problem> {
        match self.0.role {
            Role::Platform | Role::Allocator | Role::Gateway | Role::Node | Role::Admin => Ok(()),
            Role::Tenant | Role::Finance | Role::Auditor => {
                Err(Problem::with(FORBIDDEN, format!("role {} sends no events", self.0.role)))
            }
        }
    }
}

impl FromRequest for Principal {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(identify(request))
    }
}

fn identify(request: &HttpRequest) -> Result<Principal, Problem> {
    let state = request.app_data::<Data<State>>().ok_or_else(|| Problem::new(INTERNAL))?;
    let token = bearer(request)?;
    let claims = verify(token, &state.key, (state.now)())
        .map_err(|why| Problem::unauthenticated(Some(&why.to_string())))?;
    let standing = state.limiter.take(&claims.subject, std::time::Instant::now());
    request.extensions_mut().insert(standing);
    if !standing.allowed {
        return Err(too_many(&standing));
    }
    Ok(Principal(claims))
}

fn too_many(standing: &Standing) -> Problem {
    let seconds = standing.seconds();
    Problem::with(TOO_MANY, format!("come back in {seconds} s"))
        .header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// The token of the one `Authorization: Bearer` header.
fn bearer(request: &HttpRequest) -> Result<&str, Problem> {
    let mut headers = request.headers().get_all(header::AUTHORIZATION);
    let Some(value) = headers.next() else { return Err(Problem::unauthenticated(None)) };
    if headers.next().is_some() {
        return Err(Problem::unauthenticated(Some("there are several Authorization headers, send one")));
    }
    let text = value.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Problem::unauthenticated(None)),
    }
}

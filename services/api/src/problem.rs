//! Problems (RFC 9457): the one shape of every error this service answers with.

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use gpuledger_books::BooksError;
use gpuledger_storage::StorageError;
use gpuledger_trail::subjects::SubjectsError;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// Media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// What kind of problem; its `type` is `urn:gpuledger:problem:<slug>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Last part of its URN.
    pub(crate) slug: &'static str,
    /// Status it is answered with.
    pub(crate) status: StatusCode,
    /// One line for people.
    pub(crate) title: &'static str,
}

macro_rules! kinds {
    ($($name:ident = $slug:literal, $status:ident, $title:literal;)*) => {
        $(pub(crate) const $name: Kind = Kind { slug: $slug, status: StatusCode::$status, title: $title };)*

        /// Every kind, as `/docs` lists them.
        pub(crate) const KINDS: &[Kind] = &[$($name),*];
    };
}

kinds! {
    BAD_REQUEST = "bad-request", BAD_REQUEST, "The request cannot be read";
    BAD_PARAMETER = "bad-parameter", BAD_REQUEST, "A parameter is not what is expected";
    BAD_CURSOR = "bad-cursor", BAD_REQUEST, "The cursor does not belong to this query";
    UNAUTHENTICATED = "unauthenticated", UNAUTHORIZED, "A valid token is needed";
    FORBIDDEN = "forbidden", FORBIDDEN, "The token does not allow this";
    NOT_FOUND = "not-found", NOT_FOUND, "There is no such thing, or it is not yours to see";
    METHOD_NOT_ALLOWED = "method-not-allowed", METHOD_NOT_ALLOWED, "This method is not for this path";
    TOO_LARGE = "too-large", PAYLOAD_TOO_LARGE, "The body is too large";
    MEDIA_TYPE = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The content type is not read here";
    BAD_EVENT = "bad-event", UNPROCESSABLE_ENTITY, "The event is not as the contract has it";
    TOO_MANY = "too-many-requests", TOO_MANY_REQUESTS, "The rate limit is reached";
    UNAVAILABLE = "unavailable", SERVICE_UNAVAILABLE, "A part of the service is out of reach";
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, "The service failed";
}

impl Kind {
    /// The kind that stands for a status nobody explained.
    fn of_status(status: StatusCode) -> Option<Self> {
        KINDS.iter().copied().find(|kind| kind.status == status)
    }
}

/// One thing that is wrong with the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldProblem {
    /// Which query or path parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<String>,
    /// Or which place of the body, as a path such as `data.units[0].count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// What stands there and what would be right.
    pub(crate) detail: String,
}

/// The body of every answer from 400 on.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// URN of the kind of problem.
    #[schema(example = "urn:gpuledger:problem:bad-parameter")]
    pub(crate) r#type: String,
    /// What kind of problem, for people.
    pub(crate) title: String,
    /// HTTP status.
    pub(crate) status: u16,
    /// What is wrong this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// Path of the request.
    pub(crate) instance: String,
    /// Number of the request, as in the header `x-request-id` and in the log.
    pub(crate) request_id: String,
    /// Each thing that is wrong, where it can be named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<FieldProblem>,
}

/// An error on its way to the client. What belongs to the request (path, id) is added by [`crate::middleware`].
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: Option<String>,
    errors: Vec<FieldProblem>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of this kind without words of its own.
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, detail: None, errors: Vec::new(), headers: Vec::new() }
    }

    /// A problem with its explanation.
    pub(crate) fn with(kind: Kind, detail: impl fmt::Display) -> Self {
        Self { detail: Some(detail.to_string()), ..Self::new(kind) }
    }

    /// Names one thing that is wrong.
    pub(crate) fn error(mut self, error: FieldProblem) -> Self {
        self.errors.push(error);
        self
    }

    /// Parameters that are not as expected.
    pub(crate) fn parameters(errors: Vec<FieldProblem>) -> Self {
        let all: Vec<String> = errors
            .iter()
            .map(|error| format!("{}: {}", error.parameter.as_deref().unwrap_or_default(), error.detail))
            .collect();
        Self { errors, ..Self::with(BAD_PARAMETER, all.join("; ")) }
    }

    /// Sends a header along.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A request without a token that counts; `why` of one that was sent.
    pub(crate) fn unauthenticated(why: Option<&str>) -> Self {
        let challenge = match why {
            None => "Bearer realm=\"gpuledger\"",
            Some(_) => "Bearer realm=\"gpuledger\", error=\"invalid_token\"",
        };
        let problem = match why {
            Some(why) => Self::with(UNAUTHENTICATED, why),
            None => Self::with(UNAUTHENTICATED, "send `Authorization: Bearer TOKEN`"),
        };
        problem.header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// A problem for an answer that somebody else made. Words of server faults stay in the log.
    pub(crate) fn of_response(status: StatusCode, why: Option<String>) -> Self {
        let kind = Kind::of_status(status).unwrap_or(Kind {
            slug: "about-blank",
            status,
            title: status.canonical_reason().unwrap_or("Error"),
        });
        Self { detail: why.filter(|_| status.is_client_error()), ..Self::new(kind) }
    }

    /// The whole body.
    pub(crate) fn body(&self, instance: &str, request_id: &str) -> ProblemBody {
        ProblemBody {
            r#type: format!("urn:gpuledger:problem:{}", self.kind.slug),
            title: self.kind.title.to_owned(),
            status: self.kind.status.as_u16(),
            detail: self.detail.clone(),
            instance: instance.to_owned(),
            request_id: request_id.to_owned(),
            errors: self.errors.clone(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.kind.slug),
            None => f.write_str(self.kind.slug),
        }
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.kind.status
    }

    fn error_response(&self) -> HttpResponse<BoxBody> {
        let mut response = HttpResponse::build(self.kind.status).finish();
        for (name, value) in &self.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        response
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        let retry = || HeaderValue::from_static("5");
        match &error {
            StorageError::Unreachable { .. } | StorageError::Contention { .. } => {
                tracing::warn!(%error, "the database does not answer");
                Self::with(UNAVAILABLE, "the database does not answer").header(header::RETRY_AFTER, retry())
            }
            _ => {
                tracing::error!(%error, "a request failed");
                Self::new(INTERNAL)
            }
        }
    }
}

impl From<SubjectsError> for Problem {
    fn from(error: SubjectsError) -> Self {
        match error {
            SubjectsError::Storage(error) => error.into(),
            SubjectsError::Keys(error) => error.into(),
        }
    }
}

impl From<BooksError> for Problem {
    fn from(error: BooksError) -> Self {
        match error {
            BooksError::Storage(error) => error.into(),
            other => {
                tracing::error!(error = %other, "a request failed");
                Self::new(INTERNAL)
            }
        }
    }
}

/// Work that ran beside the event loop did not come to its end.
impl From<actix_web::error::BlockingError> for Problem {
    fn from(error: actix_web::error::BlockingError) -> Self {
        tracing::error!(%error, "a request failed");
        Self::new(INTERNAL)
    }
}

//! The admin port: health for probes and metrics for Prometheus. Without tokens, so keep it off the public network.

use crate::serve::{ApiError, listener, run};
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse, HttpServer, Responder};
use gpuledger_telemetry::health::{Health, Report};
use gpuledger_telemetry::metrics::{CONTENT_TYPE, Metrics};
use std::net::SocketAddr;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Seconds that open requests may take at the end.
const GRACE_SECONDS: u64 = 2;

/// Serves `/healthz`, `/readyz` and `/metrics` on `bind` until the word. Returns the address and the running server.
///
/// # Errors
/// The address cannot be had.
pub fn serve_admin(
    bind: &str,
    health: Health,
    metrics: Metrics,
    shutdown: CancellationToken,
) -> Result<(SocketAddr, JoinHandle<Result<(), ApiError>>), ApiError> {
    let (socket, address) = listener(bind)?;
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::new(health.clone()))
            .app_data(Data::new(metrics.clone()))
            .route("/healthz", web::get().to(live))
            .route("/readyz", web::get().to(ready))
            .route("/metrics", web::get().to(exposition))
    });
    let server = server.workers(1).shutdown_timeout(GRACE_SECONDS).disable_signals();
    let server = server.listen(socket).map_err(ApiError::Server)?.run();
    Ok((address, run(server, shutdown)))
}

async fn live(health: Data<Health>) -> impl Responder {
    answer(&health.live())
}

async fn ready(health: Data<Health>) -> impl Responder {
    answer(&health.ready())
}

fn answer(report: &Report) -> HttpResponse {
    if report.ok {
        return HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ok\n");
    }
    let lines: Vec<String> = report.faults.iter().map(|(part, why)| format!("{part}: {why}\n")).collect();
    HttpResponse::ServiceUnavailable().content_type("text/plain; charset=utf-8").body(lines.concat())
}

async fn exposition(metrics: Data<Metrics>) -> impl Responder {
    match metrics.render() {
        Ok(text) => HttpResponse::Ok().content_type(CONTENT_TYPE).body(text),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            HttpResponse::InternalServerError().finish()
        }
    }
}

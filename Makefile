# Commands of this repository. `make` alone lists them. All state of theirs lies in .local/ and target/.

.DEFAULT_GOAL := help
LOCAL := deploy/local
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## the whole product on this machine, from simulated nodes to a bill you can open; installs what is missing
	@$(LOCAL)/install.sh
	cargo build --locked -p gpuledger -p gpuledger-collector -p gpuledger-nvml-sim
	target/debug/gpuledger demo

.PHONY: test
test: ## every test, real Kafka and Postgres included; installs what is missing
	@$(LOCAL)/test.sh

.PHONY: up
up: ## start Postgres, Kafka and the services in the background; prints their addresses
	@$(LOCAL)/stack.sh up

.PHONY: down
down: ## stop what `make up` and `make test` started; data stay in .local/
	@$(LOCAL)/stack.sh down

.PHONY: fmt
fmt: ## format the sources
	cargo fmt --all

.PHONY: lint
lint: ## format, clippy, licences, unused dependencies, migrations, schemas, links, shell
	@$(LOCAL)/lint.sh

.PHONY: accept
accept: ## one named check for each bar of the issues, as a table: bar, figure, held, short or skipped
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/accept $(BARS)

.PHONY: soak
soak: ## the long form of the random suites: 10,000 cases, 1,000 stories, 1,000 nodes (SOAK_CASES=n, SOAK_STORIES=n, SOAK_SEEDS=n, SOAK_SEED=n)
	SOAK_CASES=$${SOAK_CASES:-10000} cargo test --locked -p gpuledger-tests properties -- --nocapture
	SOAK_CASES=$${SOAK_STORIES:-1000} cargo test --locked -p gpuledger-tests bounded -- --nocapture
	SOAK_SEEDS=$${SOAK_SEEDS:-1000} cargo test --locked -p gpuledger-collector --test simulated drawn -- --nocapture
	@$$($(LOCAL)/python.sh) tests/tlog folders --cases $${SOAK_CASES:-10000}

.PHONY: mutants
mutants: ## break each rule on purpose, one at a time, and see that the tests notice (MUTANTS='A-7 I-1' for some rules); takes long
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/mutants/run.py $(MUTANTS)

.PHONY: chaos
chaos: ## kill consumers and the broker while events flow, and compare with a calm run; a small one is in `make test`
	@$(LOCAL)/install.sh
	cargo build --locked -p gpuledger
	@$$($(LOCAL)/python.sh) tests/chaos $(CHAOS)

.PHONY: scale
scale: ## ledgers join and leave under load, a database is restored, a broker is lost, compared with a calm run; a small one is in `make test`
	@$(LOCAL)/install.sh
	cargo build --locked -p gpuledger
	@$$($(LOCAL)/python.sh) tests/chaos/scale.py $(SCALE)

.PHONY: bench-collector
bench-collector: ## the node agent beside nvitop-exporter on a full simulated node: CPU, memory, cycle time
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/bench/collector.py

.PHONY: bench-ingest
bench-ingest: ## a backlog of 20 million rows through Kafka into journals and packed hours, beside a COPY of the same rows (ROWS=n)
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/bench/ingest.py

.PHONY: bench-growth
bench-growth: ## the same work on a ledger with one month in place and with 24 months: rates, a month's query, late facts (ALLOCATIONS=n STORED=n)
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/bench/growth.py

.PHONY: bench-audit
bench-audit: ## leaves until they are under a published checkpoint, beside INSERT of the same bytes; proofs beside rows; verification on one core (LEAVES=n)
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/bench/audit.py

.PHONY: bench-live
bench-live: ## 56,000 rows a second for five minutes: CPU, stored rows, lag (RATE=n, SECONDS_MEASURED=n)
	@$(LOCAL)/install.sh
	@$$($(LOCAL)/python.sh) tests/bench/live.py

.PHONY: bench-rows
bench-rows: ## rows and bytes a day of 1,000 GPUs, by table and in the archive (NODES=n of eight GPUs, HOURS=n measured)
	@$(LOCAL)/install.sh
	cargo build --locked -p gpuledger
	@$$($(LOCAL)/python.sh) tests/bench/rows.py

.PHONY: judge
judge: ## outside judges: of every simulated node, nvidia-ml-py, nvitop and gpustat (JUDGE='mps lost-gpu' for some); of the audit log, judge-tlog
	@$(LOCAL)/install.sh
	cargo build --locked -p gpuledger-collector -p gpuledger-nvml-sim
	@$$($(LOCAL)/python.sh) tests/judge $(JUDGE)
	@$(MAKE) --no-print-directory judge-tlog

.PHONY: judge-tlog
judge-tlog: ## aics-tlog, aics-witness and Go's lineage on the audit log: whole and tampered folders, proofs, a witness over HTTP (TLOG_FOLDERS=n)
	@$(LOCAL)/install.sh
	@$(LOCAL)/postgres.sh start >/dev/null
	cargo build --locked -p gpuledger
	@$$($(LOCAL)/python.sh) tests/tlog --cases $${TLOG_FOLDERS:-500}

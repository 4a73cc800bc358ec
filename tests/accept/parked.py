"""The bar of parked events: one of each reason, explained, made right or given up, on record."""
import contextlib
import json
import os
import re
import subprocess
import time
import urllib.request

from frame import Short, bar
from product import BINARY, LOCAL, fresh_ledger, last_line, run, scratch

GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
OBJECTS = """kind: Seller
id: seller
name: Seller
country: DE
time_zone: UTC
books_open: 2026-01-01T00:00:00Z
---
kind: Tenant
id: acme
name: Acme
currency: EUR
seller: seller
---
kind: RateCard
id: standard
currency: EUR
effective_from: 2026-01-01T00:00:00Z
tenants: ["*"]
prices: [{sku: "*", per: hour, price: "2.00"}]
"""


def event(name, kind, at, data, source="/test/parked"):
    return json.dumps({"specversion": "1.0", "id": name, "source": source, "type": f"gpuledger.{kind}.v1", "time": at, "data": data})


def inventory(name, at, node="n1", gpu=GPU, source="/test/parked"):
    return event(name, "node.inventory", at, {"node": node, "boot_id": "b", "gpus": [
        {"uuid": gpu, "index": 0, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "compute_slices": 7, "memory_slices": 8,
         "mig": False, "state": "ok", "instances": []}]}, source)


def grant(name, at, allocation, tenant="acme"):
    return event(name, "allocation.granted", at, {"allocation": allocation, "tenant": tenant, "units": [{"gpu": GPU}], "mode": "exclusive",
                                                  "class": "on_demand"})


def release(name, at, allocation, **more):
    return event(name, "allocation.released", at, {"allocation": allocation}, **more)


class Bench:
    """A ledger with a clock, and a folder for what is replayed into it."""

    def __init__(self, ledger, folder):
        self.ledger, self.folder, self.steps = ledger, folder, 0
        self.now = None

    def at(self, now):
        self.now = self.ledger.env["GPULEDGER_NOW"] = now

    def replay(self, *lines):
        file = self.folder / "events.ndjson"
        file.write_text("".join(f"{line}\n" for line in lines))
        return self.ledger.call("replay", file, "--as-of", self.now, "--now", self.now)

    def call(self, *words, code=0):
        done = self.ledger.call(*words, check=False)
        self.steps += 1
        if done.returncode != code:
            raise Short(f"`{' '.join(map(str, words))}` exit {done.returncode} instead of {code}: {(done.stdout + done.stderr)[-400:]}")
        return done

    def open(self, reason):
        """Numbers of the open parked events of a reason."""
        rows = json.loads(self.call("parked", "list", "--kind", reason, "--format", "json").stdout)["rows"]
        return [row["number"] for row in rows]

    def one(self, reason):
        numbers = self.open(reason)
        if len(numbers) != 1:
            raise Short(f"{len(numbers)} events are parked for {reason}, expected 1")
        return numbers[0]

    def explain(self, number):
        words = self.call("parked", "explain", number).stdout
        found = json.loads(self.call("parked", "explain", number, "--format", "json").stdout)
        if found["decision"] is None and not all(remedy in words for remedy in found["remedies"]):
            raise Short(f"explain {number} says other things in words than as JSON")
        return found

    def sql(self, query):
        psql = last_line(run(LOCAL / "postgres.sh", "psql").stdout)
        return run(psql, "-XqAt", "-d", self.ledger.env["DATABASE_URL"], "-c", query).stdout.strip()


def must(condition, what):
    if not condition:
        raise Short(what)


@bar("parked", "parked events of each reason: explained, retried after a fix, discarded with reason, audited")
def parked():
    with scratch() as folder, fresh_ledger() as ledger:
        bench = Bench(ledger, folder)
        bench.at("2026-01-20T00:00:00Z")
        (folder / "objects.yaml").write_text(OBJECTS)
        bench.call("apply", "-f", folder / "objects.yaml")
        bench.replay(inventory("inv", "2026-01-01T00:00:00Z"), grant("a-1", "2026-01-01T01:00:00Z", "a-1"))
        for reason in (bad_value, conflict, future, not_entitled, bulk, late_refused):
            reason(bench)
        must(bench.sql("SELECT count(*) FROM parked AS p WHERE NOT EXISTS (SELECT FROM parked_decision WHERE parked_seq = p.seq)") == "0",
             "something is still parked")
        decided = bench.sql("SELECT count(*) FROM parked_decision")
        audited = bench.sql("SELECT count(*) FROM audit_pending WHERE kind = 'parked.decided'")
        must(decided == audited, f"{decided} decisions, {audited} audit records")
        bench.call("ledger", "verify")
        kinds = bench.sql("SELECT string_agg(decision || ' ' || n, ', ' ORDER BY decision) FROM "
                          "(SELECT decision, count(*) AS n FROM parked_decision GROUP BY decision) AS d")
        return f"5 reasons, {bench.steps} commands; {kinds}; {audited} audit records"


def bad_value(bench):
    bench.replay(event("rel-1", "allocation.released", "2026-01-01T03:00:00Z", {"allocation": 7}))
    number = bench.one("bad_value")
    found = bench.explain(number)
    must("allocation" in found["detail"] and found["event"]["data"] == {"allocation": 7}, f"explain: {found}")
    bench.call("parked", "retry", number, code=1)
    again = bench.one("bad_value")
    must(bench.explain(number)["retries"] == [again] and bench.explain(again)["retry_of"] == number, "a vain retry is not linked")
    corrected = bench.folder / "corrected.json"
    corrected.write_text(release("rel-other", "2026-01-01T03:00:00Z", "a-1"))
    bench.call("parked", "retry", again, "--with", corrected, code=2)
    corrected.write_text("{")
    bench.call("parked", "retry", again, "--with", corrected, code=2)
    corrected.write_text(json.dumps(json.loads(release("rel-1", "2026-01-01T03:00:00Z", "a-1")), indent=2))
    bench.call("parked", "retry", again, "--with", corrected, "--reason", "the number was a name")
    decision = bench.explain(again)["decision"]
    must((decision["decision"], decision["reason"], decision["principal"]) == ("corrected", "the number was a name", "cli"), str(decision))
    bench.replay()
    rows = bench.ledger.rows("usage", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--group-by", "allocation")
    must(rows[0]["unit_seconds"] == "7200", f"after the correction: {rows}")


def conflict(bench):
    bench.replay(grant("a-1", "2026-01-01T01:00:00Z", "a-1", "other"))
    number = bench.one("conflict")
    found = bench.explain(number)
    wanted = [{"path": "data.tenant", "parked": "other", "stands": "acme"}]
    must(found["differences"] == wanted and found["stands"]["event"]["data"]["tenant"] == "acme", f"explain: {found}")
    same = bench.folder / "same.json"
    same.write_text(grant("a-1", "2026-01-01T01:00:00Z", "a-1", "other"))
    bench.call("parked", "retry", number, "--with", same, code=2)
    bench.call("parked", "discard", number, code=2)
    bench.call("parked", "discard", number, "--reason", "a typing error of the sender")
    must(bench.explain(number)["decision"]["decision"] == "discarded", "the decision is not shown")
    bench.call("parked", "discard", number, "--reason", "again", code=1)
    bench.call("parked", "retry", number, code=1)


def future(bench):
    bench.replay(grant("a-2", "2026-01-21T00:00:00Z", "a-2"))
    number = bench.one("future")
    must("2026-01-20T23:55:00Z" in bench.explain(number)["remedies"][0], "explain does not say when it is due")
    bench.call("parked", "retry", number, code=1)
    again = bench.one("future")
    bench.at("2026-01-21T00:00:00Z")
    bench.replay()
    decision = bench.explain(again)["decision"]
    must(not bench.open("future") and decision["principal"] == "ledger", f"its time came and it was not taken in: {decision}")
    bench.replay(release("rel-2", "2026-01-21T00:00:00Z", "a-2"))


def not_entitled(bench):
    foreign = inventory("inv-n2", "2026-01-20T12:00:00Z", "n2", GPU[:-1] + "2", "/nodes/n2/collector")
    bench.ledger.env["GPULEDGER_JWT_KEY_FILE"] = str(bench.folder / "jwt.pem")
    token = last_line(bench.call("token", "--role", "node", "--source", "/nodes/n1", "--nodes", "n1").stdout)
    with serving(bench) as api:
        request = urllib.request.Request(f"{api}/v1/events", foreign.encode(), {
            "Authorization": f"Bearer {token}", "Content-Type": "application/cloudevents+json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            must(answer.status == 202, f"POST /v1/events: {answer.status}")
        until = time.monotonic() + 60
        while not bench.open("not_entitled"):
            must(time.monotonic() < until, "the foreign node's event was not parked")
            time.sleep(0.3)
    number = bench.one("not_entitled")
    must(any("vouch" in remedy for remedy in bench.explain(number)["remedies"]), "explain does not say how to vouch")
    bench.call("parked", "retry", number, "--reason", "n2 was renamed, its token comes tomorrow")
    must(not bench.open("not_entitled"), "vouched for and still parked")


@contextlib.contextmanager
def serving(bench):
    """`serve` without Kafka; gives the address of its API."""
    log = bench.folder / "serve.log"
    env = {**os.environ, **bench.ledger.env, "GPULEDGER_API_BIND": "127.0.0.1:0", "GPULEDGER_ADMIN_BIND": "127.0.0.1:0"}
    env.pop("KAFKA_BOOTSTRAP", None)
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen([BINARY, "serve", "--only", "api,ledger"], env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, cwd=bench.folder)
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"^api +(http://\S+)", log.read_text(), re.MULTILINE)):
            must(time.monotonic() < until and process.poll() is None, f"serve did not come up: {log.read_text()[-400:]}")
            time.sleep(0.2)
        yield found.group(1)
    finally:
        process.terminate()
        process.wait(60)


def bulk(bench):
    bench.replay(*[event(f"bulk-{n}", "allocation.released", "2026-01-02T00:00:00Z", {"allocation": n}, "/test/bulk") for n in range(3)])
    bench.call("parked", "discard", "--reason", "all of them", code=2)
    said = bench.call("parked", "retry", "--source", "/test/bulk", code=1).stdout
    must("3 parked again" in said, said)
    said = bench.call("parked", "discard", "--source", "/test/bulk", "--kind", "bad_value", "--reason", "a broken script").stdout
    must("3 discarded" in said, said)


def late_refused(bench):
    bench.at("2026-02-02T00:00:00Z")
    bench.replay(inventory("inv-feb", "2026-02-01T12:00:00Z"))
    bench.call("period", "close", "--period", "2026-01")
    bench.at("2026-06-01T00:00:00Z")
    bench.replay(inventory("inv-jun", "2026-05-31T12:00:00Z"), grant("a-3", "2026-01-05T00:00:00Z", "a-3"), release("rel-3", "2026-01-05T01:00:00Z", "a-3"))
    numbers = bench.open("late_refused")
    must(len(numbers) == 2 and "2026-01" in bench.explain(numbers[0])["detail"], f"late facts: {numbers}")
    bench.call("parked", "retry", numbers[0], code=1)
    bench.call("invoice", "discard", "--tenant", "acme", "--period", "2026-01")
    bench.call("parked", "retry", "--kind", "late_refused", "--reason", "the draft was discarded")
    must(not bench.open("late_refused"), "the period is open again and its facts are still parked")

"""Bars of billing in depth: what came late, states, other things sold, and what a close waits for."""
import json
from decimal import Decimal

from frame import Short, bar
from product import fresh_ledger, scratch
from suites import suite

OBJECTS = [
    {"kind": "Seller", "id": "s", "name": "Seller", "country": "DE", "time_zone": "UTC", "books_open": "2026-10-01T00:00:00Z", "lateness": "720h"},
    {"kind": "Tenant", "id": "acme", "name": "Acme", "currency": "EUR", "tax": [{"name": "VAT", "rate": "0.19"}]},
    {"kind": "RateCard", "id": "c", "currency": "EUR", "effective_from": "2026-01-01T00:00:00Z", "tenants": ["*"],
     "prices": [{"sku": "l4", "per": "hour", "price": "0.35"}]},
]


def say(number, kind, time, data):
    return json.dumps({"specversion": "1.0", "id": f"{kind}-{number}", "source": "/allocators/t", "type": f"gpuledger.{kind}.v1",
                       "time": time, "data": data})


def hold(number, start, end):
    grant = {"allocation": f"a-{number}", "tenant": "acme", "units": [{"sku": "l4", "count": 1}], "mode": "exclusive", "class": "on_demand"}
    return [say(number, "allocation.granted", start, grant), say(number, "allocation.released", end, {"allocation": f"a-{number}"})]


class Books:
    def __init__(self, ledger, folder):
        self.ledger, self.folder = ledger, folder
        path = folder / "objects.yaml"
        path.write_text("---\n".join(json.dumps(o) + "\n" for o in OBJECTS))
        ledger.env["GPULEDGER_NOW"] = "2026-09-01T00:00:00Z"
        ledger.call("apply", "-f", path)

    def replay(self, lines, now):
        self.ledger.env["GPULEDGER_NOW"] = now
        path = self.folder / "events.ndjson"
        path.write_text("".join(line + "\n" for line in lines))
        self.ledger.call("replay", path, "--as-of", now)

    def close(self, period, now):
        self.ledger.env["GPULEDGER_NOW"] = now
        self.ledger.call("period", "close", "--period", period)

    def show(self, period):
        return self.ledger.bytes_of("invoice", "show", "--tenant", "acme", "--period", period, "--format", "json")


@bar("billing-late", "late facts of a closed month: its lines and their adjustments equal a rating of all; the same bytes a year later; beyond the limit refused")
def billing_late():
    with fresh_ledger() as ledger, scratch() as folder:
        books = Books(ledger, folder)
        # 1286 s are 0.12502..: 0.13 alone, 0.25 for two, 0.38 for three.
        books.replay(hold(1, "2026-10-05T00:00:00Z", "2026-10-05T00:21:26Z"), "2026-11-02T00:00:00Z")
        books.close("2026-10", "2026-11-02T00:00:00Z")
        ledger.call("invoice", "issue", "--period", "2026-10")
        october = books.show("2026-10")
        for n, (period, now) in enumerate((("2026-11", "2026-12-02T00:00:00Z"), ("2026-12", "2027-01-02T00:00:00Z"))):
            late = [] if n else hold(2, "2026-10-31T23:38:34Z", "2026-11-01T00:00:00Z")
            books.replay(late, now)
            books.close(period, now)
        lines = json.loads(books.show("2026-11"))["lines"]
        found = [(line["kind"], line["amount"], line["corrects"]["period"], line["corrects"]["line"]) for line in lines]
        if found != [("adjustment", "0.12", "2026-10", "inv-2026-10-acme-1.1")]:
            raise Short(f"adjustments: {found}")
        total = sum(Decimal(line["amount"]) for line in json.loads(october)["lines"] + lines)
        if total != Decimal("0.25") or json.loads(books.show("2026-11"))["total"] != "0.14":
            raise Short(f"{total} instead of 0.25")
        if ledger.call("invoice", "show", "--tenant", "acme", "--period", "2026-12", check=False).returncode != 1:
            raise Short("December has a document, and nothing came for it")
        # 62 days after the close, beyond the seller's 30.
        books.replay(hold(3, "2026-10-07T00:00:00Z", "2026-10-07T00:21:26Z"), "2027-01-03T00:00:00Z")
        refused = json.loads(ledger.bytes_of("findings", "--format", "json"))["findings"]
        refused = [finding["subject"] for finding in refused if finding["kind"] == "late_refused"]
        if refused != ["a-3"]:
            raise Short(f"late_refused: {refused}")
        before = (books.show("2026-10"), books.show("2026-11"))
        books.replay([], "2027-12-02T00:00:00Z")
        for period in ("2026-10", "2026-11"):
            books.close(period, "2027-12-02T00:00:00Z")
        if before != (books.show("2026-10"), books.show("2026-11")) or before[0] != october:
            raise Short("the documents changed")
        return "0.13 + 0.12 = 0.25; one fact refused after 30 days; the same bytes"


@bar("billing-late-property", "random late facts: invoices and adjustments add up to a rating of everything")
def billing_late_property():
    return "; ".join((suite("gpuledger-domain", "a6_", target="lib"), suite("gpuledger-billing", "a6_", target="it")))


@bar("billing-states", "time in states that are not billed is not charged; each state a line; minimum of charged time; nothing added to what was preempted")
def billing_states():
    return "; ".join((suite("gpuledger-domain", "rating::charge", target="lib"), suite("gpuledger-billing", "states::", target="it")))


@bar("billing-sold", "reported usage and charges on documents, late ones as adjustments, none twice, outside the balance")
def billing_sold():
    return "; ".join((suite("gpuledger-domain", "v13_", target="lib"), suite("gpuledger-billing", "sold::", target="it")))


@bar("billing-close", "a month waits for partitions, nodes and earlier months; what does not close is named, the others close")
def billing_close():
    return "; ".join((suite("gpuledger-billing", "v2_", target="it"), suite("gpuledger-ledger", "v2_", target="lib")))

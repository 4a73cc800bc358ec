"""Whether two ledgers are equal: every table that the events make, and what the commands say."""
import hashlib
import re

def unsealed(text):
    """Each database seals personal fields by keys of its own; what they say is compared by the export."""
    return rf"regexp_replace({text}, '\$sealed\.\d+\.[A-Za-z0-9_-]+', 'sealed', 'g')"


BODY = "encode(f.body, 'escape')"
# Digests of facts with personal fields are keyed, by a key of each database.
DIGEST = "CASE WHEN position('$sealed.'::BYTEA IN f.body) = 0 THEN encode(f.digest, 'hex') END"

# Everything but what tells only when and in which batch something came: sequence numbers, revisions, origins.
TABLES = {
    "fact": f"SELECT source, id, type, at_us, received_at_us, rule_set, {DIGEST}, {unsealed(BODY)} FROM fact AS f",
    "identity": f"SELECT i.source, i.id, i.digest = f.digest, {DIGEST} FROM identity AS i JOIN fact AS f ON f.seq = i.fact_seq",
    "fact_subject": "SELECT s.subject, f.source, f.id FROM fact_subject AS s JOIN fact AS f ON f.seq = s.fact_seq",
    "audit_pending": f"SELECT f.kind, f.recorded_at_us, {unsealed(BODY)} FROM audit_pending AS f WHERE f.fact_seq IS NOT NULL",
    "parked": "SELECT reason, detail, source, id, subject, at_us, received_at_us FROM parked",
    "telemetry_stream": "SELECT node, stream, ranges FROM telemetry_stream",
    # How windows are divided into blocks depends on the batches; what is in them is compared by the export.
    "telemetry_block": "SELECT hour_us, sum(windows), sum(rows), max(last_end_us) FROM telemetry_block GROUP BY hour_us",
    "packed_hour": "SELECT hour_us, node, gpu, placement_start, placement_size, owner, sm_active_us, memory_byte_us, covered_us, unit_sm_active_us, "
                   "unit_memory_byte_us, unit_memory_bytes_max, unit_energy_mj, unit_covered_us, quality::TEXT, encode(minutes, 'hex') FROM packed_hour",
    "node_heard": "SELECT node, day_us, heard FROM node_heard",
    "usage_span": "SELECT * FROM usage_span",
    "allocation": f"SELECT f.allocation, f.tenant, f.project, f.class, f.start_us, f.end_us, f.end_kind, f.runtime::TEXT, {unsealed('f.labels::TEXT')}, f.source "
                  "FROM allocation AS f",
    # The last revision stands; how many there were depends on the batches.
    "journal": "SELECT DISTINCT ON (gpu, hour_us) gpu, hour_us, capacity, encode(digest, 'hex') FROM journal ORDER BY gpu, hour_us, revision DESC",
    "entry": "SELECT gpu, hour_us, start_us, end_us, account, tenant, project, allocation, unit, memory_mask, compute_slices, "
             "sum(sign * part_us) FROM entry GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 HAVING sum(sign * part_us) <> 0",
    "ledger_state": "SELECT horizon_us, clock_us FROM ledger_state",
}
# Parked events are numbered as they come.
NUMBER = re.compile(r"parked as number \d+: ")
GROUPS = ["tenant", "tenant,sku,class", "allocation", "node,hour", "tenant,project,day"]


def of_table(ledger, query):
    """(rows, digest): the rows as text, sorted by their bytes."""
    rows = ledger.sql(f"SELECT count(*), md5(COALESCE(string_agg(md5(r::TEXT), '' ORDER BY md5(r::TEXT) COLLATE \"C\"), '')) FROM ({query}) AS r")
    return int(rows[0][0]), rows[0][1]


def reports(begin, clock):
    """The commands whose output must be the same bytes."""
    window = ["--from", begin, "--to", clock, "--format", "json"]
    yield "ledger balance", ["ledger", "balance", *window]
    for keys in GROUPS:
        yield f"usage by {keys}", ["usage", *window, "--group-by", keys]
    yield "findings", ["findings", "--format", "json"]


def exported(ledger):
    """All that was accepted; the order in which it was is not compared."""
    return "\n".join(sorted(ledger.call("export", "events").splitlines()))


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(one, other, begin, clock):
    """What differs, one line each; (compared, lines, counts by table)."""
    wrong, counts, compared = [], {}, 0
    for table, query in TABLES.items():
        (rows, digest), (others, other_digest) = of_table(one, query), of_table(other, query)
        counts[table] = rows
        compared += 1
        if rows != others:
            wrong.append(f"table {table}: {rows} rows, undisturbed {others}")
        elif digest != other_digest:
            wrong.append(f"table {table}: {rows} rows in both, other contents")
    for name, words in reports(begin, clock):
        said, expected = (NUMBER.sub("", ledger.call(*words)) for ledger in (one, other))
        compared += 1
        if said != expected:
            wrong.append(f"{name}: digest {digest_of(said)}, undisturbed {digest_of(expected)}")
    compared += 1
    if exported(one) != exported(other):
        wrong.append("export events: other events")
    return compared, wrong, counts

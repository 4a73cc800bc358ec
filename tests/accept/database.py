"""Bars of the database's own guards: the storage package's tests against a real server, by name."""
from frame import bar
from suites import suite


@bar("guards-journals", "refused by COPY and INSERT, on parent and partitions: wrong capacity, hole, overlap")
def guards_journals():
    return suite("gpuledger-storage", "journal_guards", target="it")


@bar("guards-append-only", "UPDATE, DELETE and TRUNCATE of facts and entries are refused")
def guards_append_only():
    return suite("gpuledger-storage", "append_only", target="it")


@bar("row-security", "a tenant sees its own rows; the role is neither owner nor superuser nor bypassing")
def row_security():
    return suite("gpuledger-storage", "row_security", target="it")

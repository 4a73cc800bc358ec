"""Bars of the database's own guards: the storage package's tests against a real server, by name."""
from frame import bar
from suites import cargo


@bar("guards-journals", "refused by COPY and INSERT, on parent and partitions: wrong capacity, hole, overlap")
def guards_journals():
    return cargo("-p", "gpuledger-storage", "--test", "it", "journal_guards")


@bar("guards-append-only", "UPDATE, DELETE and TRUNCATE of facts and entries are refused")
def guards_append_only():
    return cargo("-p", "gpuledger-storage", "--test", "it", "append_only")


@bar("row-security", "a tenant sees its own rows; the role is neither owner nor superuser nor bypassing")
def row_security():
    return cargo("-p", "gpuledger-storage", "--test", "it", "row_security")

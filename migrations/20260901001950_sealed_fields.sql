-- Personal fields stand sealed in facts, parked events and pending records from now on (L-3). No column changes: a sealed value is a text in its field's place.
-- What was stored before stays as it is; it is append-only, and its digests stand in closes (V-3).

COMMENT ON COLUMN public.fact.body IS
    'Canonical JSON (RFC 8785) of the whole event, as bytes: JSONB would re-order. Values of personal fields are sealed: $sealed.NUMBER.BYTES, where NUMBER is that of the subject whose key seals and BYTES are nonce, ciphertext and tag in base64.';
COMMENT ON COLUMN public.fact.digest IS 'Of the content, as in identity.';
COMMENT ON COLUMN public.identity.digest IS
    'SHA-256 of the content (type, time as an instant, data as a JSON value): equal means repeated, different means conflict. Where the content has personal fields: HMAC-SHA-256 of that by the key of digests, so that names cannot be tried on it.';
COMMENT ON COLUMN public.audit_pending.body IS
    'Canonical bytes, personal fields sealed as in fact; the leaf commits to what they say.';
COMMENT ON COLUMN public.parked.body IS
    'The bytes as they came, but for values of personal fields, which are sealed as in fact. What is no JSON is sealed whole, by the site''s key.';
COMMENT ON COLUMN public.parked.fingerprint IS
    'SHA-256 over reason, source, id, body (its keyed digest where something of it is sealed) and, of a vain retry, the number it retried; a hash because a bad event may carry a name of any length.';
COMMENT ON COLUMN public.allocation.labels IS 'Labels of the grant; values of those that name a person sealed as in fact.';
COMMENT ON TABLE public.subject_key IS
    'A key for each person, tenant or other subject that leaves speak of without naming it, or of whom something is sealed (L-3). Destroying the key erases them: what stays are commitments and sealed values that nobody can open.';
COMMENT ON COLUMN public.audit_state.pepper IS
    'Key of the digests of subjects, and of contents with personal fields; sealed like a subject''s key.';
COMMENT ON COLUMN public.audit_leaf.subjects IS
    'Whose keys salt its commitments, in the order of its fields; then tenants that it concerns without naming them: whose allocation was released; then those of whom something is sealed in its record.';

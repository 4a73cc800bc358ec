-- Entries run as long as nothing about their unit changes, whatever happens beside it on the GPU: the check no longer wants every entry cut wherever
-- one of them is.

CREATE OR REPLACE FUNCTION public.check_journals() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bad RECORD;
BEGIN
    -- EXECUTE plans anew each time: a plan cached for a small statement would be quadratic for a large one.
    EXECUTE $check$
        WITH journal_lines AS (
            SELECT gpu, hour_us, revision, count(*) AS lines, min(line) AS first, max(line) AS last, min(sign) AS sign
            FROM added GROUP BY gpu, hour_us, revision
        ), unit AS (
            -- Holders of one unit share it. Compute-only rests have no memory slice to tell them apart: their account does.
            SELECT gpu, hour_us, revision, start_us, end_us, memory_mask, compute_slices, sum(part_us) AS part_us
            FROM added WHERE sign = 1
            GROUP BY gpu, hour_us, revision, start_us, end_us, memory_mask, compute_slices,
                     CASE WHEN memory_mask = 0 THEN account END
        ), edge AS (
            SELECT gpu, hour_us, revision, start_us AS at_us, compute_slices::BIGINT AS compute,
                   bit_count(memory_mask::BIT(32)) AS slices, memory_mask::BIGINT AS mask
            FROM unit
            UNION ALL
            SELECT gpu, hour_us, revision, end_us, -compute_slices::BIGINT, -bit_count(memory_mask::BIT(32)), -memory_mask::BIGINT
            FROM unit
            UNION ALL
            SELECT j.gpu, j.hour_us, j.revision, side.at_us, side.sign * j.compute_slices, side.sign * j.memory_slices,
                   side.sign * ((1::BIGINT << j.memory_slices) - 1)
            FROM journal_lines AS l
            JOIN public.journal AS j ON j.gpu = l.gpu AND j.hour_us = l.hour_us AND j.revision = l.revision
            CROSS JOIN unnest(j.capacity) AS part
            CROSS JOIN LATERAL (VALUES (lower(part), -1::BIGINT), (upper(part), 1)) AS side (at_us, sign)
        ), uneven AS (
            -- At every instant the units must add up to all compute slices, to as many memory slices as there are, and to the mask of
            -- all of them. N powers of two that add up to 2^N - 1 are the first N, each once: so the units tile the memory slices. Sums
            -- that never change but where those of the capacity do are the same throughout.
            SELECT gpu, hour_us, revision, min(at_us) AS at_us
            FROM (SELECT gpu, hour_us, revision, at_us FROM edge GROUP BY gpu, hour_us, revision, at_us
                  HAVING sum(compute) <> 0 OR sum(slices) <> 0 OR sum(mask) <> 0) AS edges
            GROUP BY gpu, hour_us, revision
        ), split AS (
            SELECT gpu, hour_us, revision FROM unit GROUP BY gpu, hour_us, revision
            HAVING NOT bool_and(part_us = end_us - start_us)
        )
        SELECT l.gpu, l.hour_us, l.revision, u.at_us, verdict.rule
        FROM journal_lines AS l
        LEFT JOIN public.journal AS j ON j.gpu = l.gpu AND j.hour_us = l.hour_us AND j.revision = l.revision
        LEFT JOIN uneven AS u ON u.gpu = l.gpu AND u.hour_us = l.hour_us AND u.revision = l.revision
        LEFT JOIN split AS s ON s.gpu = l.gpu AND s.hour_us = l.hour_us AND s.revision = l.revision
        CROSS JOIN LATERAL (SELECT CASE
            WHEN j.gpu IS NULL THEN 'it has no journal header'
            WHEN l.first <> 1 OR l.last <> l.lines THEN
                format('its lines must be 1 to %s, all in one statement', l.lines)
            WHEN u.gpu IS NOT NULL THEN 'uneven'
            WHEN s.gpu IS NOT NULL THEN 'the parts of a unit do not add up to its time'
            WHEN l.revision = 1 AND l.sign = -1 THEN 'revision 1 has nothing to negate'
            WHEN l.revision > 1 AND NOT EXISTS (
                SELECT FROM public.journal AS p
                WHERE p.gpu = l.gpu AND p.hour_us = l.hour_us AND p.revision = l.revision - 1) THEN
                format('revision %s does not exist', l.revision - 1)
        END AS rule) AS verdict
        WHERE verdict.rule IS NOT NULL
        ORDER BY l.gpu, l.hour_us, l.revision
        LIMIT 1
    $check$ INTO bad;

    IF bad.rule = 'uneven' THEN
        EXECUTE $check$
            SELECT $1 AS gpu, $2 AS hour_us, $3 AS revision,
                   format('from %s us of the hour on its units come to %s compute slices and %s memory slices, mask %s; its capacity is %s, %s and %s',
                          $4 - $2, COALESCE(sum(u.compute_slices), 0), COALESCE(sum(bit_count(u.memory_mask::BIT(32))), 0),
                          COALESCE(sum(u.memory_mask::BIGINT), 0), c.compute, c.slices, c.mask) AS rule
            FROM (SELECT CASE WHEN j.capacity @> $4 THEN j.compute_slices ELSE 0 END AS compute,
                         CASE WHEN j.capacity @> $4 THEN j.memory_slices ELSE 0 END AS slices,
                         CASE WHEN j.capacity @> $4 THEN (1::BIGINT << j.memory_slices) - 1 ELSE 0 END AS mask
                  FROM public.journal AS j WHERE j.gpu = $1 AND j.hour_us = $2 AND j.revision = $3) AS c
            LEFT JOIN (SELECT DISTINCT start_us, end_us, memory_mask, compute_slices FROM added
                       WHERE sign = 1 AND gpu = $1 AND hour_us = $2 AND revision = $3 AND start_us <= $4 AND end_us > $4) AS u ON TRUE
            GROUP BY c.compute, c.slices, c.mask
        $check$ INTO bad USING bad.gpu, bad.hour_us, bad.revision, bad.at_us;
    END IF;

    -- A record is `NOT NULL` only where each of its fields is.
    IF bad.rule IS NULL AND EXISTS (SELECT FROM added WHERE revision > 1) THEN
        EXECUTE $check$
            SELECT gpu, hour_us, revision, 'its negations are not exactly the entries of the revision before' AS rule
            FROM (
                SELECT gpu, hour_us, revision, start_us, end_us, account, tenant, project, allocation, unit, memory_mask,
                       compute_slices, part_us, 1 AS side
                FROM added WHERE sign = -1
                UNION ALL
                SELECT e.gpu, e.hour_us, e.revision + 1, e.start_us, e.end_us, e.account, e.tenant, e.project, e.allocation,
                       e.unit, e.memory_mask, e.compute_slices, e.part_us, -1
                FROM (SELECT DISTINCT gpu, hour_us, revision FROM added WHERE revision > 1) AS l
                JOIN public.entry AS e
                  ON e.gpu = l.gpu AND e.hour_us = l.hour_us AND e.revision = l.revision - 1 AND e.sign = 1
            ) AS both_sides
            GROUP BY gpu, hour_us, revision, start_us, end_us, account, tenant, project, allocation, unit, memory_mask,
                     compute_slices, part_us
            HAVING sum(side) <> 0
            ORDER BY gpu, hour_us, revision
            LIMIT 1
        $check$ INTO bad;
    END IF;

    IF bad.rule IS NOT NULL THEN
        RAISE EXCEPTION 'journal of GPU % hour % revision % refused: %', bad.gpu,
            to_char(timestamp 'epoch' + make_interval(secs => bad.hour_us / 1000000), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            bad.revision, bad.rule
            USING ERRCODE = 'check_violation', CONSTRAINT = 'journal_balance', TABLE = 'entry', SCHEMA = 'public';
    END IF;
    RETURN NULL;
END $$;

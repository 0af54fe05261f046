-- override_json_v1: an override as the audit shows it.
--
-- Units: instants in UTC, to the microsecond. Clock: none. Locks: none. SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.override_json_v1(p_override ration.override)
RETURNS json LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT json_strip_nulls(json_build_object(
        'attributes', p_override.attributes, 'action', p_override.action,
        'limit', (SELECT v.content -> 'limit' FROM ration.policy AS p JOIN ration.policy_version AS v USING (number, version)
                  WHERE p.number = p_override.limited),
        'expiresAt', to_char(ration.instant_v1(p_override.expires_at, 0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')));
END;

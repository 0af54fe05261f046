-- ITEMS decisions a request (environment, default 100), accounts drawn from ACCOUNTS (default 1,000,000).
local accounts = tonumber(os.getenv("ACCOUNTS") or "1000000")
local items = tonumber(os.getenv("ITEMS") or "100")
wrk.method = "POST"
wrk.path = "/internal/rate-decisions/batch"
wrk.headers["Content-Type"] = "application/json"

local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("seed", os.time() + threads)
end

function init()
  math.randomseed(seed)
end

function request()
  local decisions = {}
  for i = 1, items do
    decisions[i] = '{"verifiedAccount":"a' .. math.random(accounts) .. '","operation":"bench"}'
  end
  return wrk.format(nil, nil, nil, '{"decisions":[' .. table.concat(decisions, ",") .. ']}')
end

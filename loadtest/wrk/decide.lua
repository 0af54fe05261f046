-- One decision a request, accounts drawn from ACCOUNTS (environment, default 1,000,000).
local accounts = tonumber(os.getenv("ACCOUNTS") or "1000000")
wrk.method = "POST"
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
  return wrk.format(nil, nil, nil, '{"verifiedAccount":"a' .. math.random(accounts) .. '","operation":"bench"}')
end

-- Asks for decisions. By the environment:
--   OPERATION  what is asked for; default bench
--   ACCOUNTS   accounts to draw from; default 1,000,000. Each has an address and an API key of its own
--   ITEMS      decisions in one request, as a batch; default 0: one, not as a batch
--   IDS        1: each decision has an operation id that is new
local operation = os.getenv("OPERATION") or "bench"
local accounts = tonumber(os.getenv("ACCOUNTS") or "1000000")
local items = tonumber(os.getenv("ITEMS") or "0")
local ids = os.getenv("IDS") == "1"

wrk.method = "POST"
wrk.path = "/internal/rate-decisions" .. (items > 0 and "/batch" or "")
wrk.headers["Content-Type"] = "application/json"

local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("seed", os.time() + threads)
end

function init()
  math.randomseed(seed)
end

local asked = 0
local function decision()
  local n = math.random(accounts)
  local address = string.format("10.%d.%d.%d", math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256)
  local id = ""
  if ids then
    asked = asked + 1
    id = string.format('","operationId":"%d-%d', seed, asked)
  end
  return '{"verifiedAccount":"a' .. n .. '","apiKey":"k' .. n .. '","ip":"' .. address .. '","operation":"' .. operation .. id .. '"}'
end

function request()
  if items == 0 then
    return wrk.format(nil, nil, nil, decision())
  end
  local decisions = {}
  for i = 1, items do
    decisions[i] = decision()
  end
  return wrk.format(nil, nil, nil, '{"decisions":[' .. table.concat(decisions, ",") .. ']}')
end

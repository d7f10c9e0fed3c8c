-- A server's loop: for each line on stdin 200 requests, and one line of figures on stdout. A request replaces one of
-- 5000 sessions by a new one of eleven tables, and makes an answer. LEAKED answers a line are kept for ever.
local hakmem = require "hakmem"

local SESSIONS, REQUESTS, ITEMS = 5000, 200, 10
local OPERATIONS = 2 * (ITEMS + 1) -- the tables that a request makes and frees, nothing else counted
local leaked, kept = tonumber(arg[1] or 0), {}
local sessions, state, requests = {}, 23, 0

local function random(n)
    state = (state * 16807) % 2147483647
    return state % n + 1
end

local function request(id)
    local items = {}
    for i = 1, ITEMS do
        items[i] = { name = "item " .. random(20000), price = random(1000) }
    end
    sessions[id] = items
    local out = {}
    for i, item in ipairs(items) do
        out[i] = ('{"name": "%s", "price": %d}'):format(item.name, item.price)
    end
    return "[" .. table.concat(out, ", ") .. "]"
end

for _ in io.lines() do
    for i = 1, REQUESTS do
        local answer = request(random(SESSIONS))
        if i <= leaked then
            kept[#kept + 1] = answer .. #kept
        end
    end
    requests = requests + REQUESTS
    local s = hakmem.stats()
    print(
        ('{"ops": %d, "live_bytes": %d, "committed_bytes": %d, "metadata_bytes": %d, "os_calls": %d}'):format(
            requests * OPERATIONS, s.live_bytes, s.committed_bytes, s.metadata_bytes, s.os_calls
        )
    )
    io.stdout:flush()
end

-- A memory limit in action: a job that never ends is stopped by an ordinary error, and work goes on.
--   haklua5.4 examples/lua/limit.lua [MiB]
local hakmem = require "hakmem"

local limit = (tonumber(arg[1]) or 16) * 2 ^ 20
hakmem.limit(limit)

local function runaway()
    local rows = {}
    while true do
        rows[#rows + 1] = { id = #rows, text = ("row %d "):format(#rows):rep(4) }
    end
end

local function useful()
    local words, total = {}, 0
    for i = 1, 100000 do
        local word = "word" .. i % 5000
        words[word] = (words[word] or 0) + 1
    end
    for _, n in pairs(words) do
        total = total + n
    end
    return total
end

local function MiB(bytes)
    return bytes / 2 ^ 20
end

for round = 1, 3 do
    local ok, message = pcall(runaway)
    assert(not ok)
    collectgarbage() -- first: at the limit there is no room for anything else
    local stats = hakmem.stats()
    assert(stats.peak_bytes <= limit)
    print(("round %d: %q at %.1f of %.1f MiB; %.1f MiB once collected; %d words counted"):format(
        round, message, MiB(stats.peak_bytes), MiB(limit), MiB(stats.live_bytes), useful()))
end

-- What an allocation costs, in nanoseconds; the difference between --hak-labels=on and off is the cost of
-- labels. The least of many short rounds, each with the collector's work for what it made.
if jit then
    jit.off()
end

local programs = {
    { "table", 1, function(n) for _ = 1, n do local t = {} end end },
    { "closure and upvalue", 2, function(n) for i = 1, n do local f = function() return i end end end },
    { "string", 1, function(n) for i = 1, n do local s = "k" .. i end end },
}

local rounds, count = 60, 100000
for _, program in ipairs(programs) do
    local name, allocations, run = program[1], program[2], program[3]
    local least = math.huge
    for _ = 1, rounds do
        collectgarbage()
        local start = os.clock()
        run(count)
        least = math.min(least, os.clock() - start)
    end
    io.write(("%s %.1f  "):format(name, least / count / allocations * 1e9))
end
print()

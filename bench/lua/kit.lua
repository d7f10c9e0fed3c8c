-- What every program of this folder shares: its size, a random generator that gives the same numbers
-- on all Lua versions, and the checksum line that runners compare between allocators.
local kit = {}

kit.scale = tonumber(arg[1]) or 1

-- n times the scale, at least `least`.
function kit.size(n, least)
    return math.max(least or 1, math.floor(n * kit.scale))
end

-- random(n) gives an integer from 1 to n. Park-Miller: every product stays below 2^53.
function kit.random(seed)
    local state = seed
    return function(n)
        state = (state * 16807) % 2147483647
        return state % n + 1
    end
end

local sum = 1

function kit.add(value)
    sum = (sum * 31 + value) % 2147483647
end

function kit.add_string(s)
    for i = 1, #s do
        sum = (sum * 31 + s:byte(i)) % 2147483647
    end
end

function kit.check(ok, what)
    if not ok then
        error("wrong result: " .. what, 2)
    end
end

function kit.finish(name)
    print(string.format("%s %d", name, sum))
end

return kit

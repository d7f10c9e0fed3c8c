-- Binary trees: many that go at once, and a forest of which a few are replaced in each round.
local lifetime = require "lifetime_lua"
math.randomseed(tonumber(arg[1]))

local function tree(depth)
    if depth == 0 then
        return { value = depth }
    end
    local left = tree(depth - 1)
    return { left, tree(depth - 1), value = depth }
end

local function count(t)
    return t[1] and 1 + count(t[1]) + count(t[2]) or 1
end

local forest = {}
for _ = 1, 8 do
    for _ = 1, 70 do
        assert(count(tree(math.random(4, 9))) > 0)
        if math.random() < 0.4 then
            forest[math.random(40)] = tree(math.random(5, 9))
        end
    end
    collectgarbage()
    lifetime.mark()
end

-- Binary trees: many short-lived ones beside one that stays.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")

local function build(depth)
    if depth == 0 then
        return {}
    end
    return { build(depth - 1), build(depth - 1) }
end

local function count(node)
    if not node[1] then
        return 1
    end
    return 1 + count(node[1]) + count(node[2])
end

local deepest = 14
local kept = build(deepest)

for depth = 4, deepest, 2 do
    local trees = kit.size(30 * 2 ^ (deepest - depth))
    local nodes = 0
    for _ = 1, trees do
        nodes = nodes + count(build(depth))
    end
    kit.check(nodes == trees * (2 ^ (depth + 1) - 1), "nodes at depth " .. depth)
    kit.add(nodes)
end

kit.check(count(kept) == 2 ^ (deepest + 1) - 1, "the tree that was kept")
kit.finish("trees")

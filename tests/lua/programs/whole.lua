-- Every kind of object and of growth that an interpreter asks its allocator for, in little time. Returns a
-- number that depends on all of it; the same on all engines.
local unpack = unpack or table.unpack
local loadstring = loadstring or load
local rounds = ... or 1
local sum = 0

local function tree(depth)
    if depth == 0 then return {} end
    return { tree(depth - 1), tree(depth - 1) }
end
local function count(t) return t[1] and 1 + count(t[1]) + count(t[2]) or 1 end

local function records(n)
    local list, by_name = {}, {}
    for i = 1, n do
        local r = { id = i, name = "record " .. i, tags = { i, i + 1 } }
        list[i], by_name[r.name] = r, r
    end
    for i = 1, n, 2 do by_name[list[i].name] = nil end
    local live = 0
    for _, r in pairs(by_name) do live = live + r.id % 7 end
    return live
end

local function strings(n)
    local parts = {}
    for i = 1, n do parts[#parts + 1] = string.format("%05d:%s", i, string.rep("x", i % 40)) end
    local text = table.concat(parts, ",")
    local words = 0
    for w in text:gmatch("[^,]+") do words = words + #w end
    return words + #text:gsub("x+", "yy"):upper() + #string.rep("big", 200000)
end

local function coroutines(n)
    local total = 0
    for i = 1, n do
        local co = coroutine.wrap(function(a)
            local b = coroutine.yield(a + 1)
            local function deep(k) return k == 0 and 0 or 1 + deep(k - 1) end
            return b + deep(i % 200)
        end)
        total = total + co(i) + co(i)
    end
    return total
end

local function closures(n)
    local fs = {}
    for i = 1, n do
        local up = { i }
        fs[i] = function(x) up[1] = up[1] + x return up[1] end
    end
    local total = 0
    for i = 1, n do total = total + fs[i](i % 3) end
    return total
end

local function chunks(n)
    local total = 0
    for i = 1, n do
        local f = assert(loadstring("local a, b = ... local t = { a, b, k = '" .. i .. "' } return function() return #t + a end"))
        total = total + f(i, 2)()
    end
    return total
end

local function errors(n)
    local caught = 0
    for i = 1, n do
        local ok, e = pcall(function() local t = nil; if i % 2 == 0 then error({ i }) end return t.x end)
        if not ok then caught = caught + (type(e) == "table" and e[1] or 1) end
    end
    return caught
end

local function weak(n)
    local cache = setmetatable({}, { __mode = "k" })
    local keep = {}
    for i = 1, n do
        local k = {}
        cache[k] = "value " .. i
        if i % 10 == 0 then keep[#keep + 1] = k end
    end
    collectgarbage()
    local left = 0
    for _ in pairs(cache) do left = left + 1 end
    return left
end

local function varargs(n)
    local t = {}
    for i = 1, n do t[i] = i end
    return select("#", unpack(t))
end

for _ = 1, rounds do
    sum = sum + count(tree(12)) + records(2000) + strings(2000) + coroutines(300) + closures(3000)
        + chunks(200) + errors(300) + weak(1000) + varargs(200)
end
return sum

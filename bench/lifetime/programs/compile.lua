-- A cache of compiled scripts: Lua's compiler reads scripts, of which some run once and others stay. A trough comes after
-- each burst.
local lifetime = require "lifetime_lua"
math.randomseed(tonumber(arg[1]))
local random = math.random

local sources, cache, order = {}, {}, {}
for i = 2, #arg do
    local file = assert(io.open(arg[i]))
    sources[i - 1] = file:read("a"):gsub("^#[^\n]*", "")
    file:close()
end

local function run_once(name, text)
    return load(text, name)
end

local function remember(name, text)
    local script = { name = name, code = load(text, name), calls = 0 }
    order[#order + 1] = name
    cache[name] = script
    if #order > 150 then
        cache[table.remove(order, 1)] = nil
    end
end

for burst = 1, 8 do
    for k = 1, random(90, 110) do
        local name = ("=script %d.%d"):format(burst, k)
        local text = sources[random(#sources)]
        if random() < 0.3 then
            remember(name, text)
        else
            run_once(name, text)
        end
    end
    collectgarbage()
    lifetime.mark()
end

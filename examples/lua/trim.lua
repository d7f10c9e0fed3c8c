-- What a collection and a trim give back when few of many records survive. Without hakmem (a plain
-- `luajit trim.lua`) it shows what the runtime's own allocator gives back.
--   haklua5.4 examples/lua/trim.lua [records]
local ok, hakmem = pcall(require, "hakmem")

local count = tonumber(arg[1]) or 1000000

local function resident()
    for line in io.lines("/proc/self/smaps_rollup") do
        local kb = line:match("^Rss:%s+(%d+)")
        if kb then
            return kb / 1024
        end
    end
end

local records = {}
for i = 1, count do
    records[i] = { id = i, name = "record " .. i, at = { i, -i } }
end
local full = resident()

for i = 1, count do
    if i % 1000 ~= 0 then
        records[i] = false
    end
end
collectgarbage()
local collected = resident()

if ok then
    hakmem.trim()
end
print(("%.1f %.1f %.1f"):format(full, collected, resident()))

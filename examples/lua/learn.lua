-- A server that loads its records when it starts, and then answers requests.
--
--     haklua5.4 --hak-learn=server.policy learn.lua     first start: learns how large the heap gets
--     haklua5.4 --hak-learn=server.policy learn.lua     next start: has huge pages from its first chunk on
--
-- hakmem.tick() lends the allocator time; the learner looks at the heap then. docs/guide/learning.md has the figures.
local hakmem = require "hakmem"

local count = tonumber(arg[1] or 1500000)
local records = {}
for i = 1, count do
    records[i] = { id = i, name = "n" .. i, value = i * 0.5 }
    if i % 50000 == 0 then hakmem.tick() end
end

local sum = 0
for request = 1, 20000 do
    sum = sum + records[(request * 7919) % count + 1].value
    if request % 1000 == 0 then hakmem.tick() end
end
print(count .. " records, " .. sum)

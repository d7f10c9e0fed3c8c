-- A large set of records in which random ones are replaced: survivors lie scattered between garbage.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(17)

local slots = 75000
local rounds = kit.size(330000)

local function record(id)
    local r = { id = id, name = "item " .. id % 20000, next = false }
    if id % 3 == 0 then
        r.tags = { id % 7, id % 11 }
    end
    if id % 16 == 0 then
        r.note = { text = ("n"):rep(id % 64), stamp = id }
    end
    return r
end

local store, ids = {}, 0
for i = 1, slots do
    store[i] = record(i)
    ids = ids + i
end
for i = 1, rounds do
    local at = random(slots)
    local id = slots + i
    ids = ids + id - store[at].id
    local fresh = record(id)
    fresh.next = store[random(slots)].id
    store[at] = fresh
end

local total, tagged = 0, 0
for i = 1, slots do
    local r = store[i]
    total = total + r.id
    kit.add(#r.name)
    if r.tags then
        tagged = tagged + 1
        kit.check(r.tags[1] == r.id % 7 and r.tags[2] == r.id % 11, "tags of " .. r.id)
    end
    if r.note then
        kit.check(#r.note.text == r.id % 64, "note of " .. r.id)
    end
end
kit.check(total == ids, "sum of the ids")
kit.add(tagged)
kit.finish("replace")

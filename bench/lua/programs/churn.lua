-- Records built in batches, summed up and dropped: what a server does with its requests.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(11)

local batches = kit.size(300)
local batch_size = 3000
local countries = { "at", "be", "ch", "de", "dk", "fi", "fr", "it" }

local function record(id)
    return {
        id = id,
        user = "user" .. id % 5000,
        amount = random(10000),
        from = { country = countries[random(8)], city = random(300) },
        items = { random(900), random(900), random(900) },
    }
end

local expected, seen = 0, 0
local by_country = {}
for batch = 1, batches do
    local list = {}
    for i = 1, batch_size do
        local r = record(batch * batch_size + i)
        expected = expected + r.amount
        list[i] = r
    end
    local totals = {}
    for i = 1, #list do
        local r = list[i]
        local c = r.from.country
        totals[c] = (totals[c] or 0) + r.amount
        kit.add(r.items[1] + r.items[3])
    end
    for c, total in pairs(totals) do
        by_country[c] = (by_country[c] or 0) + total
    end
end

for _, c in ipairs(countries) do
    seen = seen + by_country[c]
    kit.add(by_country[c])
end
kit.check(seen == expected, "sum over the countries")
kit.finish("churn")

-- An API server: requests are decoded, answered and encoded; sessions and answers stay in caches with a bound. A trough
-- comes after each burst of requests, when the idle server has collected its garbage.
local lifetime, json = require "lifetime_lua", require "dkjson"
math.randomseed(tonumber(arg[1]))
local random = math.random

local function new_cache(most)
    return { entries = {}, order = {}, first = 1, last = 0, most = most }
end

local function put(cache, key, value)
    if cache.entries[key] == nil then
        cache.last = cache.last + 1
        cache.order[cache.last] = key
        if cache.last - cache.first >= cache.most then
            cache.entries[cache.order[cache.first]] = nil
            cache.order[cache.first] = nil
            cache.first = cache.first + 1
        end
    end
    cache.entries[key] = value
end

local sessions, answers = new_cache(1500), new_cache(800)

local function request_text()
    local lines = {}
    for i = 1, random(2, 12) do
        lines[i] = { sku = "sku-" .. random(5000), count = random(9), note = random() < 0.2 and "gift" or nil }
    end
    return json.encode { user = random(5000), path = "/orders/" .. random(2000), lines = lines }
end

local function session_of(user)
    local found = sessions.entries[user]
    if not found then
        found = { user = user, name = "user " .. user, seen = {}, cart = {}, token = ("%x"):format(random(2 ^ 52)) }
        put(sessions, user, found)
    end
    return found
end

local function answer(body)
    local request = json.decode(body)
    local session = session_of(request.user)
    session.seen[#session.seen % 5 + 1] = request.path
    local cached = answers.entries[request.path]
    if cached then
        return cached
    end
    local total, rows = 0, {}
    for i, line in ipairs(request.lines) do
        total = total + line.count * 17
        rows[i] = { title = "Product " .. line.sku, price = line.count * 17, text = line.note }
        session.cart[i] = line.sku
    end
    local text = json.encode { total = total, rows = rows, user = session.name }
    put(answers, request.path, text)
    return text
end

for _ = 1, 8 do
    for _ = 1, random(550, 650) do
        answer(request_text())
    end
    collectgarbage()
    lifetime.mark()
end

-- A store of JSON documents: imports are decoded and filtered, old documents leave, queries group what is there. A trough
-- comes after each import and its queries.
local lifetime, json = require "lifetime_lua", require "dkjson"
math.randomseed(tonumber(arg[1]))
local random = math.random
local documents, by_tag, next_id = {}, {}, 1

local function text_of_document()
    local parts = {}
    for i = 1, random(3, 10) do
        parts[i] = { name = "part " .. random(300), size = random(1000) / 8, tags = { "t" .. random(40), "t" .. random(40) } }
    end
    return json.encode { title = "document " .. random(10 ^ 6), rank = random(100), parts = parts, body = ("x "):rep(random(10, 80)) }
end

local function import(text)
    local document = json.decode(text)
    if document.rank <= 60 then
        return
    end
    documents[next_id] = document
    for _, part in ipairs(document.parts) do
        for _, tag in ipairs(part.tags) do
            local list = by_tag[tag] or {}
            list[next_id] = true
            by_tag[tag] = list
        end
    end
    next_id = next_id + 1
end

local function expire(most)
    for id = next_id - most - 1, 1, -1 do
        if not documents[id] then
            return
        end
        documents[id] = nil
        for _, list in pairs(by_tag) do
            list[id] = nil
        end
    end
end

local function query(tag)
    local found = {}
    for id in pairs(by_tag[tag] or {}) do
        local document, sum = documents[id], 0
        for _, part in ipairs(document.parts) do
            sum = sum + part.size
        end
        found[#found + 1] = { title = document.title, sum = sum }
    end
    table.sort(found, function(a, b)
        return a.sum > b.sum
    end)
    return json.encode(found)
end

for _ = 1, 8 do
    for _ = 1, random(450, 550) do
        import(text_of_document())
    end
    expire(750)
    for _ = 1, 30 do
        query("t" .. random(40))
    end
    collectgarbage()
    lifetime.mark()
end

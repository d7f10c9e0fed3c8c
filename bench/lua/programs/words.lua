-- Word count: a large vocabulary is interned, counted per chapter, merged and ranked.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(47)

local vocabulary = {}
local letters = "etaoinshrdlucmfwypvbgkqjxz"
for i = 1, 60000 do
    local n, w = i, ""
    repeat
        local d = n % 26 + 1
        w = w .. letters:sub(d, d)
        n = math.floor(n / 26)
    until n == 0
    vocabulary[i] = w
end

local function chapter(words)
    local lines, line = {}, {}
    for _ = 1, words do
        local r = math.floor(random(60000) * random(60000) / 60000) + 1
        line[#line + 1] = vocabulary[math.min(r, 60000)]
        if #line == 12 then
            lines[#lines + 1] = table.concat(line, " ")
            line = {}
        end
    end
    lines[#lines + 1] = table.concat(line, " ")
    return table.concat(lines, "\n")
end

local book, total = {}, 0
for number = 1, kit.size(42) do
    local words = 12000
    local counts, positions = {}, {}
    local at = 0
    for w in chapter(words):gmatch("%a+") do
        at = at + 1
        counts[w] = (counts[w] or 0) + 1
        local list = positions[w]
        if list then
            list[#list + 1] = at
        else
            positions[w] = { at }
        end
    end
    kit.check(at == words, "words of chapter " .. number)
    for w, n in pairs(counts) do
        kit.check(#positions[w] == n, "positions of " .. w)
        book[w] = (book[w] or 0) + n
    end
    total = total + words
end

local ranked = {}
local sum = 0
for w, n in pairs(book) do
    ranked[#ranked + 1] = { word = w, count = n }
    sum = sum + n
end
kit.check(sum == total, "sum of the counts")
table.sort(ranked, function(a, b)
    if a.count ~= b.count then
        return a.count > b.count
    end
    return a.word < b.word
end)
for i = 1, math.min(50, #ranked) do
    kit.add_string(ranked[i].word)
    kit.add(ranked[i].count)
end
kit.add(#ranked)
kit.finish("words")

-- Counting of all substrings of several lengths in generated DNA.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(53)

local bases = { "A", "C", "G", "T" }

local function sequence(n)
    local parts, motif = {}, {}
    for i = 1, 400 do
        motif[i] = bases[random(4)]
    end
    for i = 1, n do
        -- Half of it repeats the motif, with mutations.
        if i % 800 < 400 and random(20) > 1 then
            parts[i] = motif[i % 400 + 1]
        else
            parts[i] = bases[random(4)]
        end
    end
    return table.concat(parts)
end

local function count(s, k)
    local counts = {}
    for i = 1, #s - k + 1 do
        local word = s:sub(i, i + k - 1)
        counts[word] = (counts[word] or 0) + 1
    end
    return counts
end

local function summary(counts, total, k)
    local list, sum = {}, 0
    for word, n in pairs(counts) do
        list[#list + 1] = { word, n }
        sum = sum + n
    end
    kit.check(sum == total, "number of words of length " .. k)
    table.sort(list, function(a, b)
        if a[2] ~= b[2] then
            return a[2] > b[2]
        end
        return a[1] < b[1]
    end)
    kit.add(#list)
    for i = 1, math.min(10, #list) do
        kit.add_string(list[i][1])
        kit.add(list[i][2])
    end
end

-- Below half the work the text gets shorter too: one round is long.
local length = math.floor(90000 * math.min(1, 2 * kit.scale))
for _ = 1, kit.size(2) do
    local dna = sequence(length)
    for _, k in ipairs({ 1, 2, 4, 6, 12, 18 }) do
        summary(count(dna, k), length - k + 1, k)
    end
end
kit.finish("kmers")

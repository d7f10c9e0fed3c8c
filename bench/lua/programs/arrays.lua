-- Arrays that grow: append, insert and remove in the middle, queues, matrices, sorting.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(41)

local function matrix(n, f)
    local m = {}
    for i = 1, n do
        local row = {}
        for j = 1, n do
            row[j] = f(i, j)
        end
        m[i] = row
    end
    return m
end

local function multiply(a, b)
    local n, columns = #a, {}
    for j = 1, n do
        local column = {}
        for k = 1, n do
            column[k] = b[k][j]
        end
        columns[j] = column
    end
    return matrix(n, function(i, j)
        local row, column, sum = a[i], columns[j], 0
        for k = 1, n do
            sum = sum + row[k] * column[k]
        end
        return sum
    end)
end

local function trace(m)
    local sum = 0
    for i = 1, #m do
        sum = sum + m[i][i]
    end
    return sum
end

-- Powers of a permutation matrix: after n steps it is the identity.
local function powers(n)
    local step = matrix(n, function(i, j)
        return j == i % n + 1 and 1 or 0
    end)
    local m = step
    for _ = 2, n do
        m = multiply(m, step)
    end
    return trace(m)
end

local kept = {}
for round = 1, kit.size(26) do
    local list, sum = {}, 0
    for i = 1, 100000 do
        local v = random(1000)
        list[i] = v
        sum = sum + v
    end
    local small = {}
    for i = 1, 2000 do
        local part = {}
        for j = 1, i % 50 do
            part[#part + 1] = list[i * 50 + j - 50]
        end
        small[i] = part
    end
    local copied = 0
    for i = 1, #small do
        copied = copied + #small[i]
    end
    kit.check(copied == 40 * 1225, "length of the small arrays")

    local middle = {}
    for i = 1, 3000 do
        table.insert(middle, math.floor(#middle / 2) + 1, list[i])
    end
    local removed = 0
    while #middle > 0 do
        removed = removed + table.remove(middle, random(#middle))
    end
    local first = 0
    for i = 1, 3000 do
        first = first + list[i]
    end
    kit.check(removed == first, "sum of what was removed")

    local queue, from, to = {}, 1, 0
    for i = 1, 40000 do
        to = to + 1
        queue[to] = list[i]
        if i % 3 ~= 0 then
            queue[from] = nil
            from = from + 1
        end
    end
    kit.check(to - from + 1 == 13333, "length of the queue")

    local part = {}
    for i = 1, 8000 do
        part[i] = list[i] * 100000 + i
    end
    table.sort(part)
    for i = 2, #part do
        kit.check(part[i - 1] < part[i], "order after sort")
    end
    kept[round % 5] = { list, small }
    kit.add(sum)
    kit.add(part[4000])
end
kit.check(powers(60) == 60, "trace of the identity")
kit.finish("arrays")

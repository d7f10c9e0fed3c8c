-- Closures and coroutines: pipelines of generators, filters and folds, set up and thrown away.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")

local function range(n)
    return coroutine.wrap(function()
        for i = 1, n do
            coroutine.yield(i)
        end
    end)
end

local function map(source, f)
    return coroutine.wrap(function()
        for v in source do
            coroutine.yield(f(v))
        end
    end)
end

local function filter(source, keep)
    return coroutine.wrap(function()
        for v in source do
            if keep(v) then
                coroutine.yield(v)
            end
        end
    end)
end

local function pairwise(source)
    return coroutine.wrap(function()
        local last = source()
        for v in source do
            coroutine.yield({ last, v })
            last = v
        end
    end)
end

local function compose(...)
    local steps = { ... }
    return function(v)
        for i = 1, #steps do
            v = steps[i](v)
        end
        return v
    end
end

local function adder(n)
    return function(v)
        return v + n
    end
end

local function scaler(n)
    return function(v)
        return v * n
    end
end

-- Closures that share upvalues, as callbacks do.
local function account(start)
    local balance, log = start, {}
    return {
        deposit = function(n)
            balance = balance + n
            log[#log + 1] = function()
                return balance - n
            end
        end,
        balance = function()
            return balance
        end,
        entries = function()
            return #log
        end,
    }
end

local length = 40
local waiting = {}
for round = 1, kit.size(19000) do
    local step = compose(adder(round), scaler(3), adder(-3 * round))
    local source = map(range(length), step)
    source = filter(source, function(v)
        return v % 2 == 0
    end)
    local total, pairs_seen = 0, 0
    for p in pairwise(source) do
        kit.check(p[2] - p[1] == 6, "distance of neighbours")
        total = total + p[1]
        pairs_seen = pairs_seen + 1
    end
    kit.check(pairs_seen == length / 2 - 1, "number of pairs")
    kit.add(total)

    local a = account(round)
    for i = 1, 20 do
        a.deposit(i)
    end
    kit.check(a.balance() == round + 210 and a.entries() == 20, "balance")

    -- A coroutine that stays suspended for 300 rounds.
    local slot = round % 300
    local old = waiting[slot]
    if old then
        kit.add(old())
    end
    waiting[slot] = coroutine.wrap(function()
        local state = { round, a }
        coroutine.yield(0)
        return state[1] + state[2].balance()
    end)
    waiting[slot]()
end
kit.finish("pipeline")

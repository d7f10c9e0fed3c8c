-- Runs out of memory where only a fast function of LuaJIT allocates, after a C function was called from a frame
-- further down, and looks at the locals of all callers. Arguments: how many strings, "main" or "coroutine".
local count, where = tonumber(arg[1]), arg[2]
local keep = {}
for i = 1, count do keep[i] = false end
local function inner(i) local s = tostring(i + 0.5) return s end
local function deep(i, a, b, c, d, e, f, g, h)
    local k, l, m, o = "k", "l", "m", "o"
    local ok, s = pcall(inner, i)
    local whole = a == "a" and b == "b" and c == "c" and d == "d" and e == "e" and f == "f" and g == "g"
        and h == "h" and k == "k" and l == "l" and m == "m" and o == "o"
    if not whole or (not ok and s ~= "not enough memory") then
        keep = nil
        collectgarbage()
        print("damaged", ok, s, a, b, c, d, e, f, g, h, k, l, m, o)
        os.exit(2)
    end
    return ok, s
end
local function main()
    for i = 1, count do
        os.clock()
        local ok, s = deep(i, "a", "b", "c", "d", "e", "f", "g", "h")
        if not ok then
            keep = nil
            collectgarbage()
            return "caught"
        end
        keep[i] = s
    end
    return "end"
end
print(where == "coroutine" and coroutine.wrap(main)() or main())

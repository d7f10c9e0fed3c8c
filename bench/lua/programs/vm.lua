-- A bytecode interpreter whose values, frames and environments are small tables.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")

local function int(n)
    return { tag = "int", n = n }
end

local function cons(head, tail)
    return { tag = "cons", head = head, tail = tail }
end

local empty = { tag = "nil" }

local function frame(code, caller, locals)
    return { code = code, pc = 1, stack = {}, top = 0, locals = locals, caller = caller }
end

local function push(f, v)
    f.top = f.top + 1
    f.stack[f.top] = v
end

local function pop(f)
    local top = f.top
    local v = f.stack[top]
    f.stack[top] = nil
    f.top = top - 1
    return v
end

local ops = {}

function ops.const(f, i)
    push(f, int(i[2]))
end

function ops.empty(f)
    push(f, empty)
end

function ops.get(f, i)
    push(f, f.locals[i[2]])
end

function ops.add(f)
    local b, a = pop(f), pop(f)
    push(f, int((a.n + b.n) % 1000003))
end

function ops.sub(f)
    local b, a = pop(f), pop(f)
    push(f, int(a.n - b.n))
end

function ops.mul(f)
    local b, a = pop(f), pop(f)
    push(f, int(a.n * b.n % 1000003))
end

function ops.cons(f)
    local tail, head = pop(f), pop(f)
    push(f, cons(head, tail))
end

function ops.head(f)
    push(f, pop(f).head)
end

function ops.tail(f)
    push(f, pop(f).tail)
end

function ops.jump(f, i)
    f.pc = i[2]
end

function ops.if_less(f, i)
    local b, a = pop(f), pop(f)
    if a.n < b.n then
        f.pc = i[2]
    end
end

function ops.if_empty(f, i)
    if pop(f) == empty then
        f.pc = i[2]
    end
end

function ops.call(f, i)
    local locals = {}
    for k = i[3], 1, -1 do
        locals[k] = pop(f)
    end
    return frame(i[2], f, locals)
end

function ops.ret(f)
    local caller = f.caller
    push(caller, pop(f))
    return caller
end

local function run(code, args)
    local halt = {}
    local base = frame(halt, nil, {})
    local f = frame(code, base, args)
    local steps = 0
    while f ~= base do
        local i = f.code[f.pc]
        f.pc = f.pc + 1
        f = ops[i[1]](f, i) or f
        steps = steps + 1
    end
    return pop(base), steps
end

-- fib(n)
local fib = {}
for k, i in ipairs({
    { "get", 1 }, { "const", 2 }, { "if_less", 12 },
    { "get", 1 }, { "const", 1 }, { "sub" }, { "call", fib, 1 },
    { "get", 1 }, { "const", 2 }, { "sub" }, { "call", fib, 1 },
    { "get", 1 },
    { "ret" },
}) do
    fib[k] = i
end
-- After the two calls: add and return, at 12; the small case follows.
fib[3][2] = 14
fib[12], fib[13], fib[14], fib[15] = { "add" }, { "ret" }, { "get", 1 }, { "ret" }

-- upto(n): the list n, n-1, ... 1
local upto = {}
for k, i in ipairs({
    { "get", 1 }, { "const", 1 }, { "if_less", 10 },
    { "get", 1 }, { "get", 1 }, { "const", 1 }, { "sub" }, { "call", upto, 1 }, { "cons" },
    { "ret" },
}) do
    upto[k] = i
end
upto[3][2] = 11
upto[11], upto[12] = { "empty" }, { "ret" }

-- sum of squares of a list
local squares = {}
for k, i in ipairs({
    { "get", 1 }, { "if_empty", 11 },
    { "get", 1 }, { "head" }, { "get", 1 }, { "head" }, { "mul" },
    { "get", 1 }, { "tail" }, { "call", squares, 1 },
}) do
    squares[k] = i
end
squares[2][2] = 13
squares[11], squares[12], squares[13], squares[14] = { "add" }, { "ret" }, { "const", 0 }, { "ret" }

local function fibonacci(n)
    local a, b = 0, 1
    for _ = 1, n do
        a, b = b, a + b
    end
    return a
end

local lists = {}
for round = 1, kit.size(26) do
    local n = 13 + round % 4
    local v, steps = run(fib, { int(n) })
    kit.check(v.n == fibonacci(n), "fib(" .. n .. ")")
    kit.add(steps)
    local length = 3000
    local list = run(upto, { int(length) })
    local s = run(squares, { list })
    kit.check(s.n == length * (length + 1) * (2 * length + 1) / 6 % 1000003, "sum of squares")
    lists[round % 10] = list
    kit.add(s.n)
end
kit.finish("vm")

-- A small expression language: source text is tokenised, parsed into a tree, folded and evaluated.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(31)

local function source(depth)
    if depth == 0 then
        return random(2) == 1 and tostring(random(99)) or "v" .. random(20)
    end
    local kind = random(6)
    if kind == 1 then
        return "(" .. source(depth - 1) .. " + " .. source(depth - 1) .. ")"
    elseif kind == 2 then
        return source(depth - 1) .. " - " .. source(depth - 1)
    elseif kind == 3 then
        return "(" .. source(depth - 1) .. ") * " .. random(9)
    elseif kind == 4 then
        return "max(" .. source(depth - 1) .. ", " .. source(depth - 1) .. ")"
    elseif kind == 5 then
        local name = "x" .. depth
        return ("let %s = %s in (%s + %s)"):format(name, source(depth - 1), source(depth - 1), name)
    end
    return ("if %s < %s then %d else %s end"):format(
        source(depth - 1), source(depth - 1), random(50), source(depth - 1))
end

local keywords = {}
for word in ("let in if then else end"):gmatch("%a+") do
    keywords[word] = true
end

local function tokenise(text)
    local tokens, at, line = {}, 1, 1
    while true do
        at = text:find("%S", at)
        if not at then
            break
        end
        local word = text:match("^[%a_][%w_]*", at)
        if word then
            local kind = keywords[word] and word or "name"
            tokens[#tokens + 1] = { kind = kind, text = word, at = at, line = line }
            at = at + #word
        else
            local digits = text:match("^%d+", at)
            if digits then
                tokens[#tokens + 1] = { kind = "number", value = tonumber(digits), at = at, line = line }
                at = at + #digits
            else
                tokens[#tokens + 1] = { kind = text:sub(at, at), at = at, line = line }
                at = at + 1
            end
        end
    end
    tokens[#tokens + 1] = { kind = "eof", at = at, line = line }
    return tokens
end

local Parser = {}
Parser.__index = Parser

function Parser:peek()
    return self.tokens[self.at].kind
end

function Parser:take(kind)
    local token = self.tokens[self.at]
    if kind and token.kind ~= kind then
        error("expected " .. kind .. ", got " .. token.kind)
    end
    self.at = self.at + 1
    return token
end

function Parser:primary()
    local kind = self:peek()
    if kind == "number" then
        return { op = "const", value = self:take().value }
    elseif kind == "(" then
        self:take()
        local e = self:expression()
        self:take(")")
        return e
    elseif kind == "let" then
        self:take()
        local name = self:take("name").text
        self:take("=")
        local value = self:expression()
        self:take("in")
        return { op = "let", name = name, value = value, body = self:expression() }
    elseif kind == "if" then
        self:take()
        local cond = self:expression()
        self:take("then")
        local yes = self:expression()
        self:take("else")
        local no = self:expression()
        self:take("end")
        return { op = "if", cond = cond, yes = yes, no = no }
    end
    local name = self:take("name").text
    if self:peek() ~= "(" then
        return { op = "var", name = name }
    end
    self:take()
    local call = { op = "call", name = name, args = {} }
    repeat
        call.args[#call.args + 1] = self:expression()
    until self:take().kind == ")"
    return call
end

function Parser:binary(operators, operand)
    local left = operand(self)
    while operators[self:peek()] do
        local op = self:take().kind
        left = { op = op, left = left, right = operand(self) }
    end
    return left
end

local products, sums, orders = { ["*"] = true }, { ["+"] = true, ["-"] = true }, { ["<"] = true }

function Parser:product()
    return self:binary(products, self.primary)
end

function Parser:sum()
    return self:binary(sums, self.product)
end

function Parser:expression()
    return self:binary(orders, self.sum)
end

local arithmetic = {
    ["+"] = function(a, b) return (a + b) % 1000003 end,
    ["-"] = function(a, b) return (a - b) % 1000003 end,
    ["*"] = function(a, b) return (a * b) % 1000003 end,
    ["<"] = function(a, b) return a < b and 1 or 0 end,
}

-- A new tree in which operators on constants are replaced by their result.
local function fold(node)
    local op = node.op
    if arithmetic[op] then
        local left, right = fold(node.left), fold(node.right)
        if left.op == "const" and right.op == "const" then
            return { op = "const", value = arithmetic[op](left.value, right.value) }
        end
        return { op = op, left = left, right = right }
    elseif op == "let" then
        return { op = op, name = node.name, value = fold(node.value), body = fold(node.body) }
    elseif op == "if" then
        return { op = op, cond = fold(node.cond), yes = fold(node.yes), no = fold(node.no) }
    elseif op == "call" then
        local args = {}
        for i, a in ipairs(node.args) do
            args[i] = fold(a)
        end
        return { op = op, name = node.name, args = args }
    end
    return node
end

local function eval(node, scope)
    local op = node.op
    if op == "const" then
        return node.value
    elseif op == "var" then
        return scope[node.name]
    elseif op == "let" then
        local inner = setmetatable({ [node.name] = eval(node.value, scope) }, { __index = scope })
        return eval(node.body, inner)
    elseif op == "if" then
        return eval(eval(node.cond, scope) ~= 0 and node.yes or node.no, scope)
    elseif op == "call" then
        local best = eval(node.args[1], scope)
        for i = 2, #node.args do
            best = math.max(best, eval(node.args[i], scope))
        end
        return best
    end
    return arithmetic[op](eval(node.left, scope), eval(node.right, scope))
end

local globals = {}
for i = 1, 20 do
    globals["v" .. i] = i * i
end

local kept = {}
for round = 1, kit.size(550) do
    local parser = setmetatable({ tokens = tokenise(source(7)), at = 1 }, Parser)
    local tree = parser:expression()
    parser:take("eof")
    local folded = fold(tree)
    local value = eval(tree, globals)
    kit.check(eval(folded, globals) == value, "value of the folded tree")
    kept[round % 60] = { tree, folded }
    kit.add(value)
end
kit.finish("parser")

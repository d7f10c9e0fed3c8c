-- A JSON codec in Lua: documents are built, encoded, decoded and compared.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(29)

local null = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }
local unescapes = {
    ['"'] = '"', ["\\"] = "\\", ["/"] = "/", n = "\n", t = "\t", r = "\r", b = "\b", f = "\f",
}

local encode_value

local function encode_string(s, out)
    out[#out + 1] = '"' .. s:gsub('["\\%c]', function(c)
        return escapes[c] or string.format("\\u%04x", c:byte())
    end) .. '"'
end

local function encode_table(t, out)
    if #t > 0 then
        for i = 1, #t do
            out[#out + 1] = i == 1 and "[" or ","
            encode_value(t[i], out)
        end
        out[#out + 1] = "]"
        return
    end
    local names = {}
    for name in pairs(t) do
        names[#names + 1] = name
    end
    table.sort(names)
    out[#out + 1] = "{"
    for i, name in ipairs(names) do
        if i > 1 then
            out[#out + 1] = ","
        end
        encode_string(name, out)
        out[#out + 1] = ":"
        encode_value(t[name], out)
    end
    out[#out + 1] = "}"
end

function encode_value(v, out)
    local kind = type(v)
    if v == null then
        out[#out + 1] = "null"
    elseif kind == "table" then
        encode_table(v, out)
    elseif kind == "string" then
        encode_string(v, out)
    elseif kind == "number" then
        out[#out + 1] = v % 1 == 0 and string.format("%d", v) or string.format("%.14g", v)
    else
        out[#out + 1] = tostring(v)
    end
end

local function encode(v)
    local out = {}
    encode_value(v, out)
    return table.concat(out)
end

local decode_value

local function skip(s, at)
    return s:find("[^ \t\r\n]", at) or #s + 1
end

local function decode_string(s, at)
    local close = s:find('["\\]', at)
    if close and s:byte(close) == 34 then
        return s:sub(at, close - 1), close + 1
    end
    local parts = {}
    while true do
        close = s:find('["\\]', at) or error("string without an end")
        parts[#parts + 1] = s:sub(at, close - 1)
        if s:byte(close) == 34 then
            return table.concat(parts), close + 1
        end
        local c = s:sub(close + 1, close + 1)
        if c == "u" then
            parts[#parts + 1] = string.char(tonumber(s:sub(close + 2, close + 5), 16))
            at = close + 6
        else
            parts[#parts + 1] = unescapes[c] or error("unknown escape " .. c)
            at = close + 2
        end
    end
end

local function decode_array(s, at)
    local t = {}
    at = skip(s, at)
    if s:byte(at) == 93 then
        return t, at + 1
    end
    while true do
        t[#t + 1], at = decode_value(s, at)
        at = skip(s, at)
        local c = s:byte(at)
        if c == 93 then
            return t, at + 1
        end
        kit.check(c == 44, "comma in an array")
        at = at + 1
    end
end

local function decode_object(s, at)
    local t = {}
    at = skip(s, at)
    if s:byte(at) == 125 then
        return t, at + 1
    end
    while true do
        at = skip(s, at)
        kit.check(s:byte(at) == 34, "name in an object")
        local name
        name, at = decode_string(s, at + 1)
        at = skip(s, at)
        kit.check(s:byte(at) == 58, "colon in an object")
        t[name], at = decode_value(s, at + 1)
        at = skip(s, at)
        local c = s:byte(at)
        if c == 125 then
            return t, at + 1
        end
        kit.check(c == 44, "comma in an object")
        at = at + 1
    end
end

function decode_value(s, at)
    at = skip(s, at)
    local c = s:byte(at)
    if c == 123 then
        return decode_object(s, at + 1)
    elseif c == 91 then
        return decode_array(s, at + 1)
    elseif c == 34 then
        return decode_string(s, at + 1)
    elseif c == 116 then
        return true, at + 4
    elseif c == 102 then
        return false, at + 5
    elseif c == 110 then
        return null, at + 4
    end
    local from, to = s:find("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    kit.check(from, "a value")
    return tonumber(s:sub(from, to)), to + 1
end

local function document(rows)
    local doc = { title = 'stock "A"\tlist', version = 3, draft = false, parent = null, rows = {} }
    for i = 1, rows do
        doc.rows[i] = {
            sku = string.format("%08d", random(1e7)),
            name = "part\n" .. random(500),
            price = random(100000) / 4,
            sizes = { random(40), random(40), random(40), random(40) },
            stock = { hall = random(9), shelf = random(99), checked = i % 2 == 0 },
        }
    end
    return doc
end

local archive = {}
for round = 1, kit.size(38) do
    local text = encode(document(500))
    local doc, stop = decode_value(text, 1)
    kit.check(stop == #text + 1 and #doc.rows == 500 and doc.parent == null, "shape of the document")
    kit.check(encode(doc) == text, "encode after decode")
    archive[round % 6] = doc
    kit.add(#text)
    kit.add_string(text:sub(-300))
end
kit.finish("json")

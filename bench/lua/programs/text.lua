-- Strings: concatenation, format, gsub, find, sub, table.concat over generated prose.
local kit = dofile((arg[0]:match("^.*/") or "") .. "../kit.lua")
local random = kit.random(23)

local syllables = { "ka", "lo", "mi", "ren", "tu", "vas", "o", "per", "sil", "qua", "ne", "dor" }

local function word()
    local w = ""
    for _ = 1, random(4) do
        w = w .. syllables[random(12)]
    end
    return w
end

local function paragraph(words)
    local parts = {}
    for i = 1, words do
        parts[i] = word()
        if i % 9 == 0 then
            parts[i] = parts[i] .. "."
        end
    end
    return table.concat(parts, " ")
end

local function capitalise(first, rest)
    return first:upper() .. rest
end

local function wrap(text, width)
    local lines, line = {}, ""
    for w in text:gmatch("%S+") do
        if #line + #w + 1 > width then
            lines[#lines + 1] = line
            line = w
        elseif line == "" then
            line = w
        else
            line = line .. " " .. w
        end
    end
    lines[#lines + 1] = line
    return lines
end

local pages = {}
for page = 1, kit.size(480) do
    local text = paragraph(900)
    local title = text:gsub("(%a)(%a*)", capitalise)
    kit.check(#title == #text and title:lower() == text, "capitalised text")
    local escaped = text:gsub("[.o]", { ["."] = "&dot;", o = "&o;" })
    local back = escaped:gsub("&(%a+);", function(name)
        return name == "dot" and "." or name
    end)
    kit.check(back == text, "escaped and back")
    local lines = wrap(title, 60)
    for i, line in ipairs(lines) do
        lines[i] = string.format("%4d| %-60s|%6.2f", i, line, #line / 60)
    end
    local out = table.concat(lines, "\n")
    kit.check(select(2, out:gsub("\n", "\n")) == #lines - 1, "number of lines")
    -- Every eighth page stays; the others are garbage.
    if page % 8 == 0 then
        pages[#pages + 1] = out
    end
    kit.add(#out)
    kit.add(#escaped)
    local at, hits = 1, 0
    while true do
        local from, to = out:find("Ka%a+", at)
        if not from then
            break
        end
        hits = hits + #out:sub(from, to)
        at = to + 1
    end
    kit.add(hits)
end
for _, page in ipairs(pages) do
    kit.add_string(page:sub(1, 200))
end
kit.finish("text")
